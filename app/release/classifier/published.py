"""The published classifier: a public document, and its predictions.

Once its entry is committed the document is public; answering by it is
post-processing and costs nothing.

Whether a row lies in a published halfspace: sums of whole numbers of steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypedDict

import msgspec
from msgspec import structs

from app.data.schema import NumericFeature
from app.data.spelling import finite_numbers
from app.errors import InvariantError
from app.learning.cells.cell_class import CellClass, CellLabels
from app.learning.halfspaces.halfspaces import Halfspaces
from app.learning.lists.boxes import Boxes
from app.learning.lists.enumerated_class import EnumeratedHypothesis
from app.learning.lists.thresholds import ThresholdClass
from app.learning.predictors.own_predictors import Predictors, PublicFeature
from app.learning.trees.tree import Tree
from app.learning.trees.tree_class import TreeClass
from app.ledger.entries.entry_kinds import StudentPublished
from app.release.classifier.classifier_document import (
    FORMAT,
    ClassifierDocument,
    FeatureDocument,
    HalfspaceDocument,
    NodeDocument,
    PredictorDocument,
    ScoresDocument,
    StudentDocument,
    read_document,
)
from app.release.classifier.published_predictor import PublishedPredictor, described, rebuilt
from app.release.classifier.published_scores import PublishedScores, scores_document
from app.release.classifier.published_student import PublishedStudent, rebuilt_student
from app.release.private_state import read_piece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.data.schema import Feature, Schema
    from app.data.vectors import Vector
    from app.learning.cells.cell_class import CellSplits
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.hypothesis import Hypothesis, HypothesisClass
    from app.learning.linear.linear_scores import LinearScores
    from app.ledger.entries.entry_kinds import ClassifierPublished, StudentPublished
    from app.ledger.ledger import Ledger
    from app.release.classifier.published_student import PublishedStudent
    from app.release.terms.configuration import Configuration


TREE_VERSION: Final = 1
HYPOTHESIS_VERSION: Final = 2
ESTIMATOR_VERSION: Final = 3
SCORES_VERSION: Final = 4


class Condition(TypedDict, total=False):
    """The condition of a node, as its members."""

    at_least: float | None
    category: str | None
    other: bool
    missing: bool


@dataclass(frozen=True, slots=True)
class PublishedClassifier:
    """A classifier document, ready to predict."""

    document: ClassifierDocument
    json: bytes
    predictor: PublishedPredictor | None = None
    student: PublishedStudent | None = field(default=None, compare=False)
    _scores: PublishedScores | None = field(init=False, compare=False, repr=False)
    _missing_numbers: frozenset[float] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Sum up the terms of scores once, for all predictions."""
        missing_numbers = finite_numbers(self.document.missing)
        object.__setattr__(self, "_missing_numbers", missing_numbers)
        document, scores = self.document, None
        if document.scores is not None:
            scores = PublishedScores(
                document.scores, features=document.features, missing=document.missing
            )
        object.__setattr__(self, "_scores", scores)

    def with_student(self, student: PublishedStudent) -> PublishedClassifier:
        """Return the same document with the fitted estimator that it tells of."""
        return replace(self, student=student)

    def predict_many(self, vectors: Sequence[Vector]) -> list[str]:
        """Return the label of each feature vector; an estimator is called once for all."""
        if self.student is not None:
            return self.student.predict(vectors)
        return [self.predict(vector) for vector in vectors]

    def predict(self, vector: Vector) -> str:
        """Return the label of one feature vector in schema order."""
        if self.student is not None:
            return self.student.predict([vector])[0]
        if self._missing_numbers:
            vector = tuple(None if value in self._missing_numbers else value for value in vector)
        if self.predictor is not None:
            return self.predictor.predict(vector)
        if self._scores is not None:
            return self.document.classes[self._scores.class_index(vector)]
        if self.document.halfspace is not None:
            return self.document.classes[int(holds_point(self.document.halfspace, vector))]
        node = self.document.tree
        while node is not None and node.label is None:
            node = node.true if self._holds(node, vector) else node.false
        if node is None or node.label is None:
            message = "an inner node has two branches"
            raise InvariantError(message)
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


