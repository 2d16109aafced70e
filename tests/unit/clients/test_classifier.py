"""The client's reading of a published classifier: the server's labels, each row alone."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.data.schema import BooleanFeature, CategoricalFeature, Schema
from app.data.vectors import encode, parse_features
from app.errors import InvalidFeaturesError
from app.release.classifier.published_classifier import PublishedClassifier
from conclave_client import Classifier, UnsupportedClassifierError, frames, load_classifier
from tests.builders.release.classifier_documents import documents, vectors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DOCUMENT: Mapping[str, Any] = {
    "format": "conclave-classifier",
    "version": 1,
    "release": "r",
    "label": "income",
    "classes": ["low", "high"],
    "missing": ["?", "99.0"],
    "features": [
        {"name": "age", "kind": "numeric", "bounds": [17.0, 90.0]},
        {"name": "work", "kind": "categorical", "categories": ["Private", "State"]},
    ],
    "tree": {
        "feature": 0,
        "at_least": 40.0,
        "true": {"label": "high"},
        "false": {
            "feature": 1,
            "category": "State",
            "true": {"label": "high"},
            "false": {"label": "low"},
        },
    },
}
ROWS: list[list[Any]] = [
    [52, "Private"],
    [20.5, "State"],
    [None, None],
    [99, ""],
    [1e9, "elsewhere"],
]
LABELS = ["high", "high", "low", "low", "high"]
AGES = [None if age is None else float(age) for age, _ in ROWS]
WORKS = [work for _, work in ROWS]


class DataFrame:
    """As much of a data frame as is used: columns by name, which become lists."""

    columns = ("work", "age", "of no interest")

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        """Return a column."""
        return pa.table({"age": AGES, "work": WORKS})[name]


FRAMES = {
    "rows": ROWS,
    "rows by name": [{"work": work, "age": age} for age, work in ROWS],
    "columns": {"age": np.array(AGES, dtype=np.float64), "work": WORKS},
    "columns of objects": {"work": np.array(WORKS, dtype=object), "age": np.array(AGES)},
    "an array of objects": np.array(ROWS, dtype=object),
    "a structured array": np.array(
        [
            (np.nan if age is None else age, work or "")
            for age, work in zip(AGES, WORKS, strict=True)
        ],
        dtype=[("age", "f8"), ("work", "U20")],
    ),
    "an Arrow table": pa.table({"age": AGES, "work": WORKS}),
    "a data frame": DataFrame(),
}


@settings(max_examples=50)
@given(st.data())
def test_any_document_predicts_as_the_server_does(data: st.DataObject) -> None:
    """Random documents give the server's labels to rows in company, in any order and alone."""
    document = data.draw(documents())
    published = PublishedClassifier(document, msgspec.json.encode(document))
    rows = data.draw(vectors(document))
    client = Classifier.read(published.json)
    together = client.predict(rows).tolist()
    assert together == [published.predict(row) for row in rows]
    assert client.predict(rows[::-1]).tolist()[::-1] == together
    assert [client.predict([row]).item() for row in rows] == together
    if document.scores is not None:
        alone = [client.scores([row]).tolist()[0] for row in rows]
        assert client.scores(rows).tolist() == alone


def test_sums_beyond_64_bits_are_exact() -> None:
    """A halfspace whose products need more than 64 bits decides by integers all the same."""
    levels = [{"weights": [1 << 80, -(1 << 80) + 1], "offset": 0}]
    halfspace = {"features": [0, 1], "bounds": [[0, 1]] * 2, "steps": 1000, "levels": levels}
    numbers = [{"name": name, "kind": "numeric", "bounds": [0, 1]} for name in "ab"]
    document = {**DOCUMENT, "version": 2, "features": numbers, "halfspace": halfspace}
    classifier = Classifier({name: each for name, each in document.items() if name != "tree"})
    rows = np.array([[0.5, 0.5], [0.0, 0.0], [0.5, 0.501], [0.501, 0.5]])
    assert classifier.predict(rows).tolist() == ["high", "low", "low", "high"]


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_any_kind_of_table_is_read(frame: Any) -> None:
    """Columns are found by name, rows by the order of the features or by name."""
    assert Classifier(DOCUMENT).predict(frame).tolist() == LABELS


