"""The mechanisms that serve, ready to be audited, and faults planted in them.

Each fault is a double of one of the functions that an audited mechanism is made of.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING

from app.accounting import profile
from app.accounting.svt import Variant, calibrate_variant
from app.auditing.audited import Audited
from app.auditing.prescribed import PrescribedLaplace
from app.mechanisms import sparse_vector, stability, universal
from app.mechanisms.subsample_aggregate import Tally, tally
from app.mechanisms.universal import Outcome, Parameters, Phase, Sequel, State
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

DELTA = Fraction(1, 10**6)
QUERIES_MAX = 10**12


@cache
def system(calibration: str, cutoff: int, epsilon: Fraction, *, paid: int | None = None) -> Audited:
    """Return a correct mechanism; with ``paid`` its noise is that of so many hits only."""
    answering: stability.Parameters | sparse_vector.Parameters
    if calibration == "profile":
        table = profile.calibrate(epsilon=epsilon, delta=DELTA, cutoff=paid or cutoff)
        answering, lead = stability.Parameters(table.thresholds, cutoff), len(table.thresholds)
    else:
        made = calibrate_variant(
            Variant.ONE_THRESHOLD, epsilon=epsilon, delta=DELTA, cutoff=paid or cutoff
        )
        answering = sparse_vector.Parameters(
            threshold=made.threshold,
            threshold_noise=DiscreteLaplace(made.threshold_scale),
            query_noise=DiscreteLaplace(made.query_scale),
            cutoff=cutoff,
            refreshed=False,
        )
        lead = made.threshold + 8
    parameters = Parameters(
        answering, 2, QUERIES_MAX, Sequel.HALT, Sequel.HALT, unstable_gets_coin=False
    )
    return Audited(
        parameters=parameters, epsilon=epsilon, delta=DELTA, ensemble_size=2 * (lead + 2)
    )


def with_printed_gap(audited: Audited) -> Audited:
    """Take the gap itself for a distance, as if one vote moved it by 1."""

    def by_gap(votes: NDArray[np.int64]) -> list[Tally]:
        return [replace(one, distance=abs(one.counts[0] - one.counts[1])) for one in tally(votes)]

    return replace(audited, tally=by_gap)


def with_half_gap(audited: Audited) -> Audited:
    """Take floor(gap / 2), which is 1 on one side of a flip."""

    def by_half(votes: NDArray[np.int64]) -> list[Tally]:
        return [
            replace(one, distance=abs(one.counts[0] - one.counts[1]) // 2) for one in tally(votes)
        ]

    return replace(audited, tally=by_half)


def _one_more(parameters: Parameters) -> Parameters:
    answering = parameters.answering
    assert isinstance(answering, stability.Parameters | sparse_vector.Parameters)
    return replace(parameters, answering=replace(answering, cutoff=answering.cutoff + 1))


def with_one_hit_more(audited: Audited) -> Audited:
    """Loop while c <= T."""
    more = _one_more(audited.parameters)

    def late(parameters: Parameters) -> Parameters:
        return more if parameters is audited.parameters else _one_more(parameters)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        return audited.step(late(parameters), state, value, noise)

    def phase(parameters: Parameters, state: State) -> Phase:
        return universal.phase(late(parameters), state)

    return replace(audited, step=step, phase=phase)


def with_gap_and_hit(audited: Audited) -> Audited:
    """Plant both of the printed faults."""
    return with_one_hit_more(with_printed_gap(audited))


def _silent(parameters: Parameters) -> Parameters:
    answering, none = parameters.answering, PrescribedLaplace(repeat(0))
    if isinstance(answering, sparse_vector.Parameters):
        answering = replace(answering, query_noise=none, threshold_noise=none)
    return replace(parameters, answering=answering)


def without_noise(audited: Audited) -> Audited:
    """Decide every query by its expectation."""
    silent, half = _silent(audited.parameters), ScriptedNoise(repeat(1 << 63))

    def still(parameters: Parameters) -> Parameters:
        return silent if parameters is audited.parameters else _silent(parameters)

    def start(parameters: Parameters, noise: NoiseSource) -> State:
        return universal.initial_state(still(parameters), noise)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        del noise
        return universal.step(still(parameters), state, value, half)

    return replace(audited, start=start, step=step)


def with_noise_drawn_once(audited: Audited) -> Audited:
    """Draw the first query's noise for all queries of a run."""
    words: list[int] = []

    def start(parameters: Parameters, noise: NoiseSource) -> State:
        words[:] = noise.words(16)
        return universal.initial_state(parameters, noise)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        del noise
        return universal.step(parameters, state, value, ScriptedNoise(words))

    return replace(audited, start=start, step=step)


def with_counter_lost(audited: Audited) -> Audited:
    """Start counting hits again at every restart."""
    return replace(audited, restart=lambda state: replace(state, unstable_count=0))


def with_record_in_two_chunks(audited: Audited) -> Audited:
    """Let one record move two votes."""
    return replace(audited, votes_moved=2)


def with_sixteen_bits(audited: Audited) -> Audited:
    """Draw words of 16 bits, spread over the range of 64."""

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        words = (noise.word() >> 48 << 48 for _ in repeat(None))
        return universal.step(parameters, state, value, ScriptedNoise(words))

    return replace(audited, step=step)


def with_label_of_votes(audited: Audited) -> Audited:
    """Give an unstable answer the plurality as its label."""

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        following, outcome = universal.step(parameters, state, value, noise)
        return following, Outcome(value.plurality, outcome.stable)

    return replace(audited, step=step)


def real(audited: Audited) -> Audited:
    """Change nothing."""
    return audited
