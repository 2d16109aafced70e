"""SQL statements sent to the database driver directly, for speed: commits and look-ups.

SQLAlchemy's own work for these statements would take several times as long as the statements. The
errors are the same as SQLAlchemy's.

The module also begins and ends the transactions that write to the ledger, in a way that depends on
the kind of database, and converts the errors of a database to Conclave's errors. The conversion
covers the calls of the database only, so that no error of other code inside a transaction is taken
for one of the database.
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

Value: TypeAlias = bytes | bytearray | str | int | None
Row: TypeAlias = tuple[object, ...]


def fetch_all(connection: Connection, text: str, values: tuple[object, ...] = ()) -> Sequence[Row]:
    """Return every row that an SQL statement selects.

    Args:
        connection: a connection inside a transaction.
        text: one SQL statement.
        values: the values for the statement's question marks.

    Raises:
        DBAPIError: the driver raised an error; it is the same as SQLAlchemy would raise.

    """
    dialect = connection.dialect
    try:
        driver = connection.connection.dbapi_connection  # the pool's would only pass the call on
        if dialect.paramstyle != "qmark":
            text = _marked(text)
        cursor = driver.execute(text, values)  # type: ignore[union-attr]  # both have it
        found: object = cursor.description  # None after what finds nothing, whatever stubs say
        return [] if found is None else cursor.fetchall()
    except dialect.loaded_dbapi.Error as error:
        raise _as_raised(connection, text, error) from None


def insert_rows(
    connection: Connection,
    text: str,
    rows: Sequence[tuple[Value, ...]],
    *,
    types: Sequence[str] | None = None,
) -> None:
    """Insert rows into a table; a failure raises SQLAlchemy's ``DBAPIError``.

    Args:
        connection: a connection inside a transaction.
        text: an ``INSERT`` statement for one row.
        rows: the values for the question marks, for each row.
        types: PostgreSQL's names of the values' types, for inserts of many rows: PostgreSQL then
            gets all rows in one message, in a quarter of the processor's time; None otherwise.

    """
    if len(rows) == 1:
        fetch_all(connection, text, rows[0])
        return
    dialect = connection.dialect
    try:
        pooled = connection.connection  # whose own method would only pass the call on
        cursor = pooled.dbapi_connection.cursor()  # type: ignore[union-attr]  # it has one
        if types is not None and dialect.paramstyle != "qmark":
            with cursor.copy(_copying(text)) as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)
            return
        cursor.executemany(text if dialect.paramstyle == "qmark" else _marked(text), rows)
    except dialect.loaded_dbapi.Error as error:
        raise _as_raised(connection, text, error) from None


@lru_cache(maxsize=64)
def _copying(text: str) -> str:
    """Return the statement by which PostgreSQL takes many rows of an ``INSERT``."""
    table = text.removeprefix("INSERT INTO ").partition(" VALUES ")[0]
    return f"COPY {table} FROM STDIN (FORMAT BINARY)"


@lru_cache(maxsize=256)
def _marked(text: str) -> str:
    """Return a statement with PostgreSQL's marks for values; it has no other question marks."""
    return text.replace("?", "%s")


def _as_raised(connection: Connection, text: str, error: Exception) -> BaseException:
    """Return an error of the driver as SQLAlchemy would have raised it."""
    dialect = connection.dialect
    return DBAPIError.instance(
        text, None, error, dialect.loaded_dbapi.Error, hide_parameters=True, dialect=dialect
    )


def is_cut_off(connection: Connection) -> bool:
    """Return whether a database connection was ended from outside; never true for SQLite."""
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
            SQLAlchemyError: the database cannot be reached, or another process has the lock.

        """

    def commit(self, connection: Connection) -> None:
        """Commit the transaction to the disk.

        Raises:
            SQLAlchemyError: the commit failed, or it is unknown whether it failed.

        """

    def end(self, connection: Connection) -> None:
        """Roll back uncommitted changes, and release the connection."""

    def close(self) -> None:
        """Close the connection that stays open between transactions, if there is one."""


def begun(engine: Engine) -> Connection:
    """Return a connection from an engine's pool, on which a transaction has begun."""
    connection = engine.connect()
    try:
        connection.begin()
    except BaseException:
        give_back(connection)
        raise
    return connection


class KeptWriting:
    """Write transactions on one connection that stays open, by the driver's own statements.

    SQLAlchemy treats all these transactions as one that began with the first, so it begins no
    transaction itself, which saves processor time.
    """

    def __init__(self, engine: Engine, begin: str) -> None:
        """Prepare to connect at the first transaction.

        Args:
            engine: the engine for writing, whose transactions begin with the same statement.
            begin: the SQL statement that begins a transaction.

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
    """Turn database errors in a ``with`` block into Conclave's own, without the original text.

    Raises:
        InvariantError: the tables refused a row.
        LedgerCorruptError: the database file is damaged; trying again does not help.
        LedgerUnavailableError: any other error: the database is locked, full, read-only or missing.

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

    Damage is recognised by the class of the error in SQLite, and by its code in PostgreSQL.
    """
    origin = error.orig if isinstance(error, DatabaseError) else None
    if origin is not None and hasattr(origin, "sqlstate"):
        return origin.sqlstate in DAMAGED_STATES
    return type(error) is DatabaseError