def publish_drawn(
    *,
    release: str,
    schema: Schema,
    hypotheses: HypothesisClass,
    drawn: Hypothesis,
    student: StudentDocument | None = None,
) -> PublishedClassifier:
    """Write a hypothesis of any class as a public document, drawn or trained.

    Args:
        release: name of the release.
        schema: the public schema.
        hypotheses: the public class that it was drawn from.
        drawn: the hypothesis.
        student: how it was trained; None where it was drawn.

    """
    if isinstance(drawn, Tree) and isinstance(hypotheses, TreeClass | ThresholdClass):
        tree = _node_document(schema, hypotheses.tests, drawn, node=0)
        return _published(release, schema, student, tree=tree)
    if isinstance(drawn, CellLabels) and isinstance(hypotheses, CellClass):
        tree = _cells_document(schema, hypotheses.splits, drawn, node=hypotheses.splits.root)
        return _published(release, schema, student, tree=tree)
    listed = drawn.hypotheses if isinstance(drawn, EnumeratedHypothesis) else None
    if isinstance(listed, Boxes):
        return _published(release, schema, student, tree=_box_document(schema, listed))
    if isinstance(listed, Halfspaces):
        halfspace = msgspec.convert(listed.describe(0), HalfspaceDocument)
        return _published(release, schema, student, halfspace=halfspace)
    if isinstance(listed, Predictors):
        return _published(release, schema, student, predictor=described(listed))
    message = "what is published is a hypothesis of a class"
    raise InvariantError(message)


def publish_scores(*, release: str, schema: Schema, scores: LinearScores) -> PublishedClassifier:
    """Write linear scores of public terms as a public document."""
    return _published(release, schema, scores=scores_document(scores, schema))


def publish(
    *, release: str, schema: Schema, tests: Sequence[BinaryTest], tree: Tree
) -> PublishedClassifier:
    """Write a drawn tree as a public document."""
    return _published(release, schema, tree=_node_document(schema, tests, tree, node=0))


def publish_constant(
    *, release: str, schema: Schema, label: str, student: StudentDocument
) -> PublishedClassifier:
    """Write a student that gives one label."""
    return _published(release, schema, student, tree=NodeDocument(label=label))


def publish_estimator(
    *,
    release: str,
    schema: Schema,
    student: StudentDocument,
    predictor: PublishedStudent,
    otherwise: str,
) -> PublishedClassifier:
    """Write a student that is a fitted estimator; ``otherwise`` is its label where it fails."""
    document = structs.replace(student, otherwise=otherwise)
    return _published(release, schema, document).with_student(predictor)


def read_published(event: ClassifierPublished | StudentPublished) -> PublishedClassifier:
    """Read a classifier from the entry that published it, without a fitted estimator."""
    document = read_document(event.classifier)
    return PublishedClassifier(document, event.classifier.encode(), _predictor(document))


def _published(
    release: str,
    schema: Schema,
    student: StudentDocument | None = None,
    *,
    tree: NodeDocument | None = None,
    halfspace: HalfspaceDocument | None = None,
    predictor: PredictorDocument | None = None,
    scores: ScoresDocument | None = None,
) -> PublishedClassifier:
    """Write the document around a tree or another way to predict, or a student alone."""
    other = HYPOTHESIS_VERSION if halfspace or predictor else ESTIMATOR_VERSION
    other = other if scores is None else SCORES_VERSION
    document = ClassifierDocument(
        format=FORMAT,
        version=TREE_VERSION if tree is not None else other,
        release=release,
        label=schema.label,
        classes=tuple(schema.classes),
        missing=tuple(schema.missing),
        features=tuple(_feature_document(feature) for feature in schema.features),
        tree=tree,
        halfspace=halfspace,
        predictor=predictor,
        student=student,
        scores=scores,
    )
    return PublishedClassifier(document, msgspec.json.encode(document), _predictor(document))


