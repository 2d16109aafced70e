"""The rows of the table ``entries`` as ledger entries, in order, on the caller's connection.

The body of an entry of answers may be stored short (``app/ledger/entries/short_bodies.py``). It is
made again from the groups of the entry's answers, which are read many at a time, in step with the
entries. Groups that are not exactly those of the entry are refused here; what a group says is
checked by the entry's hash, as every body is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import text

from app.errors import LedgerCorruptError
from app.ledger.database.answer_groups import ANSWERS_MAX, columns_in
from app.ledger.database.answer_tables import each_group
from app.ledger.database.statements import PAGE_ROWS
from app.ledger.entries.chain import Entry, Head
from app.ledger.entries.short_bodies import read_short_body, whole_body

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Row

    from app.ledger.database.answer_tables import Group
    from app.ledger.entries.short_bodies import ShortBody

EntryRow: TypeAlias = "Row[int, str, int, str, str]"
"""The number, kind, version, body and hash of an entry, as stored."""

# The primary key is the table itself in SQLite, which would search in it for each row that
# the index of numbers gave it, and chooses that index unless it is told.
_ENTRIES = {
    dialect: text(
        f"SELECT sequence, kind, version, body, hash FROM {source} "  # noqa: S608 -- as written here
        "WHERE release_number = :release AND sequence > :after ORDER BY sequence LIMIT :count"
    )
    for dialect, source in {
        "sqlite": "entries INDEXED BY sqlite_autoindex_entries_1",
        "postgresql": "entries",
    }.items()
}


def read_entries(
    connection: Connection, release_number: int, after: Head, count: int
) -> list[Entry]:
    """Return up to ``count`` ledger entries after the entry ``after``, in order.

    Raises:
        LedgerCorruptError: the groups of an entry's answers are not those that it needs.

    """
    rows = _read_rows(connection, release_number, after.sequence, count)
    return [*_entries_of(connection, release_number, rows, after.hash)]


def each_entry(connection: Connection, release_number: int, after: Head) -> Iterator[Entry]:
    """Yield every ledger entry after the entry ``after``, in order.

    Raises:
        LedgerCorruptError: the groups of an entry's answers are not those that it needs.

    """
    while rows := _read_rows(connection, release_number, after.sequence, PAGE_ROWS):
        yield from _entries_of(connection, release_number, rows, after.hash)
        sequence, *_, hash_ = rows[-1]
        after = Head(sequence, hash_)


def _read_rows(
    connection: Connection, release_number: int, after: int, count: int
) -> Sequence[EntryRow]:
    at = {"release": release_number, "after": after, "count": count}
    return connection.execute(_ENTRIES[connection.dialect.name], at).all()


def _entries_of(
    connection: Connection, release_number: int, rows: Sequence[EntryRow], previous_hash: str
) -> Iterator[Entry]:
    """Yield the entries of consecutive rows, with whole bodies."""
    shorts = [read_short_body(kind, version, body) for _, kind, version, body, _ in rows]
    groups = _groups_of(connection, release_number, [each for each in shorts if each is not None])
    for (sequence, kind, version, body, hash_), short in zip(rows, shorts, strict=True):
        whole = body if short is None else _whole_body(sequence, short, groups)
        yield Entry(sequence, kind, version, whole, previous_hash, hash_)
        previous_hash = hash_


def _groups_of(
    connection: Connection, release_number: int, shorts: Sequence[ShortBody]
) -> Iterator[Group]:
    """Yield every group that has an answer between the first and the last of some entries."""
    if not shorts:
        return iter(())
    first = min(short.first_query_id for short in shorts)
    end = max(short.first_query_id + short.answers for short in shorts)
    return each_group(connection, release_number, after=first - 1, until=end + ANSWERS_MAX)


def _whole_body(sequence: int, short: ShortBody, groups: Iterator[Group]) -> str:
    """Return the body of an entry, made of the next groups.

    Args:
        sequence: the number of the entry.
        short: the entry's stored body.
        groups: the groups of this entry and of later ones, after groups of earlier ones, in the
            order of their answers; those of this entry are taken.

    Raises:
        LedgerCorruptError: the groups are not exactly those of the entry's answers.

    """
    wanted, end = short.first_query_id, short.first_query_id + short.answers
    columns: dict[str, list[object]] = {}
    while wanted < end:
        group = next((each for each in groups if each.last >= wanted), None)
        if group is None or group.first > wanted:
            raise LedgerCorruptError(
                f"answer {wanted} of entry {sequence} is missing from the answers table"
            )
        if group.first < wanted:
            raise LedgerCorruptError(f"answer {group.first} is in two rows of answers")
        if group.sequence != sequence:
            raise LedgerCorruptError(
                f"answer {wanted} in the answers table belongs to entry {group.sequence} there, "
                f"and to entry {sequence} in the chain"
            )
        if group.last >= end:
            raise LedgerCorruptError(
                f"answer {end} in the answers table belongs to entry {sequence} there, "
                f"which ends with answer {end - 1}"
            )
        for name, values in columns_in(group.body, group.first, group.last).items():
            columns.setdefault(name, []).extend(values)
        wanted = group.last + 1
    return whole_body(short, columns)
