"""Columns of a data frame by name: what they are is said by parameters, never by the rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from app.estimator import PrivateQueryClassifier, UnchargedDataWarning
from app.estimator.frame_columns import Columns, public_columns
from tests.frames.data_frames import pd

COUNT = 400
BOUNDS = {"age": (0, 120)}
CATEGORIES = {"sex": ["f", "m"], "smoker": [False, True]}


def frame() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return people made up, and labels that follow two of their columns."""
    generator = np.random.default_rng(11)
    people = pd.DataFrame(
        {
            "age": generator.integers(0, 120, COUNT),
            "sex": generator.choice(["f", "m"], COUNT),
            "smoker": generator.random(COUNT) < 0.5,
        }
    )
    return people, np.where(people["smoker"] & (people["age"] >= 60), "yes", "no")


def published(**changes: Any) -> PrivateQueryClassifier:
    """Return an estimator of a published classifier alone, not fitted."""
    usual: dict[str, Any] = {
        "epsilon": 50.0,
        "bounds": BOUNDS,
        "categories": CATEGORIES,
        "classes": ["no", "yes"],
        "shares": {"classifier": 1.0},
    }
    return PrivateQueryClassifier(**{**usual, **changes})


def columns_of(values: np.ndarray[Any, Any], **parameters: Any) -> Columns:
    """Return the columns of an array, without bounds or categories unless they are given."""
    return public_columns(values, **{"bounds": None, "categories": None, **parameters})


def test_columns_of_a_frame_are_named() -> None:
    """By name or by place, bounds and categories are those of the same columns."""
    people, labels = frame()
    by_name = published().fit(people, labels)
    by_place = published(
        bounds={0: (0, 120)}, categories={1: ["f", "m"], "smoker": [False, True]}
    ).fit(people, labels)
    assert by_name._columns == by_place._columns
    assert by_name._columns.names == ["age", "sex", "smoker"]
    # A tree that errs does so on five rows or more, the fewest of a sixteenth of the ages that
    # smoke or do not: at epsilon 50 it is drawn with a chance below e**-125 times a million trees.
    assert by_name.predict(people).tolist() == labels.tolist()


def test_bounds_of_categorical_columns_are_not_asked_for() -> None:
    """In a list of bounds their place holds anything, and no number is read from the rows."""
    people, _ = frame()
    values = people.to_numpy(dtype=object)
    places: dict[str, Any] = {"categories": {1: ["f", "m"], 2: [False, True]}}
    expected = columns_of(values, bounds={0: (0, 120)}, **places)
    assert columns_of(values, bounds=(0, 120), **places) == expected
    assert columns_of(values, bounds=[(0, 120), None, "-"], **places) == expected
    with pytest.warns(UnchargedDataWarning):
        columns_of(values, **places)
    columns_of(values[:, 1:], categories={0: ["f", "m"], 1: [False, True]})


def test_a_dtype_makes_categories_only_where_it_is_said() -> None:
    """What pandas took from the rows is no configuration unless the parameter says so."""
    people, labels = frame()
    typed = people.astype({"sex": "category"})
    for said in ("dtype", {"sex": "dtype", "smoker": "dtype"}):
        fitted = published(categories=said).fit(typed, labels)
        assert fitted._columns == published().fit(people, labels)._columns
    for unsaid in (None, {"sex": ["f", "m"]}):
        with pytest.raises(ValueError, match=r"^bounds: none for .*'smoker'"):
            published(categories=unsaid).fit(typed, labels)


def test_a_dtype_of_more_categories_than_the_rows_have_counts_whole() -> None:
    """Categories that a caller declared stand, in their order, whatever the rows hold."""
    people, labels = frame()
    declared = pd.CategoricalDtype(["x", "m", "f"])
    fitted = published(categories="dtype").fit(people.astype({"sex": declared}), labels)
    assert fitted._columns.columns[1].table()["categories"] == ["x", "m", "f"]


