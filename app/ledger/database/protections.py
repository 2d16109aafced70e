"""Protections of ledger tables against changed rows, which every database must have.

Triggers of the database refuse changes and deletions of rows. The functions here find out whether
the triggers, and the indexes of the tables, are as they were created. Private values (secrets,
models, noise) are stored in the database, and ledger entries contain their keyed hashes.
"""

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

    A PostgreSQL server itself checks its pages when they are read, if checksums are enabled.
    """
    return None if _is_postgresql(connection) else sqlite.structural_fault(connection)


def protection_fault(connection: Connection) -> str | None:
    """Return a fault of the protecting triggers or of an index, or None.

    A fault is a trigger that is missing, altered or unknown.
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
    """Allow changes to the rows of a table in a ``with`` block, inside the caller's transaction.

    It is used for a database that is not a ledger yet, and in SQLite to delete unused private
    values. The triggers are restored before the transaction can end, and ``protection_fault`` tests
    whether they are unchanged.

    Raises:
        SQLAlchemyError: the database refused, for example because another role owns the table.

    """
    chosen = postgresql if _is_postgresql(connection) else sqlite
    with chosen.unprotected(connection, table):
        yield


def delete_private(connection: Connection, release_number: int, names: Iterable[str]) -> None:
    """Delete stored private values that no ledger entry mentions any more.

    Raises:
        SQLAlchemyError: the database refused, for example because the role was not granted the
            right.

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
