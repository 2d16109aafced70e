"""Counts of requests by hour, from all servers of a ledger; they are not ledger entries.

The counts of the newest ``HOURS_MAX`` hours are kept. They are only shown to people and decide
nothing. Therefore no ledger entry or authentication code protects them, and a server that is killed
loses the counts of its last minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from app.ledger.database.driver import fetch_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

HOURS_MAX: Final = 31 * 24
"""Hours that are kept of each release."""

_READ: Final = (
    "SELECT hour, fresh, unstable, repeated, classified, refused FROM hour_counts "
    "WHERE release_number = ? ORDER BY hour"
)
_ADD: Final = (
    "INSERT INTO hour_counts "
    "(release_number, hour, fresh, unstable, repeated, classified, refused) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (release_number, hour) DO UPDATE SET "
    "fresh = hour_counts.fresh + excluded.fresh, "
    "unstable = hour_counts.unstable + excluded.unstable, "
    "repeated = hour_counts.repeated + excluded.repeated, "
    "classified = hour_counts.classified + excluded.classified, "
    "refused = hour_counts.refused + excluded.refused RETURNING 1"
)
_FORGET: Final = "DELETE FROM hour_counts WHERE release_number = ? AND hour <= ? RETURNING 1"


class HourCounts(NamedTuple):
    """The numbers of requests in one hour by kind.

    Attributes:
        fresh: the number of new answers by the models' vote, stable and unstable.
        unstable: the number of unstable answers among them.
        repeated: the number of recorded answers that were given again.
        classified: the number of answers by the published classifier.
        refused: the number of refused requests, and refused lines of streams.

    """

    fresh: int = 0
    unstable: int = 0
    repeated: int = 0
    classified: int = 0
    refused: int = 0


def read_hours(connection: Connection, release_number: int) -> dict[int, HourCounts]:
    """Return the request counts of every stored hour, in order, by hours since 1970.

    Raises:
        SQLAlchemyError: the database cannot be read.

    """
    rows = fetch_all(connection, _READ, (release_number,))
    return {int(str(hour)): HourCounts(*map(int, map(str, counts))) for hour, *counts in rows}


def add_hours(
    connection: Connection, release_number: int, counts: Mapping[int, HourCounts]
) -> None:
    """Add request counts to the stored counts of their hours, and delete hours that are too old.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release that was asked.
        counts: the counts of each hour, by hours since 1970.

    Raises:
        SQLAlchemyError: the database refused the write.

    """
    for hour, added in counts.items():
        fetch_all(connection, _ADD, (release_number, hour, *added))
    if counts:
        fetch_all(connection, _FORGET, (release_number, max(counts) - HOURS_MAX))
