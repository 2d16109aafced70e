"""Ledgers as earlier revisions wrote them: their migrations, and their rows as SQL text.

``histories/REVISION.sql`` holds the rows of a ledger in the middle of its life, in the
columns of that revision, and is never written anew: its hashes are those of its day.
A revision gets its history when the next one comes, from the code that wrote it::

    FOLDER=tests/builders/ledger/histories
    python -m tests.builders.ledger.old_ledgers REVISION > $FOLDER/REVISION.sql
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.ledger.api_key_counts import KeyCount
from app.ledger.database.open_database import MIGRATIONS
from app.ledger.database.sqlite import create_owner_only, writing_engine
from app.ledger.entries import checkpoint
from tests.builders.ledger.releases import (
    answer,
    create,
    middle_of_life,
    open_release,
    publish,
    record,
    scored,
)
from tests.builders.ledger.single_answers import READ, parted
from tests.builders.ledger.whole_bodies import whole_bodies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from app.ledger.ledger import Ledger

LIFE_OF_SCORES = {"answers.output": '"score"'}
HISTORIES = Path(__file__).with_name("histories")
FOLLOWS = "newest_answers"  # which triggers of the revisions before 0010 fill with the answers
GROUPED, SHORT = "0010", "0011"
READ_ENTRIES = "SELECT release_number, sequence, kind, version, hash FROM whole.entries"
INSERT_ENTRY = (
    "INSERT INTO main.entries (release_number, sequence, kind, version, body, hash) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
OWN_TABLES = ("sqlite_master", "alembic_version")


def configuration() -> Config:
    """Return Alembic's configuration for the ledger's revisions."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def revisions() -> list[str]:
    """Return every revision, oldest first."""
    walked = ScriptDirectory.from_config(configuration()).walk_revisions()
    return [script.revision for script in walked][::-1]


def migrate_by_hand(path: Path, revision: str) -> None:
    """Bring a new database to a revision."""
    config = configuration()
    create_owner_only(path)
    engine = writing_engine(path)
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    finally:
        engine.dispose()


def write_old_ledger(path: Path, revision: str) -> None:
    """Write the ledger that a revision's history holds, by that revision's own tables."""
    migrate_by_hand(path, revision)
    statements = (HISTORIES / f"{revision}.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"BEGIN;\n{statements}\nCOMMIT;")


def copy_down(source: Path, target: Path, revision: str) -> None:
    """Write the rows of a ledger into a new one of an earlier revision, as far as it has them."""
    migrate_by_hand(target, revision)
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("ATTACH ? AS whole", (str(source),))
        for table, columns in tables_of(connection).items():
            if table == FOLLOWS and revision < GROUPED:
                continue
            names = ", ".join(columns)
            if table == "answers" and revision < GROUPED:
                _part_answers(connection, columns)
                continue
            if table == "entries" and revision < SHORT:
                connection.executemany(INSERT_ENTRY, _whole_rows(source, connection))
                continue
            connection.execute(f"INSERT INTO main.{table} SELECT {names} FROM whole.{table}")  # noqa: S608 -- names of ours
        connection.commit()


def _whole_rows(source: Path, connection: sqlite3.Connection) -> Iterator[tuple[object, ...]]:
    """Yield the row of each entry, with its whole body."""
    bodies = whole_bodies(source)
    for number, sequence, kind, version, hash_ in connection.execute(READ_ENTRIES).fetchall():
        yield number, sequence, kind, version, bodies[number, sequence], hash_


def _part_answers(connection: sqlite3.Connection, columns: list[str]) -> None:
    """Insert the answers of groups, as far as the columns go, a row each."""
    marks = ", ".join(f":{name}" for name in columns)
    groups = connection.execute(READ.replace("answer_groups", "whole.answer_groups"))
    rows = [row._asdict() for row in parted(groups)]
    connection.executemany(f"INSERT INTO answers ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608 -- names of ours


def tables_of(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of each of the ledger's tables, entries before what refers to them."""
    names = connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")
    found = sorted((name for (name,) in names), key=lambda name: (name != "entries", name))
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA main.table_info({name})")]
        for name in found
        if name not in OWN_TABLES
    }


def rows_of(path: Path, columns: dict[str, list[str]]) -> dict[str, list[tuple[object, ...]]]:
    """Return what the given columns of each table hold, in the order of their keys."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(
                f"SELECT {', '.join(names)} FROM {table} ORDER BY {names[0]}, {names[1]}"  # noqa: S608 -- as above
            ).fetchall()
            for table, names in columns.items()
        }


def published(path: Path) -> Ledger:
    """Write a life that has published its classifier between two answers."""
    ledger = middle_of_life(path)
    publish(ledger)
    return ledger


def published_with_checkpoints(path: Path) -> Ledger:
    """Write the same life with a checkpoint every third entry."""
    with patch.object(checkpoint, "CHECKPOINT_ENTRIES", 3):
        return published(path)


def with_scores(path: Path) -> Ledger:
    """Write a life with scores of both histograms, and an unstable one in fine bins."""
    ledger = create(path)
    open_release(ledger, cutoff=9, parameters=LIFE_OF_SCORES)
    with ledger.transaction() as transaction:
        rows = [scored(ledger, 1), scored(ledger, 2, shifted=True, units=1)]
        transaction.record_answers(rows)
        transaction.record_key(ledger.digests.of_key("key"), rows[1].vector_digest)
    record(ledger, [scored(ledger, 3, released=None, units=2, precision=1000)])
    return ledger


def with_key_counts(path: Path) -> Ledger:
    """Write a life with checkpoints, and with what two keys of the server were given."""
    ledger = published_with_checkpoints(path)
    with ledger.transaction() as transaction:
        transaction.keep_key_counts({"web": KeyCount(4, 1), "desk": KeyCount(2)})
    return ledger


def going_on(path: Path) -> Ledger:
    """Write a ledger whose first answers have a row each, and the later ones are in groups."""
    write_old_ledger(path, "0009")
    ledger = create(path)
    for count in (3, 2):
        first = ledger.read_state().answered + 1
        record(ledger, [answer(ledger, number) for number in range(first, first + count)])
    return ledger


LIVES = {
    "0001": middle_of_life,
    "0002": published,
    "0003": with_scores,
    "0004": published_with_checkpoints,
    "0005": published_with_checkpoints,
    "0006": with_key_counts,
    "0007": with_key_counts,
    "0008": with_key_counts,
    "0009": with_key_counts,
    "0010": with_key_counts,
}


def history(revision: str) -> Iterable[str]:
    """Yield the statements that insert the life of a revision in its columns."""
    live = LIVES[revision]
    with tempfile.TemporaryDirectory() as folder:
        whole, old = Path(folder) / "whole.db", Path(folder) / "old.db"
        live(whole).close()
        copy_down(whole, old, revision)
        with closing(sqlite3.connect(old)) as connection:
            for table, columns in tables_of(connection).items():
                if table == FOLLOWS and revision < GROUPED:
                    continue
                quoted = " || ', ' || ".join(f"quote({name})" for name in columns)
                values = connection.execute(f"SELECT {quoted} FROM {table}")  # noqa: S608 -- as above
                for (row,) in values.fetchall():
                    yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({row});"  # noqa: S608 -- as above


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in history(sys.argv[1]))
