"""A lower bound on epsilon from many sampled runs of the mechanism on neighbouring data sets.

The runs are divided into two halves. In the first half, outcomes are sorted by how much likelier
they are on one data set than on the other, and the first outcomes in this order form an event. The
probabilities of this event are then bounded from the second half, which had no part in the choice.
So each bound is wrong at most with its own false-alarm probability, however many outcomes there
are.

The module also defines the queries of the adversaries, which make neighbouring data sets easy to
distinguish. A *stretch* is a number of consecutive queries with the same votes. The *audited
label* is one fixed label; one other label gets all other votes. A query's *lead* is the number of
votes above half for the audited label; the leads on the two data sets differ by the number of votes
that one record can change, and the data set with the larger lead may be another in each stretch.

The mechanisms are the stability test (a noisy test that decides whether an answer is stable; with
the sparse vector technique, by a noisy threshold), the noisy vote (the label with the most votes
after noise is added), and the two-label vote (a label drawn with a probability that depends on its
number of votes).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from app.auditing.event_bounds import (
    Bound,
    bounds_shown,
    detection_limit,
    largest_shown,
    strongest,
)
from app.auditing.laws.step_law import smallest_where
from app.noise.source import WORD_BOUND
from app.privacy.mechanism_registration import own
from app.privacy.noisy_vote import bit_vote
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.auditing.audited_mechanism import Audited
    from app.noise.source import NoiseSource
    from app.privacy.voting.votes import Tally

HIT_SHARES: Final = (0.9, 0.5, 0.2)
"""Chances of a hit at which one query is asked again and again."""
HITS_BEYOND: Final = 5
"""Hits more than the cutoff that are expected: a run then seldom lasts, which shows most."""
STEPS_MAX: Final = 64
FLIPS: Final = 4
LABEL_SHARES: Final = (0.5, 0.16, 0.02)
"""Chances of the label behind at which one query is asked again and again."""
RELEASES: Final = (1, 4, 16)
RUNGS: Final = 16
THRESHOLD_PARTS: Final = (0.9, 1.0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive queries that all have the same votes on each of two neighbouring data sets.

    Attributes:
        one: the lead (votes above half for the audited label) on one data set.
        other: the lead on the neighbouring data set.
        count: the number of queries.

    """

    one: int
    other: int
    count: int


@dataclass(frozen=True, slots=True)
class Adversary:
    """A fixed sequence of queries, with or without restarts of the process in between."""

    name: str
    stretches: tuple[Stretch, ...]
    restarting: bool = False


def flip(audited: Audited) -> Adversary:
    """Return an adversary who repeats a query whose winning label one record changes."""
    return Adversary("one vote decides", (_moved(audited, -1, _at_most(audited, FLIPS)),))


def _at_most(audited: Audited, count: int) -> int:
    """Return so many queries, or as many as one record moves where decisions are counted."""
    return min(count, audited.decisions_moved) if audited.row.counts_decisions else count


def ask_decisions(audited: Audited) -> list[Adversary]:
    """Return adversaries for releases that answer each public cell once, for the sampled audit.

    They send only as many queries as one record can affect.
    """
    answering = own(audited.answering, stability.HitProfile)
    leads = [_lead_of(audited, answering, share) for share in HIT_SHARES]
    asked = [(_moved(audited, lead, audited.decisions_moved),) for lead in leads]
    return [
        flip(audited),
        *(
            Adversary(f"a hit in {1 / share:.3g} decisions", stretches)
            for share, stretches in zip(HIT_SHARES, asked, strict=True)
        ),
        Adversary("restarts between decisions", asked[1], restarting=True),
    ]


def ask_words(audited: Audited) -> list[Adversary]:
    """Return adversaries against the stability test, for its sampled audit.

    All adversaries but the last repeat one query, and one of them restarts the server in between.
    The last adversary varies the votes from query to query.
    """
    answering = own(audited.answering, stability.Parameters)
    cutoff, found = answering.cutoff, [flip(audited)]
    for share in HIT_SHARES:
        lead = _lead_of(audited, answering, share)
        count = min(STEPS_MAX, math.ceil((cutoff + HITS_BEYOND) / share))
        stretches = (_moved(audited, lead, count),)
        found.append(Adversary(f"a hit in {1 / share:.3g} queries", stretches))
    middle = _lead_of(audited, answering, 0.5)
    repeated = (_moved(audited, middle, min(STEPS_MAX, 4 * cutoff)),)
    found.append(Adversary("restarts between queries", repeated, restarting=True))
    return [*found, _ladder(audited, middle)]


