"""MLflow's scoring protocol: ``POST /invocations`` and ``GET /ping``.

A request may contain many rows. All rows are validated first, and then answered in order, a group
of rows at a time.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends
from starlette.requests import Request

from app.answering.answer_query import Edge, Step
from app.answering.answers import Answer
from app.answering.queries import Query, in_columns
from app.data.vectors_and_schema import Schema, Vector, parse_features
from app.errors import (
    BudgetExhaustedError,
    InvalidFeaturesError,
    KeyLimitError,
    MalformedBodyError,
    RequestError,
    TooLargeError,
    UnavailableError,
)
from app.http import read_routes
from app.http.access.access_control import asker_of
from app.http.openapi.body_declarations import takes
from app.http.openapi.protocol_models import Invocation, InvocationCsv, Predictions, SplitFrame
from app.http.openapi.query_models import documented_key
from app.http.openapi.read_models import Status
from app.http.openapi.refusal_replies import ANSWER_REFUSALS, BODY_REFUSALS, refused
from app.http.problems import InvalidParameterError
from app.http.query.query_body import idempotency_key, refuse_repeated_members
from app.http.route_handling import CurrentApi, Document, QueryRoute, router_of
from app.http.wire.headers_and_bodies import (
    CSV,
    JSON,
    check_media_type,
    media_type,
    read_body,
    read_csv,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.answering.queries import Asker, Queries
    from app.answering.service import ConclaveService

router = router_of(QueryRoute)
WINDOW_ROWS: Final = 512
ONE_ROW: Final = (
    "an Idempotency-Key is for one row; leave it out: every row is recorded, and the same rows "
    "get the same answers again"
)


async def validated(schema: Schema, rows: Sequence[object], *, rows_max: int) -> list[Vector]:
    """Return every row after validation, with pauses for other tasks.

    Args:
        schema: the public schema.
        rows: the rows; each is a sequence in the order of the schema, or a mapping by feature name.
        rows_max: the largest number of rows in a request.

    Raises:
        InvalidFeaturesError: a row does not fit the schema; the error names the feature, and the
            first wrong row if there are several rows.
        TooLargeError: there are more than ``rows_max`` rows.

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
) -> Queries:
    """Return one query per row; a single row also gets the request's idempotency key.

    Raises:
        InvalidParameterError: an idempotency key was sent with no row or with several rows.

    """
    if idempotency_key is not None and len(vectors) != 1:
        raise InvalidParameterError(ONE_ROW)
    return in_columns([Query(vector, idempotency_key, asker=asker) for vector in vectors])


async def answer_rows(service: ConclaveService, queries: Queries) -> list[Answer | None]:
    """Return one answer per row, in order; None once the budget or API key's limit is used up.

    Raises:
        BudgetExhaustedError: the release has halted, and no row has an answer.
        KeyLimitError: the API key is at its limit, and no row has an answer.
        RequestError: the request has one row, which is refused for another reason.
        UnavailableError: the server cannot answer now; the answers to earlier rows are recorded,
            so that a repeated request gets them again.
        IntegrityError: the release has stopped.

    """
    answers: list[Answer | None] = []
    ended: RequestError | None = None
    for start in range(0, len(queries), WINDOW_ROWS):
        for outcome in await service.answer_many(queries.part(start, start + WINDOW_ROWS)):
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


MEDIA_TYPES: Final = frozenset({JSON, CSV})
SHAPE: Final = (
    "send one JSON object with one of dataframe_split, dataframe_records, instances and inputs, "
    "or a CSV with a header as text/csv; GET /schema lists the features"
)
SPLIT_SHAPE: Final = (
    'dataframe_split is {"columns": [...], "data": [[...], ...]}: each column once, each row of '
    "the columns' length"
)
COLUMNS_SHAPE: Final = "inputs by name are lists of one length, or one value each"
REPEATED_FORM: Final = "send exactly one of dataframe_split, dataframe_records, instances, inputs"


class QuickDocument(Document):
    """A JSON reply whose headers have the same order as those of an answer of ``POST /query``."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set the content type's header before that of the content length."""
        super().init_headers(headers)
        self.raw_headers.reverse()


