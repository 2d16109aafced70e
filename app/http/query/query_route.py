"""The route ``POST /query``, which answers one feature vector."""

from __future__ import annotations

import msgspec
from fastapi import Depends
from starlette.requests import Request

from app.answering.answer_query import Edge, Step
from app.answering.answers import Answer
from app.answering.queries import alone
from app.http.access.access_control import asker_of
from app.http.openapi import query_models as models
from app.http.openapi.body_declarations import takes
from app.http.openapi.refusal_replies import ANSWER_REFUSALS, BODY_REFUSALS, refused
from app.http.query.query_body import idempotency_key, parse_body
from app.http.route_handling import BusyRoute, CurrentApi, router_of
from app.http.wire.headers_and_bodies import (
    JSON,
    JSON_TYPES,
    JsonReply,
    check_media_type,
    read_body,
)

router = router_of(BusyRoute)


@router.post(
    "/query",
    response_model=models.Answer,
    dependencies=[Depends(models.documented_key)],
    responses=refused(*BODY_REFUSALS, *ANSWER_REFUSALS),
    openapi_extra=takes({JSON: models.Query}),
)
async def answer_query(api: CurrentApi, request: Request) -> JsonReply:
    """Return the answer to one query, after validating and committing it."""
    service = api.slot.service
    check_media_type(request.headers, JSON_TYPES)
    key = idempotency_key(request.headers)
    body = await read_body(request, bytes_max=api.limits.body_bytes_max)
    api.observe(Step.VALIDATE, Edge.BEFORE)
    query = parse_body(
        service.schema,
        body,
        key,
        with_scores=service.precision is not None,
        asker=asker_of(request.scope),
    )
    api.observe(Step.VALIDATE, Edge.AFTER)
    (outcome,) = await service.answer_many(alone(query))
    if not isinstance(outcome, Answer):
        raise outcome
    return JsonReply(msgspec.json.encode(outcome))