def ask_threshold(audited: Audited) -> list[Adversary]:
    """Return adversaries against the sparse vector technique, for its sampled audit.

    Some adversaries first send queries whose stable answers show that the threshold's noise is
    small, and then queries with other votes. One adversary restarts the server between queries, and
    one varies the votes from query to query.
    """
    answering = own(audited.answering, sparse_vector.Parameters)
    moved, found = audited.votes_moved, [flip(audited)]
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


def ask_votes(audited: Audited) -> list[Adversary]:
    """Return adversaries against the noisy vote, for its sampled audit."""
    answering = own(audited.answering, noisy_vote.Parameters)
    count = min(STEPS_MAX, _at_most(audited, audited.parameters.answer_limit))
    deviation = math.sqrt(answering.vote_noise.variance)
    leads = [min(audited.lead_max, round(part * deviation)) for part in (0.0, 1.0, 2.0)]
    return [flip(audited)] + [
        Adversary(f"leads of {2 * lead} votes", (_moved(audited, lead, count),)) for lead in leads
    ]


def ask_bits(audited: Audited) -> list[Adversary]:
    """Return adversaries against the two-label vote, for its sampled audit."""
    answering = own(audited.answering, bit_vote.Parameters)
    count, found = (
        min(STEPS_MAX, _at_most(audited, audited.parameters.answer_limit)),
        [flip(audited)],
    )
    for share in LABEL_SHARES:
        lead = _lead_behind(audited, answering, share)
        found.append(Adversary(f"leads of {2 * lead} votes", (_moved(audited, lead, count),)))
    return found


def _lead_behind(audited: Audited, answering: bit_vote.Parameters, share: float) -> int:
    """Return the smallest lead, beyond half, at which the label behind comes this seldom."""
    middle, wanted = audited.ensemble_size // 2, int(share * WORD_BOUND)
    return smallest_where(
        lambda away: answering.words_of_one(middle - away) <= wanted, 0, audited.lead_max
    )


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


def _lead_of(audited: Audited, answering: stability.HitProfile, share: float) -> int:
    """Return the smallest lead at which the table makes at most this share of words hits."""
    wanted = int(share * WORD_BOUND)
    return _lead_at(
        audited,
        smallest_where(lambda away: answering.thresholds[away] <= wanted, 0, _last(answering)),
    )


def _last(answering: stability.HitProfile) -> int:
    return len(answering.thresholds) - 1


def _lead_at(audited: Audited, distance: int) -> int:
    """Return the smallest lead whose votes are so far from instability."""
    return smallest_where(
        lambda lead: audited.tally_of(lead).distance >= distance, 1, audited.lead_max
    )


FALSE_ALARM: Final = 1e-6
"""Probability that any bound of a whole audit is above the truth."""
BOUNDS_OF_AN_EVENT: Final = 2
ORDERS: Final = 2
RUNS_MIN: Final = 200
PILOT_RUNS: Final = 50

Outcome: TypeAlias = tuple[tuple[tuple[str, int], ...], ...]
"""For each stretch how often each mark came, by mark."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sampled lower bound on epsilon, and the largest one that sampling could show.

    Attributes:
        bound: the largest lower bound on epsilon.
        bounds: the lower bound of every adversary.
        runs: the number of runs in each half on each data set, for the adversary with the fewest
            runs.
        detection_limit: the smallest epsilon above the claim that this number of runs would detect.
        largest_shown: the largest lower bound that this number of runs could ever show.
        false_alarm: the probability that any of the bounds exceeds the true epsilon.

    """

    bound: Bound
    bounds: tuple[Bound, ...]
    runs: int
    detection_limit: float
    largest_shown: float
    false_alarm: float = FALSE_ALARM


