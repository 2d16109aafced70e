"""Boxes and halfspaces are published as documents that predict as they do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.data.feature_tests import public_tests
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.schema_columns import public_columns
from app.data.vectors import Vector, encode
from app.errors import InvariantError
from app.learning.enumerated.enumerated_class import EnumeratedClass, EnumeratedHypothesis
from app.learning.hypothesis import ClassAsked
from app.learning.registry import dichotomy_class, hypothesis_class
from app.learning.trees.tree import Tree
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.release.classifier.published_classifier import publish_drawn, read_published

SCHEMA = Schema(
    label="income",
    classes=("low", "high"),
    features=(
        NumericFeature(name="age", lower=-10.0, upper=90.0, thresholds=(-10.0, 0.0, 35.5)),
        CategoricalFeature(name="work", categories=("private", "state")),
        NumericFeature(name="hours", lower=0.0, upper=0.3),
    ),
    missing=("?",),
)
TESTS = public_tests(SCHEMA, bins=5)
COLUMNS = public_columns(SCHEMA)
NUMBERS = st.one_of(
    st.floats(-100, 200), st.sampled_from([-10.0, 0.0, 35.5, 90.0, 0.15, None, "?", ""])
)
VECTORS = st.tuples(NUMBERS, st.sampled_from(["private", "other", None]), NUMBERS)
CLASSES = {
    kind: hypothesis_class(
        ClassAsked(kind=kind, tests=TESTS, depth=1, class_count=2, columns=COLUMNS)
    )
    for kind in ("intervals", "rectangles", "halfspaces")
}


@pytest.mark.parametrize("kind", CLASSES)
@settings(max_examples=60)
@given(place=st.floats(0, 1, exclude_max=True), vectors=st.lists(VECTORS, min_size=1, max_size=8))
def test_the_document_predicts_as_the_hypothesis(
    kind: str, place: float, vectors: list[Vector]
) -> None:
    """For clipped, missing and listed values alike, before and after a round trip."""
    hypotheses = CLASSES[kind]
    assert isinstance(hypotheses, EnumeratedClass)
    index = int(place * hypotheses.size)
    drawn = EnumeratedHypothesis(hypotheses.hypotheses.take(np.array([index])), index)
    classifier = publish_drawn(release="r", schema=SCHEMA, hypotheses=hypotheses, drawn=drawn)
    restored = read_published(ClassifierPublished(classifier=classifier.json.decode()))
    assert restored == classifier
    labels = drawn.predict(hypotheses.encode(encode(SCHEMA, vectors)))
    expected = [SCHEMA.classes[label] for label in labels.tolist()]
    assert [classifier.predict(vector) for vector in vectors] == expected
    assert [restored.predict(vector) for vector in vectors] == expected


@pytest.mark.parametrize(
    ("kind", "version", "member"),
    [("rectangles", 1, "tree"), ("intervals", 1, "tree"), ("halfspaces", 2, "halfspace")],
)
def test_what_is_no_tree_has_a_version_of_its_own(kind: str, version: int, member: str) -> None:
    """A reader of version 1 can read every box; a halfspace says that it is none."""
    hypotheses = CLASSES[kind]
    assert isinstance(hypotheses, EnumeratedClass)
    drawn = EnumeratedHypothesis(hypotheses.hypotheses.take(np.array([1])), 1)
    classifier = publish_drawn(release="r", schema=SCHEMA, hypotheses=hypotheses, drawn=drawn)
    document = json.loads(classifier.json)
    assert document["version"] == version
    assert {"tree", "halfspace"} & document.keys() == {member}


def test_a_hypothesis_of_another_kind_is_not_published() -> None:
    """A tree needs the tests of its class, and the trees of private points have no document."""
    private = dichotomy_class(
        ClassAsked(kind="trees", columns=COLUMNS, depth=1, class_count=2), np.zeros((1, 3))
    )
    listed = EnumeratedHypothesis(private.hypotheses, 0)
    for drawn in (Tree(test_indices=(), leaf_labels=(0,)), listed):
        with pytest.raises(InvariantError, match="a hypothesis of a class"):
            publish_drawn(release="r", schema=SCHEMA, hypotheses=private, drawn=drawn)
