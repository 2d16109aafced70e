"""The OpenAPI 3.1 document, assembled from the routes and the table of problems."""

from __future__ import annotations

from typing import Any, Final

from app.answering.service import NO_STATISTICS, STATISTICS_NOT_OPEN
from app.errors import (
    InvalidHypothesisError,
    LedgerUnavailableError,
    MalformedBodyError,
    NoStatisticsError,
    NotPublishedError,
    StatisticsNotOpenError,
    TooLargeError,
    UnsupportedMediaTypeError,
)
from app.http import budget_events as events
from app.http.openapi.components import COMPONENTS
from app.http.openapi.operation import (
    ANSWER_REFUSALS,
    BODY_REFUSALS,
    IDEMPOTENCY_KEY,
    Operation,
    content_of,
    parameter,
    request_body,
)
from app.http.openapi.protocol_paths import PROTOCOL_OPERATIONS
from app.http.openapi.refusal_replies import HEADERS, RATE_LIMITS, refusal_responses
from app.http.problems import InvalidParameterError, NotAcceptableError
from app.http.query import statistics_route as statistics
from app.http.query import stream
from app.http.reads import ONNX, TWO_FORMS
from app.http.routes import ROUTES, RouteEntry
from app.http.version import VERSION
from app.http.wire.bodies import JSON, NDJSON

EVENT_STREAM: Final = "text/event-stream"
TEXT: Final = "text/plain"
UNREADABLE: Final = LedgerUnavailableError("the ledger cannot be read")
STATISTICS_REFUSALS: Final = (
    NoStatisticsError(NO_STATISTICS),
    StatisticsNotOpenError(STATISTICS_NOT_OPEN),
    UNREADABLE,
)


PAGE: Final = [
    parameter(
        "after",
        "query",
        {"type": "integer", "minimum": 0, "default": 0},
        "entries that follow this sequence",
    ),
    parameter(
        "limit",
        "query",
        {"type": "integer", "minimum": 1, "default": 100},
        "how many at most; a page never has more than 1000",
    ),
]
WITH_OUTLOOK: Final = parameter(
    "outlook",
    "query",
    {"type": "boolean", "default": False},
    "also send events named outlook, of GET /budget/outlook, after changes and every few seconds",
)
OPERATIONS: Final = {
    "/query": Operation(
        "Ask one query",
        "Answer",
        refusals=(*BODY_REFUSALS, *ANSWER_REFUSALS),
        more={"parameters": [IDEMPOTENCY_KEY], **request_body("Query", JSON)},
    ),
    "/query/stream": Operation(
        "Ask a query a line; each reply line is an Answer, or a Problem in its place",
        "Answer",
        NDJSON,
        refusals=(
            InvalidParameterError(stream.KEY_OF_A_STREAM),
            UnsupportedMediaTypeError("send the body with `Content-Type: application/x-ndjson`"),
        ),
        more=request_body("QueryLine", NDJSON),
    ),
    "/budget": Operation("What is promised, charged and left", "Budget", refusals=(UNREADABLE,)),
    "/budget/events": Operation(
        "The same, on every change, as events named budget",
        "Budget",
        EVENT_STREAM,
        refusals=(InvalidParameterError(events.OUTLOOK_SHAPE),),
        more={"parameters": [WITH_OUTLOOK]},
    ),
    "/budget/outlook": Operation(
        "History, forecast, alarm and the entries checked", "Outlook", refusals=(UNREADABLE,)
    ),
    "/parameters": Operation("The public parameters in words, with formulas", "Parameters"),
    "/ledger": Operation(
        "The public part of the ledger's entries",
        "LedgerPage",
        refusals=(
            InvalidParameterError("limit is a whole number of at least 1 and at most 18 digits"),
            UNREADABLE,
        ),
        more={"parameters": PAGE},
    ),
    "/ledger/head": Operation(
        "The newest entry's sequence and hash", "LedgerHead", refusals=(UNREADABLE,)
    ),
    "/classifier": Operation(
        "The published classifier",
        "Classifier",
        refusals=(
            NotPublishedError("no classifier is published yet"),
            UNREADABLE,
            NotAcceptableError(TWO_FORMS),
        ),
        other_forms={ONNX: content_of("ClassifierModel")},
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
        more=request_body("StatisticsQuestion", JSON),
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
    **PROTOCOL_OPERATIONS,
}


def build_document(*, with_keys: bool) -> dict[str, Any]:
    """Return the document; ``with_keys`` says that callers need a key."""
    paths: dict[str, dict[str, Any]] = {}
    for entry in ROUTES:
        path = paths.setdefault(entry.path, {})
        path[entry.method.lower()] = _operation(entry, with_keys=with_keys)
    components: dict[str, Any] = {"schemas": COMPONENTS, "headers": HEADERS}
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
    headers = RATE_LIMITS if with_keys and entry.role is not None else {}
    document: dict[str, Any] = {
        "operationId": entry.handler.__name__,
        "summary": operation.summary,
        **operation.more,
        "responses": {
            "200": {
                "description": operation.summary,
                "content": {operation.media_type: content_of(operation.schema)}
                | operation.other_forms,
                **({"headers": headers} if headers else {}),
            },
            **refusal_responses(entry, operation.refusals, with_keys=with_keys),
        },
    }
    if entry.role is not None:
        document["description"] = f"Role: {entry.role}."
        document["security"] = [{"bearer": []}, {"basic": []}] if with_keys else []
    return document