@router.get("/ping")
async def ping(api: CurrentApi) -> Status:
    """Report that the release is open, as ``/readyz`` does."""
    return await read_routes.ready(api)


@router.post(
    "/invocations",
    response_class=QuickDocument,
    dependencies=[Depends(documented_key)],
    responses=refused(*BODY_REFUSALS, *ANSWER_REFUSALS, MalformedBodyError(SHAPE)),
    openapi_extra=takes({JSON: Invocation, CSV: InvocationCsv}),
)
async def invoke(api: CurrentApi, request: Request) -> Predictions:
    """Return labels for all rows, after validating them and committing their answers."""
    service = api.slot.service
    check_media_type(request.headers, MEDIA_TYPES)
    key = idempotency_key(request.headers)
    body = await read_body(request, bytes_max=api.limits.body_bytes_max)
    api.observe(Step.VALIDATE, Edge.BEFORE)
    is_csv = media_type(request.headers) == CSV
    parse = _parse_csv if is_csv else _parse_json
    vectors = await parse(service.schema, body, api.limits.batch_rows_max)
    queries = as_queries(vectors, key, asker_of(request.scope))
    api.observe(Step.VALIDATE, Edge.AFTER)
    answers = await answer_rows(service, queries)
    labels = [None if answer is None else answer.label for answer in answers]
    return Predictions(predictions=labels)


async def _parse_csv(schema: Schema, body: bytes, rows_max: int) -> list[Vector]:
    return await validated(schema, read_csv(schema, body), rows_max=rows_max)


async def _parse_json(schema: Schema, body: bytes, rows_max: int) -> list[Vector]:
    decoded = Invocation.read(body)
    if decoded is None:
        # NaN and 1e999 are no JSON, but a client that sends them is told the feature.
        await validated(schema, _rows(schema, _decode_loosely(body)), rows_max=rows_max)
        raise MalformedBodyError(SHAPE) from None
    vectors = await validated(schema, _rows(schema, decoded), rows_max=rows_max)
    refuse_repeated_members(body)
    return vectors


def _decode_loosely(body: bytes) -> Invocation:
    """Return a body whose JSON only the standard library takes."""
    try:
        return Invocation.model_validate(json.loads(body.decode("utf-8")))
    except (ValueError, RecursionError):  # the model's errors are values' too
        raise MalformedBodyError(f"the body is not JSON of the right shape; {SHAPE}") from None


def _rows(schema: Schema, body: Invocation) -> Sequence[object]:
    """Return the rows of whichever form was sent, each still to be validated."""
    forms = (body.dataframe_split, body.dataframe_records, body.instances, body.inputs)
    if sum(form is not None for form in forms) != 1:
        raise MalformedBodyError(REPEATED_FORM)
    if body.dataframe_split is not None:
        return _split_rows(body.dataframe_split)
    if body.dataframe_records is not None:
        return body.dataframe_records
    if isinstance(body.inputs, dict):
        return _column_rows(body.inputs)
    rows = body.instances if body.inputs is None else body.inputs
    if len(schema.feature_names) > 1:
        return rows or []
    # One value a row needs no list around it.
    return [row if isinstance(row, list | dict) else [row] for row in rows or []]


def _split_rows(frame: SplitFrame) -> Sequence[object]:
    columns = frame.columns
    if columns is None:
        return frame.data
    if len(set(columns)) < len(columns) or any(len(row) != len(columns) for row in frame.data):
        raise MalformedBodyError(SPLIT_SHAPE)
    return [dict(zip(columns, row, strict=True)) for row in frame.data]


def _column_rows(columns: dict[str, Any]) -> Sequence[object]:
    """Return a row for each place in the columns; values that are no lists are one row."""
    if not any(isinstance(values, list) for values in columns.values()):
        return [columns]
    lengths = {len(each) if isinstance(each, list) else -1 for each in columns.values()}
    if len(lengths) > 1:
        raise MalformedBodyError(COLUMNS_SHAPE)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
