"""The noisy vote from the outside: its answers' law, and the delta that neighbours show.

The first part simulates whole runs, with the opening and the step that serve, and
compares them with sums over the discrete Gaussian law.  The second works out exactly
how far the answers on worst-case neighbours are apart: the code itself says which
noise gives which label, and nothing is left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import comb, exp, fsum, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import chi2

from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.system import SystemNoise
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote.calibration import calibrate
from app.privacy.noisy_vote.mechanism import Outcome, Parameters, State
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Sequel
from app.privacy.voting.votes import tally
from app.release.simulation import simulate
from app.release.terms.answer_terms import answering_parameters, calibrate_answers, release_budget
from tests.builders.mechanisms.prescribed import NOTHING, PrescribedGaussian
from tests.builders.release.small_release import SmallRelease
from tests.builders.release.svt_release import NOISY_VOTE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from app.noise.source import NoiseSource
    from app.settings.settings import Settings

    Step = Callable[[Parameters, State, Sequence[int], NoiseSource], tuple[State, Outcome]]

pytestmark = pytest.mark.audit

RUNS = 12_000
FALSE_ALARM = 1e-9
real_step = noisy_vote.step


def masses(variance: float) -> dict[int, float]:
    """Return the discrete Gaussian law, as far as it can be seen."""
    reach = range(-round(12 * sqrt(variance)) - 2, round(12 * sqrt(variance)) + 3)
    weights = {noise: exp(-(noise**2) / (2 * variance)) for noise in reach}
    total = fsum(weights.values())
    return {noise: weight / total for noise, weight in weights.items()}


# -- the law of whole runs -----------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return a configuration of two noisy votes of three labels."""
    changes = {
        **NOISY_VOTE,
        "privacy__epsilon": "2",
        "privacy__delta": "1e-3",
        "answers__queries": "2",
        "data__classes": '["a", "b", "c"]',
    }
    return SmallRelease(tmp_path, changes).settings()


def votes_of(settings: Settings) -> list[list[int]]:
    """Return two queries that go either way, and one beyond the limit."""
    del settings
    return [[35, 30, 35], [35, 34, 31], [100, 0, 0]]


def variance_of(settings: Settings) -> float:
    """Return s^2 of what serves."""
    budget = release_budget(settings)
    calibration = calibrate_answers(settings, budget)
    given = answering_parameters(settings, budget, calibration, ensemble_size=100).answering
    assert isinstance(given, Parameters)
    return float(given.vote_noise.variance)


def label_law(votes: list[int], law: dict[int, float]) -> list[float]:
    """Return the probability of each label, by sums over the noise of every count."""
    if len(votes) == 2:
        second = fsum(mass for noise, mass in law.items() if 2 * (votes[1] + noise) > sum(votes))
        return [1 - second, second]
    noises, weights = np.array(list(law)), np.array(list(law.values()))
    first, second, third = np.meshgrid(*(count + noises for count in votes), indexing="ij")
    joint = weights[:, None, None] * weights[None, :, None] * weights[None, None, :]
    label = np.where(first >= np.maximum(second, third), 0, np.where(second >= third, 1, 2))
    return [float(joint[label == index].sum()) for index in range(3)]


def statistic(settings: Settings, noise: NoiseSource) -> tuple[float, float]:
    """Return Pearson's statistic of simulated runs, and what a correct one stays below."""
    votes, law = votes_of(settings), masses(variance_of(settings))
    laws = [label_law(row, law) for row in votes[:2]]
    expected = {
        f"{first},{second},.": laws[0][first] * laws[1][second] * RUNS
        for first, second in product(range(len(laws[0])), repeat=2)
    }
    assert min(expected.values()) > 100  # so that each cell is close to normal
    found = simulate(settings, votes, trials=RUNS, noise=noise)
    if not found.keys() <= expected.keys():
        return float("inf"), 0.0
    value = sum((found.get(cell, 0) - count) ** 2 / count for cell, count in expected.items())
    return value, float(chi2.isf(FALSE_ALARM, len(expected) - 1))


