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
    rest = trials - hits + 1
    return np.asarray(
        np.where(hit < stable, betaincc(hits, rest, hit), betainc(rest, hits, stable))
    )


def at_least_hits(hit: Floats, stable: Floats, *, trials: float, hits: int) -> Floats:
    """Return the probability of so many hits or more; arguments as in :func:`fewer_hits`."""
    rest = trials - hits + 1
    return np.asarray(
        np.where(hit < stable, betainc(hits, rest, hit), betaincc(rest, hits, stable))
    )


def counting_bound(one: float, other: float, *, trials: int, delta: float) -> float:
    """Return what the number of successes shows, of probability ``one`` or ``other`` each.

    The likelihood ratio grows or falls with the number, so the events that show most say
    that it is at least, or at most, some limit.
    """
    limits = _limits(trials, max(one, other), min(one, other))
    shown = [
        epsilon_shown(tail(limits, trials, first), tail(limits, trials, second), delta)
        for tail in (bdtr, bdtrc)
        for first, second in ((one, other), (other, one))
    ]
    return max(0.0, float(np.nanmax(np.stack(shown))))


def _limits(trials: int, *chances: float) -> Floats:
    """Return counts from 0 on among which the best limit lies: all, or those near the mean."""
    if trials <= 4096:  # noqa: PLR2004 -- all of them are quick enough
        return np.arange(trials + 1, dtype=np.float64)
    reach = 40 * math.sqrt(trials) + 40
    parts = [
        np.linspace(max(0.0, trials * chance - reach), min(trials, trials * chance + reach), 4001)
        for chance in chances
    ]
    return np.unique(np.floor(np.concatenate(parts)))
