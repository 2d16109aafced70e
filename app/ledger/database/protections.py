"""Protections of ledger tables against changed rows, which every database must have."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import delete

from app.ledger.database import postgresql, sqlite
from app.ledger.database.tables import metadata, private_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection


def structural_fault(connection: Connection) -> str | None:
    """Return a fault that the database reports about its own file, or None.

    PostgreSQL checks its pages itself as they are read, where it has checksums.
    """
    return None if _is_postgresql(connection) else sqlite.structural_fault(connection)


def protection_fault(connection: Connection) -> str | None:
    """Return a fault of the protecting triggers or of an index, or None.

    A trigger that is missing, one that was altered, and one that is not ours.
    """
    if _is_postgresql(connection):
        return postgresql.protection_fault(connection)
    return sqlite.protection_fault(connection)


def type_fault(connection: Connection) -> str | None:
    """Return a column that has a value of a wrong type, or None."""
    fits = postgresql.fits if _is_postgresql(connection) else sqlite.fits
    for name, table in metadata.tables.items():
        for column in table.columns:
            condition = fits(column)
            query = f"SELECT 1 FROM {name} WHERE NOT ({condition}) LIMIT 1"  # noqa: S608 -- our own names
            if condition is not None and connection.exec_driver_sql(query).first() is not None:
                return f"the table {name} has a value of a wrong type in the column {column.name}"
    return None


@contextmanager
def unprotected(connection: Connection, table: str) -> Iterator[None]:
    """Allow changes to the rows of a table within a block, inside the owner's transaction.

    For a database that is no ledger yet, and in SQLite for pieces that are forgotten.  The
    triggers are back before the transaction can end, and ``protection_fault`` tells whether
    they are what they were.

    Raises:
        SQLAlchemyError: the database refuses, as where another role owns the table.

    """
    chosen = postgresql if _is_postgresql(connection) else sqlite
    with chosen.unprotected(connection, table):
        yield


def delete_private(connection: Connection, release_number: int, names: Iterable[str]) -> None:
    """Delete private values that no ledger entry mentions any more, inside the transaction.

    Raises:
        SQLAlchemyError: the database refuses, as where a role was not granted it.

    """
    gone = sorted(names)
    if gone and _is_postgresql(connection):
        postgresql.forget(connection, release_number, gone)
    elif gone:
        of_them = private_state.c.name.in_(gone)
        statement = delete(private_state).where(
            private_state.c.release_number == release_number, of_them
        )
        with unprotected(connection, private_state.name):
            connection.execute(statement)


def _is_postgresql(connection: Connection) -> bool:
    return connection.dialect.name == postgresql.DIALECT
