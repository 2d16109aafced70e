"""The published classifier answers as the drawn tree does, from its document alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.feature_tests import public_tests
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.vectors import Vector, encode
from app.errors import InvariantError
from app.learning.encoding.binary_tests import evaluate
from app.learning.trees.tree import Tree
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.release.classifier.published_classifier import read_published
from tests.builders.release.classifier_documents import published_tree

SCHEMA = Schema(
    label="income",
    classes=("low", "middle", "high"),
    features=(
        NumericFeature(name="age", lower=-10.0, upper=90.0, thresholds=(-10.0, 0.0, 35.5)),
        CategoricalFeature(name="work", categories=("private", "state")),
        CategoricalFeature(name="land", categories=("here", "there", "beyond")),
    ),
    missing=("?", "n/a"),
)
TESTS = public_tests(SCHEMA, bins=4)
VECTORS = st.tuples(
    st.one_of(st.floats(-100, 200), st.sampled_from([-10.0, 0.0, 35.5, 90.0, None, "?", "n/a"])),
    st.sampled_from(["private", "state", "other", "PRIVATE", "", "?", "n/a", None]),
    st.one_of(st.sampled_from(["here", "there", "beyond", "?", None]), st.text(max_size=3)),
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Draw any tree of depth 0 to 3 over the tests and classes."""
    depth = draw(st.integers(0, 3))
    tests = st.integers(0, len(TESTS) - 1)
    labels = st.integers(0, len(SCHEMA.classes) - 1)
    return Tree(
        test_indices=tuple(draw(tests) for _ in range(2**depth - 1)),
        leaf_labels=tuple(draw(labels) for _ in range(2**depth)),
    )


@given(tree=trees(), vectors=st.lists(VECTORS, min_size=1, max_size=8))
def test_the_document_predicts_as_the_tree(tree: Tree, vectors: list[Vector]) -> None:
    """For clipped, missing, other and listed values alike, before and after a round trip."""
    classifier = published_tree(release="r", schema=SCHEMA, tests=TESTS, tree=tree)
    restored = read_published(ClassifierPublished(classifier=classifier.json.decode()))
    assert restored == classifier
    labels = tree.predict(evaluate(TESTS, encode(SCHEMA, vectors)))
    expected = [SCHEMA.classes[label] for label in labels.tolist()]
    assert [classifier.predict(vector) for vector in vectors] == expected
    assert [restored.predict(vector) for vector in vectors] == expected


def test_every_kind_of_test_has_its_words() -> None:
    """A cut, a category, other and missing are said by their own members."""
    kinds: dict[str, list[object]] = {}
    for index, test in enumerate(TESTS):
        tree = Tree(test_indices=(index,), leaf_labels=(0, 1))
        document = json.loads(
            published_tree(release="r", schema=SCHEMA, tests=TESTS, tree=tree).json
        )
        node = document["tree"]
        assert node["feature"] == test.feature_index
        assert (node["false"], node["true"]) == ({"label": "low"}, {"label": "middle"})
        (kind,) = node.keys() - {"feature", "true", "false"}
        kinds.setdefault(kind, []).append(node[kind])
    assert kinds == {
        "at_least": [-10.0, 0.0, 35.5],
        "category": ["private", "state", "here", "there", "beyond"],
        "other": [True, True],
        "missing": [True, True],
    }


def test_the_document_is_all_that_a_reader_needs() -> None:
    """It names its format, the release, the label, the classes, the schema and what is missing."""
    tree = Tree(test_indices=(), leaf_labels=(2,))
    document = json.loads(published_tree(release="r", schema=SCHEMA, tests=TESTS, tree=tree).json)
    assert document == {
        "format": "conclave-classifier",
        "version": 1,
        "release": "r",
        "label": "income",
        "classes": ["low", "middle", "high"],
        "missing": ["?", "n/a"],
        "features": [
            {"name": "age", "kind": "numeric", "bounds": [-10.0, 90.0]},
            {"name": "work", "kind": "categorical", "categories": ["private", "state"]},
            {"name": "land", "kind": "categorical", "categories": ["here", "there", "beyond"]},
        ],
        "tree": {"label": "high"},
    }


def test_a_document_of_another_format_is_refused() -> None:
    """A text that does not name this format is no classifier."""
    tree = Tree(test_indices=(), leaf_labels=(0,))
    text = published_tree(release="r", schema=SCHEMA, tests=TESTS, tree=tree).json.decode()
    with pytest.raises(InvariantError, match="names its format"):
        read_published(ClassifierPublished(classifier=text.replace("conclave-classifier", "x")))


def test_a_node_without_branches_is_no_endless_walk() -> None:
    """A damaged inner node raises instead of answering."""
    tree = Tree(test_indices=(0,), leaf_labels=(0, 1))
    document = json.loads(published_tree(release="r", schema=SCHEMA, tests=TESTS, tree=tree).json)
    del document["tree"]["true"]
    damaged = read_published(ClassifierPublished(classifier=json.dumps(document)))
    with pytest.raises(InvariantError, match="two branches"):
        damaged.predict((50.0, None, None))
