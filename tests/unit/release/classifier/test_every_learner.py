"""What any learner publishes predicts outside as the server does.

Its document, its model and the client's reading of the document.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.data.vectors import parse_features
from app.learning.registry import CLASSES
from app.privacy.learner_properties import LEARNERS as KNOWN
from app.release.classifier.onnx.onnx_model import to_onnx
from conclave_client import load_classifier
from tests.builders.release.every_learner import (
    ASKED,
    LEARNERS,
    asked_rows,
    classifier_of,
    schema_of,
    scores_of,
)
from tests.builders.release.onnx_models import labels_of, output_names, scores_of_model
from tests.docs.pages import ROOT, names_defined

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "classifier-format.md"
PUBLISHED_AS_CODE = {"finite"}
ASKED_OF_PAGE = 2_000
"""So many of the rows are given to the page's program, which predicts each alone, and slowly."""


def test_every_learner_and_every_class_is_compared() -> None:
    """A new learner or class belongs in the table of the builder, unless code predicts by it."""
    compared = [asked.classifier for asked in LEARNERS.values()]
    learners = {str(each.get("learner", "exponential")) for each in compared}
    classes = {each["class"] for each in compared if "class" in each}
    assert learners == set(KNOWN)
    assert classes == set(CLASSES) - PUBLISHED_AS_CODE


@pytest.mark.parametrize("name", LEARNERS)
def test_document_model_and_client_predict_as_the_server(tmp_path: Path, name: str) -> None:
    """Ten thousand rows get the labels of the server, and the scores where there are scores."""
    classifier, rows = classifier_of(name), asked_rows(name)
    expected = classifier.predict_many(rows)
    assert len(rows) == ASKED
    assert len(set(expected)) > 1
    predict = names_defined(PAGE, "import re")["predict"]
    document = json.loads(classifier.json)
    assert len(set(expected[:ASKED_OF_PAGE])) > 1
    page = [predict(document, row) for row in rows[:ASKED_OF_PAGE]]
    assert page == expected[:ASKED_OF_PAGE]
    model = to_onnx(classifier.document)
    assert labels_of(model, classifier.document, rows) == expected
    (tmp_path / "classifier.json").write_bytes(classifier.json)
    client = load_classifier(tmp_path / "classifier.json")
    frame = dict(zip(client.features, map(list, zip(*rows, strict=True)), strict=True))
    assert client.predict(frame).tolist() == expected
    if classifier.document.has_scores:
        scores = scores_of(classifier, rows)
        assert scores_of_model(model, classifier.document, rows) == scores
        assert client.scores(frame).tolist() == scores


@pytest.mark.parametrize("name", [name for name in LEARNERS if LEARNERS[name].has_kinds])
def test_booleans_and_dates_may_be_given_as_they_are_asked(name: str) -> None:
    """The page's program takes true and a date for the texts and days of a server's vector."""
    classifier = classifier_of(name)
    rows = [
        [39.0, 0.2, 1e6, "Private", member, born]
        for member in (True, False, None)
        for born in ("1969-12-24", "1970-01-01", "1970-01-02", "1970-02-15", "2100-01-01", None)
    ]
    vectors = [parse_features(schema_of(name), row) for row in rows]
    predict = names_defined(PAGE, "import re")["predict"]
    document = json.loads(classifier.json)
    expected = classifier.predict_many(vectors)
    assert len(set(expected)) > 1
    assert [predict(document, row) for row in rows] == expected


@pytest.mark.parametrize("name", LEARNERS)
def test_labels_come_first_and_scores_second(name: str) -> None:
    """A model of scores has a second output, and every other the labels alone."""
    document = classifier_of(name).document
    labels, *others = output_names(document)
    assert labels.rstrip("_") == "label"
    assert others == (["scores"] if document.has_scores else [])
