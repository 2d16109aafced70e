"""``POST /query``: one vector, one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from app.answering.queries import in_columns
from app.answering.types import Answer, Edge, Step
from app.http.access.door import asker_of
from app.http.query.query_body import idempotency_key, parse_body
from app.http.wire.bodies import JSON_TYPES, check_media_type, read_body
from app.http.wire.fast import JsonReply

if TYPE_CHECKING:
    from starlette.requests import Request

    from app.http.endpoint import Api


async def answer_query(api: Api, request: Request) -> JsonReply:
    """Validate one query, wait until its answer is committed, and give it."""
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
    (outcome,) = await service.answer_many(in_columns([query]))
    if not isinstance(outcome, Answer):
        raise outcome
    return JsonReply(msgspec.json.encode(outcome))
