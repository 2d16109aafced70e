"""The published classifier: its public document, and its predictions.

When the document's ledger entry is committed, the document is public; predictions from it are
post-processing and cost nothing. The module also decides whether a row lies in a published
halfspace; to do this exactly, it measures every feature in whole steps from its lower bound.

A classifier may have scores: integers of which the largest, or the sign of the only one, decides
the label.

A student is a classifier that is trained on the released answers, and not drawn from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from app.data.field_values import finite_numbers
from app.data.schema import NumericFeature
from app.errors import InvariantError
from app.learning.predictors.own_predictors import PublicFeature
from app.learning.trees.upper_level_weights import tell_nobody
from app.ledger.entries.entry_kinds import StudentPublished
from app.release.classifier.classifier_document import (
    FORMAT,
    ClassifierDocument,
    FeatureDocument,
    HalfspaceDocument,
    NodeDocument,
    StudentDocument,
    read_document,
)
from app.release.classifier.grid import PublishedGrid
from app.release.classifier.published_predictor import (
    PublishedPredictor,
    PublishedStudent,
    rebuilt,
    rebuilt_student,
)
from app.release.classifier.published_scores import PublishedScores, whole_steps_of
from app.release.classifier.written_hypotheses import NOTHING_DRAWN, Written, written
from app.release.private_state import read_piece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.data.schema import Feature, Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.data.vectors import Vector
    from app.learning.hypothesis import Hypothesis, HypothesisClass
    from app.learning.trees.upper_level_weights import Told
    from app.ledger.entries.entry_kinds import ClassifierPublished, StudentPublished
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.learner_registration import ClassifierDraw
    from app.release.terms.configuration import Configuration


TREE_VERSION: Final = 1
HYPOTHESIS_VERSION: Final = 2
ESTIMATOR_VERSION: Final = 3
SCORES_VERSION: Final = 4
WAVES_VERSION: Final = 5
GRID_VERSION: Final = 6
NUMBERS_VERSION: Final = 7
SCORED_TREE_VERSION: Final = 8


@dataclass(frozen=True, slots=True)
class PublishedClassifier:
    """A published classifier that is ready to predict."""

    document: ClassifierDocument
    json: bytes
    predictor: PublishedPredictor | None = None
    student: PublishedStudent | None = field(default=None, compare=False)
    _summed: PublishedScores | PublishedGrid | None = field(init=False, compare=False, repr=False)
    _missing_numbers: frozenset[float] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare tables of scores, or the cells of a grid, once for all predictions."""
        missing_numbers = finite_numbers(self.document.missing)
        object.__setattr__(self, "_missing_numbers", missing_numbers)
        document = self.document
        summed: PublishedScores | PublishedGrid | None = None
        if document.scores is not None:
            summed = PublishedScores(
                document.scores, features=document.features, missing=document.missing
            )
        elif document.grid is not None:
            summed = PublishedGrid(document.grid)
        object.__setattr__(self, "_summed", summed)

    def predict_many(self, vectors: Sequence[Vector]) -> list[str]:
        """Return the label of each feature vector, predicted together."""
        if self.student is not None:
            return self.student.predict(vectors)
        if isinstance(self._summed, PublishedScores):
            classes = self.document.classes
            found = self._summed.class_indices(list(map(self._settled, vectors)))
            return [classes[index] for index in found]
        return [self.predict(vector) for vector in vectors]

    def scores_many(self, vectors: Sequence[Vector]) -> list[list[int]]:
        """Return the scores of each feature vector, if the classifier has scores."""
        summed, settled = self._summed, [self._settled(vector) for vector in vectors]
        if isinstance(summed, PublishedScores):
            return summed.scores_many(settled)
        if not self.document.has_scores:
            message = "scores are those of a document that has some"
            raise InvariantError(message)
        return [list(self._leaf(vector).scores or ()) for vector in settled]

    def predict(self, vector: Vector) -> str:
        """Return the label of one feature vector, with its features in schema order."""
        if self.student is not None:
            return self.student.predict([vector])[0]
        vector = self._settled(vector)
        if self.predictor is not None:
            return self.predictor.predict(vector)
        if self._summed is not None:
            return self.document.classes[self._summed.class_index(vector)]
        if self.document.halfspace is not None:
            return self.document.classes[int(holds_point(self.document.halfspace, vector))]
        return self._leaf(vector).label or ""

    def _leaf(self, vector: Vector) -> NodeDocument:
        """Return the leaf of a tree that a row comes to."""
        node = self.document.tree
        while node is not None and node.label is None:
            node = node.true if self._holds(node, vector) else node.false
        if node is None:
            message = "an inner node has two branches"
            raise InvariantError(message)
        return node

    def _settled(self, vector: Vector) -> Vector:
        """Return a vector with None for each number that stands for a missing one."""
        if not self._missing_numbers:
            return vector
        return tuple(
            None
            if value in self._missing_numbers and feature.kind == NumericFeature.kind
            else value
            for value, feature in zip(vector, self.document.features, strict=True)
        )

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
    """Return a hypothesis or a student as a published classifier.

    Args:
        release: the name of the release.
        schema: the public schema.
        hypotheses: the public class to which the hypothesis belongs.
        drawn: the hypothesis.
        student: how the student was trained; None if the hypothesis was drawn from private rows.

    """
    return published_document(release, schema, student, written(schema, hypotheses, drawn))


