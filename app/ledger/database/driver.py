"""SQL statements sent to the database driver directly, for speed: commits and look-ups.

Each takes a few microseconds there, and SQLAlchemy's part of it took several times as
long.  Errors are the same ones.

How transactions of the one writer begin and end, by the kind of database.

What the database raises, in our own words: wrapped around the calls of the database and
nothing else, so that an error of somebody else's code inside a transaction is never taken
for one of ours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, SQLAlchemyError

from app.errors import InvariantError, LedgerCorruptError, LedgerUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from sqlalchemy import Connection, Engine

Value: TypeAlias = bytes | str | int | None
Row: TypeAlias = tuple[object, ...]


def fetch_all(connection: Connection, text: str, values: tuple[object, ...] = ()) -> Sequence[Row]:
    """Return every row that an SQL statement selects.

    Args:
        connection: inside a transaction.
        text: one statement.
        values: of its question marks.

    Raises:
        DBAPIError: what the driver raised, as SQLAlchemy would have raised it.

    """
    dialect = connection.dialect
    try:
        cursor = connection.connection.cursor()
        cursor.execute(_marked(text, dialect.paramstyle), values)
        found: object = cursor.description  # None after what finds nothing, whatever stubs say
        return [] if found is None else cursor.fetchall()
    except dialect.loaded_dbapi.Error as error:
        raise _as_raised(connection, text, error) from None


def insert_rows(
    connection: Connection,
    text: str,
    rows: Sequence[tuple[Value, ...]],
    *,
    types: tuple[str, ...] = (),
) -> None:
    """Insert rows into a table; errors are those of :func:`fetch_all`.

    Args:
        connection: inside a transaction.
        text: an ``INSERT`` of one row.
        rows: values of its question marks.
        types: what PostgreSQL calls those of the values, where there may be many rows: it
            then takes them in one message, in a quarter of the processor's time.

    """
    dialect = connection.dialect
    try:
        cursor = connection.connection.cursor()
        if types and dialect.paramstyle != "qmark":
            with cursor.copy(_copying(text)) as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)
            return
        cursor.executemany(_marked(text, dialect.paramstyle), rows)
    except dialect.loaded_dbapi.Error as error:
        raise _as_raised(connection, text, error) from None


@lru_cache(maxsize=64)
def _copying(text: str) -> str:
    """Return the statement by which PostgreSQL takes many rows of an ``INSERT``."""
    table = text.removeprefix("INSERT INTO ").partition(" VALUES ")[0]
    return f"COPY {table} FROM STDIN (FORMAT BINARY)"


@lru_cache(maxsize=256)
def _marked(text: str, style: str) -> str:
    """Return a statement with the marks that a driver knows; it has no other question marks."""
    return text if style == "qmark" else text.replace("?", "%s")


def _as_raised(connection: Connection, text: str, error: Exception) -> BaseException:
    """Return an error of the driver as SQLAlchemy would have raised it."""
    dialect = connection.dialect
    return DBAPIError.instance(
        text, None, error, dialect.loaded_dbapi.Error, hide_parameters=True, dialect=dialect
    )


def is_cut_off(connection: Connection) -> bool:
    """Return whether an error means that the database connection was ended from outside.

    A file has nobody who could.
    """
    if connection.invalidated:
        return True
    return bool(getattr(connection.connection.dbapi_connection, "closed", False))


def is_in_transaction(connection: Connection) -> bool:
    """Return whether a driver connection without autocommit has a transaction open."""
    if connection.invalidated:
        return True  # for SQLAlchemy, which is to be told of its end
    driver = connection.connection.dbapi_connection
    if connection.dialect.paramstyle == "qmark":
        return bool(getattr(driver, "in_transaction", False))
    status: int = driver.pgconn.transaction_status  # type: ignore[union-attr]  # psycopg's
    return status != _IDLE


def give_back(connection: Connection) -> None:
    """Return a connection to the pool; discard it if it cannot be rolled back."""
    try:
        connection.rollback()
    except SQLAlchemyError:
        connection.invalidate()
    connection.close()


_IDLE: Final = 0
"""PostgreSQL's state of a connection outside a transaction."""


