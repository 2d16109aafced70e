"""A forecast, from public counts, of when a release has given all answers its budget allows.

The forecast is shown to people and decides nothing. It assumes that each later answer is
independently unstable with the same probability as the answers so far. This holds where clients ask
similar queries from day to day; the drain alarm (``drain_alarm.py``) warns where they do not.

A unit of the cutoff T is one unstable answer. In a release with scores it is one failed stability
test (a noisy test of whether enough models agree), and an answer takes up to two tests.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.privacy.budget.confidence_bounds import at_least, at_most, binomial_tail

if TYPE_CHECKING:
    from collections.abc import Callable

MISS: Final = 0.025
"""Probability with which one bound misses; two of them make the band, four the forecast."""

BAND_CONFIDENCE: Final = 1 - 2 * MISS
FORECAST_CONFIDENCE: Final = 1 - 4 * MISS
ANSWERS_MAX: Final = 10**12
"""Answers beyond which a forecast says nothing."""

LIMIT: Final = "limit"
CUTOFF: Final = "cutoff"
EITHER: Final = "either"


@dataclass(frozen=True, slots=True)
class Counts:
    """The public counts of answers of one release, on which the forecast is based.

    Attributes:
        answered: the number of new answers that the ensemble has given.
        limit: the largest number of new answers that the ensemble may give.
        hits: the number of answers that used at least one unit of the cutoff: the unstable answers
            and, with scores, the stable answers whose first stability test failed.
        double_hits: the number of answers that used two units, which only answers with scores do.
        cutoff: the cutoff T, in units; None if no number of unstable answers ends the voting.
        with_scores: whether answers are scores, so that one answer may use two units.

    """

    answered: int
    limit: int
    hits: int
    double_hits: int
    cutoff: int | None
    with_scores: bool

    def __post_init__(self) -> None:
        """Refuse counts that no run has."""
        invariant(
            0 <= self.double_hits <= self.hits <= self.answered <= self.limit,
            "answers are counted once each",
        )
        invariant(self.with_scores or self.double_hits == 0, "a label uses one unit at most")

    @property
    def units(self) -> int:
        """The used units of the cutoff: unstable answers (with scores, failed stability tests)."""
        return self.hits + self.double_hits


@dataclass(frozen=True, slots=True)
class Band:
    """The mean number of units of the cutoff per answer, with Clopper-Pearson bounds.

    Attributes:
        mean: the mean number of units of the cutoff per answer so far.
        lower: a lower bound on the true mean, which fails with probability at most ``MISS``.
        upper: an upper bound on the true mean, which fails with probability at most ``MISS``.

    """

    mean: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast number of further answers before the budget for the models' votes is used up.

    Attributes:
        by_limit: the number of further answers until the largest number of answers is reached.
        earliest: the number of further answers after which the cutoff may be reached, by the upper
            bound on the rate of unstable answers; None without a cutoff.
        expected: the number of further answers until the cutoff at the mean rate of unstable
            answers; None if no answer has used a unit of the cutoff so far.
        latest: the number of further answers by which the cutoff is almost surely reached, by the
            lower bound on this rate; None if it may never be reached.
        first: which is reached first: ``limit`` (of answers) or ``cutoff``; ``either`` if that is
            uncertain.

    """

    by_limit: int
    earliest: int | None
    expected: float | None
    latest: int | None
    first: str


def band(counts: Counts) -> Band | None:
    """Return a confidence band for the rate of unstable answers; None before the first answer.

    For answers with scores, which use 0, 1 or 2 units of the cutoff each, the mean number of units
    is P(at least 1 unit) + P(2 units). Each of the two probabilities is bounded with half of the
    error probability ``MISS``.
    """
    if counts.answered == 0:
        return None
    seen = [counts.hits, counts.double_hits] if counts.with_scores else [counts.hits]
    miss = MISS / len(seen)
    lower = at_least(np.array(seen), counts.answered, miss)
    upper = at_most(np.array(seen), counts.answered, miss)
    return Band(counts.units / counts.answered, float(lower.sum()), float(upper.sum()))


def forecast(counts: Counts) -> Forecast:
    """Return the forecast of when the models give their last answer.

    Its earliest and its latest end each rest on two bounds: one on the rate of unstable answers,
    and one on their number at this rate. Each of the four bounds fails with probability at most
    ``MISS``, so the forecast is wrong with probability at most ``4 * MISS``.
    """
    left = counts.limit - counts.answered
    if counts.cutoff is None:
        return Forecast(left, None, None, None, LIMIT)
    units_left = max(0, counts.cutoff - counts.units)
    # An answer with a score uses up to two units.
    hits_least = -(-units_left // 2) if counts.with_scores else units_left
    lower, upper = _hit_share(counts)
    earliest = _answers_until(hits_least, lambda share: share > MISS, upper)
    latest = _answers_until(units_left, lambda share: share >= 1 - MISS, lower)
    mean = counts.units / counts.answered if counts.answered else 0.0
    expected = units_left / mean if mean else None
    return Forecast(left, earliest, expected, latest, _first(left, earliest, latest))


def _hit_share(counts: Counts) -> tuple[float, float]:
    """Return bounds of the share of answers that use a unit or more."""
    if counts.answered == 0:
        return 0.0, 1.0
    seen = np.array([counts.hits])
    lower = at_least(seen, counts.answered, MISS)
    return float(lower[0]), float(at_most(seen, counts.answered, MISS)[0])


def _answers_until(hits: int, holds: Callable[[float], bool], share: float) -> int | None:
    """Return the fewest answers for which the chance of so many hits among them ``holds``."""
    if hits == 0:
        return 0
    if share == 0:
        return None

    def is_reached(answers: int) -> bool:
        return holds(float(binomial_tail(hits, answers, share)))

    answers = hits + bisect_left(range(hits, ANSWERS_MAX), x=True, key=is_reached)
    return None if answers == ANSWERS_MAX else answers


def _first(left: int, earliest: int | None, latest: int | None) -> str:
    if earliest is None or earliest > left:
        return LIMIT
    return CUTOFF if latest is not None and latest <= left else EITHER
