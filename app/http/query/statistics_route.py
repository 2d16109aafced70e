"""``/statistics``: means of hypotheses over the rows, from the released table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from app.errors import MalformedBodyError
from app.http.wire.bodies import JSON, JSON_TYPES, check_media_type, read_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from app.http.endpoint import Api

SHAPE: Final = (
    'send one JSON object {"hypotheses": [...]}, each of them a classifier '
    'document as GET /classifier gives it, or {"tree": ...}'
)


class StatisticsBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /statistics``; each hypothesis is checked against the schema."""

    hypotheses: list[Any]


_BODY: Final = msgspec.json.Decoder(StatisticsBody)


async def ask_statistics(api: Api, request: Request) -> Response:
    """Give the mean of every posted hypothesis; nothing is charged, however often it is asked."""
    service = api.slot.service
    check_media_type(request.headers, JSON_TYPES)
    body = await read_body(request, bytes_max=api.limits.body_bytes_max)
    await service.statistics_document()  # without a table nothing else matters
    answer = await service.statistics(_hypotheses(body))
    return Response(msgspec.json.encode(answer), media_type=JSON)


async def statistics_table(api: Api, request: Request) -> Response:
    """Give the released table itself: its tests, its hypotheses and their counts."""
    del request
    return Response(await api.slot.service.statistics_document(), media_type=JSON)


def _hypotheses(body: bytes) -> list[Any]:
    try:
        decoded = _BODY.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise MalformedBodyError(SHAPE) from None
    return decoded.hypotheses
