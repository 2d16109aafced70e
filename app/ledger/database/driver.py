"""Statements that go to the driver as they are: those of every commit and every look-up.

Each takes a few microseconds there, and SQLAlchemy's part of it took several times as
long.  Errors are the same ones.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

Value: TypeAlias = bytes | str | int | None
Row: TypeAlias = tuple[object, ...]


def fetch_all(connection: Connection, text: str, values: tuple[Value, ...] = ()) -> Sequence[Row]:
    """Return every row that a statement finds, none of one that finds nothing.

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


def insert_rows(connection: Connection, text: str, rows: Sequence[tuple[Value, ...]]) -> None:
    """Insert rows; raises as :func:`fetch_all` does.

    Args:
        connection: inside a transaction.
        text: an ``INSERT`` of one row.
        rows: values of its question marks.

    """
    dialect = connection.dialect
    try:
        cursor = connection.connection.cursor()
        cursor.executemany(_marked(text, dialect.paramstyle), rows)
    except dialect.loaded_dbapi.Error as error:
        raise _as_raised(connection, text, error) from None


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
    """Return whether the database, or what lies between, has ended a connection.

    A file has nobody who could.
    """
    if connection.invalidated:
        return True
    return bool(getattr(connection.connection.dbapi_connection, "closed", False))


def is_in_transaction(connection: Connection) -> bool:
    """Return whether a driver that begins transactions only where it is told to is in one."""
    return bool(getattr(connection.connection.dbapi_connection, "in_transaction", False))


def give_back(connection: Connection) -> None:
    """Give a connection back; one that cannot be rolled back is thrown away."""
    try:
        connection.rollback()
    except SQLAlchemyError:
        connection.invalidate()
    connection.close()
