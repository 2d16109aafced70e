"""Which learner publishes the classifier: as configured, or by public numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.accounting.composition import Mechanism
from app.settings import EXPONENTIAL

if TYPE_CHECKING:
    from app.settings import Settings

AUTO: Final = "auto"
LINEAR: Final = "linear"
# Rows times epsilon from which noise on sums costs less than a tree's coarseness.
LINEAR_FROM: Final = 3000


def is_linear(settings: Settings, *, row_count: int | None) -> bool:
    """Tell whether the noisy descent learns; where n is not known, "auto" counts as it.

    Args:
        settings: the whole configuration.
        row_count: the public n, where known.

    """
    chosen = settings.classifier.learner
    if chosen != AUTO or row_count is None:
        return chosen != EXPONENTIAL
    epsilon = settings.privacy.epsilon_of(Mechanism.CLASSIFIER.value)
    return row_count * epsilon >= LINEAR_FROM
