"""The run ends at hit T exactly, on every script of hits; its words have 64 bits.

Nothing is sampled: every sequence of hits and stable answers up to a length is
played to the mechanism, and every threshold is asked about the words beside it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise
from app.privacy.stability.hit_table import calibrate
from app.privacy.stability.mechanism import Parameters, State
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Phase, Sequel
from app.privacy.voting.votes import Tally
from tests.audit.planted.planted_faults import (
    StepWithOneWord,
    answer_with_a_loaded_coin,
    answer_with_the_votes,
    real_step,
    step_once_more,
    step_with_sixteen_bits,
    step_without_noise,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.noise.source import NoiseSource

    Step = Callable[[Parameters, State, int, NoiseSource], tuple[State, bool]]
    Answer = Callable[
        [query_decision.Parameters, query_decision.State, Tally, NoiseSource],
        tuple[query_decision.State, query_decision.Outcome],
    ]

pytestmark = pytest.mark.audit

HIT, STABLE = 0, (1 << 64) - 1
SCRIPT_LENGTH = 9
CUTOFFS = (1, 2, 3, 5)
PROFILE = (1 << 63, 1 << 40, 5)
TABLE = calibrate(epsilon=Fraction(1), delta=Fraction(1, 10**6), cutoff=2).thresholds


def answered_count(step: Step, cutoff: int, hits: tuple[bool, ...]) -> int:
    """Return how many queries of a script are answered before the end."""
    parameters, state = Parameters(PROFILE, cutoff), State()
    noise = ScriptedNoise(HIT if hit else STABLE for hit in hits)
    for number in range(len(hits)):
        try:
            state, _ = step(parameters, state, number % 4, noise)
        except (InvariantError, AssertionError):
            return number
    return len(hits)


def expected_count(cutoff: int, hits: tuple[bool, ...]) -> int:
    """Return the place of the T-th hit; without one the whole script is answered."""
    places = [number for number, hit in enumerate(hits, 1) if hit]
    return places[cutoff - 1] if len(places) >= cutoff else len(hits)


def halts_exactly(step: Step) -> bool:
    """Play every script of hits for every cutoff."""
    return all(
        answered_count(step, cutoff, hits) == expected_count(cutoff, hits)
        for cutoff in CUTOFFS
        for hits in product((False, True), repeat=SCRIPT_LENGTH)
    )


def boundaries_are_exact(step: Step) -> bool:
    """Ask each distance of a table that serves about the words beside its threshold."""
    parameters = Parameters(TABLE, 2)
    return all(
        step(parameters, State(), distance, ScriptedNoise([threshold - 1]))[1]
        and not step(parameters, State(), distance, ScriptedNoise([threshold]))[1]
        for distance, threshold in enumerate(TABLE)
    )


def draws_afresh(step: Step) -> bool:
    """Play words that alternate, and see each of them decide its own query."""
    parameters, noise = Parameters((1 << 63,), 100), ScriptedNoise([HIT, STABLE] * 3)
    return [step(parameters, State(), 0, noise)[1] for _ in range(6)] == [True, False] * 3


def labels_tell_nothing(answer: Answer) -> bool:
    """Compare the outcomes of hits over all pluralities and distances, coin by coin."""
    for coin, coin_word in product((False, True), range(0, 1 << 64, 1 << 59)):
        parameters = query_decision.Parameters(
            answering=Parameters(PROFILE, 3),
            class_count=3,
            answer_limit=10,
            after=Sequel.HALT,
            on_cutoff=Sequel.HALT,
            unstable_gets_coin=coin,
        )
        outcomes = {
            answer(
                parameters,
                query_decision.State(),
                Tally(plurality, distance, ()),
                # 192 is no multiple of 3: a third of the words would be rejected.
                ScriptedNoise([HIT, coin_word, *([1 << 62] * 8)]),
            )[1]
            for plurality in range(3)
            for distance in range(4)
        }
        if len(outcomes) != 1 or any(outcome.stable for outcome in outcomes):
            return False
    return True


def test_the_run_ends_at_the_last_hit() -> None:
    """On all 512 scripts and four cutoffs, the T-th hit is answered and nothing after it."""
    assert halts_exactly(real_step)


def test_the_phase_ends_with_the_last_hit() -> None:
    """The phase, which is what the writer looks at, leaves the ensemble at hit T and not before."""
    for cutoff in CUTOFFS:
        parameters = query_decision.Parameters(
            answering=Parameters(PROFILE, cutoff),
            class_count=2,
            answer_limit=1000,
            after=Sequel.CLASSIFIER,
            on_cutoff=Sequel.HALT,
            unstable_gets_coin=False,
        )
        for hit_count in range(cutoff + 1):
            phase = query_decision.phase(parameters, query_decision.State(hit_count, hit_count))
            assert phase is (Phase.HALTED if hit_count == cutoff else Phase.ENSEMBLE)


def test_every_threshold_decides_to_the_last_of_64_bits() -> None:
    """The word below a threshold is a hit and the threshold is none, at every distance."""
    assert boundaries_are_exact(real_step)


def test_every_query_has_a_word_of_its_own() -> None:
    """Two equal queries with different words come out differently."""
    assert draws_afresh(real_step)


def test_an_unstable_label_is_the_same_for_all_votes() -> None:
    """For 32 words of the coin, a hit's label is the same at every plurality and distance."""
    assert labels_tell_nothing(query_decision.step)


def test_one_hit_too_many_is_caught() -> None:
    """A loop while c <= T answers T + 1 hits, and is seen to."""
    assert not halts_exactly(step_once_more)


@pytest.mark.parametrize("fault", [step_with_sixteen_bits, step_without_noise])
def test_coarse_words_are_caught(fault: Step) -> None:
    """Words of 16 bits, and no words, miss the boundaries."""
    assert not boundaries_are_exact(fault)


def test_a_word_used_twice_is_caught() -> None:
    """Noise that is drawn once decides every query alike, and is seen to."""
    assert not draws_afresh(StepWithOneWord())


@pytest.mark.parametrize("fault", [answer_with_the_votes, answer_with_a_loaded_coin])
def test_a_label_from_the_votes_is_caught(fault: Answer) -> None:
    """A hit whose label looks at the votes differs between pluralities, and is seen to."""
    assert not labels_tell_nothing(fault)
