"""The cheap routes: budget, ledger, classifier, schema, probes.

Which of a route's media types a client takes, and likes best (RFC 9110, 12.5.1).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from app.data.validate import describe_schema
from app.errors import NotExportableError
from app.http.problems import InvalidParameterError, NotAcceptableError
from app.http.wire.bodies import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from app.http.endpoint import Api

WEIGHT: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


def accepted(header_lines: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Return the offered media types that a client takes, the liked best first.

    Of the ranges that match a type the most exact one says its weight.  Equal
    weights leave the order of ``offered``; no header at all takes everything.

    Args:
        header_lines: every ``Accept`` header of the request.
        offered: media types in lower case, the route's own first choice first.

    """
    weights: dict[str, float] = {}
    for part in ",".join(header_lines or ["*/*"]).split(","):
        media_range, *parameters = (each.strip().lower() for each in part.split(";"))
        weights[media_range] = _weight(parameters)
    liking = {media_type: _liking(media_type, weights) for media_type in offered}
    return sorted((each for each in offered if liking[each] > 0), key=lambda each: -liking[each])


def _weight(parameters: Sequence[str]) -> float:
    """Return the weight of a media range: 1 where none is said, 0 where it is no number."""
    for parameter in parameters:
        name, _, value = (each.strip() for each in parameter.partition("="))
        if name == "q":
            return float(value) if WEIGHT.fullmatch(value) else 0.0
    return 1.0


def _liking(media_type: str, weights: dict[str, float]) -> float:
    """Return the weight of the most exact range that matches."""
    family = media_type.partition("/")[0]
    for media_range in (media_type, f"{family}/*", "*/*"):
        if media_range in weights:
            return weights[media_range]
    return 0.0


NUMBER_DIGITS_MAX: Final = 18
LEDGER_LIMIT_DEFAULT: Final = 100
ONNX: Final = "application/onnx"
MODEL_HEADERS: Final = {
    "vary": "accept",
    "content-disposition": 'attachment; filename="classifier.onnx"',
}
TWO_FORMS: Final = (
    "the classifier is given as JSON and as ONNX; send `Accept: application/json` or "
    "`Accept: application/onnx`"
)


async def budget(api: Api, request: Request) -> Response:
    """Give phase, charges and what is left."""
    del request
    return _json((await api.slot.service.read_budget()).model_dump())


async def outlook(api: Api, request: Request) -> Response:
    """Give what was answered when, what is to be expected, and how far entries were checked."""
    del request
    return _json(await api.slot.service.outlook())


async def parameters(api: Api, request: Request) -> Response:
    """Give the public parameters in words, each with its formula."""
    del request
    return _json({"parameters": api.slot.service.parameters()})


async def ledger(api: Api, request: Request) -> Response:
    """Give a page of the ledger's public part, and the head it was read at."""
    after = _whole_number(request, "after", default=0, least=0)
    limit = _whole_number(request, "limit", default=LEDGER_LIMIT_DEFAULT, least=1)
    service = api.slot.service
    page_size = min(limit, api.limits.ledger_entries_max)
    entries = await service.ledger_entries(after=after, limit=page_size)
    return _json({"entries": entries, "head": await service.ledger_head()})


async def ledger_head(api: Api, request: Request) -> Response:
    """Give sequence and hash of the newest entry."""
    del request
    return _json(await api.slot.service.ledger_head())


async def classifier(api: Api, request: Request) -> Response:
    """Give the published classifier in the form that the client likes best."""
    service = api.slot.service
    body = await service.classifier()
    refusal = TWO_FORMS
    for media_type in accepted(request.headers.getlist("accept"), (JSON, ONNX)):
        if media_type == JSON:
            return Response(body, media_type=JSON, headers={"vary": "accept"})
        try:
            model = await service.classifier_onnx()
        except NotExportableError as error:
            refusal = str(error)
        else:
            return Response(model, media_type=ONNX, headers=MODEL_HEADERS)
    raise NotAcceptableError(refusal)


async def schema(api: Api, request: Request) -> Response:
    """Give what a client needs to ask: features, classes, missing tokens, a score's precision."""
    del request
    service = api.slot.service
    scores = {} if service.precision is None else {"precision": service.precision}
    return _json({"release": service.release_name} | describe_schema(service.schema) | scores)


async def alive(api: Api, request: Request) -> Response:
    """Say that the process answers."""
    del api, request
    return _json({"status": "alive"})


async def ready(api: Api, request: Request) -> Response:
    """Say that the release is open, in whatever phase; refuse while it is not."""
    del request
    api.slot.check_open()
    return _json({"status": "ready"})


def _json(document: object) -> Response:
    body = msgspec.json.encode(document)
    return Response(body, media_type=JSON, headers={"cache-control": "no-store"})


def _whole_number(request: Request, name: str, *, default: int, least: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS_MAX:
        number = int(text)
        if number >= least:
            return number
    problem = f"of at least {least} and at most {NUMBER_DIGITS_MAX} digits"
    raise InvalidParameterError(f"{name} is a whole number {problem}")
