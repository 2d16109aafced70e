"""The documented refusals of each route in the OpenAPI document, each with an example."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from fastapi.openapi.models import Header, Schema

from app.answering.batch_decisions import ANSWERS_USED
from app.answering.service_slot import OPENING, STOPPED
from app.errors import (
    BudgetExhaustedError,
    ContainedError,
    ForbiddenError,
    IdempotencyConflictError,
    InvalidFeaturesError,
    KeyLimitError,
    LedgerUnavailableError,
    MalformedBodyError,
    OpeningError,
    SwitchingError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedMediaTypeError,
    WaitingError,
)
from app.http import limits
from app.http.access.access_control import CROSS_SITE, MISDIRECTED, SEND_A_KEY
from app.http.access.tokens import UNREACHED
from app.http.openapi.body_declarations import Problem, Responses, V2Error, forms
from app.http.problems import (
    MEDIA_TYPE,
    CrossSiteError,
    HeadersTooLargeError,
    InvalidParameterError,
    IssuerUnavailableError,
    MalformedRequestError,
    MisdirectedRequestError,
    RequestTimeoutError,
    TooManyConnectionsError,
    TooManyStreamsError,
    is_below_v2,
    kind_of,
    problem_of,
    slug_of,
    v2_error_of,
)
from app.http.query import query_body
from app.http.route_handling import GIVEN_UP
from app.http.wire import connection_guard
from app.http.wire.headers_and_bodies import JSON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.http.route_handling import EdgeRoute

WITHOUT_A_RELEASE: Final = frozenset({"/healthz", "/v2", "/v2/health/live"})
STREAMS: Final = frozenset({"/query/stream", "/budget/events"})
LIMITED: Final = frozenset({"/query", "/v2/models/{name}/infer", "/invocations"})
UNREADABLE: Final = LedgerUnavailableError("the ledger cannot be read")
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
    WaitingError("fewer generations of records vote than this release asks for"),
)
# Said before any route is known, and so in one form for all.
OF_CONNECTIONS: Final = (
    MalformedRequestError(connection_guard.MALFORMED),
    RequestTimeoutError(connection_guard.SLOW_BODY.format(seconds=60)),
    HeadersTooLargeError(connection_guard.LONG_HEADERS.format(bytes_max=32768)),
    TooManyConnectionsError(connection_guard.FULL),
)
RATE_LIMITS: Final = {
    name: {"$ref": f"#/components/headers/{name}"} for name in ("RateLimit-Policy", "RateLimit")
}
TEXT: Final = Schema(type="string")
HEADERS: Final = {
    "RateLimit-Policy": Header(
        description="limits of the key, where it has any",
        schema=TEXT,
        example='"answers";q=1000, "unstable";q=2',
    ),
    "RateLimit": Header(
        description="what is left of them", schema=TEXT, example='"answers";r=983, "unstable";r=1'
    ),
    "Retry-After": Header(
        description="seconds to wait", schema=Schema(type="string", pattern="^[0-9]+$"), example="5"
    ),
    "WWW-Authenticate": Header(
        description="both schemes by which a key travels",
        schema=TEXT,
        example='Bearer realm="conclave"',
    ),
}
HEADER_OF_STATUS: Final = {
    HTTPStatus.SERVICE_UNAVAILABLE: "Retry-After",
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate",
}


def refused(*refusals: Exception, in_v2_form: bool = False) -> Responses:
    """Return the documented refusals of a route, by HTTP status."""
    responses: Responses = {}
    for refusal in refusals:
        _add(responses, refusal, in_v2_form=in_v2_form)
    return responses


def all_refused(own: Responses, route: EdgeRoute, *, with_keys: bool) -> Responses:
    """Return a route's documented replies, including refusals that any route can give."""
    responses = {**own}
    for refusal in _common(route, with_keys=with_keys):
        _add(responses, refusal, in_v2_form=is_below_v2(route.path))
    for refusal in OF_CONNECTIONS:
        _add(responses, refusal, in_v2_form=False)
    return dict(sorted(responses.items(), key=lambda each: str(each[0])))


def _common(route: EdgeRoute, *, with_keys: bool) -> Iterable[Exception]:
    """Yield the refusals that routes have in common."""
    yield Exception()
    if route.path not in WITHOUT_A_RELEASE:
        yield OpeningError(OPENING)
        yield ContainedError(STOPPED)
        yield UnavailableError(GIVEN_UP)
    if route.path in STREAMS:
        yield TooManyStreamsError(limits.FULL)
    if route.role is None:
        return
    if route.method == "POST":
        yield CrossSiteError(CROSS_SITE)
    if not with_keys:
        yield MisdirectedRequestError(MISDIRECTED)
        return
    yield UnauthorizedError(SEND_A_KEY)
    yield IssuerUnavailableError(UNREACHED)
    yield ForbiddenError("this route needs another role; send another key")
    if route.path in LIMITED:
        yield KeyLimitError(ANSWERS_USED.format(limit=1000))


def _add(responses: Responses, refusal: Exception, *, in_v2_form: bool) -> None:
    """Put a refusal among those of its status, in the form that it is said in."""
    model, media_type = (V2Error, JSON) if in_v2_form else (Problem, MEDIA_TYPE)
    status = kind_of(refusal).status
    response = responses.setdefault(str(int(status)), {"description": status.phrase, "content": {}})
    if status in HEADER_OF_STATUS:
        name = HEADER_OF_STATUS[status]
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"}}
    content = response["content"].setdefault(media_type, forms({media_type: model})[media_type])
    value = v2_error_of(refusal) if in_v2_form else problem_of(refusal)
    content.setdefault("examples", {})[slug_of(refusal)] = {"value": value}
