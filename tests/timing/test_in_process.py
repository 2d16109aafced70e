"""From `VOTE` to `COMMIT` the time of an answer tells nothing that the answer does not.

Real rows, models, draws and ledger; one fresh query a batch, its kind in random order.
On a machine that other work shares a time may come out milliseconds longer, so the
short test fails only where the sample proves, with false-alarm probability 1e-9 each,
that medians lie further apart than the limit; it then proves planted faults of a
millisecond in samples as small.  The long test asks for the limit itself.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import structlog

from app.learning.trees.packed_trees import TreeEnsemble
from app.privacy.voting import query_decision
from benchmarks.measuring.comparisons import (
    AMONG_STABLE,
    AMONG_UNSTABLE,
    COMPARISONS,
    STABLE_UNSTABLE,
    Comparison,
)
from benchmarks.measuring.margins import STABLE, UNSTABLE, Kind
from benchmarks.measuring.medians import certain_difference
from tests.timing.measured_release import Measured, open_measured
from tests.timing.planted_times import StopsAtAMajority, slow_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from app.privacy.voting.query_decision import Outcome
    from app.privacy.voting.votes import Tally
    from benchmarks.measuring.stopwatch import Timed

LIMIT_SECONDS = 5e-6
# Two moments of five comparisons: 1e-8 together, that the short test fails by chance.
FALSE_ALARM = 1e-9
MOMENTS = ("decided", "committed")
EACH = 120
# A hundred thousand of each outcome, though some queries that are split are answered.
LONG_EACH = 36_000
LONG_CUTOFF = 150_000
FAULT_SECONDS = 1e-3
ROUND_EACH = 60
ROUNDS_MAX = 10
SMALL_FAULT_SECONDS = 2e-5
SMALL_FAULT_EACH = 4_000


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Print no line for each commit."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A release with room for every query of this module's short tests."""
    return open_measured(tmp_path_factory.mktemp("margins"), cutoff=5000)


def proven_beyond(comparison: Comparison, timed: Sequence[Timed], moment: str) -> bool:
    """Whether the sample proves that the medians differ by more than the limit."""
    first, second = comparison.samples(timed, moment)
    low, high = certain_difference(first, second, false_alarm=FALSE_ALARM)
    return low > LIMIT_SECONDS or high < -LIMIT_SECONDS


def test_kinds_are_what_they_are_called(measured: Measured) -> None:
    """Votes that are split are unstable, mostly, and votes that are clear are not."""
    # A query hits with 1e-7 where it is clear, and where it is split with 80 % or more: of
    # 60 the mean of answered ones is 12 at most, and 40 or more have probability 1e-13.
    timed = measured.time(list(Kind), 20)
    assert all(one.stable for one in timed if one.kind in STABLE)
    assert sum(one.stable for one in timed if one.kind in UNSTABLE) < 40
    distances = measured.margins.distances
    assert distances[Kind.SPLIT_NO] < distances[Kind.NEAR] < distances[Kind.CLEAR]
    assert distances[Kind.CLEAR] < distances[Kind.UNANIMOUS_NO]


def test_no_difference_is_proven(measured: Measured) -> None:
    """Neither stable and unstable answers nor answers on other votes differ in time."""
    timed = measured.time(list(Kind), EACH)
    assert all(0 < one.voted <= one.decided <= one.committed for one in timed)
    found = [
        (comparison.name, moment)
        for comparison in COMPARISONS
        for moment in MOMENTS
        if proven_beyond(comparison, timed, moment)
    ]
    assert not found