def _predictor(document: ClassifierDocument) -> PublishedPredictor | None:
    """Rebuild the predictor of a document that has one."""
    if document.predictor is None:
        return None
    features = [
        PublicFeature(name=feature.name, bounds=feature.bounds, categories=feature.categories)
        for feature in document.features
    ]
    return rebuilt(
        document.predictor,
        features=features,
        classes=document.classes,
        missing=document.missing,
    )


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


def _cells_document(
    schema: Schema, splits: CellSplits, drawn: CellLabels, *, node: int
) -> NodeDocument:
    """Write a node of a partition, ``~c`` for cell c, and what hangs below it."""
    if node < 0:
        return NodeDocument(label=schema.classes[drawn.labels[~node]])
    test, (false_side, true_side) = splits.tests[node], splits.branches[node]
    return NodeDocument(
        feature=test.feature_index,
        false=_cells_document(schema, splits, drawn, node=false_side),
        true=_cells_document(schema, splits, drawn, node=true_side),
        **_condition(schema.features[test.feature_index], test),
    )


def _box_document(schema: Schema, box: Boxes) -> NodeDocument:
    """Write a box as a chain of tests; whoever fails one is outside, in class 0."""
    outside = NodeDocument(label=schema.classes[0])
    node = NodeDocument(label=schema.classes[box.everywhere(0)])
    for side in box.bounded_sides(0):
        if side.upper is not None:
            node = NodeDocument(feature=side.feature, at_least=side.upper, true=outside, false=node)
        if side.lower is not None:
            node = NodeDocument(feature=side.feature, at_least=side.lower, true=node, false=outside)
    return node


def _condition(feature: Feature, test: BinaryTest) -> Condition:
    """Say a test in the document's words."""
    if isinstance(feature, NumericFeature):
        return Condition(at_least=test.cut)
    if test.category_code == feature.other_code:
        return Condition(other=True)
    if test.category_code == feature.missing_code:
        return Condition(missing=True)
    return Condition(category=feature.categories[test.category_code or 0])


def holds_point(halfspace: HalfspaceDocument, vector: Vector) -> bool:
    """Return whether a row, in schema order, lies in the halfspace, by sums of integers."""
    point = [
        _steps(vector[feature], bounds, halfspace.steps)
        for feature, bounds in zip(halfspace.features, halfspace.bounds, strict=True)
    ]
    for level in halfspace.levels:
        terms = (weight * place for weight, place in zip(level.weights, point, strict=True))
        value = sum(terms) - level.offset
        if value:
            return value > 0
    return False


def _steps(value: float | str | None, bounds: tuple[float, float], steps: int) -> int:
    """Return how many steps a clipped number lies above its lower bound; 0 where missing."""
    if not isinstance(value, float) or math.isnan(value):
        return 0
    lower, upper = bounds
    return round((min(max(value, lower), upper) - lower) / (upper - lower) * steps)


STUDENT: Final = "student"


def read_classifier(
    configuration: Configuration, ledger: Ledger, event: ClassifierPublished | StudentPublished
) -> PublishedClassifier:
    """Read what was published, ready to predict.

    Raises:
        LedgerCorruptError: the fitted estimator is missing or altered.

    """
    published = read_published(event)
    if STUDENT not in event.private_digests:
        return published
    document = published.document.student
    if document is None or document.otherwise is None:
        raise InvariantError("the document of an estimator names its other label")
    body = read_piece(ledger, STUDENT)
    student = rebuilt_student(configuration.schema, body, otherwise=document.otherwise)
    return published.with_student(student)


@dataclass(frozen=True, slots=True)
class TrainedStudent:
    """A student that is not known to be published.

    Attributes:
        classifier: what is to be published.
        pieces: the fitted estimator; nothing where the document is the whole student.

    """

    classifier: PublishedClassifier
    pieces: Mapping[str, bytes] = field(default_factory=dict)
