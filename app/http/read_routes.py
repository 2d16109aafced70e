"""The routes that only read public state: budget, ledger, classifier, schema, probes.

The outlook is the history of answers with a forecast of when the models stop answering. The module
also finds the media type that a client prefers (RFC 9110, 12.5.1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from fastapi import Query
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from app.answering.hourly_counts import ANSWER_KINDS, AnswerCounts
from app.answering.service import Budget
from app.data.vectors_and_schema import describe_schema
from app.errors import IntegrityError, NotExportableError, NotPublishedError, UnavailableError
from app.http.access.access_control import caller_of
from app.http.access.keys import Key, Role
from app.http.openapi.body_declarations import gives
from app.http.openapi.read_models import (
    Classifier,
    ClassifierModel,
    History,
    KeysUsage,
    KeyUsage,
    LedgerHead,
    LedgerPage,
    LedgerStorage,
    NewestBackup,
    Outlook,
    Parameters,
    Schema,
    Server,
    Status,
)
from app.http.openapi.refusal_replies import UNREADABLE, refused
from app.http.problems import InvalidParameterError, NotAcceptableError
from app.http.route_handling import (
    AdminRoute,
    CurrentApi,
    OpenRoute,
    QueryRoute,
    ReadRoute,
    router_of,
)
from app.http.version import installed_version
from app.http.wire.headers_and_bodies import JSON

WEIGHT: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


def accepted(header_lines: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Return the offered media types that the client accepts, in the client's order.

    If several media ranges of the header match a type, the most specific range determines its
    weight. Types of equal weight stay in the order of ``offered``; without a header, every type is
    accepted.

    Args:
        header_lines: every ``Accept`` header of the request.
        offered: the route's media types in lower case, the preferred one first.

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


RATE_WINDOWS_SECONDS: Final = (10, 300)
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
read_router = router_of(ReadRoute)
admin_router = router_of(AdminRoute)
query_router = router_of(QueryRoute)
probe_router = router_of(OpenRoute)


def _whole_number(name: str, least: int, text: str) -> int:
    """Return the number that a query parameter is.

    Raises:
        InvalidParameterError: it is none, or too small or too long.

    """
    if text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS_MAX:
        number = int(text)
        if number >= least:
            return number
    problem = f"of at least {least} and at most {NUMBER_DIGITS_MAX} digits"
    raise InvalidParameterError(f"{name} is a whole number {problem}")


After = Annotated[
    int,
    Query(ge=0, description="entries that follow this sequence"),
    BeforeValidator(partial(_whole_number, "after", 0)),
]
Limit = Annotated[
    int,
    Query(ge=1, description="how many at most; a page never has more than 1000"),
    BeforeValidator(partial(_whole_number, "limit", 1)),
]


@read_router.get("/budget", responses=refused(UNREADABLE))
async def budget(api: CurrentApi) -> Budget:
    """Return the release's phase, its spent budget and its remaining budget."""
    return await api.slot.service.read_budget()


@read_router.get(
    "/budget/outlook",
    response_model=Outlook,
    response_model_exclude_unset=True,
    responses=refused(UNREADABLE),
)
async def outlook(api: CurrentApi) -> dict[str, object]:
    """Return past answers over time, a forecast, and how much of the ledger was checked again."""
    return await api.slot.service.outlook()


@read_router.get("/budget/history", response_model=History, responses=refused(UNREADABLE))
async def history(api: CurrentApi) -> dict[str, object]:
    """Return the number of queries by hour, from all servers, for the newest 31 days."""
    return await api.slot.service.history()


@read_router.get("/parameters", response_model=Parameters)
async def parameters(api: CurrentApi) -> dict[str, object]:
    """Return the public parameters as sentences, each with its formula."""
    return {"parameters": api.slot.service.parameters()}


