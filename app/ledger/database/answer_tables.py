"""SQL of the two tables of recorded answers, on the caller's connection.

New answers are in the table ``answer_groups``, many in a row; ``answer_groups.py`` has the form of
a row's body. The table ``answers`` has the answers that earlier versions recorded, a row each; they
come first, and it takes no further rows.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import bindparam, func, select

from app.errors import LedgerCorruptError
from app.ledger.database.answer_groups import (
    answer_in,
    digests_in,
    packed_groups,
    unpack,
)
from app.ledger.database.driver import fetch_all, insert_rows
from app.ledger.database.recorded_answers import (
    AnswerRow,
    RecordedAnswer,
    checked_answer,
    checked_bytes,
)
from app.ledger.database.statements import PAGE_ROWS, every, of_release
from app.ledger.database.tables import answers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection

GROUPS_READ: Final = 128
"""Groups of answers that are read together, some 100 KB."""

SEARCHED_MAX: Final = 256
"""Numbers of one statement."""

_NUMBER_MAX: Final = 2**63 - 1

_ANSWERS = (
    select(
        answers.c.sequence,
        answers.c.vector_digest,
        answers.c.vector,
        answers.c.qualifier,
        *(answers.c[name] for name in RecordedAnswer.__struct_fields__),
    )
    .where(of_release(answers), answers.c.query_id > bindparam("after"))
    .order_by(answers.c.query_id)
    .limit(bindparam("count"))
)
_ANSWER_COUNT = (
    select(func.count())
    .select_from(answers)
    .where(of_release(answers), answers.c.query_id > bindparam("after"))
)
_LAST_ANSWER = select(func.max(answers.c.query_id)).where(of_release(answers))
_FIELDS: Final = ", ".join(RecordedAnswer.__struct_fields__)
_ONE_ANSWER: Final = (
    f"SELECT vector_digest, {_FIELDS} FROM answers WHERE release_number = ? AND query_id = ?"  # noqa: S608 -- names of columns
)
_ANSWERS_ASKED: Final = (
    f"WITH asked (number) AS (VALUES {{asked}}) SELECT vector_digest, {_FIELDS} "  # noqa: S608 -- as above
    "FROM asked CROSS JOIN answers WHERE answers.query_id = asked.number AND release_number = ?"
)
_INSERT_GROUP: Final = (
    "INSERT INTO answer_groups (release_number, last_query_id, first_query_id, sequence, body) "
    "VALUES (?, ?, ?, ?, ?)"
)
_TYPES: Final = ("smallint", "bigint", "bigint", "bigint", "bytea")
_GROUPS: Final = (
    "SELECT first_query_id, last_query_id, sequence, body FROM answer_groups "
    "WHERE release_number = ? AND last_query_id > ? AND last_query_id <= ? "
    "ORDER BY last_query_id LIMIT ?"
)
_ONE_GROUP: Final = (
    "SELECT first_query_id, last_query_id, body FROM answer_groups "
    "WHERE release_number = ? AND last_query_id >= ? ORDER BY last_query_id LIMIT 1"
)
_GROUPS_ASKED: Final = (
    "WITH asked (number) AS (VALUES {asked}) "
    "SELECT number, first_query_id, last_query_id, body FROM asked CROSS JOIN answer_groups "
    "WHERE release_number = ? AND last_query_id = (SELECT MIN(last_query_id) FROM answer_groups "
    "WHERE release_number = ? AND last_query_id >= number)"
)
_COUNT_IN_GROUPS: Final = (
    "SELECT CAST(SUM(last_query_id - first_query_id + 1) AS BIGINT), MIN(first_query_id) "
    "FROM answer_groups WHERE release_number = ? AND last_query_id > ?"
)
_LAST_IN_GROUPS: Final = "SELECT MAX(last_query_id) FROM answer_groups WHERE release_number = ?"


class AnswerColumns(NamedTuple):
    """The new answers of an entry, as columns of equal length.

    Attributes:
        vector_digests: the keyed digest of each vector, or of its cell, 32 bytes.
        vectors: the canonical bytes of each vector as posted, or of its cell.
        given: the answers, in the order of their numbers, which follow without gaps.
        qualifiers: bytes that also identify each query; empty if there are none.

    """

    vector_digests: Sequence[bytes]
    vectors: Sequence[bytes]
    given: Sequence[RecordedAnswer]
    qualifiers: Sequence[bytes]


class Group(NamedTuple):
    """A row of the table ``answer_groups``: some consecutive answers of one entry.

    Attributes:
        first: the number of the first answer.
        last: the number of the last answer.
        sequence: the number of the entry.
        body: the answers, in the form that ``answer_groups.py`` has.

    """

    first: int
    last: int
    sequence: int
    body: bytes


def insert_answers(
    connection: Connection, release_number: int, sequence: int, columns: AnswerColumns
) -> None:
    """Insert the answers of one entry, as few rows as they fit in.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release in the database.
        sequence: the number of the entry.
        columns: the answers, at least one.

    Raises:
        SQLAlchemyError: the database refused a row.

    """
    before, begin = columns.given[0].query_id - 1, 0
    rows: list[tuple[int | bytearray, ...]] = []
    for end, body in packed_groups(*columns):
        rows.append((release_number, before + end, before + begin + 1, sequence, body))
        begin = end
    insert_rows(connection, _INSERT_GROUP, rows, types=_TYPES)


def read_answers(
    connection: Connection, release_number: int, after: int
) -> list[tuple[int, AnswerRow]]:
    """Return a page of the answers after number ``after``, each with its entry's number."""
    found = _read_single(connection, release_number, after)
    if len(found) < PAGE_ROWS:
        after = found[-1][1].answer.query_id if found else after
        found += _answers_in(_read_groups(connection, release_number, after), after)
    return found