def sample(
    audited: Audited, asked: Sequence[Adversary], *, steps: int, noise: NoiseSource
) -> Sampled:
    """Return the lower bound on epsilon from running every adversary on both data sets.

    Args:
        audited: the mechanism under audit.
        asked: the adversaries; their queries depend on the mechanism's public parameters only.
        steps: the number of answers to draw, divided equally among the adversaries.
        noise: the source of randomness.

    """
    miss = FALSE_ALARM / (len(asked) * ORDERS * BOUNDS_OF_AN_EVENT)
    runs = [_runs(audited, adversary, steps // len(asked), noise) for adversary in asked]
    bounds = tuple(
        bound_of(audited, adversary, runs=count, miss=miss, noise=noise)
        for adversary, count in zip(asked, runs, strict=True)
    )
    given, delta = min(runs), float(audited.delta)
    return Sampled(
        bound=strongest(list(bounds)),
        bounds=bounds,
        runs=given,
        detection_limit=detection_limit(
            float(audited.epsilon), trials=given, delta=delta, miss=miss
        ),
        largest_shown=largest_shown(trials=given, delta=delta, miss=miss),
    )


def _runs(audited: Audited, adversary: Adversary, steps: int, noise: NoiseSource) -> int:
    """Return the runs of each half on each side, by the length of some runs that do not count."""
    answered = 0
    for side in (0, 1):
        outcomes = _outcomes(audited, adversary, side, PILOT_RUNS, noise)
        answered += sum(
            count * sum(times for marks in outcome for _, times in marks)
            for outcome, count in outcomes.items()
        )
    return max(RUNS_MIN, steps * PILOT_RUNS // (2 * max(answered, 1)))


def bound_of(
    audited: Audited, adversary: Adversary, *, runs: int, miss: float, noise: NoiseSource
) -> Bound:
    """Return a lower bound on epsilon: events chosen on half of the runs, tested on the others.

    Args:
        audited: the mechanism under audit.
        adversary: the sequence of queries to run.
        runs: the number of runs in each half on each data set.
        miss: the probability that an event's true probability lies outside its confidence bound.
        noise: the source of randomness.

    """
    chosen, tested = (
        [_outcomes(audited, adversary, side, runs, noise) for side in (0, 1)] for _ in range(2)
    )
    delta, found = float(audited.delta), 0.0
    for likely, unlikely in ((0, 1), (1, 0)):
        event = _event(chosen[likely], chosen[unlikely], runs=runs, delta=delta, miss=miss)
        counts = (
            np.array([sum(tested[side][outcome] for outcome in event)])
            for side in (likely, unlikely)
        )
        shown = bounds_shown(*counts, trials=runs, delta=delta, miss=miss)
        found = max(found, float(shown[0]))
    return Bound(found, adversary.name)


def _event(
    likely: Counter[Outcome],
    unlikely: Counter[Outcome],
    *,
    runs: int,
    delta: float,
    miss: float,
) -> list[Outcome]:
    """Return the outcomes whose union shows most, the likeliest ones first."""
    ordered = sorted(
        likely.keys() | unlikely.keys(),
        key=lambda outcome: ((likely[outcome] + 0.5) / (unlikely[outcome] + 0.5), outcome),
        reverse=True,
    )
    sums = (np.cumsum([side[outcome] for outcome in ordered]) for side in (likely, unlikely))
    shown = bounds_shown(*sums, trials=runs, delta=delta, miss=miss)
    return ordered[: int(np.argmax(shown)) + 1]


def _outcomes(
    audited: Audited, adversary: Adversary, side: int, runs: int, noise: NoiseSource
) -> Counter[Outcome]:
    """Count the outcomes of some runs on one side."""
    stretches = [
        (audited.tally_of((stretch.one, stretch.other)[side]), stretch.count)
        for stretch in adversary.stretches
    ]
    return Counter(
        _run(audited, stretches, restarting=adversary.restarting, noise=noise) for _ in range(runs)
    )


def _run(
    audited: Audited,
    stretches: Sequence[tuple[Tally, int]],
    *,
    restarting: bool,
    noise: NoiseSource,
) -> Outcome:
    """Answer the queries of one run, as the writer does, and count the marks of each stretch."""
    parameters = audited.parameters
    state = audited.start(parameters, noise)
    summary = []
    for value, count in stretches:
        marks: Counter[str] = Counter()
        for _ in range(count):
            if not audited.answers(state):
                break
            state, outcome = audited.step(parameters, state, value, noise)
            marks[f"{outcome.label}" if outcome.stable else f"{outcome.label}?"] += 1
            if restarting:
                state = audited.restart(state)
        summary.append(tuple(sorted(marks.items())))
    return tuple(summary)
