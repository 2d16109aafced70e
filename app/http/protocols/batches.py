"""Many rows in one request: validated whole, then answered in order, part by part."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from app.answering.types import Answer, Query
from app.data.validate import Schema, Vector, parse_features
from app.errors import (
    BudgetExhaustedError,
    InvalidFeaturesError,
    KeyLimitError,
    RequestError,
    TooLargeError,
    UnavailableError,
)
from app.http.refusals import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.types import AnsweringService, Asker

WINDOW_ROWS: Final = 512
ONE_ROW: Final = (
    "an Idempotency-Key is for one row; leave it out: every row is recorded, and the same rows "
    "get the same answers again"
)


async def validated(schema: Schema, rows: Sequence[object], *, rows_max: int) -> list[Vector]:
    """Check every row against the schema, leaving the event loop to others now and then.

    Args:
        schema: the public schema.
        rows: each a sequence in schema order or an object by name.
        rows_max: of one request.

    Raises:
        InvalidFeaturesError: names the feature, and of several rows the first that is wrong.
        TooLargeError: there are more than ``rows_max``.

    """
    if len(rows) > rows_max:
        raise TooLargeError(f"{len(rows)} rows are more than {rows_max}; send them in parts")
    vectors: list[Vector] = []
    for row in rows:
        try:
            vectors.append(parse_features(schema, row))
        except InvalidFeaturesError as error:
            if len(rows) == 1:
                raise
            where = f"{error.problem} (rows[{len(vectors)}])"
            raise InvalidFeaturesError(feature=error.feature, problem=where) from None
        if len(vectors) % WINDOW_ROWS == 0:
            await asyncio.sleep(0)
    return vectors


def as_queries(
    vectors: Sequence[Vector], idempotency_key: str | None, asker: Asker | None
) -> list[Query]:
    """Return a query a row; a key, which is bound to one vector, is for one row alone.

    Raises:
        InvalidParameterError: a key with any other number of rows.

    """
    if idempotency_key is not None and len(vectors) != 1:
        raise InvalidParameterError(ONE_ROW)
    return [Query(vector, idempotency_key, asker=asker) for vector in vectors]


async def answer_rows(service: AnsweringService, queries: Sequence[Query]) -> list[Answer | None]:
    """Answer rows in order; None stands for one after the release halted, or its key's limit.

    Raises:
        BudgetExhaustedError: the release has halted, and no row has an answer.
        KeyLimitError: the key is at its limit, and no row has an answer.
        RequestError: what refuses a single row.
        UnavailableError: the rows before are recorded, so that asking again repeats them.
        IntegrityError: the release has stopped.

    """
    answers: list[Answer | None] = []
    ended: RequestError | None = None
    for start in range(0, len(queries), WINDOW_ROWS):
        for outcome in await service.answer_many(queries[start : start + WINDOW_ROWS]):
            if isinstance(outcome, (BudgetExhaustedError, KeyLimitError)):
                ended = outcome
                answers.append(None)
            else:
                answers.append(_answer_of(outcome, before=answers))
    if ended is not None and not any(answers):
        raise ended
    return answers


def _answer_of(
    outcome: Answer | RequestError | UnavailableError, *, before: Sequence[Answer | None]
) -> Answer:
    """Return an answer; raise a refusal, which says how many rows were answered before."""
    if isinstance(outcome, Answer):
        return outcome
    answered_count = len(before) - before.count(None)
    if isinstance(outcome, UnavailableError) and answered_count:
        raise type(outcome)(
            f"{outcome.detail}; {answered_count} rows of this request are answered and recorded: "
            "send the whole again"
        )
    raise outcome
