"""The OpenAPI 3.1 document, assembled from the routes and the table of problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from app.api import query_body, statistics, stream
from app.api.access import CROSS_SITE, MISDIRECTED, SEND_A_KEY
from app.api.bodies import JSON, NDJSON
from app.api.openapi_schemas import COMPONENTS
from app.api.problems import MEDIA_TYPE, kind_of, problem_of, slug_of
from app.api.reads import ONNX, TWO_FORMS
from app.api.refusals import (
    CrossSiteError,
    InvalidParameterError,
    MisdirectedRequestError,
    NotAcceptableError,
)
from app.api.routes import ROUTES, RouteEntry
from app.api.version import VERSION
from app.errors import (
    BudgetExhaustedError,
    ContainedError,
    ForbiddenError,
    IdempotencyConflictError,
    InvalidFeaturesError,
    InvalidHypothesisError,
    LedgerUnavailableError,
    MalformedBodyError,
    NoStatisticsError,
    NotPublishedError,
    OpeningError,
    StatisticsNotOpenError,
    SwitchingError,
    TooLargeError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
)
from app.service.conclave_service import NO_STATISTICS, STATISTICS_NOT_OPEN
from app.service.slot import OPENING, STOPPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.api.openapi_schemas import JsonSchema

EVENT_STREAM: Final = "text/event-stream"
TEXT: Final = "text/plain"
BODY_REFUSALS: Final = (
    MalformedBodyError(query_body.SHAPE),
    InvalidParameterError(query_body.KEY_SHAPE),
    TooLargeError("the body is longer than 1048576 bytes"),
    UnsupportedMediaTypeError("send the body with `Content-Type: application/json`"),
)
ANSWER_REFUSALS: Final = (
    InvalidFeaturesError(feature="age", problem="a number is needed"),
    IdempotencyConflictError("this Idempotency-Key was used with another feature vector"),
    BudgetExhaustedError("the release has halted"),
    LedgerUnavailableError("the ledger did not take the commit; nothing was released"),
    SwitchingError("the published classifier is being drawn"),
)
STATISTICS_REFUSALS: Final = (
    NoStatisticsError(NO_STATISTICS),
    StatisticsNotOpenError(STATISTICS_NOT_OPEN),
    LedgerUnavailableError("the ledger cannot be read"),
)


@dataclass(frozen=True, slots=True)
class Operation:
    """What the document says of one route beside its path, method and role."""

    summary: str
    schema: str
    media_type: str = JSON
    refusals: tuple[Exception, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    other_forms: dict[str, Any] = field(default_factory=dict)


def _request_body(schema: str, media_type: str) -> dict[str, Any]:
    content = {media_type: _content(schema)}
    return {"requestBody": {"required": True, "content": content}}


def _content(schema: str) -> dict[str, Any]:
    examples = COMPONENTS[schema].get("examples", [])
    return {
        "schema": {"$ref": f"#/components/schemas/{schema}"},
        "examples": {
            f"example{number}": {"value": value} for number, value in enumerate(examples, 1)
        },
    }


def _parameter(name: str, place: str, schema: JsonSchema, description: str) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "description": description}


IDEMPOTENCY_KEY: Final = _parameter(
    "Idempotency-Key",
    "header",
    {"type": "string", "minLength": 1, "maxLength": 255},
    "1 to 255 visible ASCII characters; the same key again gets the same answer again",
)
PAGE: Final = [
    _parameter(
        "after",
        "query",
        {"type": "integer", "minimum": 0, "default": 0},
        "entries that follow this sequence",
    ),
    _parameter(
        "limit",
        "query",
        {"type": "integer", "minimum": 1, "default": 100},
        "how many at most; a page never has more than 1000",
    ),
]
OPERATIONS: Final = {
    "/query": Operation(
        "Ask one query",
        "Answer",
        refusals=(*BODY_REFUSALS, *ANSWER_REFUSALS),
        more={"parameters": [IDEMPOTENCY_KEY], **_request_body("Query", JSON)},
    ),
    "/query/stream": Operation(
        "Ask a query a line; each reply line is an Answer, or a Problem in its place",
        "Answer",
        NDJSON,
        refusals=(
            InvalidParameterError(stream.KEY_OF_A_STREAM),
            UnsupportedMediaTypeError("send the body with `Content-Type: application/x-ndjson`"),
        ),
        more=_request_body("QueryLine", NDJSON),
    ),
    "/budget": Operation("What is promised, charged and left", "Budget"),
    "/budget/events": Operation(
        "The same, on every change, as events named budget", "Budget", EVENT_STREAM
    ),
    "/ledger": Operation(
        "The public part of the ledger's entries",
        "LedgerPage",
        refusals=(
            InvalidParameterError("limit is a whole number of at least 1 and at most 18 digits"),
        ),
        more={"parameters": PAGE},
    ),
    "/ledger/head": Operation("The newest entry's sequence and hash", "LedgerHead"),
    "/classifier": Operation(
        "The published classifier",
        "Classifier",
        refusals=(
            NotPublishedError("no classifier is published yet"),
            LedgerUnavailableError("the ledger cannot be read"),
            NotAcceptableError(TWO_FORMS),
        ),
        other_forms={ONNX: _content("ClassifierModel")},
    ),
    "/statistics": Operation(
        "Means of hypotheses over the rows, from the released table",
        "StatisticsAnswer",
        refusals=(
            MalformedBodyError(statistics.SHAPE),
            InvalidHypothesisError(number=0, problem="has a label that is not one of the classes"),
            *STATISTICS_REFUSALS,
            TooLargeError("the body is longer than 1048576 bytes"),
            UnsupportedMediaTypeError("send the body with `Content-Type: application/json`"),
        ),
        more=_request_body("StatisticsQuestion", JSON),
    ),
    "/statistics/table": Operation(
        "The released table itself: tests, hypotheses, counts",
        "StatisticsTable",
        refusals=STATISTICS_REFUSALS,
    ),
    "/schema": Operation("The public schema that queries follow", "Schema"),
    "/metrics": Operation("The public quantities of the budget, for Prometheus", "Metrics", TEXT),
    "/healthz": Operation("Whether the process answers", "Status"),
    "/readyz": Operation("Whether the release is open, in whatever phase", "Status"),
}


def build_document(*, with_keys: bool) -> dict[str, Any]:
    """Return the document; ``with_keys`` says that callers need a key."""
    paths: dict[str, dict[str, Any]] = {}
    for entry in ROUTES:
        path = paths.setdefault(entry.path, {})
        path[entry.method.lower()] = _operation(entry, with_keys=with_keys)
    components: dict[str, Any] = {"schemas": COMPONENTS}
    if with_keys:
        components["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "basic", "description": "the key is the password"},
        }
    info = {
        "title": "Conclave",
        "version": VERSION,
        "summary": "Private answers to classification queries",
    }
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


def _operation(entry: RouteEntry, *, with_keys: bool) -> dict[str, Any]:
    operation = OPERATIONS[entry.path]
    refusals = [*operation.refusals, *_common_refusals(entry, with_keys=with_keys)]
    document: dict[str, Any] = {
        "operationId": entry.handler.__name__,
        "summary": operation.summary,
        **operation.more,
        "responses": {
            "200": {
                "description": operation.summary,
                "content": {operation.media_type: _content(operation.schema)}
                | operation.other_forms,
            },
            **_problem_responses(refusals),
        },
    }
    if entry.role is not None:
        document["description"] = f"Role: {entry.role}."
        document["security"] = [{"bearer": []}, {"basic": []}] if with_keys else []
    return document


def _common_refusals(entry: RouteEntry, *, with_keys: bool) -> Iterable[Exception]:
    if entry.path == "/healthz":
        return
    yield OpeningError(OPENING)
    yield ContainedError(STOPPED)
    if entry.role is None:
        return
    if entry.method == "POST":
        yield CrossSiteError(CROSS_SITE)
    if with_keys:
        yield UnauthorizedError(SEND_A_KEY)
        yield ForbiddenError("this route needs another role; send another key")
    else:
        yield MisdirectedRequestError(MISDIRECTED)


def _problem_responses(refusals: Iterable[Exception]) -> dict[str, Any]:
    """Group refusals by status, an example of each problem in its group."""
    responses: dict[str, Any] = {}
    for refusal in refusals:
        kind = kind_of(refusal)
        content = {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}
        empty = {"description": kind.status.phrase, "content": {MEDIA_TYPE: content}}
        response = responses.setdefault(str(int(kind.status)), empty)
        examples = response["content"][MEDIA_TYPE]["examples"]
        examples[slug_of(refusal)] = {"value": problem_of(refusal)}
    return dict(sorted(responses.items()))