# What a step is slow by, the kinds that are asked, and the comparison that shows it.
STEP_FAULTS: dict[str, tuple[Callable[[Tally, Outcome], bool], tuple[Kind, Kind], Comparison]] = {
    "the flag": (
        lambda _, outcome: not outcome.stable,
        (Kind.CLEAR, Kind.SPLIT_NO),
        STABLE_UNSTABLE,
    ),
    "the gap": (
        lambda tally, _: 10 * min(tally.counts) < sum(tally.counts),
        (Kind.CLEAR, Kind.UNANIMOUS_NO),
        AMONG_STABLE[0],
    ),
    "the label": (
        lambda tally, _: tally.plurality == 1,
        (Kind.UNANIMOUS_NO, Kind.UNANIMOUS_YES),
        AMONG_STABLE[1],
    ),
    "a label that is not told": (
        lambda tally, _: tally.plurality == 1,
        (Kind.SPLIT_NO, Kind.SPLIT_YES),
        AMONG_UNSTABLE[0],
    ),
    "an even split": (
        lambda tally, _: tally.distance <= 1,
        (Kind.SPLIT_NO, Kind.NEAR),
        AMONG_UNSTABLE[1],
    ),
}


def is_caught(measured: Measured, kinds: Sequence[Kind], comparison: Comparison) -> bool:
    """Whether a fault is proven, by so many more queries as a busy machine makes it take."""
    timed: list[Timed] = []
    for _ in range(ROUNDS_MAX):
        timed += measured.time(kinds, ROUND_EACH)
        if proven_beyond(comparison, timed, "decided"):
            return True
    return False


@pytest.mark.parametrize("fault", STEP_FAULTS)
def test_a_step_that_is_slow_by_votes_is_caught(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A millisecond more where the votes or the flag say so is proven, by its own comparison."""
    is_slow, kinds, comparison = STEP_FAULTS[fault]
    step = slow_step(lambda tally, outcome: FAULT_SECONDS * is_slow(tally, outcome))
    monkeypatch.setattr(query_decision, "step", step)
    assert is_caught(measured, kinds, comparison)


def test_an_evaluation_that_stops_early_is_caught(measured: Measured) -> None:
    """Models that are not asked once a majority is clear show in the time that they save."""
    release = measured.answerer.release
    whole = release.private_ensemble
    assert isinstance(whole, TreeEnsemble)
    try:
        release.private_ensemble = StopsAtAMajority(whole)
        assert is_caught(measured, (Kind.UNANIMOUS_NO, Kind.SPLIT_NO), STABLE_UNSTABLE)
    finally:
        release.private_ensemble = whole


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_medians_differ_by_less_than_five_microseconds(tmp_path: Path) -> None:
    """Of 100,000 stable and 100,000 unstable answers, each interval lies within the limit."""
    # Split queries are answered with 20 % at most, so that hits stay below the cutoff.
    measured = open_measured(tmp_path, cutoff=LONG_CUTOFF)
    timed = measured.time(list(Kind), LONG_EACH)
    asked = [(STABLE_UNSTABLE, "committed"), *((one, "decided") for one in COMPARISONS)]
    found = [(one.name, moment, one.difference(timed, moment)) for one, moment in asked]
    beyond = [each for each in found if not each[2].is_within(LIMIT_SECONDS)]
    assert not beyond, "\n".join(f"{name}, {moment} {found}" for name, moment, found in beyond)
    # A third of the queries are of one kind, and a commit varies by milliseconds.
    assert not [one.name for one in COMPARISONS if proven_beyond(one, timed, "committed")]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", STEP_FAULTS)
def test_a_fault_of_twenty_microseconds_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Of 4,000 queries of each kind, a step slower by so little breaks the limit."""
    is_slow, kinds, comparison = STEP_FAULTS[fault]
    step = slow_step(lambda tally, outcome: SMALL_FAULT_SECONDS * is_slow(tally, outcome))
    monkeypatch.setattr(query_decision, "step", step)
    timed = open_measured(tmp_path, cutoff=3 * SMALL_FAULT_EACH).time(kinds, SMALL_FAULT_EACH)
    difference = comparison.difference(timed, "decided")
    assert difference.low > LIMIT_SECONDS or difference.high < -LIMIT_SECONDS
