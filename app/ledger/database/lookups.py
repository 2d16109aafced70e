"""Recorded answers and keys, found by digest: a whole batch in one statement."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.errors import LedgerCorruptError
from app.ledger.database.driver import fetch_all
from app.ledger.database.statements import (
    KeyRow,
    RecordedAnswer,
    checked_answer,
    checked_bytes,
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
_ANSWERS: Final = (
    f"{_ASKED} answers WHERE answers.vector_digest = asked.digest AND release_number = ?"
)
_KEYS: Final = (
    f"{_ASKED} idempotency_keys WHERE idempotency_keys.key_digest = asked.digest "
    "AND release_number = ?"
)
_ALONE_COLUMNS: Final = ", ".join(RecordedAnswer.__struct_fields__)
_ANSWER_COLUMNS: Final = f"vector_digest, {_ALONE_COLUMNS}"
_ONE_ANSWER: Final = (
    f"SELECT {_ALONE_COLUMNS} FROM answers WHERE vector_digest = ? AND release_number = ?"  # noqa: S608 -- names of columns
)
_KEY_COLUMNS: Final = ", ".join(KeyRow._fields)


def find_answers(
    connection: Connection, release_number: int, vector_digests: Sequence[bytes]
) -> list[tuple[bytes, RecordedAnswer]]:
    """Return the answers to those vectors that have one, by vector digest, in any order.

    Args:
        connection: inside a transaction.
        release_number: of the release that answered.
        vector_digests: keyed digests, 32 bytes each.

    Raises:
        SQLAlchemyError: the database cannot be read.
        TypeError: a row holds a value of a wrong type.

    """
    if len(vector_digests) == 1:  # the plain statement takes half the time of the join
        (digest,) = vector_digests
        alone = fetch_all(connection, _ONE_ANSWER, (digest, release_number))
        return [(digest, checked_answer(alone[0]))] if alone else []
    rows = _search(connection, _ANSWERS, _ANSWER_COLUMNS, release_number, vector_digests)
    return [(checked_bytes(digest), checked_answer(values)) for digest, *values in rows]


def find_keys(
    connection: Connection,
    release_number: int,
    key_digests: Sequence[bytes],
    *,
    digests: Digests,
) -> list[tuple[bytes, bytes]]:
    """Return those keys that are recorded: (key digest, vector digest), in any order.

    Args:
        connection: inside a transaction.
        release_number: of the release that they were sent to.
        key_digests: keyed digests, 32 bytes each.
        digests: of the database, by which a key's mark is checked.

    Raises:
        SQLAlchemyError: the database cannot be read.
        TypeError: a row holds a value of a wrong type.
        LedgerCorruptError: a key that is found was altered.

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
