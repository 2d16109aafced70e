"""Opening of a ledger's database: its file, its schema revision, its secret.

A revision is a version of the database's tables; ``migrations/`` has all of them. The secret is the
key of the keyed hashes by which stored values are recognised.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, insert, inspect, text
from sqlalchemy.exc import DatabaseError, IntegrityError, SQLAlchemyError

import app
from app.errors import (
    ConclaveError,
    ConfigurationError,
    LedgerCorruptError,
    LedgerUnavailableError,
    NoLedgerError,
)
from app.ledger.database.database import LedgerDatabase, ledger_database
from app.ledger.database.driver import DAMAGED, is_damage
from app.ledger.database.sqlite import URL_KEY
from app.ledger.database.statements import read_database_secret
from app.ledger.database.tables import (
    ENTRIES_INDEX,
    INDEX_REVISION,
    INSERT_ONLY,
    REVISION,
    REVISION_TABLE,
    TABLES_REVISION,
    database_secret,
    entries,
    metadata,
)
from app.ledger.entries.digests import SECRET_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from app.ledger.database.driver import Writing
    from app.noise.source import NoiseSource

MIGRATIONS: Final = Path(app.__file__).parent.parent / "migrations"
"""The revisions lie beside the package, in a checkout and in an installation."""

UNFINISHED: Final = "unfinished copy"
"""In place of a revision: the database is what a copy is being written to, and no ledger."""

COPIED_TO: Final = "a ledger was copied here since this was opened, or is being; start again"
_REVISION: Final = re.compile(r"[0-9]{4}")
_REVISION_FOUND: Final = text(f"SELECT version_num FROM {REVISION_TABLE}")  # noqa: S608 -- a constant


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """The SQLAlchemy engines of an open ledger database, and the database's secret key.

    Attributes:
        writer: the engine for writing; None if the database was opened for reading.
        writing: the object that begins and ends write transactions; None if the database was opened
            for reading.
        readers: the engine for connections that cannot write.
        secret: the database's secret, 32 bytes.
        is_shared: whether other servers may write to the database too.
        turn_to_draw: a function that holds a lock for a ``with`` block, in which a release's
            classifier or statistics table is drawn. No other process can draw meanwhile. The
            argument is the release's number; the block gets a function that returns whether the
            lock is still held.
        file: the path of the database's file; None if the database is on a server.
        messaging: the engine for messages between servers; None for a file.

    """

    writer: Engine | None
    writing: Writing | None
    readers: Engine
    secret: bytes
    is_shared: bool
    turn_to_draw: Callable[[int], AbstractContextManager[Callable[[], bool]]]
    file: Path | None
    messaging: Engine | None = None

    def close(self) -> None:
        """Close every database connection."""
        self.readers.dispose()
        if self.writing is not None:
            self.writing.close()
        if self.writer is not None:
            self.writer.dispose()


def open_database(
    url: str, *, create: bool, noise: NoiseSource, secret: bytes | None = None
) -> OpenDatabase:
    """Open a ledger's database; create or migrate it if ``create`` allows.

    Args:
        url: the address of the database.
        create: whether the database is opened for writing, and created if it is missing.
        noise: the source of randomness, for the secret of a new database.
        secret: the secret of a new database, 32 bytes, if it was drawn already; otherwise None.

    Raises:
        ConfigurationError: the database cannot be opened, or is not a ledger.
        LedgerCorruptError: the file is not a readable database, or the database has lost its
            secret.

    """
    database = ledger_database(url)
    if create:
        return _open_to_write(database, noise, secret)
    return _open_to_read(database)


def _open_to_write(
    database: LedgerDatabase, noise: NoiseSource, new_secret: bytes | None
) -> OpenDatabase:
    try:
        if not database.is_empty:
            with peeking(database) as found:  # another program's is left alone, its mode included
                read_revision(database, found)
        database.create()
    except OSError as error:
        raise cannot_open(database, error.strerror or "the system refuses") from None
    writer = database.writing_engine()
    try:
        with writer.begin() as connection:
            secret = _migrated(database, connection, noise, new_secret)
    except (SQLAlchemyError, ValueError) as error:
        writer.dispose()
        raise cannot_open(database, refusal_reason(error)) from None
    except ConclaveError:
        writer.dispose()
        raise
    readers = database.reading_engine()
    writing, turn_to_draw = database.writing(writer), database.turn_to_draw
    is_shared, file = database.is_shared, database.file
    messaging = database.messaging_engine()
    return OpenDatabase(writer, writing, readers, secret, is_shared, turn_to_draw, file, messaging)


@contextmanager
def peeking(database: LedgerDatabase) -> Iterator[Connection]:
    """Yield a read-only connection to an existing database of a ledger.

    Raises:
        ConfigurationError: the database cannot be opened.

    """
    readers = database.reading_engine()
    try:
        with readers.connect() as connection:
            yield connection
    except (SQLAlchemyError, ValueError) as error:
        raise cannot_open(database, refusal_reason(error)) from None
    finally:
        readers.dispose()


def _open_to_read(database: LedgerDatabase) -> OpenDatabase:
    _require(database)
    readers = database.reading_engine()
    try:
        with readers.connect() as connection:
            revision = read_revision(database, connection)
            _check_revision(database, revision)
            secret = _secret(connection)
            is_shared, turn_to_draw = database.is_shared, database.turn_to_draw
            file = database.file
            return OpenDatabase(None, None, readers, secret, is_shared, turn_to_draw, file)
    except (SQLAlchemyError, ValueError) as error:
        readers.dispose()
        raise _unreadable(database, error) from None
    except ConclaveError:
        readers.dispose()
        raise


@contextmanager
def reading(database: LedgerDatabase) -> Iterator[Connection]:
    """Yield a connection that reads a ledger with any revision of its tables.

    Raises:
        NoLedgerError: there is no ledger.
        ConfigurationError: the database cannot be opened.
        LedgerCorruptError: the file is not a readable database.

    """
    _require(database)
    readers = database.reading_engine()
    try:
        with _connected(database, readers) as connection:
            yield connection
    finally:
        readers.dispose()


def _require(database: LedgerDatabase) -> None:
    if not database.is_there:
        raise NoLedgerError(URL_KEY, f"there is no ledger at {database.place}")


def _connected(database: LedgerDatabase, readers: Engine) -> Connection:
    try:
        connection = readers.connect()
        with ExitStack() as stack:
            stack.callback(connection.close)
            revision = read_revision(database, connection)
            _refuse_unfinished(database, revision)
            if revision is None:
                raise NoLedgerError(URL_KEY, f"there is no ledger at {database.place} yet")
            stack.pop_all()
    except (SQLAlchemyError, ValueError) as error:
        raise _unreadable(database, error) from None
    return connection


def _migrated(
    database: LedgerDatabase,
    connection: Connection,
    noise: NoiseSource,
    new_secret: bytes | None,
) -> bytes:
    """Bring the tables to the newest revision, all in one transaction; return the secret."""
    revision = read_revision(database, connection)
    _refuse_unfinished(database, revision)
    if revision is None:
        if not database.create_tables(connection):
            _upgrade(database, connection, revision)
        secret = noise.secret(SECRET_BYTES) if new_secret is None else new_secret
        connection.execute(insert(database_secret), {"number": 1, "secret": secret})
        return secret
    if revision != REVISION:
        _upgrade(database, connection, revision)
    return _secret(connection)


def _secret(connection: Connection) -> bytes:
    secret = read_database_secret(connection)
    if secret is None:
        raise LedgerCorruptError("the database of the ledger has lost its secret")
    return secret


def _upgrade(database: LedgerDatabase, connection: Connection, revision: str | None) -> None:
    # Alembic takes long to import, and a database is rarely one that it upgrades.
    from alembic import command  # noqa: PLC0415 -- see above
    from alembic.config import Config  # noqa: PLC0415 -- see above
    from alembic.util import CommandError  # noqa: PLC0415 -- see above

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError:
        _check_revision(database, revision)
    except IntegrityError:
        raise LedgerCorruptError("the answers table holds two answers to one vector") from None


def read_revision(database: LedgerDatabase, connection: Connection) -> str | None:
    """Return the revision of the ledger's tables; None for a database without tables.

    For a database to which a copy is being written the result is ``UNFINISHED``.

    Raises:
        ConfigurationError: the database belongs to another program.
        LedgerCorruptError: the tables do not match any revision.

    """
    names = inspect(connection).get_table_names()
    if REVISION_TABLE in names:
        found: str | None = connection.scalar(_REVISION_FOUND)
        if names != [REVISION_TABLE]:
            _refuse_altered(connection, found)
        return found
    if set(names) & set(INSERT_ONLY):
        raise LedgerCorruptError(DAMAGED)
    if names:
        raise ConfigurationError(URL_KEY, f"{database.place} is a database, and no ledger")
    return None


def _refuse_altered(connection: Connection, revision: str | None) -> None:
    """Refuse a revision that is gone, is none, or is older than the tables.

    One that is newer than this version knows is another version's.

    Raises:
        LedgerCorruptError: it is altered.

    """
    if revision is None:
        raise LedgerCorruptError("the database of the ledger has lost the revision of its tables")
    if revision == UNFINISHED:
        return
    if not _REVISION.fullmatch(revision):
        raise LedgerCorruptError("the database of the ledger has an altered revision of its tables")
    if revision < TABLES_REVISION and _has_newer_tables(connection, revision):
        raise LedgerCorruptError(
            f"the database of the ledger says revision {revision}, and has the tables of {REVISION}"
        )


def _has_newer_tables(connection: Connection, revision: str) -> bool:
    """Return whether the tables have what a later revision than that added last."""
    inspector = inspect(connection)
    names = set(inspector.get_table_names())
    if revision < INDEX_REVISION and entries.name in names:  # in SQLite alone
        found = inspector.get_indexes(entries.name)
        if any(index["name"] == ENTRIES_INDEX for index in found):
            return True
    return all(
        name in names
        and {column["name"] for column in inspector.get_columns(name)} >= set(table.columns.keys())
        for name, table in metadata.tables.items()
    )


def _refuse_unfinished(database: LedgerDatabase, revision: str | None) -> None:
    if revision == UNFINISHED:
        raise ConfigurationError(
            URL_KEY,
            f"{database.place} is what a ledger was being copied to, and holds none yet; give "
            "the same `conclave ledger copy` again",
        )


def refuse_replaced(connection: Connection, secret: bytes) -> None:
    """Raise an error if a ledger was copied to a database that had been opened as empty.

    Args:
        connection: a connection inside a transaction.
        secret: the secret of the database when it was opened, 32 bytes.

    Raises:
        LedgerUnavailableError: a ledger was copied to the database; a restart of the server opens
            this ledger.
        SQLAlchemyError: the database cannot be read.

    """
    is_reserved = connection.scalar(_REVISION_FOUND) == UNFINISHED
    if is_reserved or read_database_secret(connection) != secret:
        raise LedgerUnavailableError(COPIED_TO)


def _check_revision(database: LedgerDatabase, revision: str | None) -> None:
    _refuse_unfinished(database, revision)
    if revision is None:
        raise NoLedgerError(URL_KEY, f"there is no ledger at {database.place} yet")
    if revision != REVISION:
        raise ConfigurationError(
            URL_KEY,
            f"{database.place} has tables of revision {revision}, and this version "
            f"knows {REVISION}; run the version that wrote it, or serve it once to migrate it",
        )


def refusal_reason(error: SQLAlchemyError | ValueError) -> str:
    """Return a database's error as one line of text, without values of rows."""
    if isinstance(error, DatabaseError):
        return str(error.orig).splitlines()[0]
    # A damaged file can make the driver stumble over its own error's text.
    return "the file is damaged" if isinstance(error, ValueError) else "the database refuses"


def cannot_open(database: LedgerDatabase, reason: str) -> ConfigurationError:
    """Return the error for a database that cannot be opened."""
    return ConfigurationError(URL_KEY, f"cannot open {database.place}: {reason}")


def _unreadable(
    database: LedgerDatabase, error: SQLAlchemyError | ValueError
) -> ConfigurationError | LedgerCorruptError:
    """Tell a damaged file from one that cannot be opened."""
    if isinstance(error, ValueError) or is_damage(error):
        return LedgerCorruptError(DAMAGED)
    return cannot_open(database, refusal_reason(error))
