"""Clopper-Pearson confidence bounds on proportions, exact at every sample size.

The bounds are computed by scipy, which the first call loads; loading takes about an eighth of a
second of processor time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]


def load() -> None:
    """Import scipy at once, so that no later call has to wait for it."""
    import_module("scipy.special")


def at_least(counts: Counts, trials: int, miss: float) -> Floats:
    """Return lower confidence bounds on proportions, from counts of successes.

    Args:
        counts: the numbers of successes, an array of any shape.
        trials: the number of trials behind each count.
        miss: the probability that a bound lies above the true proportion.

    """
    found = _beta_quantile(np.maximum(counts, 1), trials - counts + 1, miss)
    return np.where(counts > 0, found, 0.0)


def at_most(counts: Counts, trials: int, miss: float) -> Floats:
    """Return upper confidence bounds on proportions, from counts of successes.

    Args:
        counts: the numbers of successes, an array of any shape.
        trials: the number of trials behind each count.
        miss: the probability that a bound lies below the true proportion.

    """
    found = _beta_quantile(counts + 1, np.maximum(trials - counts, 1), 1 - miss)
    return np.where(counts < trials, found, 1.0)


def binomial_tail(count: int, trials: int, proportions: Floats | float) -> Floats:
    """Return the probability that at least ``count`` of ``trials`` succeed, for each proportion.

    Args:
        count: the number of successes, from 1 to ``trials``.
        trials: the number of independent trials.
        proportions: the probability that one trial succeeds, of any shape.

    """
    from scipy.special import betainc  # noqa: PLC0415 -- see the first lines

    return np.asarray(betainc(count, trials - count + 1, proportions))


def _beta_quantile(first: Counts, second: Counts, probability: float) -> Floats:
    from scipy.special import betaincinv  # noqa: PLC0415 -- see the first lines

    return np.asarray(betaincinv(first, second, probability))