def each_answer(
    connection: Connection, release_number: int, after: int
) -> Iterator[tuple[int, AnswerRow]]:
    """Yield every answer after number ``after``, in order, each with its entry's number.

    Raises:
        LedgerCorruptError: an answer is in two rows.

    """
    ended = 0
    read_single = partial(_read_single, connection, release_number)
    for placed in every(read_single, after, lambda row: row[1].answer.query_id):
        after = ended = placed[1].answer.query_id
        yield placed
    yield from _answers_in(each_group(connection, release_number, after), after, ended)


def read_answer_count(connection: Connection, release_number: int, after: int) -> tuple[int, int]:
    """Return how many answers follow number ``after``, and the number of the last one (or 0)."""
    at = {"release": release_number, "after": after}
    count: int = connection.execute(_ANSWER_COUNT, at).scalar_one()
    last: int = connection.execute(_LAST_ANSWER, {"release": release_number}).scalar() or 0
    ((found, first),) = fetch_all(connection, _COUNT_IN_GROUPS, (release_number, after))
    ((newest,),) = fetch_all(connection, _LAST_IN_GROUPS, (release_number,))
    if found is not None:
        count += _number(found) - max(0, after + 1 - _number(first))
    return count, last if newest is None else _number(newest)


def read_digests(
    connection: Connection, release_number: int, after: int
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the entry's number and the digests of each group of answers after number ``after``.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release in the database.
        after: the number of the last answer of an entry.

    """
    for group in each_group(connection, release_number, after):
        yield group.sequence, digests_in(group.body, group.first, group.last)


def read_answer(
    connection: Connection, release_number: int, number: int
) -> tuple[bytes, RecordedAnswer]:
    """Return an answer by its number, with the digest of its vector.

    Raises:
        LedgerCorruptError: the answer is missing.

    """
    rows = fetch_all(connection, _ONE_GROUP, (release_number, number))
    if rows and (found := _in_group(number, *rows[0])):
        return found
    rows = fetch_all(connection, _ONE_ANSWER, (release_number, number))
    if not rows:
        raise LedgerCorruptError(f"answer {number} is missing from the answers table")
    digest, *values = rows[0]
    return checked_bytes(digest), checked_answer(values)


def read_numbered(
    connection: Connection, release_number: int, numbers: Iterable[int]
) -> list[tuple[bytes, RecordedAnswer]]:
    """Return several answers by their numbers, each with the digest of its vector.

    Raises:
        LedgerCorruptError: an answer is missing.

    """
    wanted = sorted(set(numbers))
    found: dict[int, tuple[bytes, RecordedAnswer]] = {}
    for some in _parts(wanted):
        asked = (*some, release_number, release_number)
        statement = _asking(_GROUPS_ASKED, len(some))
        for number, first, last, body in fetch_all(connection, statement, asked):
            at = _number(number)
            if in_group := _in_group(at, first, last, body):
                found[at] = in_group
    if len(found) < len(wanted):
        for some in _parts([number for number in wanted if number not in found]):
            statement = _asking(_ANSWERS_ASKED, len(some))
            for digest, *values in fetch_all(connection, statement, (*some, release_number)):
                answer = checked_answer(values)
                found[answer.query_id] = checked_bytes(digest), answer
    missing = [number for number in wanted if number not in found]
    if missing:
        raise LedgerCorruptError(f"answer {missing[0]} is missing from the answers table")
    return [found[number] for number in wanted]


def _in_group(
    number: int, first: object, last: object, body: object
) -> tuple[bytes, RecordedAnswer] | None:
    """Return an answer of a stored group with its digest, or None if the group begins after it.

    The group is the first one whose last number is not less than the answer's.
    """
    if type(first) is not int or type(last) is not int or type(body) is not bytes:
        raise TypeError("a group of answers has two numbers and a body")
    return answer_in(body, first, last, number) if first <= number else None


def _read_single(
    connection: Connection, release_number: int, after: int
) -> list[tuple[int, AnswerRow]]:
    """Return a page of the answers that have a row each."""
    at = {"release": release_number, "after": after, "count": PAGE_ROWS}
    return [
        (
            sequence,
            AnswerRow(
                checked_bytes(digest),
                checked_bytes(vector),
                checked_answer(values),
                b"" if qualifier is None else checked_bytes(qualifier),
            ),
        )
        for sequence, digest, vector, qualifier, *values in connection.execute(_ANSWERS, at)
    ]


def each_group(
    connection: Connection, release_number: int, after: int, until: int = _NUMBER_MAX
) -> Iterator[Group]:
    """Yield every group that has an answer after number ``after``, in order.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release in the database.
        after: the number of an answer, or 0.
        until: the largest last number of a group that is yielded.

    """
    read = partial(_read_groups, connection, release_number, until=until)
    return every(read, after, lambda group: group.last)


def _read_groups(
    connection: Connection, release_number: int, after: int, until: int = _NUMBER_MAX
) -> list[Group]:
    """Return a page of the groups that have an answer after a number."""
    rows = fetch_all(connection, _GROUPS, (release_number, after, until, GROUPS_READ))
    return [
        Group(_number(first), _number(last), _number(sequence), checked_bytes(body))
        for first, last, sequence, body in rows
    ]


def _answers_in(
    groups: Iterable[Group], after: int, ended: int = 0
) -> Iterator[tuple[int, AnswerRow]]:
    """Yield the answers of groups that follow a number, and refuse groups that overlap.

    A group also overlaps if it begins at ``ended``, the number of an answer before, or earlier.
    """
    for group in groups:
        if group.first <= ended:
            raise LedgerCorruptError(f"answer {group.first} is in two rows of answers")
        ended = group.last
        for row in unpack(group.body, group.first, group.last):
            if row.answer.query_id > after:
                yield group.sequence, row


def _parts(numbers: Sequence[int]) -> Iterator[list[int | None]]:
    """Yield some numbers at a time, filled up so that there are few sizes of statements."""
    for begin in range(0, len(numbers), SEARCHED_MAX):
        some = numbers[begin : begin + SEARCHED_MAX]
        yield [*some, *[None] * ((1 << (len(some) - 1).bit_length()) - len(some))]


@lru_cache(maxsize=64)
def _asking(statement: str, count: int) -> str:
    return statement.format(asked=", ".join(["(?)"] * count))


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError("the number of an answer or of an entry is a whole number")
    return value
