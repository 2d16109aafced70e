"""An estimator's own time tells its votes; padding takes that away, batch by batch.

Unpadded, the evaluation of unanimous votes for the second class takes 16 models times
0.1 ms longer than that of votes against it, which is proven by a hundred queries of each,
or by some hundreds on a busy machine.  Padded, a hundred of each do not prove that medians
differ by a twentieth of that (false-alarm probability 1e-9 each).  The constant is fifteen
times the slowest evaluation, so that no more than half of them overrun it where other
processes take their share.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import structlog

from app.answering.queries import Query
from app.main import Server
from app.noise.system import SystemNoise
from app.release.terms.answer_time_padding import (
    ESTIMATOR_MILLISECONDS_PER_MODEL,
    NAP_SECONDS,
    NAPS_MIN,
    wait_for_multiple,
)
from benchmarks.measuring.comparisons import AMONG_STABLE
from benchmarks.measuring.margins import Kind, MarginsRelease, find_margins, votes_needed
from benchmarks.measuring.medians import certain_difference
from benchmarks.measuring.stopwatch import Stopwatch, shuffled, time_queries
from tests.timing.measured_release import Measured, open_measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measuring.stopwatch import Timed

SLOW_SECONDS: Final = 1e-4
CUTOFF: Final = 1
PADDING_MILLISECONDS: Final = 30
EACH: Final = 100
ROUNDS_MAX: Final = 10
BATCH_QUERIES: Final = 5
LIMIT_SECONDS: Final = 8e-5
LONG_LIMIT_SECONDS: Final = 2e-5
FALSE_ALARM: Final = 1e-9
ALL_NO_ALL_YES: Final = AMONG_STABLE[1]
KINDS: Final = (Kind.UNANIMOUS_NO, Kind.UNANIMOUS_YES)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Print no line for each commit."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


def open_slow(folder: Path, *, padding_milliseconds: int) -> Measured:
    """Open a release whose estimators take longer where they vote for the second class."""
    changes = {
        "CONCLAVE_LEARNER__ESTIMATOR": "benchmarks.measuring.slow_estimator:SlowWhereYes",
        "CONCLAVE_LEARNER__PARAMS": f'{{"seconds": {SLOW_SECONDS}}}',
        "CONCLAVE_ANSWERS__REPLY_PADDING_MILLISECONDS": str(padding_milliseconds),
    }
    return open_measured(folder, cutoff=CUTOFF, changes=changes)


def proven(first: list[float], second: list[float]) -> bool:
    """Whether the medians certainly lie further apart than the limit."""
    low, high = certain_difference(first, second, false_alarm=FALSE_ALARM)
    return low > LIMIT_SECONDS or high < -LIMIT_SECONDS


def time_batches(measured: Measured, *, each: int) -> dict[Kind, list[float]]:
    """Return the evaluation times of batches in which all votes are of one kind."""
    stopwatch = Stopwatch()
    measured.answerer.observe = stopwatch
    seconds: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    for kind in shuffled(KINDS, each):
        numbers = [next(measured.numbers) for _ in range(BATCH_QUERIES)]
        queries = [Query(measured.margins.vector(kind, number)) for number in numbers]
        measured.answerer.answer_batch(queries)
        moments = stopwatch.moments
        seconds[kind].append((moments["voted"] - moments["started"]) / 1e9)
    return seconds


def test_without_padding_an_estimators_time_is_proven(tmp_path: Path) -> None:
    """The difference is there to be hidden: the tests below can fail."""
    measured = open_slow(tmp_path, padding_milliseconds=0)
    timed: list[Timed] = []
    for _ in range(ROUNDS_MAX):
        timed += measured.time(KINDS, EACH)
        if proven(*ALL_NO_ALL_YES.samples(timed, "voted")):
            return
    pytest.fail("as many queries prove no difference")


def test_without_padding_a_batchs_time_is_proven(tmp_path: Path) -> None:
    """So is that of a batch."""
    measured = open_slow(tmp_path, padding_milliseconds=0)
    seconds: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS_MAX):
        for kind, more in time_batches(measured, each=EACH).items():
            seconds[kind] += more
        if proven(*seconds.values()):
            return
    pytest.fail("as many batches prove no difference")


def test_padding_hides_what_an_estimator_takes(tmp_path: Path) -> None:
    """Single queries of either kind take as long, whatever is looked at."""
    measured = open_slow(tmp_path, padding_milliseconds=PADDING_MILLISECONDS)
    timed = measured.time(KINDS, EACH)
    for moment in ("voted", "decided", "committed"):
        assert not proven(*ALL_NO_ALL_YES.samples(timed, moment))
    assert all(one.voted >= PADDING_MILLISECONDS / 1000 for one in timed)


def test_padding_hides_what_a_batch_takes(tmp_path: Path) -> None:
    """Batches, as a stream makes them: one evaluation and one wait for all of their queries."""
    measured = open_slow(tmp_path, padding_milliseconds=PADDING_MILLISECONDS)
    assert not proven(*time_batches(measured, each=EACH).values())


def test_a_server_pads_estimators_unasked(tmp_path: Path) -> None:
    """What serves by default waits half a millisecond a learner, and 2 ms at least."""
    estimator = {"CONCLAVE_LEARNER__ESTIMATOR": "benchmarks.measuring.slow_estimator:SlowWhereYes"}
    release = MarginsRelease(tmp_path, votes_needed(CUTOFF), CUTOFF, estimator)
    server = Server(release.write())
    answerer = server._open(SystemNoise())
    with server._held:
        timed = time_queries(answerer, find_margins(answerer.release), KINDS * 5)
    constant = ESTIMATOR_MILLISECONDS_PER_MODEL * release.size / 1000
    assert all(one.voted >= constant for one in timed)


def test_one_long_sleep_is_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting is done in naps, however long it takes, and in ten of them at least."""
    naps: list[float] = []
    clock = [100.0]

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr("app.release.terms.answer_time_padding.time.sleep", sleep)
    monkeypatch.setattr("app.release.terms.answer_time_padding.time.monotonic", lambda: clock[0])
    for evaluation, multiple in ((0.001, 1), (0.0179, 1), (0.0181, 2), (0.0199, 2), (0.03, 2)):
        naps.clear()
        clock[0] = 100.0 + evaluation
        wait_for_multiple(0.02, started=100.0)
        assert clock[0] == pytest.approx(100.0 + multiple * 0.02, abs=1e-9)
        assert max(naps) <= NAP_SECONDS
        assert len(naps) >= NAPS_MIN


