"""Queries on which neighbours are easiest to tell apart by sampling.

A stretch is some queries in a row with the same votes.  On one side of a pair the label
has ``lead`` votes more than half, on the other as many and those that one record moves;
which side has more may differ from stretch to stretch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from app.auditing.laws.step_law import smallest_where
from app.noise.source import WORD_BOUND
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability

if TYPE_CHECKING:
    from app.auditing.audited import Audited

HIT_SHARES: Final = (0.9, 0.5, 0.2)
"""Chances of a hit at which one query is asked again and again."""
HITS_BEYOND: Final = 5
"""Hits more than the cutoff that are expected: a run then seldom lasts, which shows most."""
STEPS_MAX: Final = 64
RELEASES: Final = (1, 4, 16)
RUNGS: Final = 16
THRESHOLD_PARTS: Final = (0.9, 1.0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some queries in a row with the same votes.

    Attributes:
        one: lead on one side, in votes beyond half.
        other: lead on the other side.
        count: number of queries.

    """

    one: int
    other: int
    count: int


@dataclass(frozen=True, slots=True)
class Adversary:
    """What is asked, in order, and whether the process starts again between queries."""

    name: str
    stretches: tuple[Stretch, ...]
    restarting: bool = False


def adversaries(audited: Audited) -> list[Adversary]:
    """Return what the mechanism that answers is asked; a function of public numbers only."""
    answering = audited.parameters.answering
    if isinstance(answering, stability.Parameters):
        return [_flip(audited), *_of_profile(audited, answering)]
    if isinstance(answering, sparse_vector.Parameters):
        return [_flip(audited), *_of_threshold(audited, answering)]
    return [_flip(audited), *_of_votes(audited)]


def _flip(audited: Audited) -> Adversary:
    """Ask queries whose plurality differs between the neighbours."""
    return Adversary("one vote decides", (_moved(audited, -1, 4),))


def _of_profile(audited: Audited, answering: stability.Parameters) -> list[Adversary]:
    """Ask the same query until some hits are likely, restarts, and a ladder."""
    cutoff, found = answering.cutoff, []
    for share in HIT_SHARES:
        lead = _lead_of(audited, answering, share)
        count = min(STEPS_MAX, math.ceil((cutoff + HITS_BEYOND) / share))
        stretches = (_moved(audited, lead, count),)
        found.append(Adversary(f"a hit in {1 / share:.3g} queries", stretches))
    middle = _lead_of(audited, answering, 0.5)
    repeated = (_moved(audited, middle, min(STEPS_MAX, 4 * cutoff)),)
    found.append(Adversary("restarts between queries", repeated, restarting=True))
    return [*found, _ladder(audited, middle)]


def _of_threshold(audited: Audited, answering: sparse_vector.Parameters) -> list[Adversary]:
    """Ask for releases and then for hits, restarts, and a ladder."""
    moved, found = audited.votes_moved, []
    for part in THRESHOLD_PARTS:
        lead = _lead_at(audited, int(part * answering.threshold))
        for releases in RELEASES:
            stretches = (
                Stretch(lead + moved, lead, releases),
                Stretch(lead, lead + moved, min(STEPS_MAX, answering.cutoff)),
            )
            name = f"{releases} released at {part:.0%} of the threshold, then hits"
            found.append(Adversary(name, stretches))
    middle = _lead_at(audited, answering.threshold)
    repeated = (_moved(audited, middle, min(STEPS_MAX, 4 * answering.cutoff)),)
    found.append(Adversary("restarts between queries", repeated, restarting=True))
    return [*found, _ladder(audited, middle)]


def _of_votes(audited: Audited) -> list[Adversary]:
    """Ask the same query as often as it is answered."""
    answering = audited.parameters.answering
    if not isinstance(answering, noisy_vote.Parameters):
        return []
    count = min(STEPS_MAX, answering.answer_limit)
    deviation = math.sqrt(answering.vote_noise.variance)
    leads = [min(audited.lead_max, round(part * deviation)) for part in (0.0, 1.0, 2.0)]
    return [
        Adversary(f"leads of {2 * lead} votes", (_moved(audited, lead, count),)) for lead in leads
    ]


def _ladder(audited: Audited, middle: int) -> Adversary:
    """Ask pairs of queries, each pair with fewer votes than the one before.

    On one side the first of a pair leads by the moved votes more and the second by as
    many less.  With noise that is not fresh the first hit comes second in its pair there,
    and first in its pair on the other side.
    """
    moved = audited.votes_moved
    leads = (middle + 2 * moved * step for step in range(RUNGS // 2, -RUNGS // 2, -1))
    rungs = (min(audited.lead_max - moved, max(moved, lead)) for lead in leads)
    pairs = ((Stretch(lead + moved, lead, 1), Stretch(lead - moved, lead, 1)) for lead in rungs)
    return Adversary("a ladder of leads", tuple(chain.from_iterable(pairs)))


def _moved(audited: Audited, lead: int, count: int) -> Stretch:
    return Stretch(lead, lead + audited.votes_moved, count)


def _lead_of(audited: Audited, answering: stability.Parameters, share: float) -> int:
    """Return the smallest lead at which the table makes at most this share of words hits."""
    wanted = int(share * WORD_BOUND)
    return _lead_at(
        audited,
        smallest_where(lambda away: answering.thresholds[away] <= wanted, 0, _last(answering)),
    )


def _last(answering: stability.Parameters) -> int:
    return len(answering.thresholds) - 1


def _lead_at(audited: Audited, distance: int) -> int:
    """Return the smallest lead whose votes are so far from instability."""
    return smallest_where(
        lambda lead: audited.tally_of(lead).distance >= distance, 1, audited.lead_max
    )
