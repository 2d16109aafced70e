"""The keeper notes what is committed: soon, at most once a second, beside the work."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from app.errors import HeadFileError
from app.ledger.head.head_file import HeadFile, HeadKeeper, noted_head
from tests.builders.ledger.releases import answer, create, open_release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.ledger.head.head_file import NotedHead
    from app.ledger.ledger import Ledger

SECONDS_MAX = 20.0
# Long enough that nothing in a test is written a second time by it.
NEVER = 3600.0


class Disk(HeadFile):
    """A head file on a disk that can fail or hang, and that counts what it is asked."""

    def __init__(self, path: Path) -> None:
        """Start sound."""
        super().__init__(path)
        self.notes: list[int] = []
        self.failing: list[Exception] = []
        self.sound = threading.Event()
        self.sound.set()

    def note(self, head: NotedHead) -> NotedHead:
        """Hang, fail, or note."""
        self.sound.wait()
        if self.failing:
            raise self.failing.pop()
        noted = super().note(head)
        self.notes.append(head.sequence)
        return noted


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """Return a sound disk."""
    return Disk(tmp_path / "head")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return a ledger with an open release, five entries."""
    ledger = create(tmp_path / "ledger.db")
    open_release(ledger)
    yield ledger
    ledger.close()


def keep(ledger: Ledger, disk: Disk, interval_seconds: float = NEVER) -> HeadKeeper:
    """Keep the head of a ledger from now on."""
    keeper = HeadKeeper(disk, interval_seconds=interval_seconds)
    ledger.keep_head(keeper)
    return keeper


def give(ledger: Ledger, *query_ids: int) -> None:
    """Commit answers, an entry each."""
    for query_id in query_ids:
        with ledger.transaction() as transaction:
            transaction.record_answers([answer(ledger, query_id)])


def wait_for(disk: Disk, sequence: int) -> None:
    """Wait until the disk has noted an entry."""
    deadline = time.monotonic() + SECONDS_MAX
    while disk.notes[-1:] != [sequence]:
        assert time.monotonic() < deadline, disk.notes
        time.sleep(0.002)


def test_head_is_noted_at_once_and_then_in_turn(ledger: Ledger, disk: Disk) -> None:
    """What is committed when it starts is noted, and later commits together after a pause."""
    keep(ledger, disk, 0.2)
    wait_for(disk, 5)
    give(ledger, *range(1, 21))
    wait_for(disk, 25)
    assert len(disk.notes) <= 4  # at once, after each pause, and not twenty times
    assert disk.read() == {"0f" * 16: noted_head(ledger.read_state())}


def test_commits_within_a_pause_are_noted_once(ledger: Ledger, disk: Disk) -> None:
    """However many there are, only the newest is written, at the latest by the end."""
    keeper = keep(ledger, disk)
    wait_for(disk, 5)
    give(ledger, *range(1, 11))
    assert keeper.noted_sequence == 5
    ledger.close()
    assert disk.notes == [5, 15]
    assert keeper.noted_sequence == 15
    assert ledger.noted_sequence == 15


def test_nothing_is_noted_where_nothing_changed(ledger: Ledger, disk: Disk) -> None:
    """A transaction without an entry, and an end after the last note, write nothing."""
    keep(ledger, disk, 0.01)
    wait_for(disk, 5)
    give(ledger, 1)
    wait_for(disk, 6)
    with ledger.transaction() as transaction:
        transaction.record_key(b"k" * 32, answer(ledger, 1).vector_digest)
    ledger.close()
    assert disk.notes == [5, 6]


def test_a_ledger_without_a_release_is_not_noted(tmp_path: Path, disk: Disk) -> None:
    """There is nothing to forget yet; the opening is noted as it is committed."""
    ledger = create(tmp_path / "empty.db")
    keeper = keep(ledger, disk, 0.01)
    assert keeper.noted_sequence is None
    open_release(ledger)
    ledger.close()
    assert disk.notes[-1] == 5


def test_what_is_rolled_back_is_not_noted(ledger: Ledger, disk: Disk) -> None:
    """Only what is committed gets out of the database."""
    keep(ledger, disk, 0.01)
    wait_for(disk, 5)

    def fail() -> None:
        with ledger.transaction() as transaction:
            transaction.record_answers([answer(ledger, 1)])
            raise KeyError("later")

    with pytest.raises(KeyError, match="later"):
        fail()
    ledger.close()
    assert disk.notes == [5]


def test_a_hanging_disk_holds_up_no_commit_and_no_end(ledger: Ledger, disk: Disk) -> None:
    """Commits go on while the disk hangs, and the end gives it up after its time."""
    disk.sound.clear()
    keep(ledger, disk)
    began = time.monotonic()
    give(ledger, *range(1, 51))
    assert ledger.read_state().answered == 50
    ledger.close()
    assert time.monotonic() - began < SECONDS_MAX / 2
    assert disk.notes == []
    disk.sound.set()


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on /private/place"), HeadFileError("is another's")]
)
def test_a_failure_is_one_warning_and_is_tried_again(
    ledger: Ledger, disk: Disk, error: Exception
) -> None:
    """However often it fails in a row it is told once, by its class, and its end once."""
    disk.failing = [error] * 5
    with structlog.testing.capture_logs() as logs:
        keep(ledger, disk, 0.01)
        wait_for(disk, 5)
        disk.failing = [error]
        give(ledger, 1)
        wait_for(disk, 6)
        ledger.close()
    told: dict[str, Any] = {"event": "head_file_not_written", "log_level": "warning"}
    again = {"event": "head_file_written_again", "log_level": "warning"}
    name = type(error).__name__
    assert logs == [
        told | {"error": name},
        again | {"entry_number": 5},
        told | {"error": name},
        again | {"entry_number": 6},
    ]


def test_an_end_tries_once_more_after_a_failure(ledger: Ledger, disk: Disk) -> None:
    """A note that failed before the end is made by the end."""
    disk.failing = [OSError(28, "full")]
    keep(ledger, disk)
    deadline = time.monotonic() + SECONDS_MAX
    while disk.failing:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    ledger.close()
    assert disk.notes == [5]
