"""One flipped bit in any column, and any entry moved: each is named, whatever the entry's kind.

The lives of ``whole_lives`` have every kind of entry and every table between them.  A
change is made behind the ledger's back, its triggers dropped and put back, so that
nothing but verification stands between it and whoever reads on.
"""
# ruff: noqa: S608 -- the statements are made of the names of our own tables

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from app.errors import ConclaveError
from app.ledger.answer_index import key_blocks
from app.ledger.database.tables import metadata
from app.ledger.entries import checkpoint
from app.ledger.entries.chain import entry_hash
from app.ledger.entries.entry_kinds import EVENT_TYPES
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.databases import run_in_file
from tests.builders.ledger.old_ledgers import going_on
from tests.builders.ledger.releases import url_of
from tests.builders.ledger.whole_bodies import whole_bodies
from tests.builders.ledger.whole_lives import LIVES as WHOLE_LIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from app.ledger.ledger import Ledger

LIVES = {**WHOLE_LIVES, "earlier": going_on}
REVISION = ("alembic_version", "version_num")
COLUMNS = [
    *(
        (name, column.name)
        for name, table in metadata.tables.items()
        for column in table.columns
        if name != "hour_counts"  # the dashboard's history, which no entry tells of
    ),
    REVISION,
]
# No entry tells of a key that a client sent, nor of whose query an answer was, so that one
# that is gone is not missed; nor is what makes a start quick.
UNTOLD_TABLES = {"idempotency_keys", "checkpoints", "key_counts", "hour_counts"}
REFUSED = "no two rows of a table have the same key, so that there is no such file"
FLIPS_OF_A_COLUMN = pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.long)])
# The lives whose ledgers have triggers that no life before them has.
OWN_TRIGGERS = ("labels",)
INTEGER_BITS = (0, 1, 2, 5, 7, 14, 31, 40, 62)


@dataclass(frozen=True)
class Life:
    """A ledger in a file without its triggers, whose copies are tampered with.

    Attributes:
        name: of the life.
        path: of the file.
        triggers: the statements that make them.
        entry_count: of its entries.

    """

    name: str
    path: Path
    triggers: tuple[str, ...]
    entry_count: int

    def account(self, change: Callable[[sqlite3.Connection], object]) -> str | None:
        """Return what verification says of a copy that was changed, None if it finds nothing."""
        copy = self.path.with_name("changed.db")
        shutil.copy(self.path, copy)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                for option in ("synchronous=OFF", "ignore_check_constraints=ON"):
                    connection.execute(f"PRAGMA {option}")
                change(connection)
                for trigger in self.triggers:
                    connection.execute(trigger)
                connection.commit()
            return _account_of(copy)
        except sqlite3.IntegrityError:
            return REFUSED
        finally:
            for each in self.path.parent.glob("changed.db*"):
                each.unlink()

    def rows(self, table: str) -> list[dict[str, object]]:
        """Return every row of a table."""
        connection = sqlite3.connect(self.path)
        connection.row_factory = sqlite3.Row
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        connection.close()
        return [dict(row) for row in rows]


def _account_of(path: Path) -> str | None:
    """Return what verification says is wrong, None if it finds nothing."""
    try:
        with closing(open_ledger(url_of(path), create=False)) as ledger:
            verify(ledger)
    except ConclaveError as error:
        return str(error)
    return None


def lived(name: str, path: Path) -> Ledger:
    """Live a whole life, with a checkpoint every third entry, and keys in blocks and outside."""
    newest_max = 2 if name in {"cells", "generations"} else 3
    with (
        patch.object(checkpoint, "CHECKPOINT_ENTRIES", 3),
        patch.object(key_blocks, "NEWEST_MAX", newest_max),
    ):
        return LIVES[name](path)


@pytest.fixture(scope="module", params=LIVES)
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Live a whole life, once, and take its triggers away."""
    path = tmp_path_factory.mktemp("life") / "life.db"
    ledger = lived(request.param, path)
    verify(ledger)
    count = ledger.read_state().head.sequence
    ledger.close()
    triggers = triggers_of(path)
    connection = sqlite3.connect(path)
    for name in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.commit()
    connection.close()
    return Life(request.param, path, tuple(triggers.values()), count)


def triggers_of(path: Path) -> dict[str, str]:
    """Return the statements that make the triggers of a ledger, by their names."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return dict(found.fetchall())


def flips(value: object) -> Iterator[object]:
    """Yield a value with each of its bits flipped; of integers, those at some places."""
    if isinstance(value, int):
        yield from (value ^ (1 << bit) for bit in INTEGER_BITS)
        return
    assert isinstance(value, str | bytes)
    raw = value.encode() if isinstance(value, str) else value
    for bit in range(8 * len(raw)):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def put(
    row: dict[str, object], table: str, column: str, changed: object
) -> Callable[[sqlite3.Connection], object]:
    """Return what puts a value in the place of the one that a row has, as the same type."""
    value = "CAST(? AS TEXT)" if isinstance(row[column], str) else "?"
    where = " AND ".join(f"{name} IS ?" for name in row)

    def change(connection: sqlite3.Connection) -> None:
        statement = f"UPDATE {table} SET {column} = {value} WHERE {where}"
        assert connection.execute(statement, (changed, *row.values())).rowcount == 1

    return change


