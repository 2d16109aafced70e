"""The rule that chooses the number of models for ``ensemble = "auto"``, by public numbers.

The distance of a query is the number of votes that may change without changing the leading label.

The cutoff is the number of unstable answers after which the models stop.

The rule reads only the number n of rows, the table of probabilities of unstable answers, and the
configuration, so the number k of models reveals nothing about the rows:

1. A query on which two thirds of the votes agree should be unstable with probability at most
   ``min(1/100, T/(10 m))``, T being the cutoff and m the number of answers: then m such queries use
   up a tenth of the cutoff. Without a cutoff the limit is 1/100. Let d be the distance at which the
   table reaches this probability.
2. If two thirds of the votes agree, ``k = 3 (2 d + 1)`` votes have distance d.
3. Each chunk keeps at least ``max(20, ln |H|)`` rows, |H| being the number of hypotheses among
   which the learner of the models searches. With fewer rows, models of different chunks no longer
   agree.

Models that vote by public cells get one row each, so k = n. If each public cell is answered once,
every vector in it gets the same recorded answer, so one record can change at most two answers.

The module also computes an approximate table of the probabilities of unstable answers in floating
point, for planning. It takes a fifth of the time of the exact table, and its probabilities differ
from the exact ones by about 1e-5 (a test compares them). No release relies on the approximate
table.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from app.errors import ConfigurationError, InvariantError, invariant
from app.privacy.budget.account import left_for_answers
from app.privacy.stability.cell_table import (
    DECISION_RELEASE_PART,
    DECISION_SLOPE,
    DECISIONS_MOVED,
)
from app.privacy.stability.hit_table import real_valued_hit_probability
from app.privacy.stability.probability_curve import HELD_BELOW
from app.privacy.stability.profile_parameters import (
    EPSILON_KEY,
    RELEASE_PART,
    refuse_out_of_range,
    split_for,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from app.privacy.budget.account import Draw
    from app.privacy.stability.probability_curve import CurvePoint

ENTRY_COUNT_MAX: Final = 12_000
"""Distances after which a table is given up: about a second of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateProfile:
    """Probabilities of an unstable answer at each distance, in floating point.

    Attributes:
        cutoff: the cutoff T, the number of unstable answers after which the models stop; None if
            each public cell is answered once.
        hits: the probability of an unstable answer at each distance; the last one also applies to
            all larger distances.

    """

    cutoff: int | None
    hits: tuple[float, ...]

    def hit_probability(self, distance: int) -> float:
        """Return the probability that the answer to a query at ``distance`` is unstable."""
        return self.hits[min(distance, len(self.hits) - 1)]

    def distance_at(self, probability: float) -> int:
        """Return the smallest distance at which an answer is unstable with at most this chance."""
        found = bisect_left(self.hits, -probability, key=lambda hit: -hit)
        return min(found, len(self.hits) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateDecisions(ApproximateProfile):
    """Probabilities of an unstable answer by distance, if each public cell is answered once."""


@lru_cache(maxsize=64)
def approximate_decisions(
    *, epsilon: Fraction, delta: Fraction, draws: tuple[Draw, ...] = ()
) -> ApproximateDecisions:
    """Return approximate probabilities of an unstable answer, if each cell is answered once."""
    own = left_for_answers(epsilon, draws)
    refuse_out_of_range(epsilon=own, delta=delta, cutoff=DECISIONS_MOVED)
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=DECISIONS_MOVED)
    points = real_valued_hit_probability(
        epsilon=float(epsilon),
        delta=float(delta),
        cutoff=DECISIONS_MOVED,
        draws=draws,
        count_max=ENTRY_COUNT_MAX,
        slope=float(DECISION_SLOPE),
        release_part=float(DECISION_RELEASE_PART),
        is_answer_priced=True,
    )
    return ApproximateDecisions(cutoff=None, hits=_ending(points))


@lru_cache(maxsize=64)
def approximate_profile(
    *, epsilon: Fraction, delta: Fraction, cutoff: int, draws: tuple[Draw, ...] = ()
) -> ApproximateProfile:
    """Return approximate probabilities of an unstable answer, for a new release.

    Args:
        epsilon: the answers' share of epsilon, above 0; if there are draws, the epsilon of answers
            and draws together.
        delta: the answers' share of delta, in (0, 1).
        cutoff: the cutoff T, at least 1.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.

    Raises:
        ConfigurationError: no exact table exists for the budget, or the table is too long for a
            quick computation.

    """
    refuse_out_of_range(epsilon=left_for_answers(epsilon, draws), delta=delta, cutoff=cutoff)
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=cutoff)
    points = real_valued_hit_probability(
        epsilon=float(epsilon),
        delta=float(delta),
        cutoff=cutoff,
        draws=draws,
        count_max=ENTRY_COUNT_MAX,
        release_part=float(RELEASE_PART if draws else split_for(delta, cutoff)),
        slope=None,
    )
    return ApproximateProfile(cutoff=cutoff, hits=_ending(points))


