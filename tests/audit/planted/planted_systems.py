"""The mechanisms that serve, ready to be audited, and faults planted in them.

Each fault is a double of one of the functions that an audited mechanism is made of.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING

from app.auditing.audited_mechanism import Audited
from app.auditing.laws.scripted_noise import PrescribedGaussian, PrescribedLaplace
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise
from app.privacy.noisy_vote import calibration as noisy_vote_accounting
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.calibration import Variant, calibrate_variant
from app.privacy.stability import hit_table as profile
from app.privacy.stability import mechanism as stability
from app.privacy.stability.certified import certified_table as certified
from app.privacy.stability.certified.certified_registration import CertifiedParameters
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Outcome, Parameters, Phase, Sequel, State
from app.privacy.voting.votes import Tally, tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import Answering

DELTA = Fraction(1, 10**6)
QUERIES_MAX = 10**12


PROFILE, ONE_THRESHOLD, REFRESHED, NOISY_VOTE = "profile", "svt", "refreshed", "noisy-vote"
CERTIFIED = "certified"


@cache
def system(calibration: str, cutoff: int, epsilon: Fraction, *, paid: int | None = None) -> Audited:
    """Return a correct mechanism; with ``paid`` its noise is that of so many hits only.

    Args:
        calibration: one of the five names above.
        cutoff: hits T of a run; for the noisy vote, answers m.
        epsilon: claimed.
        paid: hits, or answers, that the noise is made for; as many as there are by default.

    """
    answering, lead = _answering(calibration, cutoff, epsilon, paid or cutoff)
    limit = cutoff if calibration == NOISY_VOTE else QUERIES_MAX
    parameters = Parameters(answering, 2, limit, Sequel.HALT, Sequel.HALT, unstable_gets_coin=False)
    return Audited(
        parameters=parameters, epsilon=epsilon, delta=DELTA, ensemble_size=2 * (lead + 2)
    )


def _answering(
    calibration: str, cutoff: int, epsilon: Fraction, paid: int
) -> tuple[Answering, int]:
    """Return the mechanism, and the lead past which no vote makes a difference."""
    if calibration == PROFILE:
        table = profile.calibrate(epsilon=epsilon, delta=DELTA, cutoff=paid)
        return stability.Parameters(table.thresholds, cutoff), len(table.thresholds)
    if calibration == CERTIFIED:
        words = certified.calibrate(epsilon=epsilon, delta=DELTA, cutoff=paid).thresholds
        return CertifiedParameters(words, cutoff), len(words)
    if calibration == NOISY_VOTE:
        # Two labels as earlier versions answer them: by noise on a count, at its order.
        _, variance = noisy_vote_accounting.least_variance(
            epsilon=epsilon, delta=DELTA, squared_shift=paid
        )
        lead = math.ceil(8 * math.sqrt(variance))
        law = DiscreteGaussian(variance)
        size = 2 * (lead + 2)
        return noisy_vote.Parameters(
            vote_noise=law, class_count=2, ensemble_size=size, answer_limit=cutoff
        ), lead
    variant = Variant.REFRESHED if calibration == REFRESHED else Variant.ONE_THRESHOLD
    made = calibrate_variant(variant, epsilon=epsilon, delta=DELTA, cutoff=paid)
    return sparse_vector.Parameters(
        threshold=made.threshold,
        threshold_noise=DiscreteLaplace(made.threshold_scale),
        query_noise=DiscreteLaplace(made.query_scale),
        cutoff=cutoff,
        refreshed=calibration == REFRESHED,
    ), made.threshold + 8


def with_printed_gap(audited: Audited) -> Audited:
    """Take the gap itself for a distance, as if one vote moved it by 1."""

    def by_gap(votes: NDArray[np.int64]) -> list[Tally]:
        return [replace(one, distance=abs(one.counts[0] - one.counts[1])) for one in tally(votes)]

    return replace(audited, tally=by_gap)


def with_falling_gap(audited: Audited) -> Audited:
    """Take for a distance what the gap lacks of all votes, which moves by 2 as well."""

    def by_gap(votes: NDArray[np.int64]) -> list[Tally]:
        gaps = [abs(one.counts[0] - one.counts[1]) for one in tally(votes)]
        return [
            replace(one, distance=audited.ensemble_size - gap)
            for one, gap in zip(tally(votes), gaps, strict=True)
        ]

    return replace(audited, tally=by_gap)


def with_printed_gap_less_one(audited: Audited) -> Audited:
    """Take max(0, gap - 1), as Bassily, Thakkar and Thakurta print it."""

    def by_gap(votes: NDArray[np.int64]) -> list[Tally]:
        gaps = [abs(one.counts[0] - one.counts[1]) for one in tally(votes)]
        return [
            replace(one, distance=max(0, gap - 1))
            for one, gap in zip(tally(votes), gaps, strict=True)
        ]

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
    if isinstance(answering, noisy_vote.Parameters):
        limit = parameters.answer_limit + 1
        more = replace(answering, answer_limit=limit)
        return replace(parameters, answering=more, answer_limit=limit)
    assert isinstance(answering, stability.Parameters | sparse_vector.Parameters)
    return replace(parameters, answering=replace(answering, cutoff=answering.cutoff + 1))


def with_one_hit_more(audited: Audited) -> Audited:
    """Loop while c <= T; the noisy vote gives an answer more."""
    more = _one_more(audited.parameters)

    def late(parameters: Parameters) -> Parameters:
        return more if parameters is audited.parameters else _one_more(parameters)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        return audited.step(late(parameters), state, value, noise)

    def phase(parameters: Parameters, state: State) -> Phase:
        return query_decision.phase(late(parameters), state)

    return replace(audited, step=step, phase=phase)


def with_gap_and_hit(audited: Audited) -> Audited:
    """Plant both of the printed faults."""
    return with_one_hit_more(with_printed_gap(audited))


def _silent(parameters: Parameters) -> Parameters:
    answering, none = parameters.answering, PrescribedLaplace(repeat(0))
    if isinstance(answering, sparse_vector.Parameters):
        answering = replace(answering, query_noise=none, threshold_noise=none)
    if isinstance(answering, noisy_vote.Parameters):
        answering = replace(answering, vote_noise=PrescribedGaussian(repeat(0)))
    return replace(parameters, answering=answering)


def without_noise(audited: Audited) -> Audited:
    """Decide every query by its expectation."""
    silent, half = _silent(audited.parameters), ScriptedNoise(repeat(1 << 63))

    def still(parameters: Parameters) -> Parameters:
        return silent if parameters is audited.parameters else _silent(parameters)

    def start(parameters: Parameters, noise: NoiseSource) -> State:
        return query_decision.initial_state(still(parameters), noise)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        del noise
        return query_decision.step(still(parameters), state, value, half)

    return replace(audited, start=start, step=step)


def with_noise_drawn_once(audited: Audited) -> Audited:
    """Draw the first query's noise for all queries of a run."""
    words: list[int] = []

    def start(parameters: Parameters, noise: NoiseSource) -> State:
        words[:] = noise.words(64)
        return query_decision.initial_state(parameters, noise)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        del noise
        return query_decision.step(parameters, state, value, ScriptedNoise(words))

    return replace(audited, start=start, step=step)


