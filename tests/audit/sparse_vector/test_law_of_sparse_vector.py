"""Where hits fall in whole runs of calibration ``svt``, as the serving step gives them.

The law of a run is a sum over the threshold's noise, epoch by epoch, given which the
queries are independent.  It needs the calibration's scales and threshold only, so it
does not share a line with the mechanism or with its sampler.  ``simulate`` runs the
very opening and step that serve.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import product
from math import exp, prod
from typing import TYPE_CHECKING

import pytest
from scipy.stats import chi2

from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.system import SystemNoise
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.calibration import SvtCalibration, Variant, calibrate_variant
from app.release.simulation import simulate
from app.release.terms.answer_terms import calibrate_answers, release_budget
from tests.builders.release.small_release import SmallRelease
from tests.builders.release.svt_release import SVT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction
    from pathlib import Path

    from app.noise.source import NoiseSource
    from app.privacy.sparse_vector.mechanism import Outcome, Parameters, State
    from app.settings.settings import Settings

    Step = Callable[[Parameters, State, int, NoiseSource], tuple[State, Outcome]]

pytestmark = pytest.mark.audit

CUTOFF = 2
RUNS = 20_000
FALSE_ALARM = 1e-9
HALF_OF_VOTES = 10_000
# Distances from the threshold of four queries, in scales of a query's noise.
AWAY = (0.5, -0.5, 1.0, 0.0)
CHANGES = {
    **SVT,
    "privacy__epsilon": "2",
    "privacy__delta": "1e-3",
    "privacy__shares__relabel": "0",
    "privacy__shares__answers": "1",
    "privacy__shares__classifier": "0",
    "answers__queries": "1000",
    "answers__after": "halt",
}
real_step = sparse_vector.step


@pytest.fixture(params=list(Variant))
def calibration(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> SvtCalibration:
    """Return what serves, in each variant; which of them does is a matter of the budget."""

    def calibrate(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> SvtCalibration:
        return calibrate_variant(request.param, epsilon=epsilon, delta=delta, cutoff=cutoff)

    monkeypatch.setattr(svt, "calibrate", calibrate)
    made = calibrate_answers(settings, release_budget(settings))
    assert isinstance(made, SvtCalibration)
    assert made.variant is request.param
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return a configuration with epsilon 2 for its answers, T = 2 and no other limit."""
    return SmallRelease(tmp_path, CHANGES).settings()


def distances(calibration: SvtCalibration) -> list[int]:
    """Return the distance of each query."""
    return [round(calibration.threshold + away * calibration.query_scale) for away in AWAY]


def outcomes_of(pattern: Sequence[bool]) -> str:
    """Return what ``simulate`` says of a run whose queries would be such hits."""
    marks: list[str] = []
    for hit in pattern:
        ended = marks.count("-") == CUTOFF
        marks.append("." if ended else "-" if hit else "1")
    return ",".join(marks)


def law(calibration: SvtCalibration) -> dict[str, float]:
    """Return the probability of each outcome string, summed over the threshold's noise."""
    found: defaultdict[str, float] = defaultdict(float)
    for pattern in product((False, True), repeat=len(AWAY)):
        found[outcomes_of(pattern)] += run_probability(calibration, pattern)
    return dict(found)


def run_probability(calibration: SvtCalibration, pattern: Sequence[bool]) -> float:
    """Return the probability of hits and releases, epoch by epoch."""
    refreshed = calibration.variant is Variant.REFRESHED
    ends = [place + 1 for place, hit in enumerate(pattern) if hit and refreshed]
    values, base = distances(calibration), exp(-1 / calibration.threshold_scale)
    reach = range(-round(40 * calibration.threshold_scale), round(40 * calibration.threshold_scale))
    total = 1.0
    for begin, end in zip([0, *ends], [*ends, len(pattern)], strict=True):
        total *= sum(
            (1 - base)
            / (1 + base)
            * base ** abs(noise)
            * prod(
                query_probability(calibration, values[place] - noise, hit=pattern[place])
                for place in range(begin, end)
            )
            for noise in reach
        )
    return total


def query_probability(calibration: SvtCalibration, value: int, *, hit: bool) -> float:
    """Return the probability of a hit, or a release, where only the query has noise."""
    base = exp(-1 / calibration.query_scale)
    top = calibration.threshold - value  # a hit iff the noise is at most this
    below = base**-top / (1 + base) if top < 0 else 1 - base ** (top + 1) / (1 + base)
    return below if hit else 1 - below


def statistic(calibration: SvtCalibration, settings: Settings, noise: NoiseSource) -> float:
    """Return Pearson's statistic of simulated runs; infinite for an impossible one."""
    expected = law(calibration)
    votes = [
        [HALF_OF_VOTES - lead, HALF_OF_VOTES + lead]
        for lead in (distance + 1 for distance in distances(calibration))
    ]
    found = simulate(settings, votes, trials=RUNS, noise=noise)
    if not found.keys() <= expected.keys():
        return float("inf")
    return sum(
        (found.get(outcome, 0) - RUNS * probability) ** 2 / (RUNS * probability)
        for outcome, probability in expected.items()
    )


def limit(calibration: SvtCalibration) -> float:
    """Return what the statistic of a correct run exceeds with probability FALSE_ALARM."""
    cells = law(calibration)
    assert sum(cells.values()) == pytest.approx(1, abs=1e-12)
    assert min(cells.values()) * RUNS > 100  # so that each cell is close to normal
    return float(chi2.isf(FALSE_ALARM, len(cells) - 1))


@pytest.mark.parametrize("noise", [ScriptedNoise(seeded_words(21)), SystemNoise()])
def test_hits_fall_as_summation_says(
    calibration: SvtCalibration, settings: Settings, noise: NoiseSource
) -> None:
    """Outcome strings of the serving step come as often as the sums say."""
    assert statistic(calibration, settings, noise) < limit(calibration)


def step_with_fresh_threshold(
    parameters: Parameters, state: State, private_value: int, noise: NoiseSource
) -> tuple[State, Outcome]:
    """Draw the threshold's noise for every query."""
    drawn = parameters.threshold_noise.draw(noise)
    return real_step(
        parameters, replace(state, private_threshold_noise=drawn), private_value, noise
    )


def step_with_bare_threshold(
    parameters: Parameters, state: State, private_value: int, noise: NoiseSource
) -> tuple[State, Outcome]:
    """Leave the threshold's noise out."""
    return real_step(parameters, replace(state, private_threshold_noise=0), private_value, noise)


def step_of_the_other_variant(
    parameters: Parameters, state: State, private_value: int, noise: NoiseSource
) -> tuple[State, Outcome]:
    """Refresh where the noise should stay, and the other way round."""
    other = replace(parameters, refreshed=not parameters.refreshed)
    return real_step(other, state, private_value, noise)


@pytest.mark.parametrize(
    "fault",
    [step_with_fresh_threshold, step_with_bare_threshold, step_of_the_other_variant],
)
def test_a_threshold_whose_noise_is_not_its_epochs_is_caught(
    calibration: SvtCalibration, settings: Settings, fault: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise drawn too often, too seldom or never moves the law far beyond the limit."""
    monkeypatch.setattr(sparse_vector, "step", fault)
    found = statistic(calibration, settings, ScriptedNoise(seeded_words(22)))
    assert found > 2 * limit(calibration)