def _ending(points: tuple[CurvePoint, ...]) -> tuple[float, ...]:
    """Return the hits of a table that comes to its end."""
    if points[-1].hit >= HELD_BELOW:
        problem = f"needs a table of more than {ENTRY_COUNT_MAX} entries at this cutoff"
        raise ConfigurationError(EPSILON_KEY, problem)
    return tuple(point.hit for point in points)


HIT_PROBABILITY_MAX: Final = 0.01
CUTOFF_PART: Final = 10
VOTES_A_DISTANCE: Final = 2
AGREEMENT_FACTOR: Final = 3
CHUNK_ROW_MIN: Final = 20


def wanted_hit_probability(query_count: int, cutoff: int | None) -> float:
    """Return the largest permitted chance of an unstable answer if two thirds of the votes agree.

    The probability is at most 1/100, and so small that ``query_count`` such queries use up at most
    a tenth of the cutoff on average.
    """
    if cutoff is None:
        return HIT_PROBABILITY_MAX
    return min(HIT_PROBABILITY_MAX, cutoff / (CUTOFF_PART * query_count))


def largest_hit_probability(query_count: int, cutoff: int | None) -> float:
    """Return the largest chance of an unstable answer at which all queries can be answered.

    The probability is at most 1/100, and so small that ``query_count`` queries use up at most the
    whole cutoff on average.
    """
    if cutoff is None:
        return HIT_PROBABILITY_MAX
    return min(HIT_PROBABILITY_MAX, cutoff / query_count)


def chunk_row_min(hypothesis_count: int) -> int:
    """Return the smallest permitted number of rows in a chunk."""
    return max(CHUNK_ROW_MIN, math.ceil(math.log(hypothesis_count)))


def size_at_unanimity(distance: int) -> int:
    """Return the fewest models whose unanimous label survives ``distance`` changed votes."""
    return VOTES_A_DISTANCE * distance + 1


def distance_at_unanimity(ensemble_size: int) -> int:
    """Return how many of k unanimous votes may change before another label can win."""
    return max(0, (ensemble_size + 1) // 2 - 1)


@runtime_checkable
class HitTest(Protocol):
    """The interface of a stability test: the probability of an unstable answer at each distance."""

    @property
    def cutoff(self) -> int | None:
        """The number T of unstable answers after which the models stop; None without limit."""
        ...

    def hit_probability(self, distance: int, /) -> float:
        """Return the probability that the answer to a query at ``distance`` is unstable."""
        ...

    def distance_at(self, probability: float, /) -> int:
        """Return the smallest distance at which an answer is unstable with at most this chance."""
        ...


def tested(calibration: object) -> HitTest:
    """Return a mechanism's noise parameters if it has a stability test; raise an error otherwise.

    In a stability test an answer is unstable with a probability that falls with the number of votes
    that may change without changing the leading label.

    Raises:
        InvariantError: the mechanism has no unstable answers.

    """
    if not isinstance(calibration, HitTest):
        raise InvariantError("a stability test has a probability of a hit at each distance")
    return calibration


def size_of_test(test: HitTest, query_count: int) -> int:
    """Return the number of models at which agreement of two thirds of them makes answers stable."""
    probability = wanted_hit_probability(query_count, test.cutoff)
    return AGREEMENT_FACTOR * size_at_unanimity(test.distance_at(probability))


def hits_alike(test: HitTest, ensemble_size: int) -> float:
    """Return the probability of an unstable answer if all k votes agree."""
    return test.hit_probability(distance_at_unanimity(ensemble_size))


def ensemble_size_auto(
    *,
    row_count: int,
    wanted: int,
    hypothesis_count: int,
) -> int:
    """Return the number of models, k, by the public rule of this module.

    Args:
        row_count: n, the public number of rows, at least 1.
        wanted: the number of models that the noise requires, whatever the number of rows.
        hypothesis_count: the number of hypotheses among which a learner searches.

    Returns:
        The number k of models, between 1 and n.

    """
    invariant(row_count >= 1, "n is at least one")
    fed = row_count // chunk_row_min(hypothesis_count)
    return max(1, min(wanted, fed))