@pytest.mark.parametrize("noise", [ScriptedNoise(seeded_words(31)), SystemNoise()])
def test_labels_come_as_often_as_their_law_says(settings: Settings, noise: NoiseSource) -> None:
    """Whole runs of the serving step have the law of the noise, and end at their limit."""
    value, limit = statistic(settings, noise)
    assert value < limit


def step_with_noise_of_one_query(
    parameters: Parameters, state: State, votes: Sequence[int], noise: NoiseSource
) -> tuple[State, Outcome]:
    """Draw noise that is calibrated for one query where there are two."""
    narrow = type(parameters.vote_noise)(parameters.vote_noise.variance / 2)
    return real_step(replace(parameters, vote_noise=narrow), state, votes, noise)


def step_without_noise(
    parameters: Parameters, state: State, votes: Sequence[int], noise: NoiseSource
) -> tuple[State, Outcome]:
    """Answer the plurality itself."""
    del noise
    return real_step(
        replace(parameters, vote_noise=PrescribedGaussian([0] * len(votes))), state, votes, NOTHING
    )


@pytest.mark.parametrize("fault", [step_with_noise_of_one_query, step_without_noise])
def test_too_little_noise_is_caught(
    settings: Settings, fault: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the variance, and none, move the law beyond the limit."""
    monkeypatch.setattr(noisy_vote, "step", fault)
    value, limit = statistic(settings, ScriptedNoise(seeded_words(32)))
    assert value > limit


# -- the delta of neighbours -----------------------------------------------------------

HALF_OF_VOTES = 500


@dataclass(frozen=True)
class Audited:
    """Two labels, m answers, and noise of some variance."""

    epsilon: float
    answer_limit: int
    variance: float

    def delta(self) -> float:
        """Return the largest delta of the answers over worst-case neighbours.

        All m queries have the same votes, of which one moves: the answers are then
        m independent labels, and their number decides the likelihood ratio.
        """
        law = masses(self.variance)
        reach = round(8 * sqrt(self.variance)) + 2
        second = {lead: self._second_label(lead, law) for lead in range(-reach, reach + 2)}
        found = 0.0
        for lead in range(-reach, reach + 1):
            pair = (second[lead], second[lead + 1])
            found = max(found, self._divergence(*pair), self._divergence(*pair[::-1]))
        return found

    def _second_label(self, lead: int, law: dict[int, float]) -> float:
        """Ask the code which noise gives the second label, with so many votes beyond half."""
        votes = np.array([[HALF_OF_VOTES - lead, HALF_OF_VOTES + lead]])
        (private_value,) = tally(votes)
        drawn = PrescribedGaussian()
        answering = Parameters(
            vote_noise=drawn,
            class_count=2,
            ensemble_size=2 * HALF_OF_VOTES,
            answer_limit=self.answer_limit,
        )
        given = query_decision.Parameters(
            answering, 2, self.answer_limit, Sequel.HALT, Sequel.HALT, unstable_gets_coin=False
        )
        probability = 0.0
        for noise, mass in law.items():
            object.__setattr__(drawn, "_values", iter([noise]))
            _, outcome = query_decision.step(given, query_decision.State(), private_value, NOTHING)
            probability += mass * bool(outcome.label)
        return probability

    def _divergence(self, one: float, other: float) -> float:
        """Return the delta at epsilon of m labels with these probabilities of the second."""
        return fsum(
            comb(self.answer_limit, count)
            * max(
                0.0,
                one**count * (1 - one) ** (self.answer_limit - count)
                - exp(self.epsilon) * other**count * (1 - other) ** (self.answer_limit - count),
            )
            for count in range(self.answer_limit + 1)
        )


@pytest.mark.parametrize("answer_limit", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-3"), ("2", "1e-4")])
def test_neighbours_stay_within_delta(epsilon: str, delta: str, answer_limit: int) -> None:
    """On any votes the answers' delta is below the claim; half of the deviation exceeds it."""
    calibration = calibrate(
        epsilon=Fraction(epsilon), delta=Fraction(delta), answer_limit=answer_limit, class_count=2
    )
    audited = Audited(float(calibration.epsilon), answer_limit, float(calibration.variance))
    assert 0.04 * float(calibration.delta) < audited.delta() < float(calibration.delta)
    assert replace(audited, variance=audited.variance / 4).delta() > float(calibration.delta)
