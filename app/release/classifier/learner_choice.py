"""Which learner publishes the classifier: as configured, or by public numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.privacy.budget.composition import Mechanism
from app.privacy.noisy_gradient.descent import descends
from app.settings.settings import EXPONENTIAL

if TYPE_CHECKING:
    from app.settings.settings import Settings

AUTO: Final = "auto"
LINEAR: Final = "linear"


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
    return descends(row_count=row_count, epsilon=epsilon)
