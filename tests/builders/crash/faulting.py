"""A connection of SQLite's driver that fails where it is told to, with the real one underneath."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from app.ledger.database import sqlite
from app.ledger.database.driver import KeptWriting

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ledger.ledger import Ledger

    Observer = Callable[[sqlite3.Connection, str], None]

DISK_ERROR = "disk I/O error"


def nothing(connection: sqlite3.Connection, statement: str) -> None:
    """Let a statement be."""


class ObservedCursor(sqlite3.Cursor):
    """Tells its connection's observers of every statement."""

    def execute(self, statement: str, values: Any = (), /) -> Self:
        """Run a statement between the two observers, either of which may raise."""
        connection = self.connection
        if not isinstance(connection, ObservedConnection):
            raise TypeError("a cursor of an observed connection")
        connection.before(connection, statement)
        super().execute(statement, values)
        connection.after(connection, statement)
        return self


class ObservedConnection(sqlite3.Connection):
    """A connection whose statements are observed, whichever way they are given to it.

    Attributes:
        before: called with the connection and a statement that is about to run.
        after: the same of one that has run.

    """

    before: Observer = staticmethod(nothing)
    after: Observer = staticmethod(nothing)

    def cursor(self, factory: Any = ObservedCursor) -> Any:
        """Return a cursor that is observed."""
        return super().cursor(factory)

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """Run a statement by such a cursor."""
        cursor: sqlite3.Cursor = self.cursor().execute(statement, values)
        return cursor


def observed(before: Observer = nothing, after: Observer = nothing) -> type[ObservedConnection]:
    """Return a class of connections with these observers."""

    class Observed(ObservedConnection):
        """Observed by those."""

    Observed.before = staticmethod(before)
    Observed.after = staticmethod(after)
    return Observed


def connecting(factory: type[sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    """Return what goes into the place of ``app.ledger.database.sqlite._connect``.

    Writer and readers take it; only the writer begins with ``BEGIN IMMEDIATE`` and commits.
    """
    return partial(sqlite._connect, factory=factory)


def refuse_on_disk() -> None:
    """Raise what the driver raises where the disk fails."""
    raise sqlite3.OperationalError(DISK_ERROR)


def writers_connection(ledger: Ledger) -> Any:
    """Return the driver's connection that writes, once there was a transaction."""
    writing = ledger._database.writing
    if not isinstance(writing, KeptWriting) or writing._kept is None:
        raise TypeError("a file that has been written to")
    return writing._kept.connection.driver_connection


def set_pragma(ledger: Ledger, name: str, value: int) -> None:
    """Set an option of that connection."""
    writers_connection(ledger).execute(f"PRAGMA {name}={value}")