def is_plain(account: str) -> bool:
    """Return whether an account is one sentence in words of ours."""
    return bool(account) and "Traceback" not in account and "sqlite3" not in account


def test_the_lives_have_every_kind_of_entry(tmp_path: Path) -> None:
    """No kind and no table is left out of what is tampered with below."""
    kinds: set[object] = set()
    tables: set[str] = set()
    triggers: dict[frozenset[str], str] = {}
    for name in LIVES:
        ledger = lived(name, tmp_path / f"{name}.db")
        triggers.setdefault(frozenset(triggers_of(tmp_path / f"{name}.db").values()), name)
        kinds |= {entry["kind"] for entry in ledger.public_entries(0, 100)}
        with ledger.snapshot() as connection:
            tables |= {
                table
                for table in metadata.tables
                if connection.exec_driver_sql(f"SELECT 1 FROM {table}").first()
            }
    assert kinds == {event_type.KIND for event_type in EVENT_TYPES}
    assert tables == set(metadata.tables) - {"hour_counts"}  # written once a minute, by a server
    assert set(triggers.values()) <= set(OWN_TRIGGERS)


@FLIPS_OF_A_COLUMN
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_one_flipped_bit_is_named(life: Life, table: str, column: str, count: int) -> None:
    """A flipped bit of a value in any column is told in a sentence."""
    choose = random.Random(f"{table}.{column}")
    rows = [row for row in life.rows(table) if row[column] is not None]
    every = [(row, changed) for row in rows for changed in flips(row[column])]
    for row, changed in choose.sample(every, min(count, len(every))):
        account = life.account(put(row, table, column, changed))
        assert account is not None, (row, changed)
        assert is_plain(account), account


@pytest.mark.parametrize("bit", [1, 2, 4, 7, 14])
def test_a_flag_that_is_no_flag_is_named(life: Life, bit: int) -> None:
    """A flag that still reads as true, and is not what was written, is told by its column."""
    rows = [each for each in life.rows("answers") if each["stable"] == 1]
    assert bool(rows) == (life.name == "earlier")
    if not rows:  # its answers are in groups, whose bodies are tried above
        return
    row = rows[0]
    account = life.account(put(row, "answers", "stable", 1 ^ (1 << bit)))
    assert account == "the table answers has a value of a wrong type in the column stable"


def test_any_entry_removed_is_named(life: Life) -> None:
    """Each entry that is gone is missed, the newest by what it left in the other tables."""
    for number in range(1, life.entry_count):
        account = life.account(removing(number))
        assert account == f"entry {number} is missing: entry {number + 1} is where it should be"


def test_any_two_entries_swapped_are_named(life: Life) -> None:
    """Of two neighbours that changed places, the first is told."""
    for number in range(1, life.entry_count):
        account = life.account(swapping(number))
        assert account is not None
        assert is_of(account, number)


def test_any_entry_duplicated_or_renumbered_is_named(life: Life) -> None:
    """A copy of an entry at the end, and an entry under another number, are told."""
    last = life.entry_count
    for number in range(1, last + 1):
        again = life.account(duplicating(number, last + 1))
        assert again is not None
        assert is_of(again, last + 1)
        moved = life.account(renumbering(number, last + 2))
        assert moved is not None
        is_newest = number == last and is_of(moved, last + 2)
        assert is_newest or moved.startswith(f"entry {number} is missing: entry ")


def is_of(account: str, number: int) -> bool:
    """Return whether an account tells of an entry, or of answers that are not its own."""
    return account.startswith(f"entry {number} does not have the hash") or account.endswith(
        (
            f"of entry {number} is missing from the answers table",
            f"and to entry {number} in the chain",
        )
    )


def removing(number: int) -> Callable[[sqlite3.Connection], object]:
    """Return what removes an entry."""
    return lambda at: at.execute("DELETE FROM entries WHERE sequence = ?", (number,))


def swapping(number: int) -> Callable[[sqlite3.Connection], object]:
    """Return what swaps an entry and the next."""

    def change(connection: sqlite3.Connection) -> None:
        for before, after in ((number, 999), (number + 1, number), (999, number + 1)):
            renumbering(before, after)(connection)

    return change


def duplicating(number: int, place: int) -> Callable[[sqlite3.Connection], object]:
    """Return what copies an entry to another number."""
    columns = "kind, version, body, hash FROM entries WHERE sequence = ?"
    statement = f"INSERT INTO entries SELECT release_number, ?, {columns}"
    return lambda at: at.execute(statement, (place, number))


