"""A commit that fails releases nothing, and the ledger goes on when the fault goes."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerUnavailableError
from app.ledger.ledger import Ledger, open_ledger
from app.ledger.verification import verify
from tests.builders.crash.faulting import (
    ObservedConnection,
    connecting,
    nothing,
    refuse_on_disk,
    set_pragma,
    writers_connection,
)
from tests.builders.ledger.releases import answer, middle_of_life, record, url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.builders.crash.faulting import Observer


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a lock a tenth of a second, on connections that can be told to fail."""
    monkeypatch.setattr("app.ledger.database.sqlite._connect", connecting(ObservedConnection))
    monkeypatch.setattr("app.ledger.database.sqlite.BUSY_TIMEOUT_SECONDS", 0.1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Yield a ledger in the middle of its life, nine answers old."""
    opened = middle_of_life(tmp_path / "faults.db")
    yield opened
    opened.close()


@contextmanager
def locked(_: Ledger, path: Path) -> Iterator[None]:
    """Hold the write lock from another connection."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    yield
    holder.execute("ROLLBACK")
    holder.close()


@contextmanager
def full(ledger: Ledger, path: Path) -> Iterator[None]:
    """Let the database grow no further, as on a full disk."""
    set_pragma(ledger, "max_page_count", path.stat().st_size // 4096)
    yield
    set_pragma(ledger, "max_page_count", 2**30)


@contextmanager
def read_only(ledger: Ledger, _: Path) -> Iterator[None]:
    """Refuse writes with the error of a read-only file."""
    set_pragma(ledger, "query_only", 1)
    yield
    set_pragma(ledger, "query_only", 0)


@contextmanager
def broken_disk(_: Ledger, path: Path) -> Iterator[None]:
    """Let the operating system refuse to write past the end of the log."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    length = path.with_name(f"{path.name}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (length + 100, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def failing_commit(ledger: Ledger, _: Path) -> Iterator[None]:
    """Fail where the commit is asked for, before it happens."""
    with committing(ledger, before=raise_at_commit):
        yield


@contextmanager
def committing(
    ledger: Ledger, *, before: Observer = nothing, after: Observer = nothing
) -> Iterator[None]:
    """Observe the statements of the connection that writes."""
    connection = writers_connection(ledger)
    connection.before, connection.after = before, after
    yield
    connection.before = connection.after = nothing


def raise_at_commit(_: sqlite3.Connection, statement: str) -> None:
    """Raise around the statement that commits: before it happens, or after it did."""
    if statement == "COMMIT":
        refuse_on_disk()


FAULTS = [locked, full, read_only, broken_disk, failing_commit]


@pytest.mark.parametrize("fault", FAULTS)
def test_failed_commit_leaves_the_ledger_as_it_was(
    ledger: Ledger,
    tmp_path: Path,
    fault: Callable[[Ledger, Path], AbstractContextManager[None]],
) -> None:
    """Under each fault a commit raises, nothing is kept, and the next one succeeds after it."""
    before = ledger.read_state()
    rows = [answer(ledger, query_id) for query_id in range(10, 510)]
    with fault(ledger, tmp_path / "faults.db"):
        for _ in range(2):
            with pytest.raises(LedgerUnavailableError) as raised:
                record(ledger, rows)
            assert str(raised.value) == (
                "the ledger took no entry and nothing was released; try again"
            )
            assert ledger.read_state() == before
    record(ledger, rows)
    assert ledger.read_state().answered == 509
    verify(ledger)
    other = open_ledger(url_of(tmp_path / "faults.db"), create=False)
    assert other.read_state() == ledger.read_state()
    other.close()


def test_commit_of_unknown_outcome_is_found_out(ledger: Ledger) -> None:
    """A commit that happened and was reported as failed is what the next transaction sees."""
    with committing(ledger, after=raise_at_commit), pytest.raises(LedgerUnavailableError):
        record(ledger, [answer(ledger, 10)])
    with ledger.transaction() as transaction:
        assert transaction.state.answered == 10
        transaction.record_answers([answer(ledger, 11)])
    assert [row.answer.query_id for row in ledger.answers_after(9)] == [10, 11]
    verify(ledger)


def test_readers_go_on_while_the_writer_is_locked_out(ledger: Ledger, tmp_path: Path) -> None:
    """State, answers and entries are read while another process holds the write lock."""
    with locked(ledger, tmp_path / "faults.db"):
        assert ledger.read_state().answered == 9
        assert len(list(ledger.answers_after(0))) == 9
        assert len(ledger.public_entries(0, 100)) == 9


def test_error_of_the_caller_is_not_taken_for_the_databases(ledger: Ledger) -> None:
    """An error of the system raised between the writes passes as it is."""
    with pytest.raises(OSError, match="theirs"), ledger.transaction():
        raise OSError("theirs")
