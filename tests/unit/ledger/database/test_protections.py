"""The tables themselves refuse what the ledger never does."""
# ruff: noqa: S608 -- the statements are made of constants

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from app.ledger.database.tables import INSERT_ONLY
from app.ledger.entries import checkpoint
from tests.builders.ledger.old_ledgers import going_on
from tests.builders.ledger.releases import middle_of_life, publish
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