def test_dates_and_booleans_are_read_as_they_are_asked() -> None:
    """A date is a text, a date of some library, or its days; a boolean is one or its name."""
    features: list[dict[str, object]] = [
        {"name": "born", "kind": "date", "bounds": [-36524.0, 20000.0]},
        {"name": "smoker", "kind": "boolean", "categories": ["false", "true"]},
    ]
    tree = {
        "feature": 0,
        "at_least": 10957.0,
        "true": {"label": "high"},
        "false": {
            "feature": 1,
            "category": "true",
            "true": {"label": "high"},
            "false": {"label": "low"},
        },
    }
    classifier = Classifier({**DOCUMENT, "features": features, "tree": tree})
    young = ["2000-01-01", dt.date(2000, 1, 1), np.datetime64("2000-01-01T23:00"), 10957.0]
    old = ["1999-12-31", dt.datetime(1999, 12, 31, 23, tzinfo=dt.UTC), 99.0, None, "", math.nan]
    rows = [[born, False] for born in (*young, *old)]
    assert classifier.predict(rows).tolist() == ["high"] * len(young) + ["low"] * len(old)
    smokers = [[None, each] for each in (True, np.True_, "true", False, "false", None)]
    assert classifier.predict(smokers).tolist() == ["high"] * 3 + ["low"] * 3
    with pytest.raises(ValueError, match=r"^born: a date such as 2026-12-31 is needed$"):
        classifier.predict([["1.1.2000", True]])
    with pytest.raises(UnsupportedClassifierError, match="a kind of feature"):
        Classifier({**DOCUMENT, "features": [{**features[0], "kind": "colour"}, features[1]]})


@pytest.mark.parametrize("names", [["False", "True"], ["false", "true"]])
def test_a_boolean_is_the_category_that_it_is_to_the_server(names: list[str]) -> None:
    """What pandas writes as True is the category True, and true where there is no such one."""
    work = CategoricalFeature(name="work", categories=tuple(names))
    schema = Schema(label="y", classes=("low", "high"), features=(work,))
    feature = {"name": "work", "kind": "categorical", "categories": names}
    leaves = {"true": {"label": "high"}, "false": {"label": "low"}}
    for truth in (True, False):
        (known,) = parse_features(schema, [truth])
        tree = {"feature": 0, "category": known, **leaves}
        classifier = Classifier({**DOCUMENT, "features": [feature], "tree": tree})
        assert classifier.predict({"work": np.array([truth])}).tolist() == ["high"]


@pytest.mark.parametrize("kind", [CategoricalFeature, BooleanFeature])
@given(
    st.lists(st.sampled_from(["7", "7.0", "07", "-1e3", "x", "True", "false"]), min_size=1),
    st.sets(st.sampled_from(["7", "99", "?", "true", "inf"])),
    st.sampled_from([7, 7.0, 99, -1000, -1000.0, -0.0, 0, 1, 5.5, 1e22, True, False, None, "07"])
    | st.sampled_from(["yes", "TRUE", " f", "x", "?", " ?", "99.0", "7e0", "1.0", "2", "", " "]),
)
def test_any_value_is_the_category_that_it_is_to_the_server(
    kind: type[Any], listed: list[str], missing: set[str], value: Any
) -> None:
    """A number and a boolean too; both refuse one where no name is a number, or a boolean."""
    is_boolean = kind is BooleanFeature
    names = ["false", "true"] if is_boolean else list(dict.fromkeys(listed))
    tokens = missing - {"true"} if is_boolean else missing
    feature = kind(name="w") if is_boolean else kind(name="w", categories=tuple(names))
    schema = Schema(label="y", classes=("low", "high"), features=(feature,), missing=tuple(tokens))
    frame = frames.truths_of if is_boolean else frames.codes_of
    try:
        code = int(encode(schema, [parse_features(schema, [value])])[0, 0])
    except InvalidFeaturesError:
        wanted = r"^w: true or false is needed$" if is_boolean else r"^w: a string.* is needed$"
        with pytest.raises(ValueError, match=wanted):
            frame([value], "w", names, frames.MissingTokens.of(tokens))
        return
    found = frame([value], "w", names, frames.MissingTokens.of(tokens))
    assert found.tolist() == [code]