@admin_router.get(
    "/ledger",
    response_model=LedgerPage,
    responses=refused(
        InvalidParameterError("limit is a whole number of at least 1 and at most 18 digits"),
        UNREADABLE,
    ),
)
async def ledger(
    api: CurrentApi, after: After = 0, limit: Limit = LEDGER_LIMIT_DEFAULT
) -> dict[str, object]:
    """Return a page of the ledger's public entries, and the newest entry's number and hash."""
    service = api.slot.service
    page_size = min(limit, api.limits.ledger_entries_max)
    entries = await service.ledger_entries(after=after, limit=page_size)
    return {"entries": entries, "head": await service.ledger_head()}


@admin_router.get("/keys/usage", responses=refused(UNREADABLE))
async def keys_usage(api: CurrentApi) -> KeysUsage:
    """Return the answer counts and limits of each API key in this release."""
    counts = await api.slot.service.key_counts()
    listed = {} if api.keys is None else {key.name: key for key in api.keys.listed()}
    names = sorted({*listed, *counts})
    return KeysUsage(keys=[_usage(name, listed.get(name), counts.get(name)) for name in names])


def _usage(name: str, key: Key | None, count: tuple[int, int] | None) -> KeyUsage:
    answers, unstable = (0, 0) if count is None else count
    limit, unstable_limit = (None, None) if key is None else (key.limit, key.unstable_limit)
    return KeyUsage(
        name=name, answers=answers, unstable=unstable, limit=limit, unstable_limit=unstable_limit
    )


@admin_router.get("/ledger/storage")
async def ledger_storage(api: CurrentApi) -> LedgerStorage:
    """Return known facts of the ledger's machine: newest backup, free space, head file."""
    service = api.slot.service
    storage = await service.storage()
    made = storage.backup
    backup = None if made is None else NewestBackup(made_at=made.made_at, sequence=made.sequence)
    return LedgerStorage(
        backup=backup, bytes_free=storage.bytes_free, noted_sequence=service.noted_sequence()
    )


@read_router.get("/server")
async def this_server(api: CurrentApi, request: Request) -> Server:
    """Return this process's version, state and counts of replies, and the caller's roles."""
    caller = caller_of(request.scope)
    try:
        answers = _by_kind(api.slot.service.workload().answers)
    except (UnavailableError, IntegrityError):
        answers = []
    return Server.model_validate(
        {
            "version": installed_version(),
            "state": api.slot.state,
            "roles": sorted(Role if caller is None else caller.found.roles),
            "answers": answers,
            "refusals": {slug: count for slug, count in sorted(api.refusals.items()) if count},
        },
        strict=False,
    )


def _by_kind(counts: AnswerCounts) -> list[dict[str, object]]:
    return [
        {
            "kind": kind,
            "count": counts.count(kind),
            "pace": [
                {
                    "window_seconds": window,
                    "answers_per_second": counts.per_second(kind, window_seconds=window),
                }
                for window in RATE_WINDOWS_SECONDS
            ],
        }
        for kind in ANSWER_KINDS
    ]


@read_router.get("/ledger/head", response_model=LedgerHead, responses=refused(UNREADABLE))
async def ledger_head(api: CurrentApi) -> dict[str, object]:
    """Return the number and hash of the ledger's newest entry."""
    return await api.slot.service.ledger_head()


@query_router.get(
    "/classifier",
    response_class=Response,
    responses=gives({JSON: Classifier, ONNX: ClassifierModel})
    | refused(
        NotPublishedError("no classifier is published yet"),
        UNREADABLE,
        NotAcceptableError(TWO_FORMS),
    ),
)
async def classifier(api: CurrentApi, request: Request) -> Response:
    """Return the published classifier in the form that the client prefers."""
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


@query_router.get("/schema", response_model=Schema, response_model_exclude_unset=True)
async def schema(api: CurrentApi) -> dict[str, object]:
    """Return the schema: features, labels, texts for missing values, precision of scores."""
    service = api.slot.service
    scores = {} if service.precision is None else {"precision": service.precision}
    return {"release": service.release_name} | describe_schema(service.schema) | scores


@probe_router.get("/healthz")
async def alive() -> Status:
    """Report that the process is running."""
    return Status(status="alive")


@probe_router.get("/readyz")
async def ready(api: CurrentApi) -> Status:
    """Report that the release is open, in any phase; refuse if it is not."""
    api.slot.check_open()
    return Status(status="ready")
