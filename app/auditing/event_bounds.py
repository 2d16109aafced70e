"""Lower bounds on epsilon from the probabilities of an event on two neighbouring data sets.

Let P and Q be the probabilities of an event on two neighbouring data sets. Differential privacy
with epsilon and delta says ``P <= e^epsilon Q + delta`` for every event, so each event shows that
epsilon is at least ``ln((P - delta) / Q)``.

The module also contains confidence bounds for probabilities that are estimated from samples, and
the smallest epsilon that a sample of a given size can detect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import bdtr, bdtrc, betainc, betaincc

from app.auditing.laws.step_law import smallest_where
from app.privacy.budget.confidence_bounds import at_least, at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

ROUNDING: Final = 1e-6
"""More than the doubles of the incomplete beta functions and of sums move a bound by."""

TRIALS_LISTED: Final = 4096
"""So many are few enough for every count of successes to be a limit."""


@dataclass(frozen=True, slots=True, order=True)
class Bound:
    """A lower bound on epsilon, with the adversary (sequence of queries) that proves it."""

    epsilon: float
    adversary: str


NO_BOUND: Final = Bound(0.0, "none does better than guessing")


def strongest(bounds: list[Bound]) -> Bound:
    """Return the largest of some lower bounds, at least zero."""
    return max([NO_BOUND, *bounds])


def epsilon_shown(likely: Floats, unlikely: Floats, delta: float) -> Floats:
    """Return the epsilon that an event with these probabilities on two data sets proves.

    Args:
        likely: the event's probability P on one data set, any shape.
        unlikely: the event's probability Q on the other data set, of the same shape.
        delta: the delta of the claim.

    Returns:
        ``ln((P - delta) / Q)``; minus infinity where P is at most delta, and infinity where Q is
        zero and P is larger than delta.

    """
    excess = np.asarray(likely) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.where(excess > 0, np.log(np.maximum(excess, 0) / unlikely), -math.inf)
    return np.asarray(shown, dtype=np.float64)


def fewer_hits(hit: Floats, stable: Floats, *, trials: float, hits: int) -> Floats:
    """Return the probability of fewer than ``hits`` successes in independent trials.

    Args:
        hit: the probability of success in a trial, any shape.
        stable: the probability of failure in a trial, which ``1 - hit`` would give less exactly.
        trials: the number of trials, which may be as large as a floating-point number.
        hits: the number of successes, from 1 to ``trials``.

    """
    return _binomial(betaincc, betainc, hit, stable, trials=trials, hits=hits)


def at_least_hits(hit: Floats, stable: Floats, *, trials: float, hits: int) -> Floats:
    """Return the probability of at least ``hits`` successes in independent trials.

    Args:
        hit: the probability of success in a trial, any shape.
        stable: the probability of failure in a trial, which ``1 - hit`` would give less exactly.
        trials: the number of trials, which may be as large as a floating-point number.
        hits: the number of successes, from 1 to ``trials``.

    """
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


def epsilon_between(one: Floats, other: Floats, delta: float) -> float:
    """Return the largest epsilon with ``P(O) > e^epsilon Q(O) + delta`` for some event O.

    P and Q are the probabilities of the event on two data sets.

    Args:
        one: the probabilities of all outcomes on one data set.
        other: the probabilities of the same outcomes on the other data set.
        delta: the delta of the claim.

    """
    low, high = 0.0, EPSILON_FOUND_MAX
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        apart = float(np.maximum(0.0, one - math.exp(middle) * other).sum())
        low, high = (middle, high) if apart > delta else (low, middle)
    return low


def counting_bound(one: float, other: float, *, trials: int, delta: float) -> float:
    """Return the epsilon that the number of successes proves, for two success probabilities.

    The likelihood ratio is monotone in the number of successes. So the event that proves the
    largest epsilon is that the number is at least, or at most, a certain limit.

    Args:
        one: the success probability on one data set.
        other: the success probability on the other data set.
        trials: the number of independent trials.
        delta: the delta of the claim.

    """
    limits = _limits(trials, max(one, other), min(one, other))
    return float(_counting(limits, np.array([one]), np.array([other]), trials, delta)[0])


def counting_bounds(one: Floats, other: Floats, *, trials: int, delta: float) -> Floats:
    """Return the epsilon that the number of successes proves, for many pairs of probabilities.

    Args:
        one: the success probability of each pair on one data set, shape (pairs,).
        other: the success probability of each pair on the other data set, shape (pairs,).
        trials: the number of independent trials.
        delta: the delta of the claim.

    """
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


EPSILON_GRID: Final = 1000
EPSILON_FOUND_MAX: Final = 24.0
BISECTIONS: Final = 60
EPSILON_SEEN_MAX: Final = 100
HALF: Final = 0.5


def bounds_shown(
    likely: Counts, unlikely: Counts, *, trials: int, delta: float, miss: float
) -> Floats:
    """Return lower bounds on epsilon by counts of events.

    Each bound exceeds the true epsilon with probability at most ``2 * miss``.

    Args:
        likely: the number of runs on one data set in which each event occurred, any shape.
        unlikely: the number of runs on the other data set in which each event occurred, of the same
            shape.
        trials: the number of runs on each data set.
        delta: the delta of the claim.
        miss: the probability that an event's true probability lies outside its confidence bound.

    """
    return epsilon_shown(at_least(likely, trials, miss), at_most(unlikely, trials, miss), delta)


def largest_shown(*, trials: int, delta: float, miss: float) -> float:
    """Return the largest lower bound on epsilon that a sample of this size can prove.

    It is proved by an event that occurs in all runs on one data set and in no run on the other.

    Args:
        trials: the number of runs on each data set.
        delta: the delta of the claim.
        miss: the probability that an event's true probability lies outside its confidence bound.

    """
    counts = np.array([trials]), np.array([0])
    return float(bounds_shown(*counts, trials=trials, delta=delta, miss=miss)[0])


def detection_limit(claim: float, *, trials: int, delta: float, miss: float) -> float:
    """Return the smallest epsilon above the claim that a sampled audit would detect.

    It is computed for an event that occurs in half of the runs on one data set, and as rarely as
    epsilon allows on the other data set, with counts equal to their expected values. The result is
    infinite if no epsilon would be detected.

    Args:
        claim: the claimed epsilon.
        trials: the number of runs on each data set.
        delta: the delta of the claim.
        miss: the probability that an event's true probability lies outside its confidence bound.

    """
    half = np.array([round(HALF * trials)])

    def is_seen(thousandths: int) -> bool:
        rest = np.array([round(HALF * trials * math.exp(-thousandths / EPSILON_GRID))])
        shown = bounds_shown(half, rest, trials=trials, delta=delta, miss=miss)
        return float(shown[0]) > claim

    last = EPSILON_SEEN_MAX * EPSILON_GRID
    found = smallest_where(is_seen, 0, last)
    return math.inf if found == last else found / EPSILON_GRID
