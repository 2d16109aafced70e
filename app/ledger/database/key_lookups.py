"""Look-up of recorded idempotency keys by keyed hash, with one statement per batch.

A client may send an idempotency key with a query, so that a repeated request is recognised.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.errors import LedgerCorruptError
from app.ledger.database.driver import fetch_all
from app.ledger.database.statements import (
    KeyRow,
    checked_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from app.ledger.entries.digests import Digests

SEARCHED_MAX: Final = 512
"""Digests of one statement."""

# The digests come first in the join, and each is searched for in the index; a list
# after IN made SQLite read the whole table once the list had a few digests.
_ASKED: Final = "WITH asked (digest) AS (VALUES {asked}) SELECT {columns} FROM asked CROSS JOIN"
_KEYS: Final = (
    f"{_ASKED} idempotency_keys WHERE idempotency_keys.key_digest = asked.digest "
    "AND release_number = ?"
)
_KEY_COLUMNS: Final = ", ".join(KeyRow._fields)


def find_keys(
    connection: Connection,
    release_number: int,
    key_digests: Sequence[bytes],
    *,
    digests: Digests,
) -> list[tuple[bytes, bytes]]:
    """Return a pair of hashes, (key, vector), for each given idempotency key that is recorded.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release to which the keys were sent.
        key_digests: the keyed digests of the idempotency keys, 32 bytes each.
        digests: the functions that compute the database's keyed hashes, for checking the
            authentication code of a stored key.

    Raises:
        SQLAlchemyError: the database cannot be read.
        TypeError: a row has a value of a wrong type.
        LedgerCorruptError: a stored key was altered.

    """
    rows = _search(connection, _KEYS, _KEY_COLUMNS, release_number, key_digests)
    found = [checked_key(row) for row in rows]
    if not all(digests.marks(row, release_number) for row in found):
        raise LedgerCorruptError("an idempotency key was altered")
    return [row[:2] for row in found]


def _search(
    connection: Connection,
    statement: str,
    columns: str,
    release_number: int,
    digests: Sequence[bytes],
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of every digest that has one, ``SEARCHED_MAX`` digests at a time."""
    for begin in range(0, len(digests), SEARCHED_MAX):
        asked = digests[begin : begin + SEARCHED_MAX]
        # Few sizes, and so few statements to prepare; NULL fills one up and finds nothing.
        size = _size(len(asked))
        filled = (*asked, *[None] * (size - len(asked)), release_number)
        yield from fetch_all(connection, _text(statement, columns, size), filled)


@lru_cache(maxsize=64)
def _text(statement: str, columns: str, count: int) -> str:
    return statement.format(asked=", ".join(["(?)"] * count), columns=columns)


def _size(count: int) -> int:
    """Return the power of two that holds ``count``."""
    return 1 << (count - 1).bit_length()