def test_every_spelling_of_a_boolean_is_read() -> None:
    """A boolean feature takes what the server takes of it: texts in any capitals, and 0 and 1."""
    smoker = {"name": "smoker", "kind": "boolean", "categories": ["false", "true"]}
    leaves = {"true": {"label": "high"}, "false": {"label": "low"}}
    tree = {"feature": 0, "category": "true", **leaves}
    classifier = Classifier({**DOCUMENT, "features": [smoker], "tree": tree})
    true = [True, np.True_, 1, 1.0, np.int64(1), "TRUE", "True", " t", "1.0"]
    rows = [[each] for each in (*true, False, 0, "F", None, "?")]
    assert classifier.predict(rows).tolist() == ["high"] * len(true) + ["low"] * 5


def test_a_date_that_is_a_token_is_missing_however_it_is_written() -> None:
    """As in the sources: a date, a moment or its text; its number of days is another matter."""
    born = {"name": "born", "kind": "date", "bounds": [-36524.0, 20000.0]}
    tree = {"feature": 0, "at_least": 0.0, "true": {"label": "high"}, "false": {"label": "low"}}
    missing = ["9999-12-31", "1900-01-01T00:00"]
    document = {**DOCUMENT, "missing": missing, "features": [born], "tree": tree}
    last = dt.date(9999, 12, 31)
    given = [last, np.datetime64("9999-12-31"), "9999-12-31", "9999-12-31 10:30", " 9999-12-31"]
    labels = Classifier(document).predict([[each] for each in given])
    assert labels.tolist() == ["low"] * len(given)
    days = float((last - dt.date(1970, 1, 1)).days)
    assert Classifier(document).predict([["9999-12-30"], [days]]).tolist() == ["high"] * 2


def test_many_rows_are_read_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels come in the order of rows, however many are computed together, and none of none."""
    monkeypatch.setattr("conclave_client.classifier.ROWS_TOGETHER", 2)
    assert Classifier(DOCUMENT).predict(ROWS).tolist() == LABELS
    assert Classifier(DOCUMENT).predict([]).tolist() == []


def test_a_file_is_loaded(tmp_path: Path) -> None:
    """The file of an export says whose it is and predicts."""
    path = tmp_path / "classifier.json"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    classifier = load_classifier(path)
    assert (classifier.release, classifier.label) == ("r", "income")
    assert classifier.features == ("age", "work")
    assert classifier.predict(ROWS).tolist() == LABELS


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ([["old", "Private"]], "age: a number is needed"),
        ([[True, "Private"]], "age: a number is needed"),
        ([[10**400, "Private"]], "age: a number is beyond float64"),
        ([[1, b"State"]], "work: a string or a number is needed"),
        ([[1, True]], "work: a string or a number is needed"),
        ([[1, math.inf]], "work: a number is beyond float64"),
        ([[1]], "row 0 is no vector of 2 values"),
        ([[1, ""], "ab"], "row 1 is no vector of 2 values"),
        ([{"age": 1}], "row 0 has no work"),
        ({"age": [1]}, "there is no column work"),
        (pa.table({"age": [1]}), "there is no column work"),
        ({"age": [1], "work": []}, "columns are not of one length"),
        (np.zeros((3, 1)), "an array of 2 columns is needed"),
    ],
)
def test_a_bad_table_is_one_line(frame: Any, told: str) -> None:
    """What does not fit is named, by its feature or its row."""
    with pytest.raises(ValueError, match=f"^{told}$"):
        Classifier(DOCUMENT).predict(frame)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{", "is no JSON"),
        ("[]", "is no classifier document"),
        ({"format": "conclave-statistics", "version": 1}, "is no classifier document"),
        ({"version": 7}, "has a version that this reader does not know"),
        ({"version": 2, "predictor": {}}, "predicts by code of the operator's own"),
        ({"version": 3, "student": {}}, "by which its server alone predicts"),
        ({"classes": None}, "is no whole classifier document"),
        ({"version": 4, "scores": {}}, "is no whole classifier document"),
    ],
)
def test_what_cannot_be_predicted_by_is_refused(document: Any, told: str) -> None:
    """A reader refuses a format, a version or a way to predict that it does not know."""
    text = document if isinstance(document, str) else json.dumps({**DOCUMENT, **document})
    with pytest.raises(UnsupportedClassifierError, match=told):
        Classifier.read(text)


def test_labels_alone_have_no_scores() -> None:
    """Scores are asked of a document that has them."""
    with pytest.raises(ValueError, match="has no scores"):
        Classifier(DOCUMENT).scores(ROWS)
