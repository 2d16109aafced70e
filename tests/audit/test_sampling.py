"""Sampling sees what is grossly wrong with a run, and never exceeds the truth.

The seed is fixed, so that a commit passes or fails for good; over seeds, a bound exceeds
the truth with probability ``FALSE_ALARM`` at most.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.auditing.bounds_by_mechanism import adversaries
from app.auditing.event_bounds import bounds_shown, detection_limit, largest_shown
from app.auditing.sampling import FALSE_ALARM, Adversary, Stretch, bound_of, sample
from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.system import SystemNoise
from app.privacy.budget.confidence_bounds import at_least, at_most
from app.privacy.voting.query_decision import Outcome, Parameters, State
from tests.audit.planted import planted_systems as planted
from tests.audit.planted.planted_systems import system

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.auditing.audited_mechanism import Audited
    from app.auditing.sampling import Sampled
    from app.noise.source import NoiseSource
    from app.privacy.voting.votes import Tally

pytestmark = pytest.mark.audit

STEPS = 25_000
EPSILONS = (
    pytest.param(Fraction(1, 2), marks=pytest.mark.long),
    Fraction(1),
    Fraction(2),
)


def asked(audited: Audited, *, steps: int, noise: NoiseSource) -> Sampled:
    """Sample what the adversaries of its row ask."""
    return sample(audited, adversaries(audited), steps=steps, noise=noise)


@pytest.mark.parametrize("calibration", ["svt", "profile"])
def test_the_claim_survives_sampling(calibration: str) -> None:
    """On the operating system's noise no bound of a correct mechanism exceeds its claim."""
    found = asked(system(calibration, 1, Fraction(2)), steps=2 * STEPS, noise=SystemNoise())
    assert found.bound.epsilon <= 2
    assert found.bound.epsilon == max(bound.epsilon for bound in found.bounds)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("cutoff", [1, pytest.param(2, marks=pytest.mark.long), 3])
@pytest.mark.parametrize("calibration", ["svt", "profile"])
@pytest.mark.parametrize(
    "fault",
    [planted.without_noise, planted.with_noise_drawn_once, planted.with_label_of_votes],
)
def test_what_is_grossly_wrong_exceeds_the_claim(
    fault: Callable[[Audited], Audited], calibration: str, cutoff: int, epsilon: Fraction
) -> None:
    """No noise, old noise and telling labels read above the claim in every cell."""
    faulty = fault(system(calibration, cutoff, epsilon))
    noise = ScriptedNoise(seeded_words(7))
    assert asked(faulty, steps=STEPS, noise=noise).bound.epsilon > epsilon


def test_all_bounds_hold_together_but_for_the_false_alarm() -> None:
    """Two bounds of an event in two orders, for every adversary, share the one probability."""
    audited = system("profile", 1, Fraction(2))
    found = asked(audited, steps=6000, noise=ScriptedNoise(seeded_words(8)))
    assert found.false_alarm == FALSE_ALARM == 1e-6
    runs, miss = found.runs, FALSE_ALARM / (4 * len(found.bounds))
    assert found.largest_shown == largest_shown(trials=runs, delta=1e-6, miss=miss)
    limit = detection_limit(2.0, trials=runs, delta=1e-6, miss=miss)
    assert found.detection_limit == limit


@pytest.mark.parametrize("telling", [0, 1])
def test_an_event_of_either_side_is_seen(telling: int) -> None:
    """What comes half of the time on one side and never on the other shows much, whichever."""
    audited = system("profile", 1, Fraction(2))
    stretch = Stretch(10, 11, 1)
    told = audited.tally_of((stretch.one, stretch.other)[telling])

    def step(
        _parameters: Parameters, state: State, value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        return state, Outcome(int(value == told and noise.word() % 2), stable=True)

    shown = bound_of(
        replace(audited, step=step),
        Adversary("any", (stretch,)),
        runs=2000,
        miss=1e-7,
        noise=ScriptedNoise(seeded_words(9)),
    )
    assert shown.epsilon > 3  # ln 2 in the other order


def test_what_never_comes_again_shows_nothing() -> None:
    """Outcomes of pure noise, no two alike, are an event on the half that chose it only."""
    audited = system("profile", 1, Fraction(2))

    def step(
        _parameters: Parameters, state: State, _value: Tally, noise: NoiseSource
    ) -> tuple[State, Outcome]:
        return state, Outcome(noise.word(), stable=True)

    adversary, noise = Adversary("any", (Stretch(10, 11, 1),)), ScriptedNoise(seeded_words(11))
    faulty = replace(audited, step=step)
    assert bound_of(faulty, adversary, runs=1000, miss=1e-7, noise=noise).epsilon == 0


def test_some_adversary_restarts_the_process() -> None:
    """Restarts between queries are really made, on the state that the run has come to."""
    audited, restarted = system("profile", 2, Fraction(2)), []

    def restart(state: State) -> State:
        restarted.append(state.answered_count)
        return state

    asked(replace(audited, restart=restart), steps=600, noise=ScriptedNoise(seeded_words(10)))
    assert {1, 2, 3} <= set(restarted)


@pytest.mark.parametrize("trials", [1, 50, 4000])
def test_a_proportions_bounds_miss_as_seldom_as_said(trials: int) -> None:
    """Over all counts, weighed by their law, the interval misses with at most its probability."""
    from scipy.special import comb

    counts, miss = np.arange(min(trials, 60) + 1), 0.01
    for chance in (0.0005, 0.01, 0.3):
        weights = comb(trials, counts) * chance**counts * (1 - chance) ** (trials - counts)
        assert weights[at_least(counts, trials, miss) > chance].sum() <= miss
        assert weights[at_most(counts, trials, miss) < chance].sum() <= miss


def test_the_ends_of_a_proportion_are_its_bounds() -> None:
    """No success bounds from below by 0, and nothing but successes from above by 1."""
    assert at_least(np.array([0]), 10, 1e-6)[0] == 0
    assert at_most(np.array([10]), 10, 1e-6)[0] == 1


def test_an_event_shows_less_than_it_is() -> None:
    """Counts just as the ratio e says show less than 1, and more the more there are."""
    shown = [
        float(
            bounds_shown(
                np.array([trials // 2]),
                np.array([round(trials / 2 / np.e)]),
                trials=trials,
                delta=1e-6,
                miss=1e-6,
            )[0]
        )
        for trials in (1000, 10_000, 1_000_000)
    ]
    assert 0 < shown[0] < shown[1] < shown[2] < 1


def test_the_limits_of_sampling_are_where_they_are_said_to_be() -> None:
    """An event of the detection limit shows as the claim, and none shows the largest."""
    trials, miss = 20_000, 1e-7
    limit = detection_limit(1.0, trials=trials, delta=1e-6, miss=miss)
    counts = np.array([trials // 2]), np.array([round(trials / 2 * np.exp(-limit))])
    shown = float(bounds_shown(*counts, trials=trials, delta=1e-6, miss=miss)[0])
    assert 1 < shown < 1.01
    assert 1 < limit < 1.3
    assert limit < largest_shown(trials=trials, delta=1e-6, miss=miss)
    assert detection_limit(50.0, trials=200, delta=1e-6, miss=miss) == np.inf
