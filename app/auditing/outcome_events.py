"""From the probabilities of an event on neighbours to a lower bound on epsilon.

(epsilon, delta)-privacy says P <= e^epsilon Q + delta for every event, so each event
shows that epsilon is at least ln((P - delta) / Q).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import bdtr, bdtrc, betainc, betaincc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROUNDING: Final = 1e-6
"""More than the doubles of the incomplete beta functions and of sums move a bound by."""

TRIALS_LISTED: Final = 4096
"""So many are few enough for every count of successes to be a limit."""


@dataclass(frozen=True, slots=True, order=True)
class Bound:
    """A lower bound on epsilon, and the adversary that reaches it."""

    epsilon: float
    adversary: str


NO_BOUND: Final = Bound(0.0, "none does better than guessing")


def strongest(bounds: list[Bound]) -> Bound:
    """Return the largest of some bounds, which is never below zero."""
    return max([NO_BOUND, *bounds])


def epsilon_shown(likely: Floats, unlikely: Floats, delta: float) -> Floats:
    """Return what events show that have these probabilities on one side and the other.

    Args:
        likely: P, any shape.
        unlikely: Q, of the same shape.
        delta: of the claim.

    Returns:
        ``ln((P - delta) / Q)``; minus infinity where P is at most delta, and infinity
        where Q is zero and P is more.

    """
    excess = np.asarray(likely) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.where(excess > 0, np.log(np.maximum(excess, 0) / unlikely), -math.inf)
    return np.asarray(shown, dtype=np.float64)


def fewer_hits(hit: Floats, stable: Floats, *, trials: float, hits: int) -> Floats:
    """Return the probability of fewer than so many hits in independent trials.

    Args:
        hit: probability of a hit, any shape.
        stable: that of none, which keeps the digits that ``1 - hit`` would lose.
        trials: number of trials; as large as doubles go.
        hits: at least 1 and at most the trials.

    """
    return _binomial(betaincc, betainc, hit, stable, trials=trials, hits=hits)


def at_least_hits(hit: Floats, stable: Floats, *, trials: float, hits: int) -> Floats:
    """Return the probability of so many hits or more; arguments as in :func:`fewer_hits`."""
    return _binomial(betainc, betaincc, hit, stable, trials=trials, hits=hits)


def _binomial(
    of_hit: np.ufunc, of_stable: np.ufunc, hit: Floats, stable: Floats, *, trials: float, hits: int
) -> Floats:
    """Return a tail by whichever of both probabilities has the digits."""
    rest, rare = trials - hits + 1, hit < stable
    found = np.empty(np.shape(rare))
    found[rare] = of_hit(hits, rest, hit[rare])
    found[~rare] = of_stable(rest, hits, stable[~rare])
    return found


def counting_bound(one: float, other: float, *, trials: int, delta: float) -> float:
    """Return what the number of successes shows, of probability ``one`` or ``other`` each.

    The likelihood ratio grows or falls with the number, so the events that show most say
    that it is at least, or at most, some limit.
    """
    limits = _limits(trials, max(one, other), min(one, other))
    return float(_counting(limits, np.array([one]), np.array([other]), trials, delta)[0])


def counting_bounds(one: Floats, other: Floats, *, trials: int, delta: float) -> Floats:
    """Return :func:`counting_bound` for many pairs of probabilities, shape (pairs,)."""
    if trials > TRIALS_LISTED:
        pairs = zip(one.tolist(), other.tolist(), strict=True)
        return np.array([counting_bound(*pair, trials=trials, delta=delta) for pair in pairs])
    return _counting(_limits(trials), one, other, trials, delta)


def _counting(limits: Floats, one: Floats, other: Floats, trials: int, delta: float) -> Floats:
    """Return the most that any limit shows, for each pair."""
    shown = [
        epsilon_shown(
            tail(limits[:, None], trials, first), tail(limits[:, None], trials, second), delta
        )
        for tail in (bdtr, bdtrc)
        for first, second in ((one, other), (other, one))
    ]
    return np.asarray(np.maximum(0.0, np.nanmax(np.concatenate(shown), axis=0)))


def _limits(trials: int, *chances: float) -> Floats:
    """Return counts from 0 on among which the best limit lies: all, or those near the mean."""
    if trials <= TRIALS_LISTED:
        return np.arange(trials + 1, dtype=np.float64)
    reach = 40 * math.sqrt(trials) + 40
    parts = [
        np.linspace(max(0.0, trials * chance - reach), min(trials, trials * chance + reach), 4001)
        for chance in chances
    ]
    return np.unique(np.floor(np.concatenate(parts)))
