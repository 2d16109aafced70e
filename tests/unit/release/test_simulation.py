"""Simulation: the serving mechanism itself, on given votes, from a fresh state each time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError, InvariantError
from app.noise.scripted import ScriptedNoise
from app.privacy.mechanisms import MECHANISMS
from app.release.simulation import simulate
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    SmallRelease,
    scripted_noise,
    seeded_noise,
)
from tests.builders.release.svt_release import NOISY_VOTE, REFRESHED, SVT

if TYPE_CHECKING:
    from app.settings.settings import Settings

VOTES = [[60, 40], [40, 60], [50, 50]]


def settings_with(release: SmallRelease, **changes: str) -> Settings:
    """Return settings with a cutoff of 2 and a limit of 4, changed."""
    return SmallRelease(release.folder, changes).settings()


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ([STABLE, STABLE, STABLE], "0,1,0"),
        ([HIT, STABLE, STABLE], "-,1,0"),
        ([STABLE, HIT, STABLE], "0,-,0"),
        ([STABLE, STABLE, HIT], "0,1,-"),
        ([HIT, HIT], "-,-,."),
        ([HIT, STABLE, HIT], "-,1,-"),
    ],
)
def test_an_outcome_spells_what_became_of_each_query(
    small_release: SmallRelease, words: list[int], outcome: str
) -> None:
    """A class index, ``-`` for unstable, ``.`` for not answered, joined by commas."""
    noise = scripted_noise(*words)
    given = simulate(settings_with(small_release), VOTES, trials=1, noise=noise)
    assert given == {outcome: 1}
    assert noise.drawn_count == len(words)


def test_the_limit_ends_a_run_too(small_release: SmallRelease) -> None:
    """Queries past m_o are not answered."""
    settings = settings_with(small_release, answers__queries="1")
    assert simulate(settings, VOTES, trials=2, noise=scripted_noise(STABLE, STABLE)) == {"0,.,.": 2}


def test_every_trial_starts_afresh(small_release: SmallRelease) -> None:
    """Hits of one trial do not count in the next."""
    words = [HIT, HIT, STABLE, STABLE, STABLE, STABLE, HIT, HIT]
    given = simulate(settings_with(small_release), VOTES, trials=3, noise=scripted_noise(*words))
    assert Counter(given) == {"-,-,.": 1, "0,1,0": 1, "0,-,-": 1}


def test_a_coin_is_unstable_all_the_same(small_release: SmallRelease) -> None:
    """With coins an unstable answer is still ``-``, and the coin's word is drawn."""
    settings = settings_with(small_release, answers__unstable="coin")
    noise = scripted_noise(HIT, 7, STABLE, STABLE)
    assert simulate(settings, VOTES, trials=1, noise=noise) == {"-,1,0": 1}
    assert noise.drawn_count == 4


def test_without_a_share_nothing_is_answered(small_release: SmallRelease) -> None:
    """Where answers have no share every query is left to what follows them."""
    settings = settings_with(small_release, privacy__shares__answers="0")
    assert simulate(settings, VOTES, trials=5, noise=scripted_noise()) == {".,.,.": 5}


# Two equal words give discrete Laplace noise of zero, so that distances decide.
ZERO_NOISE = 1 << 63
WORDS_A_DRAW = 2


@pytest.mark.parametrize(("cutoff", "epsilon"), [("2", "1000"), ("1", "30")])
def test_svt_tests_distances_against_its_threshold(
    small_release: SmallRelease, cutoff: str, epsilon: str
) -> None:
    """A threshold's noise is drawn for every trial, and one for every query that is answered."""
    # With noise of zero a query at distance w + 1 is released and one at 0 is a hit.
    changes = {**SVT, "answers__cutoff": cutoff, "privacy__epsilon": epsilon}
    settings = settings_with(small_release, **changes)
    noise = ScriptedNoise(repeat(ZERO_NOISE))
    votes = [[100, 0], [50, 50], [0, 100], [50, 50]]
    outcome, answered = ("0,-,.,.", 2) if cutoff == "1" else ("0,-,1,-", 4)
    assert simulate(settings, votes, trials=3, noise=noise) == {outcome: 3}
    assert noise.drawn_count == 3 * (1 + answered) * WORDS_A_DRAW


def test_a_refreshed_threshold_is_drawn_again_at_each_hit(small_release: SmallRelease) -> None:
    """Two hits of one trial draw two further noises."""
    settings = settings_with(small_release, **REFRESHED)
    noise = ScriptedNoise(repeat(ZERO_NOISE))
    assert simulate(settings, [[50, 50]] * 2, trials=1, noise=noise) == {"-,-": 1}
    assert noise.drawn_count == (1 + 2 * 2) * WORDS_A_DRAW


def test_the_noisy_vote_answers_until_its_limit(small_release: SmallRelease) -> None:
    """No query is unstable, and k is the sum of a line."""
    settings = settings_with(small_release, **NOISY_VOTE, privacy__epsilon="1000")
    votes = [[900, 100], [100, 900], [0, 1000], [1000, 0], [1000, 0]]
    assert simulate(settings, votes, trials=5, noise=seeded_noise()) == {"0,1,1,0,.": 5}


def test_counts_add_up_to_the_trials(small_release: SmallRelease) -> None:
    """Every trial has one outcome."""
    given = simulate(settings_with(small_release), VOTES, trials=500, noise=seeded_noise())
    assert sum(given.values()) == 500
    assert len(given) > 1


def test_what_does_not_serve_is_not_simulated(small_release: SmallRelease) -> None:
    """What does not serve at this budget is refused by name."""
    settings = settings_with(small_release, privacy__calibration="paper")
    with pytest.raises(ConfigurationError) as refused:
        simulate(settings, VOTES, trials=1, noise=scripted_noise())
    assert refused.value.key == "privacy.epsilon"


def test_a_student_does_not_answer_as_the_ensemble_does(small_release: SmallRelease) -> None:
    """What a student would answer after the limit is no outcome of the mechanism."""
    settings = settings_with(small_release, answers__after="student", answers__queries="1")
    votes = [[1000, 0]] * 2
    assert simulate(settings, votes, trials=1, noise=scripted_noise(STABLE)) == {"0,.": 1}


def test_the_table_is_verified_before_the_first_trial(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the opening of a release, a table that does not hold is refused."""

    def refuse(table: object) -> None:
        del table
        raise InvariantError("neighbours' hits stay within R")

    profile = MECHANISMS["profile"]
    monkeypatch.setitem(MECHANISMS, "profile", replace(profile, check=refuse))
    with pytest.raises(InvariantError, match="stay within R"):
        simulate(settings_with(small_release), VOTES, trials=1, noise=scripted_noise(STABLE))
