"""The published classifier: a public document, and its predictions.

Once its entry is committed the document is public; answering by it is
post-processing and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict

import msgspec

from app.data.schema import NumericFeature
from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.schema import Feature, Schema
    from app.data.vectors import Vector
    from app.hypotheses.binary_tests import BinaryTest
    from app.hypotheses.trees import Tree
    from app.ledger.events import ClassifierPublished

FORMAT: Final = "conclave-classifier"
VERSION: Final = 1


class FeatureDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A feature of the public schema, as far as the classifier needs it."""

    name: str
    kind: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None


class NodeDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node: a leaf's ``label``, or a test of one feature with two branches.

    The test is one of ``at_least`` (a cut of a clipped number), ``category``
    (an exact string), ``other`` (a string outside the categories) and
    ``missing``.
    """

    label: str | None = None
    feature: int | None = None
    at_least: float | None = None
    category: str | None = None
    other: bool = False
    missing: bool = False
    true: NodeDocument | None = None
    false: NodeDocument | None = None


class Condition(TypedDict, total=False):
    """The condition of a node, as its members."""

    at_least: float | None
    category: str | None
    other: bool
    missing: bool


class ClassifierDocument(msgspec.Struct, frozen=True):
    """The whole classifier, enough to predict without anything else."""

    format: str
    version: int
    release: str
    label: str
    classes: tuple[str, ...]
    missing: tuple[str, ...]
    features: tuple[FeatureDocument, ...]
    tree: NodeDocument


@dataclass(frozen=True, slots=True)
class PublishedClassifier:
    """A classifier document, ready to predict."""

    document: ClassifierDocument
    json: bytes

    def predict(self, vector: Vector) -> str:
        """Return the label of one feature vector in schema order."""
        node = self.document.tree
        while node.label is None:
            branch = node.true if self._holds(node, vector) else node.false
            invariant(branch is not None, "an inner node has two branches")
            node = branch  # type: ignore[assignment]  # the invariant above narrows it
        return node.label

    def _holds(self, node: NodeDocument, vector: Vector) -> bool:
        value = vector[node.feature or 0]
        feature = self.document.features[node.feature or 0]
        if feature.bounds is not None:
            if not isinstance(value, float) or node.at_least is None:
                return False  # a missing number satisfies no test
            lower, upper = feature.bounds
            return min(max(value, lower), upper) >= node.at_least
        if value in (feature.categories or ()):
            return value == node.category
        is_missing = value is None or value == "" or value in self.document.missing
        return node.missing if is_missing else node.other


def publish(
    *, release: str, schema: Schema, tests: Sequence[BinaryTest], tree: Tree
) -> PublishedClassifier:
    """Write a drawn tree as a public document."""
    document = ClassifierDocument(
        format=FORMAT,
        version=VERSION,
        release=release,
        label=schema.label,
        classes=tuple(schema.classes),
        missing=tuple(schema.missing),
        features=tuple(_feature_document(feature) for feature in schema.features),
        tree=_node_document(schema, tests, tree, node=0),
    )
    return PublishedClassifier(document, msgspec.json.encode(document))


def read_published(event: ClassifierPublished) -> PublishedClassifier:
    """Read a classifier from the entry that published it."""
    document = msgspec.json.decode(event.classifier, type=ClassifierDocument)
    invariant(document.format == FORMAT, "a published classifier names its format")
    return PublishedClassifier(document, event.classifier.encode())


def _feature_document(feature: Feature) -> FeatureDocument:
    if isinstance(feature, NumericFeature):
        bounds = (feature.lower, feature.upper)
        return FeatureDocument(name=feature.name, kind="numeric", bounds=bounds)
    return FeatureDocument(name=feature.name, kind="categorical", categories=feature.categories)


def _node_document(
    schema: Schema, tests: Sequence[BinaryTest], tree: Tree, *, node: int
) -> NodeDocument:
    """Write the node at a heap index, and what hangs below it."""
    inner_count = len(tree.test_indices)
    if node >= inner_count:
        return NodeDocument(label=schema.classes[tree.leaf_labels[node - inner_count]])
    test = tests[tree.test_indices[node]]
    return NodeDocument(
        feature=test.feature_index,
        false=_node_document(schema, tests, tree, node=2 * node + 1),
        true=_node_document(schema, tests, tree, node=2 * node + 2),
        **_condition(schema.features[test.feature_index], test),
    )


def _condition(feature: Feature, test: BinaryTest) -> Condition:
    """Say a test in the document's words."""
    if isinstance(feature, NumericFeature):
        return Condition(at_least=test.cut)
    if test.category_code == feature.other_code:
        return Condition(other=True)
    if test.category_code == feature.missing_code:
        return Condition(missing=True)
    return Condition(category=feature.categories[test.category_code or 0])
