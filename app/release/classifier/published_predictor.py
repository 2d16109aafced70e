"""A published predictor of a user's own: its code by name, and its description.

The description is public with the document.  The code is the operator's, and
the release is bound to it; predicting by it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.learning.predictors.own_predictors import Labels, posted_row
from app.learning.predictors.predictor_classes import PredictorSource, read_predictor
from app.release.classifier.classifier_document import PredictorDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.vectors import Vector
    from app.learning.predictors.own_predictors import Predictor, Predictors, PublicFeature


@dataclass(frozen=True, slots=True)
class PublishedPredictor:
    """A predictor that was rebuilt from its document.

    Attributes:
        predictor: what is called.
        features: the public features, in schema order.
        labels: the classes.
        missing: strings that stand for a missing value, besides an empty one.

    """

    predictor: Predictor
    features: tuple[PublicFeature, ...]
    labels: Labels
    missing: frozenset[str]

    def predict(self, vector: Vector) -> str:
        """Return the label of one feature vector in schema order."""
        row = posted_row(self.features, vector, missing=self.missing)
        return self.labels.classes[self.labels.predicted(self.predictor, row)]


def described(drawn: Predictors) -> PredictorDocument:
    """Write a list of one predictor as a document."""
    return PredictorDocument(of=drawn.kind, description=dict(drawn.describe(0)))


def rebuilt(
    document: PredictorDocument,
    *,
    features: Sequence[PublicFeature],
    classes: Sequence[str],
    missing: Sequence[str],
) -> PublishedPredictor:
    """Import the code of a document and rebuild the predictor.

    Raises:
        ConfigurationError: the code is not there, or does not read the description.

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
