"""A toy learner: the label that most rows have, by one noisy count, and its rows.

One record replaced moves the count of the second label by one, and discrete Laplace noise of
scale ``1 / epsilon`` hides that: pure differential privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.auditing.event_bounds import Bound
from app.learning.trees.upper_level_weights import tell_nobody
from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.learner_properties import PublishedLearner
from app.release.classifier.classifier_document import NodeDocument
from app.release.classifier.learner_registration import ClassifierAsked, LearnerRegistration
from app.release.classifier.written_hypotheses import Written

if TYPE_CHECKING:
    from fractions import Fraction

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.learning.trees.upper_level_weights import Told
    from app.noise.source import NoiseSource
    from app.privacy.budget.composition import Charge
    from app.settings.settings import Settings

MAJORITY: Final = PublishedLearner(
    name="majority",
    uses_delta=False,
    has_scores=False,
    meaning="Pays for the published classifier, a label for everybody.",
    formula="the noisy count of a label is compared with half of the records",
    theorem="one noisy count for each label",
    proof="none: it is a toy",
)


@dataclass(frozen=True)
class MajorityDraw:
    """One noisy count."""

    epsilon: Fraction
    row_count: int

    def worth(self, source: str) -> str:
        """Say what is about to be spent."""
        return f"counting the labels {source} of {self.row_count} rows"

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Write the label as a tree of one leaf."""
        del told
        noisy_count = int(rows.in_memory().labels.sum()) + DiscreteLaplace(1 / self.epsilon).draw(
            noise
        )
        label = schema.classes[2 * noisy_count > self.row_count]
        return Written(tree=NodeDocument(label=label))


def prepare(asked: ClassifierAsked) -> MajorityDraw:
    """Count all rows."""
    return MajorityDraw(asked.charge.epsilon, asked.row_count)


def audited(_: Settings, charge: Charge) -> Bound:
    """Bound what the label of half of the rows and one more shows: ``P[Y >= 0] / P[Y >= 1]``."""
    ratio = math.exp(-float(charge.epsilon))
    at_zero = (1 - ratio) / (1 + ratio)
    above = (1 - at_zero) / 2
    return Bound(math.log((at_zero + above) / above), "one record more than half has a label")


def smallest_share(_: ClassifierAsked) -> float:
    """Return the share that has to be more than half of the rows."""
    return 0.5


PUBLISHED_MAJORITY: Final = LearnerRegistration(
    learner=MAJORITY, prepare=prepare, smallest_share=smallest_share
)
