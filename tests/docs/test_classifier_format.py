"""The page on the published classifier is enough to predict by it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.vectors import parse_features
from app.errors import InvalidFeaturesError
from app.release.classifier.classifier_document import (
    FORMAT,
    ClassifierDocument,
    FeatureDocument,
    LiteralDocument,
    NodeDocument,
    NumbersDocument,
    ScoresDocument,
    TermDocument,
    WavesDocument,
)
from app.release.classifier.onnx.onnx_model import to_onnx
from app.release.classifier.published_classifier import PublishedClassifier
from tests.builders.release.classifier_documents import documents, vectors
from tests.builders.release.every_learner import classifier_of, schema_of
from tests.docs.pages import ROOT, names_defined, text

if TYPE_CHECKING:
    from pathlib import Path


PAGE = ROOT / "docs" / "classifier-format.md"


@given(st.data())
def test_the_program_on_the_page_predicts_as_the_server(data: st.DataObject) -> None:
    """From the JSON alone, by rules that a reader can see, whichever way it predicts."""
    document = data.draw(documents())
    published = PublishedClassifier(document, msgspec.json.encode(document))
    predict = names_defined(PAGE, "import re")["predict"]
    read = json.loads(published.json)
    for row in data.draw(vectors(document)):
        assert predict(read, row) == published.predict(row)


def test_the_program_takes_a_date_that_is_a_token_as_missing() -> None:
    """A date that stands for no date is not a late one."""
    classifier = classifier_of("trees-of-kinds")
    document = json.loads(classifier.json) | {"missing": ["9999-12-31"]}
    predict = names_defined(PAGE, "import re")["predict"]
    for member in ("true", "false"):
        row = [None, None, None, None, member]
        assert predict(document, [*row, "9999-12-31"]) == predict(document, [*row, None])
        assert predict(document, [*row, "9999-12-30"]) != predict(document, [*row, None])


@pytest.mark.parametrize(
    ("value", "known"), [(True, "True"), (True, "true"), (7, "7"), (7.0, "7"), (-0.5, "-.50")]
)
def test_the_program_takes_a_value_as_the_category_that_it_is(value: float, known: str) -> None:
    """As the server does: True where that is a category, else true, and a number by its value."""
    for categories in ((known,), ("07", known)):
        features = (FeatureDocument("w", "categorical", categories=categories),)
        yes, no = NodeDocument(label="yes"), NodeDocument(label="no")
        tree = NodeDocument(feature=0, category=known, true=yes, false=no)
        document = ClassifierDocument(
            format=FORMAT,
            version=1,
            release="r",
            label="y",
            classes=("no", "yes"),
            missing=(),
            features=features,
            tree=tree,
        )
        predict = names_defined(PAGE, "import re")["predict"]
        assert predict(json.loads(msgspec.json.encode(document)), [value]) == "yes"


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        None,
        math.nan,
        1,
        0.0,
        "TRUE",
        " f",
        "t",
        "1.0",
        "?",
        "",
        "9",
        9.0,
        "yes",
        2,
        " ",
    ],
)
def test_the_program_takes_a_value_of_a_boolean_as_the_server_does(value: object) -> None:
    """Any spelling of true and false, or a missing value; what is none of them is refused."""
    classifier = classifier_of("trees-of-kinds")
    schema = replace(schema_of("trees-of-kinds"), missing=("?", "9"))
    document = json.loads(classifier.json) | {"missing": ["?", "9"]}
    predict = names_defined(PAGE, "import re")["predict"]
    row = [None, None, None, None, value, "1970-01-02"]
    try:
        vector = parse_features(schema, row)
    except InvalidFeaturesError:
        with pytest.raises(ValueError, match="neither true nor false"):
            predict(document, row)
        return
    assert predict(document, row) == classifier.predict(vector)


def test_the_page_names_every_member() -> None:
    """Each member of the document stands in its tables or its text."""
    page = text(PAGE)
    scores = (ScoresDocument, TermDocument, LiteralDocument, WavesDocument, NumbersDocument)
    documents = (ClassifierDocument, NodeDocument, *scores)
    members = {name for document in documents for name in document.__struct_fields__}
    absent = [name for name in members if f"`{name}`" not in page]
    assert not absent, "\n".join(absent)


def test_the_call_on_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example loads a model from a file and labels two rows."""
    old, young = NodeDocument(label="old"), NodeDocument(label="young")
    document = ClassifierDocument(
        format=FORMAT,
        version=1,
        release="r",
        label="y",
        classes=("young", "old"),
        missing=(),
        features=(
            FeatureDocument("age", "numeric", bounds=(0.0, 100.0)),
            FeatureDocument("workclass", "categorical", categories=("Private",)),
        ),
        tree=NodeDocument(feature=0, at_least=39.0, true=old, false=young),
    )
    (tmp_path / "classifier.onnx").write_bytes(to_onnx(document))
    monkeypatch.chdir(tmp_path)
    assert np.array_equal(names_defined(PAGE, "import numpy")["labels"], ["old", "young"])