def draw_published(
    configuration: Configuration,
    prepared: ClassifierDraw,
    rows: AnyRows,
    noise: NoiseSource,
    told: Told = tell_nobody,
) -> PublishedClassifier:
    """Return a newly drawn classifier as a document; its budget was charged before."""
    schema = configuration.schema
    return published_document(
        configuration.name, schema, None, prepared.written(schema, rows, noise, told)
    )


def read_published(event: ClassifierPublished | StudentPublished) -> PublishedClassifier:
    """Return the classifier in a ledger entry; a fitted estimator is not loaded."""
    document = read_document(event.classifier)
    return PublishedClassifier(document, event.classifier.encode(), _predictor(document))


def published_document(
    release: str,
    schema: Schema,
    student: StudentDocument | None = None,
    written: Written = NOTHING_DRAWN,
) -> PublishedClassifier:
    """Return the document of a published classifier, given its rule or its student."""
    version = ESTIMATOR_VERSION if written == NOTHING_DRAWN else HYPOTHESIS_VERSION
    if written.scores is not None:
        version = SCORES_VERSION if written.scores.waves is None else WAVES_VERSION
        version = version if written.scores.numbers is None else NUMBERS_VERSION
    version = version if written.grid is None else GRID_VERSION
    if written.tree is not None:
        version = TREE_VERSION if written.tree_unit is None else SCORED_TREE_VERSION
    document = ClassifierDocument(
        format=FORMAT,
        version=version,
        release=release,
        label=schema.label,
        classes=tuple(schema.classes),
        missing=tuple(schema.missing),
        features=tuple(_feature_document(feature) for feature in schema.features),
        student=student,
        **structs.asdict(written),
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
        return FeatureDocument(name=feature.name, kind=feature.kind, bounds=bounds)
    return FeatureDocument(name=feature.name, kind=feature.kind, categories=feature.categories)


def holds_point(halfspace: HalfspaceDocument, vector: Vector) -> bool:
    """Return whether a row lies in the published halfspace, by exact integer sums."""
    point = [
        whole_steps_of(vector[feature], bounds, halfspace.steps)
        for feature, bounds in zip(halfspace.features, halfspace.bounds, strict=True)
    ]
    for level in halfspace.levels:
        terms = (weight * place for weight, place in zip(level.weights, point, strict=True))
        value = sum(terms) - level.offset
        if value:
            return value > 0
    return False


STUDENT: Final = "student"


def read_classifier(
    configuration: Configuration, ledger: Ledger, event: ClassifierPublished | StudentPublished
) -> PublishedClassifier:
    """Return a published classifier that is ready to predict.

    Raises:
        LedgerCorruptError: the fitted estimator is missing from the private state or altered.

    """
    published = read_published(event)
    if STUDENT not in event.private_digests:
        return published
    document = published.document.student
    if document is None or document.otherwise is None:
        raise InvariantError("the document of an estimator names its other label")
    body = read_piece(ledger, STUDENT)
    student = rebuilt_student(configuration.schema, body, otherwise=document.otherwise)
    return replace(published, student=student)


@dataclass(frozen=True, slots=True)
class TrainedStudent:
    """A trained student model, published or not.

    Attributes:
        classifier: the classifier to publish.
        pieces: the fitted estimator, for the private state; empty if the document contains the
            whole student.

    """

    classifier: PublishedClassifier
    pieces: Mapping[str, bytes] = field(default_factory=dict)
