"""The tables themselves refuse what the ledger never does."""
# ruff: noqa: S608 -- the statements are made of constants

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.exc import IntegrityError

from app.errors import VerificationError
from app.ledger.answer_index import key_blocks
from app.ledger.database.sqlite import writing_engine
from app.ledger.database.tables import INSERT_ONLY, metadata
from app.ledger.entries import checkpoint
from app.ledger.verification import verify
from tests.builders.ledger.old_ledgers import going_on
from tests.builders.ledger.releases import create, middle_of_life, publish
from tests.builders.ledger.whole_lives import life_with_labels

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {
    "entries": "kind",
    "answers": "label",
    "answer_groups": "body",
    "idempotency_keys": "vector_digest",
    "private_state": "body",
    "database_secret": "secret",
    "checkpoints": "mark",
}
ENTRY = "INSERT {} INTO entries VALUES (1, {}, 'ReleaseHalted', 1, '{{}}', 'x')"
GROUP = "INSERT {} INTO answer_groups VALUES (1, {}, {}, {}, x'00')"
BY_HIDDEN_NUMBER = {
    "answer_groups": "VALUES (1, 1, 10, 10, 6, x'00')",
    "private_state": "VALUES (1, 1, 'further', 'x', x'00')",
    "database_secret": "VALUES (1, 1, x'00')",
}
FOLLOWS_FROM_ANSWERS = {"key_blocks"}  # an index, which follows from the answers
SINGLE = "INSERT {} INTO answers VALUES (1, 10, 6, x'00', x'00', 0, 1, NULL, NULL, NULL, NULL, x'')"


