"""Counts of each API key's new answers and unstable answers.

The counts are stored without a ledger entry. The entries do not say which client asked which query,
and neither do the counts, which are totals. The counts are written in the transaction of the
answers that they count, so that both are always consistent. A count never decreases. Each API key's
counts have an authentication code, which reveals an alteration.

A stability test decides, with noise, whether an answer is stable; an answer with a score has up to
two tests.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

from app.errors import LedgerCorruptError
from app.ledger.database.driver import fetch_all

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import Connection

    from app.ledger.entries.digests import Digests

ALTERED: Final = "the count of a key was altered: its mark is not that of what it says"

_COLUMNS: Final = "SELECT name, answered, unstable, mark FROM key_counts WHERE release_number = ?"
_READ_ONE: Final = f"{_COLUMNS} AND name = ?"
_READ_ALL: Final = f"{_COLUMNS} ORDER BY name"
_COUNT_UP: Final = (
    "UPDATE key_counts SET answered = ?, unstable = ?, mark = ? "
    "WHERE release_number = ? AND name = ? RETURNING 1"
)
_BEGIN: Final = (
    "INSERT INTO key_counts (answered, unstable, mark, release_number, name) VALUES (?, ?, ?, ?, ?)"
)


class KeyCount(NamedTuple):
    """The number of new answers to one API key, and of unstable ones among them.

    Attributes:
        answered: the number of new answers by the models' vote.
        unstable: the number of unstable answers among them; with scores, the number of failed
            stability tests.

    """

    answered: int = 0
    unstable: int = 0


NOTHING: Final = KeyCount()


def read_key_counts(
    connection: Connection,
    release_number: int,
    names: Collection[str] | None,
    *,
    digests: Digests,
) -> dict[str, KeyCount]:
    """Return the answer counts of the API keys with these names, or of every key.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release that answered.
        names: the names of API keys; None for every key.
        digests: the functions that compute the database's keyed hashes, for checking the
            authentication code of a count.

    Raises:
        SQLAlchemyError: the database cannot be read.
        LedgerCorruptError: a stored count was altered.

    """
    if names is None:
        rows = fetch_all(connection, _READ_ALL, (release_number,))
    else:
        rows = [
            row
            for name in names
            for row in fetch_all(connection, _READ_ONE, (release_number, name))
        ]
    return dict(_checked(row, release_number, digests) for row in rows)


def write_key_counts(
    connection: Connection,
    release_number: int,
    counts: Mapping[str, KeyCount],
    *,
    digests: Digests,
) -> None:
    """Write the present answer counts of API keys, which never decrease.

    Raises:
        SQLAlchemyError: the database refused the write.

    """
    for name, count in counts.items():
        mark = digests.of_key_count(name, *count, release_number=release_number)
        values = (*count, mark, release_number, name)
        if not fetch_all(connection, _COUNT_UP, values):
            fetch_all(connection, _BEGIN, values)


def _checked(
    row: tuple[object, ...], release_number: int, digests: Digests
) -> tuple[str, KeyCount]:
    """Return a row that has the types and the mark that it was written with."""
    name, answered, unstable, mark = row
    if not (
        isinstance(name, str)
        and isinstance(answered, int)
        and isinstance(unstable, int)
        and isinstance(mark, bytes)
    ):
        raise LedgerCorruptError(ALTERED)
    computed = digests.of_key_count(name, answered, unstable, release_number=release_number)
    if not hmac.compare_digest(computed, mark):
        raise LedgerCorruptError(ALTERED)
    return name, KeyCount(answered, unstable)
