"""The table of learners that publish a classifier: a new one is a folder and a row here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.privacy.budget.composition import Mechanism
from app.privacy.published_learners import learner_of
from app.release.classifier.exponential import DRAWN_FROM_CLASS
from app.release.classifier.grid import COUNTED
from app.release.classifier.kernel import WAVED
from app.release.classifier.learner_row import ClassifierAsked
from app.release.classifier.linear import DESCENDED
from app.release.terms.configuration import no_points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.release.classifier.learner_row import ClassifierDraw, LearnerRow
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings

PUBLISHING: dict[str, LearnerRow] = {
    row.learner.name: row for row in (DRAWN_FROM_CLASS, DESCENDED, WAVED, COUNTED)
}


def learner_row(settings: Settings, *, row_count: int | None) -> LearnerRow:
    """Return the row of the learner that is configured, or that public numbers speak for.

    Args:
        settings: the whole configuration.
        row_count: the public n, where known.

    """
    epsilon = settings.privacy.epsilon_of(Mechanism.CLASSIFIER.value)
    chosen = settings.classifier.learner
    return PUBLISHING[learner_of(chosen, row_count=row_count, epsilon=epsilon)]


def classifier_draw(
    configuration: Configuration,
    public_values: NDArray[np.float64],
    *,
    row_count: int,
    is_first: bool = False,
) -> ClassifierDraw:
    """Return the draw of a release's classifier, as public points fix it.

    Args:
        configuration: the release's.
        public_values: encoded public points, shape (m, d); m may be 0.
        row_count: the public n.
        is_first: whether nothing is charged yet, so that a draw of hours is refused.

    Raises:
        ConfigurationError: names what to change, where no such draw is exact.

    """
    settings, charge = configuration.settings, configuration.charges[Mechanism.CLASSIFIER]
    asked = ClassifierAsked(settings, charge, public_values, row_count, is_first)
    return learner_row(settings, row_count=row_count).prepare(asked)


def check_classifier_draw(
    configuration: Configuration, public_values: NDArray[np.float64] | None, *, row_count: int
) -> None:
    """Refuse a classifier that could not be drawn when its turn comes.

    Args:
        configuration: the release's.
        public_values: encoded public points, shape (m, d), where they are known;
            without any its class is at its largest.
        row_count: the public n.

    Raises:
        ConfigurationError: names what to change.

    """
    if configuration.has(Mechanism.CLASSIFIER):
        points = no_points(configuration.settings) if public_values is None else public_values
        classifier_draw(configuration, points, row_count=row_count, is_first=True)
