"""A lower bound on epsilon by running the mechanism on neighbours, many times.

Outcomes are ordered by how much likelier they are on one side, on one half of the runs;
the first of them are an event, and its probabilities are bounded on the other half, which
had no say in the choice.  So each bound holds but for its own false alarm, however many
outcomes there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from app.auditing.adversaries import adversaries
from app.auditing.confidence import bounds_shown, detection_limit, largest_shown
from app.auditing.outcome_events import Bound, strongest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.auditing.adversaries import Adversary
    from app.auditing.audited import Audited
    from app.noise.source import NoiseSource
    from app.privacy.voting.votes import Tally

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
    """What sampling shows, and what it could show.

    Attributes:
        bound: the largest lower bound on epsilon.
        bounds: that of every adversary.
        runs: of each half, on each side, for the adversary that had fewest.
        detection_limit: smallest epsilon that would show as more than the claim.
        largest_shown: the most that any mechanism could show.
        false_alarm: probability that a bound is above the truth.

    """

    bound: Bound
    bounds: tuple[Bound, ...]
    runs: int
    detection_limit: float
    largest_shown: float
    false_alarm: float = FALSE_ALARM


def sample(audited: Audited, *, steps: int, noise: NoiseSource) -> Sampled:
    """Run every adversary on both sides of its neighbours.

    Args:
        audited: what answers.
        steps: answers to draw, shared by the adversaries alike.
        noise: where every draw comes from.

    """
    asked = adversaries(audited)
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
    """Choose events on one half, in both orders, and bound epsilon on the other half."""
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
