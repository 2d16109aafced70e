"""SQL reads of the ledger's tables, page by page, on the caller's connection.

A page is a limited number of rows that are read together. Rows are only ever added to a table, so
pages that are read one after another are consistent. All rows except the database's secret belong
to one release, which the caller names by its number.

Private values (secrets, models, noise) are stored in the database, and ledger entries contain their
keyed hashes.

A client may send an idempotency key with a query, so that a repeated request is recognised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from sqlalchemy import bindparam, select

from app.ledger.database.driver import fetch_all
from app.ledger.database.recorded_answers import checked_bytes
from app.ledger.database.tables import (
    checkpoints,
    database_secret,
    entries,
    idempotency_keys,
    private_state,
)
from app.ledger.entries.chain import GENESIS, Head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Table

RowT = TypeVar("RowT")
PlaceT = TypeVar("PlaceT")

PAGE_ROWS: Final = 5000
"""Rows of one read."""


class KeyRow(NamedTuple):
    """An idempotency key and the vector of its first use, as keyed hashes.

    The mark is an authentication code of both hashes; it is None in a row of an early version.
    """

    key_digest: bytes
    vector_digest: bytes
    mark: bytes | None


class PrivateRow(NamedTuple):
    """A stored private value with its keyed hash."""

    name: str
    digest: str
    body: bytes


class CheckpointRow(NamedTuple):
    """A stored checkpoint (a summary of all entries so far), with its authentication code."""

    sequence: int
    body: str
    mark: str


def of_release(table: Table) -> ColumnElement[bool]:
    """Return the SQL condition that a row belongs to one release of the database."""
    return table.c.release_number == bindparam("release")


_HEAD: Final = (
    "SELECT sequence, hash FROM entries WHERE release_number = ? ORDER BY sequence DESC LIMIT 1"
)
_ENTRY_HASH = select(entries.c.hash).where(
    of_release(entries), entries.c.sequence == bindparam("at")
)
_CHECKPOINTS = (
    select(checkpoints.c.sequence, checkpoints.c.body, checkpoints.c.mark)
    .where(of_release(checkpoints), checkpoints.c.sequence > bindparam("after"))
    .order_by(checkpoints.c.sequence)
    .limit(bindparam("count"))
)
_NEWEST_CHECKPOINT = (
    select(checkpoints.c.sequence, checkpoints.c.body, checkpoints.c.mark)
    .where(of_release(checkpoints))
    .order_by(checkpoints.c.sequence.desc())
    .limit(1)
)
_KEYS = (
    select(idempotency_keys.c.key_digest, idempotency_keys.c.vector_digest, idempotency_keys.c.mark)
    .where(of_release(idempotency_keys), idempotency_keys.c.key_digest > bindparam("after"))
    .order_by(idempotency_keys.c.key_digest)
    .limit(bindparam("count"))
)
_PRIVATE_NAMES = (
    select(private_state.c.name).where(of_release(private_state)).order_by(private_state.c.name)
)
_PRIVATE = select(private_state.c.name, private_state.c.digest, private_state.c.body).where(
    of_release(private_state),
    private_state.c.name == bindparam("name"),
)
_PRIVATE_LIKE = (
    select(private_state.c.name, private_state.c.digest, private_state.c.body)
    .where(of_release(private_state), private_state.c.name.like(bindparam("prefix")))
    .order_by(private_state.c.name)
)
_RELEASES = select(entries.c.release_number).distinct().order_by(entries.c.release_number)
_SECRET = select(database_secret.c.secret)


def read_release_numbers(connection: Connection) -> list[int]:
    """Return the number of every release in the database, in order."""
    return list(connection.execute(_RELEASES).scalars())


def read_head(connection: Connection, release_number: int) -> Head:
    """Return the number and hash of the ledger's newest entry."""
    rows = fetch_all(connection, _HEAD, (release_number,))
    for sequence, hash_ in rows:
        if isinstance(sequence, int) and isinstance(hash_, str):
            return Head(sequence, hash_)
        raise TypeError("a number of an entry is a whole number, and its hash a text")
    return GENESIS


def read_entry_hash(connection: Connection, release_number: int, sequence: int) -> str | None:
    """Return the hash of a ledger entry, or None if there is no such entry."""
    if sequence == GENESIS.sequence:
        return GENESIS.hash
    found: str | None = connection.execute(
        _ENTRY_HASH, {"release": release_number, "at": sequence}
    ).scalar()
    return found


def every(
    read: Callable[[PlaceT], Sequence[RowT]], after: PlaceT, place: Callable[[RowT], PlaceT]
) -> Iterator[RowT]:
    """Yield every row of a table after a position, in order; many rows are read at a time.

    Args:
        read: a function that reads the next rows after a position, at most a fixed number of them.
        after: the position, for example a row's number, after which to begin.
        place: a function that returns the position of a row.

    """
    while page := read(after):
        yield from page
        after = place(page[-1])


def read_checkpoints(
    connection: Connection, release_number: int, after: int
) -> list[CheckpointRow]:
    """Return a page of the checkpoints of entries after number ``after``, in order."""
    at = {"release": release_number, "after": after, "count": PAGE_ROWS}
    rows = connection.execute(_CHECKPOINTS, at)
    return [_checkpoint(*row) for row in rows]


def read_newest_checkpoint(connection: Connection, release_number: int) -> CheckpointRow | None:
    """Return the newest checkpoint (a stored summary of all entries so far), or None."""
    row = connection.execute(_NEWEST_CHECKPOINT, {"release": release_number}).first()
    return None if row is None else _checkpoint(*row)


def read_keys(connection: Connection, release_number: int, after: bytes) -> list[KeyRow]:
    """Return a page of idempotency keys, ordered by keyed hash, after the hash ``after``."""
    at = {"release": release_number, "after": after, "count": PAGE_ROWS}
    return [checked_key(row) for row in connection.execute(_KEYS, at)]


def read_private_names(connection: Connection, release_number: int) -> list[str]:
    """Return the name of every stored private value, in order."""
    rows = connection.execute(_PRIVATE_NAMES, {"release": release_number})
    return [row[0] for row in rows]


def read_private_like(connection: Connection, release_number: int, prefix: str) -> list[PrivateRow]:
    """Return the stored private values whose names begin with a prefix, in order of name."""
    at = {"release": release_number, "prefix": f"{prefix}%"}
    rows = connection.execute(_PRIVATE_LIKE, at)
    return [PrivateRow(row.name, row.digest, checked_bytes(row.body)) for row in rows]


def read_private(connection: Connection, release_number: int, name: str) -> PrivateRow | None:
    """Return a stored private value by its name, or None."""
    row = connection.execute(_PRIVATE, {"release": release_number, "name": name}).first()
    return None if row is None else PrivateRow(row.name, row.digest, checked_bytes(row.body))


def read_database_secret(connection: Connection) -> bytes | None:
    """Return the secret key of the database's keyed hashes, or None if it has none."""
    row = connection.execute(_SECRET).first()
    return None if row is None else checked_bytes(row.secret)


def _checkpoint(sequence: int, body: object, mark: object) -> CheckpointRow:
    if not isinstance(body, str) or not isinstance(mark, str):
        raise TypeError("a checkpoint is made of text")
    return CheckpointRow(sequence, body, mark)


def checked_key(row: Iterable[object]) -> KeyRow:
    """Return a stored idempotency key after checking its types.

    Raises:
        TypeError: a value does not have the type of a key's value.

    """
    key_digest, vector_digest, mark = row
    bound = None if mark is None else checked_bytes(mark)
    return KeyRow(checked_bytes(key_digest), checked_bytes(vector_digest), bound)