class Writing(Protocol):
    """The interface that begins and ends write transactions, one at a time."""

    def begin(self) -> Connection:
        """Begin a transaction that holds the write lock.

        Raises:
            SQLAlchemyError: the database cannot be reached, or another holds the lock.

        """

    def commit(self, connection: Connection) -> None:
        """Commit the transaction to the disk.

        Raises:
            SQLAlchemyError: it failed, or nobody knows whether it did.

        """

    def end(self, connection: Connection) -> None:
        """Roll back uncommitted changes, and release the connection."""

    def close(self) -> None:
        """Close the kept connection, if there is one."""


def begun(engine: Engine) -> Connection:
    """Return a connection of a pool on which a transaction has begun."""
    connection = engine.connect()
    try:
        connection.begin()
    except BaseException:
        give_back(connection)
        raise
    return connection


class KeptWriting:
    """Write transactions on one connection that stays open, by the driver's own statements.

    SQLAlchemy takes all of them for one transaction that it began with the first, so that
    its statements begin none.  What it does around a transaction of its own took 60 of the
    220 microseconds of the processor that a batch of one answer took with its commit.
    """

    def __init__(self, engine: Engine, begin: str) -> None:
        """Prepare to connect at the first transaction.

        Args:
            engine: of writers; its transactions begin with the statement as well.
            begin: the statement that begins one.

        """
        self._engine = engine
        self._begin = begin
        self._kept: Connection | None = None

    def begin(self) -> Connection:
        """Begin a transaction on the connection that stays open."""
        if self._kept is None:
            self._kept = begun(self._engine)
        else:
            fetch_all(self._kept, self._begin)
        return self._kept

    def commit(self, connection: Connection) -> None:
        """Commit the transaction to the database."""
        fetch_all(connection, "COMMIT")

    def end(self, connection: Connection) -> None:
        """Roll back uncommitted changes; drop the connection if the rollback fails."""
        if not is_in_transaction(connection):
            return
        try:
            fetch_all(connection, "ROLLBACK")
        except SQLAlchemyError:
            self._kept = None
            connection.invalidate()
            give_back(connection)

    def close(self) -> None:
        """Close the connection that stays open between transactions."""
        kept, self._kept = self._kept, None
        if kept is not None:
            give_back(kept)


UNAVAILABLE: Final = "the ledger took no entry and nothing was released; try again"
REFUSED: Final = "the tables of the ledger refuse a row"
DAMAGED: Final = "the file of the ledger is damaged"
DAMAGED_STATES: Final = frozenset({"XX001", "XX002"})
"""PostgreSQL's codes for a table, or an index, whose pages are not what it wrote."""

WRONG_TYPE: Final = "a table of the ledger holds a value of a wrong type"


class _Translation:
    """Has no state: each of the dozen calls of a commit takes the same one."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise in our words what the database raised."""
        del kind, traceback
        if error is not None:
            translate(error)


_TRANSLATION: Final = _Translation()


def database_errors() -> AbstractContextManager[None]:
    """Turn database errors in a block into Conclave's own, without the original text.

    Raises:
        InvariantError: a row that the tables refuse.
        LedgerCorruptError: a file that is damaged: trying again is no use.
        LedgerUnavailableError: anything else: locked, full, read-only, gone.

    """
    return _TRANSLATION


def translate(error: BaseException) -> None:
    """Raise the ledger error for a database error; return if it is any other error."""
    if isinstance(error, IntegrityError):
        raise InvariantError(REFUSED) from None
    if isinstance(error, SQLAlchemyError):
        if is_damage(error):
            raise LedgerCorruptError(DAMAGED) from None
        raise LedgerUnavailableError(UNAVAILABLE) from None
    if isinstance(error, TypeError | ValueError):
        raise LedgerCorruptError(WRONG_TYPE) from None


def is_damage(error: SQLAlchemyError) -> bool:
    """Return whether an error reports a damaged database file.

    SQLite's driver raises the bare class for damage, and a subclass for whatever has
    to do with the system underneath or with the statement.  PostgreSQL says by a code
    what it found, and its driver raises the bare class where a connection ends
    without any.
    """
    origin = error.orig if isinstance(error, DatabaseError) else None
    if origin is not None and hasattr(origin, "sqlstate"):
        return origin.sqlstate in DAMAGED_STATES
    return type(error) is DatabaseError
