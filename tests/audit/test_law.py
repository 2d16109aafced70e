"""The law of hits, by sampling: of single steps, and of whole runs as ``simulate`` gives them.

Sample sizes and false alarms are derived where they are used.  Scripted seeds
are fixed, so that a commit passes or fails for good; the system's own noise is
fresh each time, with false alarms below one in 10^9.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.system import SystemNoise
from app.privacy.stability import mechanism as stability
from app.privacy.stability.hit_table import calibrate
from app.privacy.stability.mechanism import Parameters, State
from app.privacy.voting import query_decision
from app.privacy.voting import votes as subsample_aggregate
from app.privacy.voting.query_decision import Phase
from app.release import simulation
from tests.audit.planted.planted_faults import StepWithOneWord, gap_as_distance, step_once_more
from tests.builders.release.small_release import SmallRelease, VotesByMargin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.noise.source import NoiseSource
    from app.settings.settings import Settings

    Step = Callable[[Parameters, State, int, NoiseSource], tuple[State, bool]]

pytestmark = pytest.mark.audit

WORD_COUNT = 1 << 64
FALSE_ALARM = 1e-9
CUTOFF = 2


@cache
def parameters() -> Parameters:
    """Return a table that serves, for epsilon 1, delta 10^-6 and T = 2."""
    table = calibrate(
        epsilon=Fraction(1), delta=Fraction(1, 10**6), cutoff=CUTOFF, is_by_cutoff=True
    )
    return Parameters(table.thresholds, CUTOFF)


def distances() -> list[int]:
    """Return eight distances with hit probabilities from 0.95 down to 0.05."""
    wanted = [int(part * WORD_COUNT) for part in np.linspace(0.95, 0.05, 8)]
    return [
        next(index for index, threshold in enumerate(parameters().thresholds) if threshold < level)
        for level in wanted
    ]


def probabilities(shift: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the hit probabilities at these distances, or so many steps further."""
    listed = [parameters().thresholds[away + shift] / WORD_COUNT for away in distances()]
    return np.array(listed, dtype=np.float64)


# The statistic is the sum over the eight distances of
# (hits - N p)^2 / (N p (1-p)), which is chi-square with 8 degrees of freedom
# under the table and exceeds LIMIT with probability FALSE_ALARM.
LIMIT = float(chi2.isf(FALSE_ALARM, len(range(8))))
# A mechanism that is off by SHIFT steps has the non-centrality N times the sum
# of (p' - p)^2 / (p (1-p)); 3,000 trials a distance let it pass with
# probability below FALSE_ALARM, which the first test below computes.
SHIFT = 8
TRIAL_COUNT = 3000


def statistic(step: Step, noise: NoiseSource, *, shift: int = 0) -> float:
    """Return the statistic of TRIAL_COUNT fresh steps at each distance."""
    given, expected = parameters(), probabilities()
    hits = np.array(
        [
            sum(step(given, State(), away + shift, noise)[1] for _ in range(TRIAL_COUNT))
            for away in distances()
        ]
    )
    spread = TRIAL_COUNT * expected * (1 - expected)
    return float(((hits - TRIAL_COUNT * expected) ** 2 / spread).sum())


def test_the_sample_is_large_enough() -> None:
    """A law that is eight steps off is missed with probability below one in 10^9."""
    expected, shifted = probabilities(), probabilities(SHIFT)
    power = TRIAL_COUNT * float(((shifted - expected) ** 2 / (expected * (1 - expected))).sum())
    assert ncx2.cdf(LIMIT, len(expected), power) < FALSE_ALARM


@pytest.mark.parametrize("seed", [1, 2])
def test_hits_follow_the_table(seed: int) -> None:
    """On scripted noise the hits of single steps are those of the table."""
    assert statistic(stability.step, ScriptedNoise(seeded_words(seed))) < LIMIT


def test_hits_follow_the_table_on_the_systems_noise() -> None:
    """On the operating system's generator the hits are those of the table."""
    assert statistic(stability.step, SystemNoise()) < LIMIT


