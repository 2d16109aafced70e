"""The connection that writes a file: kept as long as it works, and then another."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.builders.crash.faulting import ObservedConnection, connecting, writers_connection
from tests.builders.ledger.releases import answer, middle_of_life, record

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger

pytestmark = pytest.mark.sqlite_only(reason="about the connection of a file")


def test_one_connection_is_kept_from_transaction_to_transaction(tmp_path: Path) -> None:
    """A commit, a transaction that is undone and another commit have the same connection."""
    ledger = middle_of_life(tmp_path / "kept.db")
    first = writers_connection(ledger)
    fail_after_recording(ledger)
    assert not first.in_transaction
    record(ledger, [answer(ledger, 10)])
    assert writers_connection(ledger) is first
    assert ledger.read_state().answered == 10
    ledger.close()
    with pytest.raises(sqlite3.ProgrammingError):
        first.execute("SELECT 1")


def test_connection_that_cannot_undo_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the rollback fails the next transaction has a connection of its own, and commits."""
    monkeypatch.setattr("app.ledger.database.sqlite._connect", connecting(ObservedConnection))
    ledger = middle_of_life(tmp_path / "broken.db")
    broken = writers_connection(ledger)

    def fail_to_undo(_: sqlite3.Connection, statement: str) -> None:
        if statement == "ROLLBACK":
            raise sqlite3.OperationalError("disk I/O error")

    broken.before = fail_to_undo
    fail_after_recording(ledger)
    record(ledger, [answer(ledger, 10, label=1)])
    assert writers_connection(ledger) is not broken
    (kept,) = ledger.answers_after(9)
    assert kept.answer.label == 1
    ledger.close()


def fail_after_recording(ledger: Ledger) -> None:
    """Record an answer, and raise before the commit."""

    def fail() -> None:
        with ledger.transaction() as transaction:
            transaction.record_answers([answer(ledger, 10)])
            raise KeyError("theirs")

    with pytest.raises(KeyError):
        fail()