def with_noise_kept_behind_a_draw(audited: Audited) -> Audited:
    """Draw for every query, and use what the first query drew."""
    words: list[int] = []

    def start(parameters: Parameters, noise: NoiseSource) -> State:
        words.clear()
        return query_decision.initial_state(parameters, noise)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        drawn = noise.words(64)
        words[:] = words or drawn
        return query_decision.step(parameters, state, value, ScriptedNoise(words))

    return replace(audited, start=start, step=step)


def with_counter_lost(audited: Audited) -> Audited:
    """Start counting hits again at every restart, or answers where there are no hits."""

    def restart(state: State) -> State:
        if audited.parameters.cutoff is None:
            return replace(state, answered_count=0)
        return replace(state, unstable_count=0)

    return replace(audited, restart=restart)


def with_record_in_two_chunks(audited: Audited) -> Audited:
    """Let one record move two votes."""
    return replace(audited, votes_moved=2)


def with_sixteen_bits(audited: Audited) -> Audited:
    """Draw words of 16 bits, spread over the range of 64."""

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        words = (noise.word() >> 48 << 48 for _ in repeat(None))
        return query_decision.step(parameters, state, value, ScriptedNoise(words))

    return replace(audited, step=step)


def with_label_of_votes(audited: Audited) -> Audited:
    """Give an unstable answer the plurality as its label."""

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        following, outcome = query_decision.step(parameters, state, value, noise)
        return following, Outcome(value.plurality, outcome.stable)

    return replace(audited, step=step)


def with_loaded_coin(audited: Audited) -> Audited:
    """Toss the coin of an unstable answer so that it favours the plurality."""
    fair = replace(audited.parameters, unstable_gets_coin=True)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        following, outcome = audited.step(parameters, state, value, noise)
        if outcome.stable or outcome.label is None:
            return following, outcome
        return following, replace(outcome, label=max(outcome.label, value.plurality))

    return replace(audited, parameters=fair, step=step)


def with_threshold_drawn_anew(audited: Audited) -> Audited:
    """Draw the threshold's noise again at every restart."""

    def restart(state: State) -> State:
        return replace(state, private_threshold_noise=17)

    return replace(audited, restart=restart)


def with_threshold_never_drawn_anew(audited: Audited) -> Audited:
    """Keep the threshold's noise at a hit, where it is paid for once an epoch."""
    answering = audited.parameters.answering
    assert isinstance(answering, sparse_vector.Parameters)

    def step(
        parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        following, outcome = query_decision.step(parameters, state, value, noise)
        kept = state.private_threshold_noise
        return replace(following, private_threshold_noise=kept), outcome

    return replace(audited, step=step)


def with_silent_threshold(audited: Audited) -> Audited:
    """Give the threshold no noise."""
    answering = audited.parameters.answering
    assert isinstance(answering, sparse_vector.Parameters)

    def start(parameters: Parameters, noise: NoiseSource) -> State:
        return replace(query_decision.initial_state(parameters, noise), private_threshold_noise=0)

    return replace(audited, start=start)


def with_low_threshold(audited: Audited) -> Audited:
    """Let labels out a little more often than delta pays for."""
    answering = audited.parameters.answering
    assert isinstance(answering, sparse_vector.Parameters)
    low = replace(answering, threshold=answering.threshold - 1)
    return replace(audited, parameters=replace(audited.parameters, answering=low))


def with_low_first_word(audited: Audited) -> Audited:
    """Let labels out a little more often than delta pays for, by the table's first entry."""
    answering = audited.parameters.answering
    assert isinstance(answering, stability.Parameters)
    first, *others = answering.thresholds
    low = replace(answering, thresholds=(first - (1 << 20), *others))
    return replace(audited, parameters=replace(audited.parameters, answering=low))


def with_one_word_off(audited: Audited, *, place: int | None = None) -> Audited:
    """Round one entry of the table down by one word in 2^64, by default the middle one."""
    answering = audited.parameters.answering
    assert isinstance(answering, stability.Parameters)
    table = list(answering.thresholds)
    table[len(table) // 2 if place is None else place] -= 1
    off = replace(answering, thresholds=tuple(table))
    return replace(audited, parameters=replace(audited.parameters, answering=off))


def real(audited: Audited) -> Audited:
    """Change nothing."""
    return audited
