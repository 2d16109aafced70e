"""Confidence bounds of a proportion by Clopper and Pearson, exact at every size of sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]


def at_least(counts: Counts, trials: int, miss: float) -> Floats:
    """Return lower bounds of proportions.

    Args:
        counts: successes, any shape.
        trials: of each.
        miss: probability with which one bound is above the truth.

    """
    found = betaincinv(np.maximum(counts, 1), trials - counts + 1, miss)
    return np.where(counts > 0, found, 0.0)


def at_most(counts: Counts, trials: int, miss: float) -> Floats:
    """Return upper bounds of proportions; arguments as in :func:`at_least`."""
    found = betaincinv(counts + 1, np.maximum(trials - counts, 1), 1 - miss)
    return np.where(counts < trials, found, 1.0)