@pytest.mark.parametrize("padding_seconds", [0.003, 0.01])
def test_a_wait_ends_at_a_multiple(padding_seconds: float) -> None:
    """By the real clock a wait ends after a whole multiple, and hardly later."""
    overshoots = []
    for _ in range(40):
        started = time.monotonic()
        wait_for_multiple(padding_seconds, started=started)
        overshoots.append((time.monotonic() - started) % padding_seconds)
    # Other processes hold waits back, and not three of four.  A wait that ended anywhere would
    # have eleven of forty in the first eighth with probability 0.01.
    assert sorted(overshoots)[10] < padding_seconds / 8


def test_without_padding_nothing_waits() -> None:
    """A constant of zero costs no sleep."""
    started = time.perf_counter()
    for _ in range(1000):
        wait_for_multiple(0.0, started=time.monotonic())
    assert time.perf_counter() - started < 0.5


@pytest.fixture
def disk_in_memory() -> Iterator[Path]:
    """Yield a folder whose commits take no disk: a disk's own times hide 20 microseconds."""
    memory = "/dev/shm"  # noqa: S108 -- Linux's; elsewhere the usual folder, and the disk
    place = memory if os.path.ismount(memory) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_padded_medians_differ_by_microseconds_at_most(disk_in_memory: Path) -> None:
    """Of 2,000 queries each, the bootstrap's interval lies within 20 microseconds."""
    measured = open_slow(disk_in_memory, padding_milliseconds=PADDING_MILLISECONDS)
    with closing(measured.answerer.release.ledger):
        timed = measured.time(KINDS, 2_000)
    for moment in ("voted", "decided", "committed"):
        difference = ALL_NO_ALL_YES.difference(timed, moment)
        assert difference.is_within(LONG_LIMIT_SECONDS), f"{moment} {difference}"
