"""The stability test: a hit iff the word is below the threshold, T hits, then none."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise
from app.privacy.stability import mechanism as stability
from app.privacy.stability.mechanism import Parameters, State, initial_state, step

WORD_BOUND = 1 << 64
THRESHOLDS = (WORD_BOUND - 5, 1 << 63, 1000, 1)
PARAMETERS = Parameters(THRESHOLDS, cutoff=2)


@pytest.mark.parametrize("distance", range(len(THRESHOLDS)))
@pytest.mark.parametrize(("above", "hit"), [(-1, True), (0, False)])
def test_a_query_is_a_hit_exactly_below_its_threshold(
    distance: int, above: int, *, hit: bool
) -> None:
    """A word one below the threshold is a hit, the threshold itself is none."""
    noise = ScriptedNoise([THRESHOLDS[distance] + above])
    following, outcome = step(PARAMETERS, State(), distance, noise)
    assert outcome is hit
    assert following == State(int(hit))
    assert noise.drawn_count == 1


@pytest.mark.parametrize("distance", [3, 4, 1000, 10**9])
def test_the_last_threshold_holds_beyond_the_end(distance: int) -> None:
    """Beyond the table's end a query is a hit as at its last distance."""
    assert step(PARAMETERS, State(), distance, ScriptedNoise([0]))[1]
    assert not step(PARAMETERS, State(), distance, ScriptedNoise([1]))[1]


def test_only_hits_count_towards_the_cutoff() -> None:
    """Stable queries leave the state as it is; each hit adds one."""
    state = initial_state(PARAMETERS, ScriptedNoise([]))
    noise = ScriptedNoise([1, 0, 1, 1, 0])
    hits = []
    for _ in range(5):
        state, hit = step(PARAMETERS, state, 3, noise)
        hits.append(hit)
    assert hits == [False, True, False, False, True]
    assert state == State(PARAMETERS.cutoff)


@pytest.mark.parametrize("hit_count", [2, 3])
def test_no_step_follows_the_last_hit(hit_count: int) -> None:
    """After T hits a step raises, draws nothing and changes nothing."""
    noise = ScriptedNoise([0])
    state = State(hit_count)
    with pytest.raises(InvariantError, match="no step after the cutoff"):
        step(PARAMETERS, state, 0, noise)
    assert noise.drawn_count == 0
    assert state == State(hit_count)


def test_a_negative_distance_is_refused_before_a_draw() -> None:
    """A negative distance, which would index the table from its end, raises."""
    noise = ScriptedNoise([0])
    with pytest.raises(InvariantError, match="a distance is not negative"):
        step(PARAMETERS, State(), -1, noise)
    assert noise.drawn_count == 0


@pytest.mark.parametrize(
    ("thresholds", "cutoff", "claim"),
    [
        (THRESHOLDS, 0, "the cutoff is at least 1"),
        ((), 1, "the hit profile has an entry"),
        ((WORD_BOUND,), 1, "strictly between 0 and 1"),
        ((5, 0), 1, "strictly between 0 and 1"),
        ((5, 6), 1, "do not grow with the distance"),
    ],
)
def test_a_profile_that_no_table_has_is_refused(
    thresholds: tuple[int, ...], cutoff: int, claim: str
) -> None:
    """Parameters out of range never come into being."""
    with pytest.raises(InvariantError, match=claim):
        Parameters(thresholds, cutoff)


def test_no_hit_ends_a_run_without_a_cutoff() -> None:
    """One by one and many at once, hits are counted and go on."""
    profile = stability.HitProfile(THRESHOLDS)
    assert profile.cutoff is None
    state, hits = stability.steps(
        profile, State(), np.zeros(50, dtype=np.int64), ScriptedNoise([0] * 50)
    )
    assert (state.hit_count, len(hits), bool(hits.all())) == (50, 50, True)
    state, hit = stability.step(profile, state, 0, ScriptedNoise([0]))
    assert (state.hit_count, hit) == (51, True)


def test_parameters_and_states_are_frozen() -> None:
    """Neither can be changed in place."""
    for frozen in (PARAMETERS, State()):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            frozen.hit_count = 7  # type: ignore[union-attr,misc]  # that is the point


def test_words_have_sixty_four_bits() -> None:
    """The mechanism's word is the noise source's: 64 bits."""
    assert stability.WORD_BITS == 64
    assert THRESHOLDS[0].bit_length() == stability.WORD_BITS
