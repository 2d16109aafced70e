"""SQL reads of recorded answers, page by page, on the caller's connection."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select

from app.ledger.database.recorded_answers import (
    AnswerRow,
    RecordedAnswer,
    checked_answer,
    checked_bytes,
)
from app.ledger.database.statements import PAGE_ROWS, every, of_release
from app.ledger.database.tables import answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

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


def read_answers(
    connection: Connection, release_number: int, after: int
) -> list[tuple[int, AnswerRow]]:
    """Return a page of the answers after number ``after``, each with its entry's number."""
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


def each_answer(
    connection: Connection, release_number: int, after: int
) -> Iterator[tuple[int, AnswerRow]]:
    """Yield every answer after number ``after``, in order, each with its entry's number."""
    read = partial(read_answers, connection, release_number)
    return every(read, after, lambda row: row[1].answer.query_id)


def read_answer_count(connection: Connection, release_number: int, after: int) -> tuple[int, int]:
    """Return how many answers follow number ``after``, and the number of the last one (or 0)."""
    at = {"release": release_number, "after": after}
    count = connection.execute(_ANSWER_COUNT, at).scalar_one()
    last = connection.execute(_LAST_ANSWER, {"release": release_number}).scalar()
    return count, last or 0
