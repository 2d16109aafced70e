"""Confidence bounds of proportions, and what a sample of some size can and cannot show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.laws.step_law import smallest_where
from app.auditing.outcome_events import epsilon_shown
from app.privacy.proportions import at_least, at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]

EPSILON_GRID: Final = 1000
EPSILON_SEEN_MAX: Final = 100
HALF: Final = 0.5


def bounds_shown(
    likely: Counts, unlikely: Counts, *, trials: int, delta: float, miss: float
) -> Floats:
    """Return what counts of events show of epsilon, each but for twice ``miss``.

    Args:
        likely: how often the events came on one side, any shape.
        unlikely: on the other side, of the same shape.
        trials: runs on each side.
        delta: of the claim.
        miss: probability with which one proportion leaves its bound.

    """
    return epsilon_shown(at_least(likely, trials, miss), at_most(unlikely, trials, miss), delta)


def largest_shown(*, trials: int, delta: float, miss: float) -> float:
    """Return what an event shows that came always on one side and never on the other."""
    counts = np.array([trials]), np.array([0])
    return float(bounds_shown(*counts, trials=trials, delta=delta, miss=miss)[0])


def detection_limit(claim: float, *, trials: int, delta: float, miss: float) -> float:
    """Return the smallest epsilon that shows as more than the claim.

    It is that of an event which comes in half of the runs on one side, and as seldom as
    epsilon allows on the other, each as often as expected; infinite where there is none.
    """
    half = np.array([round(HALF * trials)])

    def is_seen(thousandths: int) -> bool:
        rest = np.array([round(HALF * trials * math.exp(-thousandths / EPSILON_GRID))])
        shown = bounds_shown(half, rest, trials=trials, delta=delta, miss=miss)
        return float(shown[0]) > claim

    last = EPSILON_SEEN_MAX * EPSILON_GRID
    found = smallest_where(is_seen, 0, last)
    return math.inf if found == last else found / EPSILON_GRID
