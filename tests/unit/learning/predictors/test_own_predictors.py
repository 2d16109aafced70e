"""A user's own predictors: what they see, what their failures are, what is refused."""

from __future__ import annotations

from itertools import product
from math import inf, nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError
from app.hypotheses import predictors as public_path
from app.learning.hypothesis import ClassAsked
from app.learning.predictors.own_predictors import (
    ROWS_PER_BLOCK,
    DescribedPredictor,
    Labels,
    Predictor,
    Predictors,
    PublicFeature,
    posted_row,
    row_of,
)
from app.learning.predictors.predictor_classes import (
    PredictorSource,
    is_predictor_kind,
    predictor_class,
    read_predictor,
)
from app.learning.registry import dichotomy_class, dichotomy_count_bound, hypothesis_class
from tests.builders.learners import own_predictors

OWN = own_predictors.__name__
AGE = PublicFeature(name="age", bounds=(0.0, 100.0))
HOME = PublicFeature(name="home", categories=("town", "country"))
FEATURES = (AGE, HOME)
TOWN, COUNTRY, OTHER, MISSING = 0.0, 1.0, 2.0, 3.0
VALUES = np.array([[30.0, TOWN], [10.0, COUNTRY], [nan, OTHER], [18.0, MISSING]])


def source(kind: str, *paths: str) -> PredictorSource:
    """Return where predictors of this folder come from."""
    return PredictorSource(
        section="hypotheses",
        kind=kind,
        paths=tuple(f"{OWN}:{path}" for path in paths),
        features=FEATURES,
        classes=("no", "yes"),
    )


def predictors_of(*predict: Any, classes: tuple[str, ...] = ("no", "yes")) -> Predictors:
    """Return a list of functions."""
    found = [
        DescribedPredictor(SimpleNamespace(predict=each, describe=dict), {}) for each in predict
    ]
    return Predictors("finite", FEATURES, Labels(classes), found)


def test_a_row_is_what_might_have_been_posted() -> None:
    """Codes are categories again, other is other, and what is missing is None."""
    rows = [dict(row_of(FEATURES, row)) for row in VALUES.tolist()]
    assert rows == [
        {"age": 30.0, "home": "town"},
        {"age": 10.0, "home": "country"},
        {"age": None, "home": "other"},
        {"age": 18.0, "home": None},
    ]


def test_other_is_no_category() -> None:
    """A feature with categories called other has another word for all the rest."""
    feature = PublicFeature(name="x", categories=("other", "_other"))
    assert [feature.value(code) for code in (0.0, 1.0, 2.0, 3.0)] == [
        "other",
        "_other",
        "__other",
        None,
    ]


@pytest.mark.parametrize(
    ("posted", "seen"),
    [
        ((130.0, "town"), {"age": 100.0, "home": "town"}),
        ((-1.0, "village"), {"age": 0.0, "home": "other"}),
        ((None, None), {"age": None, "home": None}),
        (("?", "?"), {"age": None, "home": None}),
        ((5.0, ""), {"age": 5.0, "home": None}),
    ],
)
def test_a_posted_row_is_seen_as_a_private_one(posted: Any, seen: dict[str, object]) -> None:
    """Clipped, folded into other, and missing by every token, as in the data."""
    assert dict(posted_row(FEATURES, posted, missing=frozenset({"?", ""}))) == seen


def test_a_feature_has_one_kind() -> None:
    """Neither both bounds and categories nor neither."""
    with pytest.raises(InvariantError):
        PublicFeature(name="x")
    with pytest.raises(InvariantError):
        PublicFeature(name="x", bounds=(0.0, 1.0), categories=("a",))


@pytest.mark.parametrize(
    ("said", "index"),
    [
        ("no", 0),
        ("2", 1),
        (2, 1),
        (np.int64(2), 1),
        (np.str_("2"), 1),
        ("never heard of", 0),
        (True, 0),
        (2.0, 0),
        (None, 0),
        ([], 0),
    ],
    ids=repr,
)
def test_a_label_is_a_name_or_its_digits(said: object, index: int) -> None:
    """Anything that names no class is class 0, true and 2.0 included."""
    listed = predictors_of(lambda _: said, classes=("no", "2"))
    assert listed.predict(VALUES[:1]).tolist() == [[index]]


