"""The interface of the databases that can hold a ledger.

A release draws its published classifier, and its statistics table (noisy numbers of rows), at
random and only once. If two processes drew at the same time, the faster result would be published,
so a lock lets one process at a time draw.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.errors import ConfigurationError
from app.ledger.database import postgresql, sqlite
from app.ledger.database.driver import KeptWriting
from app.ledger.database.locks import turn_to_draw

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from app.ledger.database.driver import Writing


class LedgerDatabase(Protocol):
    """A database at an address, with or without a ledger."""

    @property
    def place(self) -> str:
        """The database's location as shown to operators, without a password."""

    @property
    def file(self) -> Path | None:
        """The database's file; None for a database on a server."""

    @property
    def is_shared(self) -> bool:
        """Whether several servers may have the database open at once."""

    @property
    def is_there(self) -> bool:
        """Whether the database exists, as far as that is known without reading it."""

    @property
    def is_empty(self) -> bool:
        """Whether the database is known to be empty without reading it."""

    def create(self) -> None:
        """Create the empty database, unless the operator has to do so.

        Raises:
            OSError: the database cannot be created.

        """

    def create_tables(self, connection: Connection) -> bool:
        """Create the newest tables in an empty database, without going through every revision.

        Returns:
            Whether they were created; if not, the revisions create them.

        """

    def writing_engine(self) -> Engine:
        """Return the SQLAlchemy engine for writing; its transactions begin with the write lock."""

    def writing(self, engine: Engine) -> Writing:
        """Return the object that begins and ends write transactions on an engine."""

    def reading_engine(self) -> Engine:
        """Return the engine for reading; each transaction sees the database at one moment."""

    def messaging_engine(self) -> Engine | None:
        """Return the engine for messages between servers; None if only one server is possible."""

    def turn_to_draw(self, release_number: int) -> AbstractContextManager[Callable[[], bool]]:
        """Hold the lock that lets only one process draw the classifier or the statistics table.

        Yields a function that returns whether this process still has the lock.

        Raises:
            LedgerUnavailableError: the database cannot be reached, or another process has the lock
                for too long.

        """


@dataclass(frozen=True, slots=True)
class SqliteDatabase:
    """A ledger's database in an SQLite file.

    Attributes:
        path: the path of the file; the names of SQLite's further files next to it begin with this
            file's name.

    """

    path: Path

    @property
    def place(self) -> str:
        """The path of the SQLite file."""
        return str(self.path)

    @property
    def file(self) -> Path:
        """The path of the SQLite file, with symbolic links resolved."""
        return self.path.resolve()

    @property
    def is_shared(self) -> bool:
        """False: only one server at a time may use an SQLite file."""
        return False

    @property
    def is_there(self) -> bool:
        """Whether the SQLite file exists."""
        return self.path.is_file()

    @property
    def is_empty(self) -> bool:
        """Whether the SQLite file is missing or has no bytes."""
        return not self.path.exists() or self.path.stat().st_size == 0

    def create(self) -> None:
        """Create the SQLite file if it is missing, readable by its owner only.

        Raises:
            OSError: the file cannot be created, or other users can read it.

        """
        sqlite.create_owner_only(self.path)

    def create_tables(self, connection: Connection) -> bool:
        """Create the newest tables in an empty SQLite database; return True."""
        sqlite.create_tables(connection)
        return True

    def writing_engine(self) -> Engine:
        """Return the SQLAlchemy engine for writing to the SQLite file."""
        return sqlite.writing_engine(self.path)

    def writing(self, engine: Engine) -> Writing:
        """Return write transactions on one database connection that is kept open."""
        return KeptWriting(engine, sqlite.BEGIN_WRITING)

    def reading_engine(self) -> Engine:
        """Return the SQLAlchemy engine for reading the SQLite file."""
        return sqlite.reading_engine(self.path)

    def messaging_engine(self) -> None:
        """Return None, since only one server may use an SQLite file."""

    def turn_to_draw(self, release_number: int) -> AbstractContextManager[Callable[[], bool]]:
        """Hold the lock that lets only one process draw the classifier or the statistics table."""
        return turn_to_draw(self.path, release_number)


def ledger_database(url: str) -> LedgerDatabase:
    """Return the database at a ledger's address.

    Raises:
        ConfigurationError: the address is malformed, or names a database of another
            kind, or one that does not outlive the process.

    """
    if is_shared(url):
        return postgresql.postgresql_database(url)
    return SqliteDatabase(sqlite.database_path(url))


def turn_to_open(url: str, release_name: str) -> AbstractContextManager[None]:
    """Hold the lock that lets only one server open a release; the others then load it.

    Raises:
        ConfigurationError: the database cannot be reached.

    """
    return postgresql.turn_to_open(url, release_name) if is_shared(url) else nullcontext()


def grant_serving(url: str, role: str) -> None:
    """Grant a database role the rights that a server needs to read and write a ledger.

    Raises:
        ConfigurationError: the database has no roles, or refuses.

    """
    if not is_shared(url):
        raise ConfigurationError("--grant", "a ledger in a file has no roles; leave it out")
    postgresql.grant_serving(url, role)


def is_shared(url: str) -> bool:
    """Return whether several servers may use the ledger at an address at once."""
    return url.partition("://")[0] == postgresql.DRIVER