def test_a_law_that_is_off_is_caught() -> None:
    """Distances eight steps too large, and noise drawn once, exceed the limit."""
    assert statistic(stability.step, ScriptedNoise(seeded_words(3)), shift=SHIFT) > LIMIT
    assert statistic(StepWithOneWord(), ScriptedNoise(seeded_words(3))) > LIMIT


def test_every_bit_of_a_word_is_fair() -> None:
    """Each of the 64 bits of the system's words is set half of the time."""
    # The statistic over 64 bits of 4,000 words is chi-square with 64 degrees of
    # freedom.  A constant bit alone adds 4,000 to it.
    words = np.array(SystemNoise().words(4000), dtype=np.uint64)
    bits = np.array([int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    assert float(((bits - 2000) ** 2 / 1000).sum()) < chi2.isf(FALSE_ALARM, 64)


# -- whole runs ----------------------------------------------------------------------

RUNS = 20_000
LEADS = (10, 13, 17)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return a configuration with epsilon 2 for its answers, T = 2 and no other limit."""
    changes = {
        "privacy__epsilon": "2",
        "privacy__delta": "1e-3",
        "privacy__shares__relabel": "0",
        "privacy__shares__answers": "1",
        "privacy__shares__classifier": "0",
        "answers__queries": "1000",
        "answers__after": "halt",
    }
    return SmallRelease(tmp_path, changes).settings()


def votes() -> list[list[int]]:
    """Return three queries with so many votes beyond half for "yes"."""
    half = VotesByMargin.size // 2
    return [[half - lead, half + lead] for lead in LEADS]


def law() -> dict[str, float]:
    """Return the probability of each outcome string, from the table alone."""
    table = calibrate(
        epsilon=Fraction(2), delta=Fraction(1, 1000), cutoff=CUTOFF, is_by_cutoff=True
    )
    hit = [table.hit_probability(max(0, lead - 1)) for lead in LEADS]
    outcomes: defaultdict[str, float] = defaultdict(float)
    for pattern in product((True, False), repeat=len(LEADS)):
        probability = float(
            np.prod(
                [
                    each if unstable else 1 - each
                    for each, unstable in zip(hit, pattern, strict=True)
                ]
            )
        )
        marks: list[str] = []
        for unstable in pattern:
            ended = marks.count("-") == CUTOFF
            marks.append("." if ended else "-" if unstable else "1")
        outcomes[",".join(marks)] += probability
    return dict(outcomes)


def run_statistic(settings: Settings, noise: NoiseSource) -> float:
    """Return the chi-square statistic of simulated outcomes; infinite for an impossible one."""
    expected = law()
    found = simulation.simulate(settings, votes(), trials=RUNS, noise=noise)
    if not found.keys() <= expected.keys():
        return float("inf")
    return sum(
        (found.get(outcome, 0) - RUNS * probability) ** 2 / (RUNS * probability)
        for outcome, probability in expected.items()
    )


def run_limit() -> float:
    """Return what the statistic of a correct run exceeds with probability FALSE_ALARM."""
    assert min(law().values()) * RUNS > 100  # so that each cell is close to normal
    return float(chi2.isf(FALSE_ALARM, len(law()) - 1))


@pytest.mark.parametrize("noise", [ScriptedNoise(seeded_words(11)), SystemNoise()])
def test_whole_runs_follow_their_law(settings: Settings, noise: NoiseSource) -> None:
    """Outcome strings of the serving mechanism come as often as the table says."""
    assert run_statistic(settings, noise) < run_limit()


def test_a_gap_as_distance_is_caught_in_whole_runs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the printed distance stable answers come far too often."""
    monkeypatch.setattr(subsample_aggregate, "aggregate", gap_as_distance)
    assert run_statistic(settings, ScriptedNoise(seeded_words(12))) > 10 * run_limit()


def test_one_hit_too_many_is_caught_in_whole_runs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a loop while c <= T a third unstable answer comes, which is impossible."""
    monkeypatch.setattr(stability, "step", step_once_more)
    monkeypatch.setattr(query_decision, "phase", lambda *_: Phase.ENSEMBLE)
    assert run_statistic(settings, ScriptedNoise(seeded_words(13))) == float("inf")
