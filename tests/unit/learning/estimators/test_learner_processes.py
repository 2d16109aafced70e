"""Processes of learners: numbered, replaced where they end, silent, and gone with their owner."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import joblib
import pytest

from app.errors import ConfigurationError, InvariantError, LearnerProcessError
from app.learning.estimators import learner_processes
from app.learning.estimators.learner_processes import (
    LEARNERS_A_PROCESS_MIN,
    LearnerProcesses,
    process_count,
)
from tests.builders.learners import calls_apart

if TYPE_CHECKING:
    from collections.abc import Iterator

GONE_SECONDS_MAX = 20.0
PARTS = ("first", "second")
OWNER = """\
import os, time
from app.learning.estimators.learner_processes import LearnerProcesses
processes = LearnerProcesses(1)
print(*processes.run([os.getpid]), flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def processes() -> Iterator[LearnerProcesses]:
    """Return two processes that keep a word each."""
    two = LearnerProcesses(2)
    two.keep(PARTS)
    yield two
    del two


def pids(processes: LearnerProcesses) -> list[int]:
    """Return the processes' identifiers."""
    return list(processes.run([os.getpid] * processes.count))


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended, or is left to be reaped; fail where it goes on."""
    end = time.monotonic() + GONE_SECONDS_MAX
    while time.monotonic() < end:
        try:
            state = (
                Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            )
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.02)
    pytest.fail("the process goes on")


def test_calls_go_round_and_come_back_in_order(processes: LearnerProcesses) -> None:
    """Nine calls alternate between two processes, each of which keeps its own part."""
    calls = (partial(calls_apart.process_and_part, number) for number in range(9))
    answers = list(processes.run(calls))
    first, second = pids(processes)
    assert first != second != os.getpid()
    assert answers == [
        (number, (first, second)[number % 2], PARTS[number % 2]) for number in range(9)
    ]


def test_calls_are_asked_for_as_they_are_due(processes: LearnerProcesses) -> None:
    """A few calls wait, however many there will be: chunks are not all encoded at once."""
    asked = 0

    def calls() -> Iterator[partial[int]]:
        nonlocal asked
        for _ in range(50):
            asked += 1
            yield partial(os.getpid)

    next(processes.run(calls()))
    assert asked == learner_processes.CALLS_AHEAD * processes.count


def test_a_process_that_was_ended_is_replaced_and_given_its_part(
    processes: LearnerProcesses,
) -> None:
    """Whoever ends an idle process, the next call finds another that keeps the same."""
    first, second = pids(processes)
    os.kill(second, signal.SIGKILL)
    wait_until_gone(second)
    calls = [partial(calls_apart.process_and_part, number) for number in range(2)]
    (_, same, _), (_, another, part) = processes.run(calls)
    assert same == first
    assert another not in (first, second)
    assert part == PARTS[1]


def test_a_call_that_ends_its_process_once_is_made_again(
    processes: LearnerProcesses, tmp_path: Path
) -> None:
    """What the system ended is answered by a fresh process, and so are calls that waited."""
    mark = str(tmp_path / "mark")
    first, second = pids(processes)
    calls = [partial(calls_apart.end_unless_marked, mark), partial(os.getpid)] * 2
    answers = list(processes.run(calls))
    assert answers[1::2] == [second] * 2
    assert answers[0] == answers[2] != first


@pytest.mark.parametrize(
    "call",
    [
        partial(os._exit, 0),
        partial(sys.exit, "private"),
        partial(calls_apart.fail_aloud),
    ],
    ids=["ends", "exits", "raises"],
)
def test_a_call_that_never_answers_fails_with_a_fixed_text(
    processes: LearnerProcesses, call: partial[object]
) -> None:
    """Nothing hangs, nothing is told, this process goes on, and so do the others."""
    with pytest.raises(LearnerProcessError) as failed:
        list(processes.run([call]))
    assert str(failed.value) == str(LearnerProcessError())
    assert failed.value.__cause__ is None
    assert len(set(pids(processes))) == 2


def test_wishes_to_end_are_for_the_serving_process(processes: LearnerProcesses) -> None:
    """A drain asks its learners to the last, though a terminal tells every process."""
    before = pids(processes)
    for pid in before:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    assert pids(processes) == before


def test_nothing_is_heard_from_a_process(
    processes: LearnerProcesses, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither Python's files nor descriptors lead out of it, and its memory is never dumped."""
    list(processes.run([partial(calls_apart.speak)] * 2))
    heard = capfd.readouterr()
    assert (heard.out, heard.err) == ("", "")
    limits = processes.run([partial(resource.getrlimit, resource.RLIMIT_CORE)])
    assert list(limits) == [(0, 0)]


def test_a_process_has_a_thread_of_each_library(
    processes: LearnerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side they take the processors; what the operator set wins."""
    assert set(processes.run([partial(calls_apart.count_processors)] * 2)) == {("1", "1")}
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    told = LearnerProcesses(1)
    assert list(told.run([partial(calls_apart.count_processors)])) == [("3", "1")]


def test_processes_end_with_their_owner() -> None:
    """Once nobody holds them any more they are gone, and so is what they kept."""
    one = LearnerProcesses(1)
    (pid,) = pids(one)
    del one
    wait_until_gone(pid)


def test_processes_end_with_a_process_that_is_killed() -> None:
    """No learner outlives a serving process that could not say goodbye."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.kill()
    wait_until_gone(pid)


def test_where_no_process_starts_the_setting_is_named() -> None:
    """The operator is told before anything is charged."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = os.open(os.devnull, os.O_RDONLY)
    os.close(opened)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened, limits[1]))
        with pytest.raises(ConfigurationError, match=r"^learner\.jobs: no process can be started"):
            LearnerProcesses(1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("jobs", "learners", "processors", "count"),
    [
        (None, 2 * LEARNERS_A_PROCESS_MIN - 1, 8, 1),
        (None, 2 * LEARNERS_A_PROCESS_MIN, 8, 2),
        (None, 1000, 8, 8),
        (None, 1000, 1, 1),
        (1, 1000, 8, 1),
        (3, 1000, 2, 3),
        (3, 2, 2, 2),
    ],
)
def test_processes_are_counted_by_public_numbers(
    jobs: int | None, learners: int, processors: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is set holds, up to k; unset, there is one a processor, with 64 learners at least."""
    monkeypatch.setattr(joblib, "cpu_count", lambda: processors)
    assert process_count(jobs, learners) == count


def test_there_is_one_at_least() -> None:
    """None, or another number of parts, is a fault of ours."""
    with pytest.raises(InvariantError):
        LearnerProcesses(0)
