"""The index of entries in SQLite: an answer's entry is found without reading bodies."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import VerificationError
from app.ledger.database.entry_rows import each_entry
from app.ledger.database.tables import ENTRIES_INDEX
from app.ledger.entries.chain import GENESIS
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.releases import create, middle_of_life, tamper, url_of

BODY_BYTES = 80_000
ENTRY_COUNT = 60
ENTRY = "INSERT INTO entries VALUES (1, ?, 'AnswersReleased', 1, ?, ?)"
ANSWER = "INSERT INTO answer_groups VALUES (1, 1, 1, ?, x'00')"
OTHER_ORDER = f"CREATE UNIQUE INDEX {ENTRIES_INDEX} ON entries (sequence, release_number)"
NOT_UNIQUE = f"CREATE INDEX {ENTRIES_INDEX} ON entries (release_number, sequence)"


def bytes_read() -> int:
    """Return how many bytes this process has read from files so far."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def bytes_read_for_an_answer(path: Path) -> int:
    """Return what a new connection reads to insert the first answer, of the newest entry."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("BEGIN IMMEDIATE")
        before = bytes_read()
        connection.execute(ANSWER, (ENTRY_COUNT,))
        return bytes_read() - before


def test_the_entry_of_an_answer_is_found_without_its_body(tmp_path: Path) -> None:
    """Where bodies are long an answer reads a few pages; without the index, whole bodies."""
    path = tmp_path / "long.db"
    create(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for number in range(1, ENTRY_COUNT + 1):
            connection.execute(ENTRY, (number, "x" * BODY_BYTES, "0" * 64))
        connection.commit()
    assert bytes_read_for_an_answer(path) < BODY_BYTES
    tamper(path, f"DROP INDEX {ENTRIES_INDEX}")
    assert bytes_read_for_an_answer(path) > BODY_BYTES


def test_pages_of_entries_are_read_in_the_order_of_the_table(tmp_path: Path) -> None:
    """Entries that follow one another are not looked up each by itself."""
    statements: list[str] = []
    with middle_of_life(tmp_path / "pages.db").snapshot() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_trace_callback(statements.append)
        assert list(each_entry(connection, 1, GENESIS))
        driver.set_trace_callback(None)
        ((_, _, _, plan),) = driver.execute(f"EXPLAIN QUERY PLAN {statements[-1]}").fetchall()
    assert plan == "SEARCH entries USING PRIMARY KEY (release_number=? AND sequence>?)"


@pytest.mark.parametrize("instead", [None, OTHER_ORDER, NOT_UNIQUE])
def test_a_lost_or_altered_index_is_named(tmp_path: Path, instead: str | None) -> None:
    """An index that is gone, and one that is another under its name, is told by verify."""
    path = tmp_path / "index.db"
    middle_of_life(path).close()
    tamper(path, f"DROP INDEX {ENTRIES_INDEX}", *([] if instead is None else [instead]))
    with pytest.raises(VerificationError) as raised:
        verify(open_ledger(url_of(path), create=False))
    assert str(raised.value) == (
        f"the table entries has lost the index {ENTRIES_INDEX}, or it was altered"
    )