def renumbering(number: int, place: int) -> Callable[[sqlite3.Connection], object]:
    """Return what gives an entry another number."""
    statement = "UPDATE entries SET sequence = ? WHERE sequence = ?"
    return lambda at: at.execute(statement, (place, number))


@pytest.mark.parametrize("table", [*metadata.tables, REVISION[0]])
def test_a_truncated_table_is_named(life: Life, table: str) -> None:
    """A table without its rows, or without the last, is told, but for clients' keys and counts."""
    newest = f"DELETE FROM {table} WHERE rowid = (SELECT MAX(rowid) FROM {table})"
    keys = (
        [column.name for column in metadata.tables[table].primary_key]
        if table in (metadata.tables)
        else []
    )
    if keys:
        order = ", ".join(f"{key} DESC" for key in keys)
        newest = (
            f"DELETE FROM {table} WHERE ({', '.join(keys)}) = "
            f"(SELECT {', '.join(keys)} FROM {table} ORDER BY {order} LIMIT 1)"
        )
    if table == "answers" and life.name != "earlier":  # none of a new ledger
        assert not life.rows(table)
        return
    for statement in (f"DELETE FROM {table}", newest):
        account = life.account(lambda at, run=statement: at.execute(run))  # type: ignore[misc]  # bound now
        if table in UNTOLD_TABLES:
            assert account is None
        elif (table, statement) != ("entries", newest) or "student" in str(account):
            assert account is not None, statement


def test_a_counter_changed_in_a_chain_made_anew_is_named(life: Life) -> None:
    """Whoever changes an answer in its entry, and every hash after it, is found by the answers."""
    bodies = whole_bodies(life.path)
    account = life.account(lambda at: forge(at, bodies))
    assert account is not None
    assert "in the answers table has label" in account


def test_an_answer_changed_in_its_row_and_in_a_chain_made_anew_is_named(life: Life) -> None:
    """Whoever changes an answer, and makes every hash anew, is found by the next checkpoint."""
    bodies, score = whole_bodies(life.path), ", bin_index = 8" * (life.name == "scores")

    def change(connection: sqlite3.Connection) -> None:
        stored = connection.execute("SELECT body, sequence FROM entries").fetchall()
        forge(connection, bodies)
        connection.executemany("UPDATE entries SET body = ? WHERE sequence = ?", stored)
        run_in_file(connection, f"UPDATE answers SET label = 1{score} WHERE query_id = 1")

    account = life.account(change)
    assert account is not None
    is_whole = life.name == "earlier"  # so that its old hash does not fit its old body
    expected = "entry 6 does not have the hash" if is_whole else "the checkpoint at entry"
    assert account.startswith(expected)


def forge(connection: sqlite3.Connection, bodies: dict[tuple[int, int], str]) -> None:
    """Change the first answer's label, and make every hash anew."""
    rows = connection.execute(
        "SELECT sequence, kind, version FROM entries ORDER BY sequence"
    ).fetchall()
    previous, is_changed = "0" * 64, False
    for sequence, kind, version in rows:
        text = body = bodies[1, sequence]
        if not is_changed and '"labels":[0' in body:
            text, is_changed = body.replace('"labels":[0', '"labels":[1', 1), True
            if kind == "ScoresReleased":
                text = text.replace('"bins":[3', '"bins":[8', 1)
        hash_ = entry_hash(
            previous_hash=previous, sequence=sequence, kind=kind, version=version, body=text
        )
        connection.execute(
            "UPDATE entries SET body = ?, hash = ? WHERE sequence = ?", (text, hash_, sequence)
        )
        previous = hash_
    assert is_changed


@pytest.mark.parametrize("life", OWN_TRIGGERS, indirect=True)
@pytest.mark.parametrize("how", ["dropped", "weakened", "narrowed"])
def test_any_trigger_dropped_or_altered_is_named(life: Life, how: str) -> None:
    """Each trigger that is gone, does nothing, or watches less, is told by its table."""
    for number, statement in enumerate(life.triggers):
        others = [each for each in life.triggers if each != statement]
        joined = "AND" if " WHEN " in statement else "WHEN"
        altered = {
            "dropped": [],
            "weakened": [re.sub(r"SELECT RAISE\(.*\);|INSERT INTO .*\);", "SELECT 1;", statement)],
            "narrowed": [statement.replace(" BEGIN ", f" {joined} 0 BEGIN ")],
        }[how]
        changed = Life(life.name, life.path, (*others, *altered), life.entry_count)
        account = changed.account(lambda _: None)
        assert account is not None, number
        assert account.endswith("or it was altered")


def test_a_trigger_of_somebody_else_is_named(life: Life) -> None:
    """One more trigger, which may do anything, is told by its name."""
    own = "CREATE TRIGGER extra AFTER INSERT ON answers BEGIN SELECT 1; END"
    account = life.account(lambda at: at.execute(own))
    assert account == "the database has a trigger that is not the ledger's: extra"