def refusal(path: Path, statement: str) -> str:
    """Run a statement as any other program would, and return why it was refused."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA foreign_keys=ON")
        with pytest.raises(sqlite3.IntegrityError) as raised:
            connection.execute(statement)
    finally:
        connection.close()
    return str(raised.value)


@pytest.mark.parametrize("table", INSERT_ONLY)
def test_no_table_is_updated_or_deleted_from(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UPDATE and DELETE are refused on every table of the ledger, row by row or whole."""
    monkeypatch.setattr(checkpoint, "CHECKPOINT_ENTRIES", 4)
    path = tmp_path / "refuse.db"
    ledger = going_on(path) if table == "answers" else middle_of_life(path)
    if table != "answers":
        publish(ledger)
    ledger.close()
    for statement in (
        f"UPDATE {table} SET {COLUMNS[table]} = NULL",
        f"UPDATE OR REPLACE {table} SET {COLUMNS[table]} = {COLUMNS[table]}",
        f"DELETE FROM {table}",
    ):
        assert refusal(path, statement) == f"{table}: rows are never changed"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE key_counts SET answered = answered - 1", "counts only grow"),
        ("UPDATE key_counts SET unstable = unstable - 1", "counts only grow"),
        ("UPDATE key_counts SET name = 'other' WHERE name = 'web'", "counts only grow"),
        ("UPDATE key_counts SET release_number = 2", "counts only grow"),
        ("DELETE FROM key_counts", "rows are never changed"),
        (
            "REPLACE INTO key_counts VALUES (1, 'web', 0, 0, x'00')",
            "rows are never replaced",
        ),
    ],
)
def test_the_count_of_a_key_only_grows(tmp_path: Path, change: str, problem: str) -> None:
    """What a key was given is never taken back, by this program or any other."""
    path = tmp_path / "counts.db"
    life_with_labels(path).close()
    assert refusal(path, change) == f"key_counts: {problem}"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (ENTRY.format("OR REPLACE", 3), "entries: numbers follow without gaps"),
        (ENTRY.format("", 11), "entries: numbers follow without gaps"),
        (ENTRY.format("", 0), "entries: numbers follow without gaps"),
        (GROUP.format("OR REPLACE", 3, 1, 6), "answer_groups: numbers follow without gaps"),
        (GROUP.format("OR REPLACE", 9, 9, 6), "answer_groups: numbers follow without gaps"),
        (GROUP.format("OR REPLACE", 12, 9, 6), "answer_groups: numbers follow without gaps"),
        (GROUP.format("", 11, 11, 6), "answer_groups: numbers follow without gaps"),
        (GROUP.format("", 10, 10, 99), "FOREIGN KEY constraint failed"),
        (GROUP.format("OR REPLACE", 74, 10, 6), "CHECK constraint failed"),
        (GROUP.format("OR REPLACE", 9, 10, 6), "CHECK constraint failed"),
        (
            (
                "REPLACE INTO answer_groups (rowid, release_number, last_query_id, first_query_id, "
                "sequence, body) SELECT MIN(rowid), 1, 10, 10, 6, x'00' FROM answer_groups"
            ),
            "answer_groups: rows are never replaced",
        ),
        (SINGLE.format(""), "answers: rows are never added"),
        (SINGLE.format("OR REPLACE"), "answers: rows are never added"),
        (
            "REPLACE INTO idempotency_keys SELECT 1, key_digest, x'00', NULL FROM idempotency_keys",
            "idempotency_keys: rows are never replaced",
        ),
        (
            "REPLACE INTO private_state VALUES (1, 'ensemble', 'x', x'00')",
            "private_state: rows are never replaced",
        ),
        (
            "REPLACE INTO checkpoints SELECT release_number, sequence, body, 'x' FROM checkpoints",
            "checkpoints: rows are never replaced",
        ),
        (
            "REPLACE INTO newest_answers SELECT 1, vector_digest, 9 FROM newest_answers",
            "newest_answers: rows are never replaced",
        ),
        (
            "UPDATE newest_answers SET query_id = query_id + 1",
            "newest_answers: rows are never changed",
        ),
        ("REPLACE INTO database_secret VALUES (1, x'00')", "database_secret: rows are never "),
        ("INSERT INTO database_secret VALUES (2, x'00')", "CHECK constraint failed"),
    ],
)
def test_no_row_is_replaced_and_no_number_left_out(
    tmp_path: Path, statement: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that would take another's place, or leave a gap, is refused."""
    monkeypatch.setattr(checkpoint, "CHECKPOINT_ENTRIES", 4)
    path = tmp_path / "replace.db"
    middle_of_life(path).close()
    assert refusal(path, statement).startswith(problem)


def replacing(table: str) -> str:
    """Return a statement that gives a further row the hidden number of the first one."""
    columns = ", ".join(("rowid", *metadata.tables[table].columns.keys()))
    return f"REPLACE INTO {table} ({columns}) {BY_HIDDEN_NUMBER[table]}"


def test_every_table_with_hidden_numbers_is_tried() -> None:
    """What the next test replaces rows of is every table that SQLite numbers, but for the index."""
    numbered = {
        name
        for name, table in metadata.tables.items()
        if table.dialect_options["sqlite"]["with_rowid"]
    }
    assert numbered == BY_HIDDEN_NUMBER.keys() | FOLLOWS_FROM_ANSWERS


@pytest.mark.parametrize("table", BY_HIDDEN_NUMBER)
def test_the_program_replaces_no_row_by_its_hidden_number(tmp_path: Path, table: str) -> None:
    """A row that names the hidden number of another is refused on our connections."""
    path = tmp_path / "hidden.db"
    middle_of_life(path).close()
    engine = writing_engine(path)
    try:
        with pytest.raises(IntegrityError) as raised, engine.begin() as connection:
            connection.exec_driver_sql(replacing(table))
    finally:
        engine.dispose()
    assert f"{table}: rows are never " in str(raised.value.orig)


def test_another_program_replaces_private_state_by_its_hidden_number(tmp_path: Path) -> None:
    """Without ``recursive_triggers`` only this table lets it happen, and verification finds it."""
    path = tmp_path / "other.db"
    middle_of_life(path).close()
    for table in BY_HIDDEN_NUMBER.keys() - {"private_state"}:
        assert refusal(path, replacing(table)) == f"{table}: rows are never replaced"
    with closing(sqlite3.connect(path)) as connection, connection:
        names = "SELECT name FROM private_state ORDER BY rowid"
        first, *others = connection.execute(names).fetchall()
        connection.execute(replacing("private_state"))
        assert connection.execute(names).fetchall() == [("further",), *others]
        assert first != ("further",)
    assert account_of(path) == "the private state has a piece that no entry binds: further"


def test_a_block_of_keys_that_is_replaced_does_not_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No trigger protects the index of answers, but its keys are compared with the answers."""
    monkeypatch.setattr(key_blocks, "NEWEST_MAX", 4)
    path = tmp_path / "block.db"
    middle_of_life(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        # Block 0 is empty, and takes the place of the first block with keys.
        connection.execute(
            "REPLACE INTO key_blocks (rowid, release_number, level, block, body) "
            "SELECT MIN(rowid), 1, 1, 0, x'' FROM key_blocks"
        )
    assert account_of(path) == "answer 1 has lost its key"


def account_of(path: Path) -> str:
    """Return what verification says is wrong."""
    with closing(create(path)) as ledger, pytest.raises(VerificationError) as raised:
        verify(ledger)
    return str(raised.value)
