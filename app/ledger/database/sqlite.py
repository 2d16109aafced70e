"""SQLite as a ledger's database: every part that differs from PostgreSQL.

The database is in WAL mode with ``synchronous=FULL``, so a commit returns after its bytes are on
disk. The driver begins no transaction by itself. So ``BEGIN IMMEDIATE`` takes the write lock before
the first read, and a commit outside a transaction is an error.

The module also checks the triggers of the tables, which refuse changed and deleted rows, and the
types of stored values. SQLite accepts a value of any type in any column and a trigger under any
name, so both are compared with those that the revisions in ``migrations/`` created.
"""

# ruff: noqa: S608 -- the statements are made of the names of our own tables

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from sqlalchemy import Boolean, Connection, Engine, LargeBinary, String, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from app.errors import ConfigurationError, InvariantError
from app.ledger.database.driver import fetch_all
from app.ledger.database.tables import (
    ANSWERS_INDEX,
    ENTRIES_INDEX,
    INSERT_ONLY,
    REVISION,
    REVISION_TABLE,
    metadata,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Column, Connection

Version: TypeAlias = tuple[object, object]
"""A connection of the driver, and SQLite's number for what others committed."""

URL_KEY: Final = "ledger.url"
BUSY_TIMEOUT_SECONDS: Final = 3.0
"""How long a transaction waits for another's lock before it is refused."""

READERS_MAX: Final = 8
"""Connections that read at once; a further one waits."""

WRITER_OPTIONS: Final = ("cache_size=-65536", "wal_autocheckpoint=4000", "secure_delete=ON")
"""64 MB of pages, filled as they are needed, and a log of 16 MB before it is brought in.

Blocks of keys, and idempotency keys, come in the order of digests, so to speak in none: with
SQLite's own 2 MB and 4 MB more of their pages are read and written again.

What is deleted is overwritten with zeros: keys that move into blocks, and what generations leave.
"""

BEGIN_WRITING: Final = "BEGIN IMMEDIATE"
"""Takes the write lock before the first read."""

OWNER_ONLY: Final = 0o600
_TURNED_AWAY_SECONDS: Final = 0.005
_DRIVERS: Final = ("sqlite", "sqlite+pysqlite")


def database_path(url: str) -> Path:
    """Return the path of the SQLite file at a ledger's address.

    Raises:
        ConfigurationError: the address is malformed, or names another kind of database, or a
            database in memory, which would not outlive the process.

    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigurationError(URL_KEY, "is no address like sqlite:///conclave.db") from None
    if parsed.drivername not in _DRIVERS:
        raise ConfigurationError(
            URL_KEY,
            f"a ledger is kept in sqlite:/// or postgresql+psycopg://, not in {parsed.drivername}",
        )
    if parsed.query or parsed.host:
        raise ConfigurationError(URL_KEY, "a sqlite:/// address has a path and nothing else")
    if parsed.database in (None, "", ":memory:"):
        raise ConfigurationError(
            URL_KEY, "a ledger in memory would forget what it charged; name a file"
        )
    return Path(str(parsed.database))


def create_owner_only(path: Path) -> None:
    """Create a file if it is missing, and make it accessible to its owner only.

    SQLite gives its further files (``-wal``, ``-shm``) the same access rights.

    Raises:
        OSError: the file cannot be created, or other users can access it.

    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    try:
        os.fchmod(descriptor, OWNER_ONLY)
    finally:
        os.close(descriptor)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").chmod(OWNER_ONLY)


def writing_engine(path: Path) -> Engine:
    """Return the SQLAlchemy engine for writing; its transactions begin with the write lock."""

    def connect() -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        connection = _connect(uri, "synchronous=FULL", *WRITER_OPTIONS)
        with ExitStack() as stack:
            stack.callback(connection.close)
            _keep_a_write_ahead_log(connection)
            stack.pop_all()
        return connection

    return _engine(connect, begin=BEGIN_WRITING, pool_size=1)


def reading_engine(path: Path) -> Engine:
    """Return the SQLAlchemy engine for reading, which cannot write."""

    def connect() -> sqlite3.Connection:
        return _connect(_reading_uri(path.absolute()), "query_only=ON")

    return _engine(connect, begin="BEGIN", pool_size=READERS_MAX)


def create_tables(connection: Connection) -> None:
    """Create the tables, indexes and triggers of the newest revision in an empty database.

    The result is equal to that of all revisions in ``migrations/``, one after the other, which
    take a third of the time of an opening.

    Args:
        connection: a connection inside a transaction with the write lock.

    """
    metadata.create_all(connection, checkfirst=False)
    for _, trigger in _protections().values():
        connection.exec_driver_sql(trigger)
    connection.exec_driver_sql(_CREATE_REVISION_TABLE)
    connection.exec_driver_sql(f"INSERT INTO {REVISION_TABLE} VALUES ('{REVISION}')")


def structural_fault(connection: Connection) -> str | None:
    """Return a fault that SQLite finds in its own file, or None."""
    found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    return None if found == "ok" else str(found)


def version_of(connection: Connection) -> Version:
    """Return a value that changes with every commit of another connection.

    Args:
        connection: a connection inside a transaction.

    """
    ((number,),) = fetch_all(connection, "PRAGMA data_version")
    return connection.connection.dbapi_connection, number


def _reading_uri(path: Path) -> str:
    """Return the address to read a file by.

    Where the file may be written it is opened so, and every statement that
    writes is refused: only such a connection tidies up the files beside it.
    """
    uri = path.as_uri()
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return f"{uri}?mode=rw"
    if os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists():
        return f"{uri}?mode=ro"
    # A file with a write-ahead log needs files beside it even to be read,
    # unless it is promised that nobody writes; on read-only media nobody does.
    return f"{uri}?mode=ro&immutable=1"


def _connect(
    uri: str, *options: str, factory: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri,
        uri=True,
        factory=factory,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    # What is no text any more shows in what it is compared with, instead of in the driver.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    with ExitStack() as stack:
        stack.callback(connection.close)
        for option in ("foreign_keys=ON", "recursive_triggers=ON", *options):
            connection.execute(f"PRAGMA {option}")
        stack.pop_all()
    return connection


def _keep_a_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Turn the file to WAL, once for all who open it.

    Where several turn a new file at once, SQLite refuses all but one without
    waiting for it, whatever the time-out: two that waited would wait for each other.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_TURNED_AWAY_SECONDS)
        else:
            return


def _engine(connect: Callable[[], sqlite3.Connection], *, begin: str, pool_size: int) -> Engine:
    engine = create_engine(
        "sqlite+pysqlite://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_SECONDS,
        hide_parameters=True,
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    @event.listens_for(engine, "commit")
    def _commit(connection: Connection) -> None:
        connection.exec_driver_sql("COMMIT")

    return engine


def copy_into(source: Connection, path: Path) -> None:
    """Copy an SQLite database, as of one moment, to an empty file while others may write.

    Raises:
        sqlite3.Error: the database cannot be read, or the file cannot be written.

    """
    driver = source.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise InvariantError("a ledger in SQLite is read by its own driver")
    with closing(sqlite3.connect(path)) as target:
        driver.backup(target)


def companions(path: Path) -> list[Path]:
    """Return the paths of an SQLite database's log and journal files, existing or not."""
    return [Path(f"{path}{suffix}") for suffix in ("-wal", "-shm", "-journal")]


def refuse_companions(path: Path) -> None:
    """Raise an error if log files of another database lie at the path of a new ledger.

    Raises:
        ConfigurationError: there are such files.

    """
    for companion in companions(path):
        if companion.exists():
            problem = "is left of a ledger that was there, and would spoil another; move it away"
            raise ConfigurationError(URL_KEY, f"{companion} {problem}")


_CREATE_REVISION_TABLE: Final = (
    f"CREATE TABLE IF NOT EXISTS {REVISION_TABLE} ( version_num VARCHAR(32) NOT NULL, "
    f"CONSTRAINT {REVISION_TABLE}_pkc PRIMARY KEY (version_num) )"
)
_NUMBERED: Final = {"entries": "sequence"}
_KEYED: Final = {
    "idempotency_keys": ("release_number", "key_digest"),
    "private_state": ("release_number", "name"),
    "database_secret": ("number",),
    "checkpoints": ("release_number", "sequence"),
    "key_counts": ("release_number", "name"),
    "newest_answers": ("release_number", "vector_digest"),
    "answer_groups": ("rowid",),
}

_ONLY_GROW: Final = (
    "CREATE TRIGGER key_counts_only_grow BEFORE UPDATE ON key_counts "
    "WHEN NEW.release_number <> OLD.release_number OR NEW.name <> OLD.name "
    "OR NEW.answered < OLD.answered OR NEW.unstable < OLD.unstable "
    "BEGIN SELECT RAISE(ABORT, 'key_counts: counts only grow'); END"
)
_GROUPS_FOLLOW: Final = (
    "CREATE TRIGGER answer_groups_follow_without_gaps BEFORE INSERT ON answer_groups "
    "WHEN NEW.first_query_id <> 1 + COALESCE((SELECT MAX(last_query_id) FROM answer_groups "
    "WHERE release_number = NEW.release_number), (SELECT MAX(query_id) FROM answers "
    "WHERE release_number = NEW.release_number), 0) "
    "BEGIN SELECT RAISE(ABORT, 'answer_groups: numbers follow without gaps'); END"
)
_INDEXES: Final = {
    ANSWERS_INDEX: ("answers", "(vector_digest, release_number) WHERE qualifier IS NULL"),
    ENTRIES_INDEX: ("entries", "(release_number, sequence)"),
}


def protection_fault(connection: Connection) -> str | None:
    """Return a fault of the protecting triggers or of an index, or None.

    A fault is a trigger that is missing, altered or unknown.
    """
    indexes = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'")
    texts = dict(tuple(row) for row in indexes)
    for name, (table, columns) in _INDEXES.items():
        if texts.get(name) != f"CREATE UNIQUE INDEX {name} ON {table} {columns}":
            return f"the table {table} has lost the index {name}, or it was altered"
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    found = dict(tuple(row) for row in rows)
    for name, (table, sql) in _protections().items():
        if found.pop(name, None) != sql:
            return f"the table {table} has lost the trigger {name}, or it was altered"
    if found:
        return f"the database has a trigger that is not the ledger's: {min(found)}"
    return None


@contextmanager
def unprotected(connection: Connection, table: str) -> Iterator[None]:
    """Drop the triggers of a table for a ``with`` block, to change rows; then create them again."""
    found = f"SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'"
    triggers = [tuple(row) for row in connection.exec_driver_sql(found)]
    for name, _ in triggers:
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    yield
    for _, statement in triggers:
        connection.exec_driver_sql(statement)


def _protections() -> dict[str, tuple[str, str]]:
    """Return every trigger by its name: its table and its text."""
    expected = {
        "key_counts_only_grow": ("key_counts", _ONLY_GROW),
        "answer_groups_follow_without_gaps": ("answer_groups", _GROUPS_FOLLOW),
    }
    name = "answers_refuse_insert"
    expected[name] = ("answers", _refusing(name, "INSERT ON answers", "answers", "added"))
    name = "newest_answers_refuse_update"
    event = "UPDATE ON newest_answers"
    expected[name] = ("newest_answers", _refusing(name, event, "newest_answers", "changed"))
    name = "key_counts_refuse_delete"
    expected[name] = (
        "key_counts",
        _refusing(name, "DELETE ON key_counts", "key_counts", "changed"),
    )
    for table in INSERT_ONLY:
        for verb in ("UPDATE", "DELETE"):
            name = f"{table}_refuse_{verb.lower()}"
            expected[name] = (table, _refusing(name, f"{verb} ON {table}", table, "changed"))
    for table, number in _NUMBERED.items():
        name = f"{table}_follow_without_gaps"
        newest = f"(SELECT MAX({number}) FROM {table} WHERE release_number = NEW.release_number)"
        event = f"INSERT ON {table} WHEN NEW.{number} <> 1 + COALESCE({newest}, 0)"
        text = (
            f"CREATE TRIGGER {name} BEFORE {event} "
            f"BEGIN SELECT RAISE(ABORT, '{table}: numbers follow without gaps'); END"
        )
        expected[name] = (table, text)
    for table, key in _KEYED.items():
        name = f"{table}_refuse_replacement"
        same = " AND ".join(f"{column} = NEW.{column}" for column in key)
        event = f"INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})"
        expected[name] = (table, _refusing(name, event, table, "replaced"))
    return expected


def _refusing(name: str, event: str, table: str, verb: str) -> str:
    return (
        f"CREATE TRIGGER {name} BEFORE {event} "
        f"BEGIN SELECT RAISE(ABORT, '{table}: rows are never {verb}'); END"
    )


def fits(column: Column[object]) -> str:
    """Return an SQL condition that a column's values have the right type."""
    name, kind = f'"{column.name}"', column.type
    if isinstance(kind, LargeBinary):
        condition = f"typeof({name}) = 'blob'"
        if kind.length is not None:
            condition += f" AND length({name}) = {kind.length}"
    elif isinstance(kind, String):
        condition = f"typeof({name}) = 'text'"
    else:
        condition = f"typeof({name}) = 'integer'"
        if isinstance(kind, Boolean):
            condition += f" AND {name} IN (0, 1)"
    return f"{name} IS NULL OR ({condition})" if column.nullable else condition
