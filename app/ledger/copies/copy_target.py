"""The target database of a copied ledger: reserved first, then filled in one transaction.

A reserved database has empty tables and a secret key of its own. In place of the version of its
tables (the revision) it has a mark that it is not a ledger yet, so that no server opens it and no
release begins there. One transaction fills it with all rows, the ledger's secret key and the
revision, or with none of them.

Every table of the ledger is copied, a block of rows at a time, except the table of the secret key.
The tables are in an order in which no row refers to a later one, and rows are in the order of their
primary keys, as the triggers of the tables require.
"""

from __future__ import annotations

import hashlib
from contextlib import closing, contextmanager, nullcontext
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import (
    String,
    collate,
    insert,
    inspect,
    literal,
    select,
    text,
    tuple_,
    type_coerce,
    update,
)

from app.errors import ConfigurationError, VerificationError
from app.ledger.database.database import ledger_database
from app.ledger.database.open_database import (
    UNFINISHED,
    open_database,
    peeking,
    read_revision,
)
from app.ledger.database.postgresql import DIALECT, allow_long_waits
from app.ledger.database.protections import unprotected
from app.ledger.database.sqlite import URL_KEY
from app.ledger.database.statements import read_database_secret
from app.ledger.database.tables import (
    REVISION,
    answers,
    database_secret,
    entries,
    metadata,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Table

    AnyRow = Row[tuple[object, ...]]
    from app.noise.source import NoiseSource

COPIED: Final = tuple(table for table in metadata.sorted_tables if table is not database_secret)
"""The tables whose rows are copied, in order."""

BLOCK_ROWS: Final = 1000
"""Rows of one block, where a row is a few hundred bytes."""

_LARGE_ROWS: Final = {
    "private_state": 1,
    "entries": 64,
    "key_blocks": 64,
    "answer_groups": 256,
}  # a piece may be of 900 MB
_BYTE_ORDER: Final = {DIALECT: "C", "sqlite": "BINARY"}


class TableDigest(NamedTuple):
    """A SHA-256 digest of all rows of a table, with the number of rows."""

    row_count: int
    sha256: str


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy all ledger rows from one database into empty tables of another.

    Args:
        source: a connection inside a transaction that sees the database at one moment.
        target: a connection inside a transaction with the write lock of the other database.

    Raises:
        SQLAlchemyError: a database refused an operation.

    """
    for table in COPIED:
        # The table of the answers of earlier versions takes no rows otherwise.
        with unprotected(target, table.name) if table is answers else nullcontext():
            for block in _blocks(source, table):
                target.execute(insert(table), [dict(row._mapping) for row in block])  # noqa: SLF001 -- SQLAlchemy's own public name


def row_digests(connection: Connection) -> dict[str, TableDigest]:
    """Return a digest of each copied table, equal for SQLite and PostgreSQL.

    Raises:
        SQLAlchemyError: the database cannot be read.

    """
    return {table.name: _digest(connection, table) for table in COPIED}


def is_without_rows(connection: Connection) -> bool:
    """Return whether all tables that a copy fills with rows are empty."""
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


_SET_REVISION: Final = text("UPDATE alembic_version SET version_num = :revision")


class Held(Enum):
    """The state of a copy's target database: free, reserved, or with a ledger in it."""

    NOTHING = "nothing"
    RESERVED = "reserved"
    LEDGER = "ledger"


class Found(NamedTuple):
    """The result of inspecting the database at an address.

    Attributes:
        held: whether the database is free, reserved, or has a ledger already.
        secret: the database's secret key, 32 bytes; None if it has none.

    """

    held: Held
    secret: bytes | None = None


def look_at(url: str) -> Found:
    """Return the state of a target database without changing it.

    Raises:
        ConfigurationError: the database belongs to another program, or cannot be read.
        LedgerCorruptError: the database contains a damaged ledger.

    """
    database = ledger_database(url)
    if database.is_empty:
        return Found(Held.NOTHING)
    with peeking(database) as connection:
        return _found(connection, read_revision(database, connection))


def _found(connection: Connection, revision: str | None) -> Found:
    if revision is None or not inspect(connection).has_table(entries.name):
        return Found(Held.NOTHING)
    secret = read_database_secret(connection)
    if revision == UNFINISHED:
        return Found(Held.RESERVED, secret)
    held = Held.NOTHING if revision == REVISION and is_without_rows(connection) else Held.LEDGER
    return Found(held, secret)


def reserve(url: str, *, noise: NoiseSource) -> None:
    """Create missing tables, and mark the database as reserved so that no server opens it.

    Args:
        url: the address of a database that has no release, or that is reserved already.
        noise: the source of randomness, for a new database's secret.

    Raises:
        ConfigurationError: the database has a release, or cannot be created.
        SQLAlchemyError: the database refused an operation.

    """
    if look_at(url).held is Held.RESERVED:
        return
    open_database(url, create=True, noise=noise).close()
    with filling(url) as connection:
        connection.execute(_SET_REVISION, {"revision": UNFINISHED})
        connection.commit()


@contextmanager
def filling(url: str) -> Iterator[Connection]:
    """Yield a transaction with the write lock, on a database that has no rows.

    Anything that the ``with`` block does not commit is undone.

    Raises:
        ConfigurationError: the database has rows.
        SQLAlchemyError: the database refused an operation.

    """
    database = ledger_database(url)
    engine = database.writing_engine()
    try:
        with closing(engine.connect()) as connection:
            connection.begin()
            allow_long_waits(connection)
            if not is_without_rows(connection):
                raise ConfigurationError(URL_KEY, f"{database.place} holds a ledger already")
            yield connection
    finally:
        engine.dispose()


def fill(source: Connection, target: Connection, secret: bytes) -> None:
    """Copy a whole ledger to a reserved database, within the caller's transaction.

    Args:
        source: a connection inside a transaction that sees the database at one moment.
        target: the connection that ``filling`` yields.
        secret: the secret of the source's database, 32 bytes.

    Raises:
        VerificationError: the copied rows differ from the original rows.
        SQLAlchemyError: a database refused an operation.

    """
    copy_rows(source, target)
    with unprotected(target, database_secret.name):
        target.execute(update(database_secret), {"secret": secret})
    target.execute(_SET_REVISION, {"revision": REVISION})
    arrived = row_digests(target)
    for name, sent in row_digests(source).items():
        if arrived[name] != sent:
            raise VerificationError(
                f"the copy has other rows than the ledger in the table {name}; nothing was changed"
            )
