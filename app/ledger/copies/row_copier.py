"""Rows from one database to another of whatever kind, a block at a time.

What is copied is every table of the ledger but the database's secret, in an order in which
no row refers to one that comes later, and in the order of the keys, as the tables ask for.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import String, collate, insert, literal, select, tuple_, type_coerce

from app.ledger.database.postgresql import DIALECT
from app.ledger.database.tables import database_secret, metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Table

    AnyRow = Row[tuple[object, ...]]

COPIED: Final = tuple(table for table in metadata.sorted_tables if table is not database_secret)
"""The tables whose rows are copied, in order."""

BLOCK_ROWS: Final = 1000
"""Rows of one block, where a row is a few hundred bytes."""

_LARGE_ROWS: Final = {"private_state": 1, "entries": 64}  # a piece may be of 900 MB
_BYTE_ORDER: Final = {DIALECT: "C", "sqlite": "BINARY"}


class TableDigest(NamedTuple):
    """What tells whether two tables hold the same rows: how many, and a SHA-256 of all."""

    row_count: int
    sha256: str


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy every row into tables that are empty.

    Args:
        source: a transaction that sees one moment.
        target: a transaction that holds its database's write lock.

    Raises:
        SQLAlchemyError: either database refuses.

    """
    for table in COPIED:
        for block in _blocks(source, table):
            target.execute(insert(table), [dict(row._mapping) for row in block])  # noqa: SLF001 -- SQLAlchemy's own public name


def row_digests(connection: Connection) -> dict[str, TableDigest]:
    """Return a digest of the rows of every copied table, the same in every kind of database.

    Raises:
        SQLAlchemyError: the database cannot be read.

    """
    return {table.name: _digest(connection, table) for table in COPIED}


def is_without_rows(connection: Connection) -> bool:
    """Return whether every copied table is empty."""
    one = literal(1)
    return all(
        connection.execute(select(one).select_from(table).limit(1)).first() is None
        for table in COPIED
    )


def _digest(connection: Connection, table: Table) -> TableDigest:
    digest, count = hashlib.sha256(), 0
    for block in _blocks(connection, table):
        count += len(block)
        for value in (value for row in block for value in row):
            # A kind and a length before each, so that no two rows read the same.
            body = value if isinstance(value, bytes) else str(value).encode()
            digest.update(f"{type(value).__name__} {len(body)} ".encode())
            digest.update(body)
    return TableDigest(count, digest.hexdigest())


def _blocks(connection: Connection, table: Table) -> Iterator[Sequence[AnyRow]]:
    """Yield the rows of a table in the order of the bytes of its key."""
    order = _BYTE_ORDER[connection.dialect.name]
    key = [_ordered(column, order) for column in table.primary_key.columns]
    places = [table.columns.keys().index(column.name) for column in table.primary_key.columns]
    rows_max = _LARGE_ROWS.get(table.name, BLOCK_ROWS)
    query = select(table).order_by(*key).limit(rows_max)
    block = connection.execute(query).all()
    while block:
        yield block
        if len(block) < rows_max:
            return
        after = tuple_(*[literal(block[-1][place]) for place in places])
        block = connection.execute(query.where(tuple_(*key) > after)).all()


def _ordered(column: ColumnElement[object], order: str) -> ColumnElement[object]:
    """Return a column that is compared by its bytes, whatever the database's language."""
    ordered: ColumnElement[object] = column
    if isinstance(column.type, String):
        ordered = type_coerce(collate(column, order), column.type)
    return ordered
