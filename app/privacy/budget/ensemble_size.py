"""How many learners an ensemble needs: the public rule behind ``ensemble = "auto"``.

The rule reads n, the table and the configuration only, so that k tells nothing
about the rows:

1. A query worth answering should be a hit with probability at most
   ``min(1/100, T/(10 m))``: then such queries use up a tenth of the cutoff.  Let d be
   the distance at which the table gives that.
2. Where two thirds of the votes agree, ``k = 3 (2 d + 1)`` votes reach d.
3. Each chunk keeps at least ``max(20, ln |H|)`` rows, |H| being the number of
   hypotheses; with fewer, learners on different chunks no longer agree, and more of
   them help less than better ones would.

Learners that vote by public cells are given a row each instead: k = n.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from app.errors import invariant
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration

if TYPE_CHECKING:
    from app.privacy.budget.approximate_profile import ApproximateProfile
    from app.privacy.budget.calibration import Calibration

HIT_PROBABILITY_MAX: Final = 0.01
CUTOFF_PART: Final = 10
VOTES_A_DISTANCE: Final = 2
AGREEMENT_FACTOR: Final = 3
CHUNK_ROW_MIN: Final = 20


def wanted_hit_probability(*, query_count: int, cutoff: int) -> float:
    """Return the hit probability at which m queries use up a tenth of the cutoff."""
    return min(HIT_PROBABILITY_MAX, cutoff / (CUTOFF_PART * query_count))


def largest_hit_probability(*, query_count: int, cutoff: int) -> float:
    """Return the hit probability at which m queries just reach the cutoff."""
    return min(HIT_PROBABILITY_MAX, cutoff / query_count)


def chunk_row_min(hypothesis_count: int) -> int:
    """Return the rows that a chunk should keep at least."""
    return max(CHUNK_ROW_MIN, math.ceil(math.log(hypothesis_count)))


def size_at_unanimity(distance: int) -> int:
    """Return the smallest k whose unanimous votes lie at this distance."""
    return VOTES_A_DISTANCE * distance + 1


def distance_at_unanimity(ensemble_size: int) -> int:
    """Return the distance of k unanimous votes: ``max(0, ceil(k/2) - 1)``."""
    return max(0, (ensemble_size + 1) // 2 - 1)


def size_wanted(*, table: Calibration | ApproximateProfile, query_count: int) -> int:
    """Return the k that keeps queries on which two thirds agree, rows aside."""
    if isinstance(table, NoisyVoteCalibration):
        return AGREEMENT_FACTOR * table.lead_at(HIT_PROBABILITY_MAX)
    probability = wanted_hit_probability(query_count=query_count, cutoff=table.cutoff)
    return AGREEMENT_FACTOR * size_at_unanimity(table.distance_at(probability))


def ensemble_size_auto(
    *,
    row_count: int,
    table: Calibration | ApproximateProfile,
    query_count: int,
    hypothesis_count: int,
) -> int:
    """Return k by the public rule of this module.

    Args:
        row_count: n, the public number of rows, at least 1.
        table: calibration of the answers' share.
        query_count: m, at least 1.
        hypothesis_count: number of hypotheses that learners search.

    Returns:
        k, between 1 and n.

    """
    invariant(row_count >= 1, "n is at least one")
    fed = row_count // chunk_row_min(hypothesis_count)
    return max(1, min(size_wanted(table=table, query_count=query_count), fed))
