"""The route ``/statistics``: mean outcomes of rules over the rows, from a noisy table.

A rule (hypothesis) asks yes-or-no questions about features (feature tests), and has two outcomes.
Its mean outcome over the private rows counts the first outcome as -1 and the second as 1. The
release publishes one table with a noisy count of rows for each rule (the statistics table);
computing means from it costs nothing more.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.answering.service import NO_STATISTICS, STATISTICS_NOT_OPEN
from app.errors import (
    InvalidHypothesisError,
    MalformedBodyError,
    NoStatisticsError,
    StatisticsNotOpenError,
    TooLargeError,
    UnsupportedMediaTypeError,
)
from app.http.openapi.body_declarations import gives, takes
from app.http.openapi.query_models import StatisticsAnswer, StatisticsQuestion, StatisticsTable
from app.http.openapi.refusal_replies import UNREADABLE, refused
from app.http.route_handling import CurrentApi, Document, QueryRoute, router_of
from app.http.wire.headers_and_bodies import JSON, JSON_TYPES, check_media_type, read_body

SHAPE: Final = (
    'send one JSON object {"hypotheses": [...]}, each of them a classifier '
    'document as GET /classifier gives it, or {"tree": ...}'
)
REFUSALS: Final = (
    NoStatisticsError(NO_STATISTICS),
    StatisticsNotOpenError(STATISTICS_NOT_OPEN),
    UNREADABLE,
)
router = router_of(QueryRoute)


@router.post(
    "/statistics",
    response_class=Document,
    response_model=StatisticsAnswer,
    responses=refused(
        MalformedBodyError(SHAPE),
        InvalidHypothesisError(number=0, problem="has a label that is not one of the classes"),
        *REFUSALS,
        TooLargeError("the body is longer than 1048576 bytes"),
        UnsupportedMediaTypeError("send the body with `Content-Type: application/json`"),
    ),
    openapi_extra=takes({JSON: StatisticsQuestion}),
)
async def ask_statistics(api: CurrentApi, request: Request) -> object:
    """Return the mean outcome of every posted hypothesis, without any charge."""
    service = api.slot.service
    check_media_type(request.headers, JSON_TYPES)
    body = await read_body(request, bytes_max=api.limits.body_bytes_max)
    await service.statistics_document()  # without a table nothing else matters
    question = StatisticsQuestion.read(body)
    if question is None:
        raise MalformedBodyError(SHAPE)
    return await service.statistics(question.hypotheses)


@router.get(
    "/statistics/table",
    response_class=Response,
    responses=gives({JSON: StatisticsTable}) | refused(*REFUSALS),
)
async def statistics_table(api: CurrentApi) -> Response:
    """Return the published statistics table: feature tests, rules, and a count of each rule."""
    return Response(await api.slot.service.statistics_document(), media_type=JSON)
