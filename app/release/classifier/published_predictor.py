"""Published classifiers that run code: user-written predictors, and fitted estimators.

The description of a predictor is in the public document. Its code belongs to the operator, and the
release is bound to this code by a hash; predictions are post-processing.

A student is a classifier that was trained on the released answers: a rule, or a scikit-learn
estimator. Its document is public and says what was trained, and on how many answers. A student that
is a rule is written in full in the document. A fitted estimator stays in the private state of the
release, because loading it with pickle would run any code that it contains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.data.schema_columns import public_columns
from app.data.vectors import encode
from app.learning.predictors.own_predictors import Labels, posted_row
from app.learning.predictors.predictor_classes import PredictorSource, read_predictor
from app.learning.student import EstimatorStudent
from app.release.classifier.classifier_document import PredictorDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.schema import Schema
    from app.data.vectors import Vector
    from app.learning.predictors.own_predictors import Predictor, Predictors, PublicFeature


@dataclass(frozen=True, slots=True)
class PublishedPredictor:
    """A user-written predictor, rebuilt from its published document.

    Attributes:
        predictor: the user's predictor, a callable.
        features: the public features, in schema order.
        labels: the labels, by class index.
        missing: the strings that stand for a missing value, apart from the empty string.

    """

    predictor: Predictor
    features: tuple[PublicFeature, ...]
    labels: Labels
    missing: frozenset[str]

    def predict(self, vector: Vector) -> str:
        """Return the label of one feature vector, with its features in schema order."""
        row = posted_row(self.features, vector, missing=self.missing)
        return self.labels.classes[self.labels.predicted(self.predictor, row)]


def described(drawn: Predictors) -> PredictorDocument:
    """Return the JSON document of a drawn predictor, the only one in the class ``drawn``."""
    return PredictorDocument(of=drawn.kind, description=dict(drawn.describe(0)))


def rebuilt(
    document: PredictorDocument,
    *,
    features: Sequence[PublicFeature],
    classes: Sequence[str],
    missing: Sequence[str],
) -> PublishedPredictor:
    """Return the predictor in a published document, after importing its code.

    Raises:
        ConfigurationError: the code cannot be imported, or cannot read the description.

    """
    source = PredictorSource(
        section="classifier",
        kind=document.of,
        features=tuple(features),
        classes=tuple(classes),
    )
    return PublishedPredictor(
        read_predictor(source, document.description),
        source.features,
        Labels(source.classes),
        frozenset((*missing, "")),
    )


@dataclass(frozen=True, slots=True)
class PublishedStudent:
    """The published student as a fitted scikit-learn estimator, ready to predict.

    Attributes:
        schema: the public schema.
        student: the fitted estimator.

    """

    schema: Schema
    student: EstimatorStudent

    def predict(self, vectors: Sequence[Vector]) -> list[str]:
        """Return the label of each feature vector, predicted in one call."""
        if not vectors:
            return []
        predicted = self.student.predict(encode(self.schema, vectors))
        return [self.schema.classes[label] for label in predicted.tolist()]


def rebuilt_student(schema: Schema, body: bytes, *, otherwise: str) -> PublishedStudent:
    """Return a fitted estimator from its stored bytes, whose digest was checked.

    Args:
        schema: the public schema.
        body: the stored bytes.
        otherwise: the label of a query on which the estimator fails.

    Raises:
        LedgerCorruptError: the bytes do not contain a fitted estimator.

    """
    fallback = schema.classes.index(otherwise)
    columns = public_columns(schema)
    return PublishedStudent(schema, EstimatorStudent.from_bytes(columns, body, fallback=fallback))