def test_a_failure_is_class_zero_and_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    """An exception on a row, and what is printed of it, stay where they are."""
    found = predictor_class(
        source("finite", "is_grown_up", "lives_in_town", "always_yes", "tries_to_change")
    )
    classes_of = PredictorSource(
        section="hypotheses",
        kind="finite",
        paths=(f"{OWN}:lives_in_town",),
        features=FEATURES,
        classes=("0", "1"),
    )
    assert found.hypotheses.predict(VALUES).tolist() == [
        [1, 0, 0, 1],
        [0, 0, 0, 0],
        [1, 1, 1, 1],
        [0, 0, 0, 0],
    ]
    assert predictor_class(classes_of).hypotheses.predict(VALUES).tolist() == [[1, 0, 0, 0]]
    assert capfd.readouterr() == ("", "")


def test_errors_are_counted_as_predictions_say() -> None:
    """Rows alike, three labels and missing numbers are counted exactly, one call a distinct row."""
    seen: list[object] = []

    def spies(row: Any) -> str:
        seen.append(row["age"])
        return "abc"[int(row["age"] // 40)]

    listed = predictors_of(spies, lambda _: "b", classes=("a", "b", "c"))
    values = np.array([[10.0, TOWN], [50.0, TOWN], [90.0, TOWN], [nan, TOWN], [10.0, TOWN]])
    labels = np.array([0, 2, 2, 0, 1])
    expected = (listed.predict(values) != labels).sum(axis=1)
    seen.clear()
    assert listed.error_counts(values, labels).tolist() == expected.tolist() == [2, 4]
    assert len(seen) == 4


def test_many_rows_are_asked_about_in_blocks() -> None:
    """A block's end loses no row."""
    listed = predictors_of(lambda row: "yes" if row["age"] > 50 else "no")
    values = np.zeros((ROWS_PER_BLOCK + 3, 2))
    values[-2:, 0] = 60.0
    assert listed.predict(values).sum() == 2


def test_no_rows_are_no_errors() -> None:
    """An empty set of rows asks nobody."""
    listed = predictors_of(lambda _: "yes")
    none = np.zeros((0, 2))
    assert listed.error_counts(none, np.zeros(0, dtype=np.int64)).tolist() == [0]
    assert listed.predict(none).shape == (1, 0)


def test_taking_keeps_the_order_and_repeats() -> None:
    """An ensemble's votes are a list with repeats, of the same class."""
    listed = predictors_of(lambda _: "yes", lambda _: "no")
    taken = listed.take(np.array([1, 0, 1]))
    assert taken.predict(VALUES[:1]).tolist() == [[0], [1], [0]]
    assert taken.kind == "finite"
    assert taken.public_frequencies.tolist() == [0.5] * 3
    assert listed.encode(VALUES) is VALUES


def test_a_finite_class_is_its_functions() -> None:
    """Size, labels, a bound of the dimension, and descriptions that name the code."""
    found = predictor_class(source("finite", "always_yes", "is_grown_up"))
    assert (found.size, found.class_count, found.dimension) == (2, 2, 1)
    assert found.hypotheses.describe(1) == {"predictor": f"{OWN}:is_grown_up"}


def test_a_class_of_ones_own_may_depend_on_public_points() -> None:
    """Without points it lists its grid, with points what they give."""
    own = source(f"{OWN}:Cuts")
    points = np.array([[25.0, TOWN], [nan, OTHER], [75.0, COUNTRY]])
    plain, pointed = predictor_class(own), predictor_class(own, points)
    assert [plain.hypotheses.describe(index)["cut"] for index in range(plain.size)] == [20, 40, 60]
    assert [pointed.hypotheses.describe(index)["cut"] for index in range(2)] == [25, 75]
    assert (plain.size, plain.dimension) == (3, 1)


@pytest.mark.parametrize(
    ("own", "description"),
    [
        (source(f"{OWN}:Cuts"), {"cut": 15.0}),
        (source("finite"), {"predictor": f"{OWN}:is_grown_up"}),
    ],
)
def test_a_predictor_is_rebuilt_from_its_description(
    own: PredictorSource, description: dict[str, object]
) -> None:
    """What is published predicts again, and describes itself as before."""
    again = read_predictor(own, description)
    assert [again.predict({"age": age}) for age in (5.0, 30.0)] == ["no", "yes"]
    assert again.describe() == description


@pytest.mark.parametrize(
    ("own", "line"),
    [
        (source("finite", "always_yes", "gone"), r"hypotheses\.predictors\[1\]: importing .*gone"),
        (source("finite", "NOT_CALLABLE"), r"hypotheses\.predictors\[0\]: .* cannot be called"),
        (source("no.such.module:Class"), r"hypotheses\.class: importing no\.such\.module:Class"),
        (source(f"{OWN}:FailsWhenMade"), r"failed: RuntimeError: three features please$"),
        (source(f"{OWN}:Empty"), r"hypotheses returns no predictor"),
        (source(f"{OWN}:Endless"), r"number 2097152"),
        (source(f"{OWN}:Mute"), r"has no predict\(row\)"),
        (source(f"{OWN}:Forgetful"), r"read must return a predictor"),
        (source(f"{OWN}:WithoutRead"), r"has no read\(\)"),
        (source(f"{OWN}:NegativeDimension"), r"dimension must be a whole number"),
        (source(f"{OWN}:always_yes"), r"hypotheses\.class: .*always_yes failed: TypeError"),
    ],
)
def test_code_that_cannot_serve_is_one_clear_line(own: PredictorSource, line: str) -> None:
    """What is wrong is named by its key before a row is read."""
    with pytest.raises(ConfigurationError, match=line) as refused:
        predictor_class(own)
    assert "\n" not in str(refused.value)


def test_a_class_without_a_dimension_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dimension is a part of the protocol."""
    monkeypatch.delattr(own_predictors.Cuts, "dimension")
    with pytest.raises(ConfigurationError, match="has no dimension"):
        predictor_class(source(f"{OWN}:Cuts"))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (None, "must be a mapping"),
        ([1], "must be a mapping"),
        ({"cut": inf}, "float is no plain value"),
        ({"cut": 1 << 64}, "int is no plain value"),
        ({"cut": {1: 2}}, "dict is no plain value"),
        ({"cut": b"bytes"}, "bytes is no plain value"),
        ({"cut": "x" * 10_001}, "longer than 10000 characters"),
    ],
)
def test_a_description_is_plain(
    said: object, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be published is refused when the class is made, not when it is drawn."""
    monkeypatch.setattr(own_predictors.Indescribables, "said", said)
    with pytest.raises(ConfigurationError, match=f"describe.. .*{problem}"):
        predictor_class(source(f"{OWN}:Indescribables"))


def test_a_description_is_kept_as_json_would_give_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples are lists, and what else is plain stays as it is."""
    said = {"cut": 1.5, "more": (1, True, None, {"a": ("b",)})}
    monkeypatch.setattr(own_predictors.Indescribables, "said", said)
    found = predictor_class(source(f"{OWN}:Indescribables"))
    assert found.hypotheses.describe(0) == {"cut": 1.5, "more": [1, True, None, {"a": ["b"]}]}


def test_a_kind_is_a_name_or_a_path() -> None:
    """Only finite and import paths are a user's own."""
    assert is_predictor_kind("finite")
    assert is_predictor_kind("a.b:C")
    assert not is_predictor_kind("trees")


def test_modules_are_named_once() -> None:
    """The code to bind is that of every module named."""
    assert source("finite", "always_yes", "is_grown_up").modules() == (OWN,)
    assert source("a.b:C").modules() == ("a.b",)


def test_private_rows_have_one_predictor_a_labelling() -> None:
    """The class is told nothing of the rows, which only tell its predictors apart."""
    own = source("finite", "always_yes", "is_grown_up", "lives_in_town", "tries_to_change")
    listed = dichotomy_class(
        ClassAsked(kind="finite", columns=(), depth=1, class_count=2, predictors=own), VALUES
    )
    labels = {tuple(row) for row in listed.hypotheses.predict(VALUES).tolist()}
    assert labels == {(1, 1, 1, 1), (1, 0, 0, 1), (0, 0, 0, 0)}
    assert listed.size == len(labels)
    bound = dichotomy_count_bound(
        ClassAsked(kind="finite", columns=(), depth=1, class_count=2, predictors=own), 4
    )
    assert bound == 4


def test_the_registry_needs_to_be_told_of_predictors() -> None:
    """A kind of predictors without their source is refused by name."""
    assert (
        hypothesis_class(
            ClassAsked(
                kind="finite",
                tests=(),
                depth=1,
                class_count=2,
                predictors=source("finite", "always_yes"),
            )
        ).size
        == 1
    )
    with pytest.raises(ConfigurationError, match="a:B needs its predictors"):
        hypothesis_class(ClassAsked(kind="a:B", tests=(), depth=1, class_count=2))


def test_a_class_keeps_every_pair_of_rows_apart_that_it_can() -> None:
    """Restricted to public points, one predictor of each labelling is left, the first."""
    found = predictor_class(source(f"{OWN}:Cuts"))
    points = np.array(list(product([10.0, 30.0, 35.0], [TOWN])))
    kept = found.restricted_to(found.encode(points))
    assert [kept.hypotheses.describe(index)["cut"] for index in range(kept.size)] == [20, 40]


def test_the_path_that_users_import_from_stays() -> None:
    """What predictor files of users import is what the classes of today are made of."""
    assert public_path.PublicFeature is PublicFeature
    assert public_path.Predictor is Predictor