@pytest.mark.parametrize(
    "values",
    [
        [True, False, None],
        [1, 0, None],
        [1.0, -0.0, float("nan")],
        ["True", "False", ""],
        [np.True_, np.float32(0), pd.NA],
    ],
    ids=["booleans", "integers", "floats", "texts", "types of libraries"],
)
def test_a_boolean_is_one_however_an_array_holds_it(values: list[Any]) -> None:
    """True is 1 beside numbers, and so the second category; a text is so by its spelling."""
    table = pd.DataFrame({"smoker": pd.Series(values, dtype=object), "age": 1.0})
    people, labels = frame()
    fitted = published().fit(people, labels)
    asked = fitted._given(table.assign(sex="f")[["age", "sex", "smoker"]])
    cells = fitted._columns.columns[2].cells(np.asarray(asked)[:, 2])
    assert cells == ["True", "False", None]


def test_no_spelling_of_missing_is_another_category() -> None:
    """None, NaN and what pandas writes for a missing value are one, in every dtype."""
    people, labels = frame()
    fitted = published().fit(people, labels)
    asked = pd.DataFrame(
        {
            "age": pd.array([1, None, None, None], dtype="Int64"),
            "sex": pd.Series([None, float("nan"), pd.NA, pd.NaT], dtype=object),
            "smoker": pd.array([None, None, None, None], dtype="boolean"),
        }
    )
    vectors = fitted._columns.vectors(np.asarray(fitted._given(asked)))
    assert vectors == [(1.0, None, None), *[(None, None, None)] * 3]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"bounds": {"Age": (0, 1)}}, "bounds: 'Age' is no column; there are 'age', 'sex', "),
        ({"bounds": {}}, "bounds: none for 'age'; a number needs public"),
        ({"bounds": {"age": 3}}, "bounds: those of 'age' must be one (lower, upper)"),
        ({"bounds": {"age": ("a", "b")}}, "bounds: those of 'age' must be one (lower, upper)"),
        ({"bounds": {"age": (120, 0)}}, "bounds of 'age': lower must be below upper"),
        ({"bounds": {"age": (0, 1), 0: (0, 1)}}, "bounds: 0 is named twice"),
        ({"bounds": {"age": (0, 1), "sex": (0, 1)}}, "bounds: 'sex' has categories"),
        ({"bounds": 3}, "bounds: must be one (lower, upper), or one for each of 3"),
        ({"categories": {True: ["f"]}}, "categories: True is no column; there are 3"),
        ({"categories": {"sex": "fm"}}, "categories: those of 'sex' must be a list"),
        ({"categories": {"sex": 3}}, "categories: those of 'sex' must be a list"),
        ({"categories": {"age": "dtype"}}, "categories: 'age' is \"dtype\", and the column has"),
        ({"categories": "dtypes"}, "categories: must be a mapping"),
        (
            {"categories": {"sex": ["f", "f"], "smoker": "dtype"}},
            "categories[1] of 'sex': is the same as categories[0]",
        ),
    ],
)
def test_a_wrong_column_is_named(changes: dict[str, Any], line: str) -> None:
    """The line begins with the parameter and names the column, and nothing is charged."""
    private = published(**changes)
    with pytest.raises(ValueError, match=f"^{re.escape(line)}"):
        private.fit(*frame())
    assert not hasattr(private, "budget_")


def test_names_need_a_frame() -> None:
    """An array has no names, and no types of its columns either."""
    people, labels = frame()
    values = people.to_numpy(dtype=object)
    with pytest.raises(ValueError, match=r"^categories: 'sex' is a name, and X has none"):
        published().fit(values, labels)
    with pytest.raises(ValueError, match=r"^categories: must be a mapping, or \"dtype\" where X"):
        published(bounds=(0, 120), categories="dtype").fit(values, labels)


def test_a_text_in_a_numeric_column_is_refused_by_its_column() -> None:
    """The line names the column and quotes no cell."""
    people, labels = frame()
    people["age"] = people["age"].astype(object)
    people.loc[7, "age"] = "forty"
    with pytest.raises(ValueError, match=r"^a cell of the numeric column 'age' is not a number$"):
        published().fit(people, labels)


def test_a_column_may_have_the_name_of_the_label() -> None:
    """The label and the persons of a release have names that no column has."""
    people, labels = frame()
    people = people.rename(columns={"sex": "label", "smoker": "groups"})
    fitted = published(categories={"label": ["f", "m"], "groups": [False, True]}).fit(
        people, labels, groups=list(range(COUNT))
    )
    assert fitted.budget_["unit"] == "person"
    assert fitted._columns.names == ["age", "label", "groups"]
