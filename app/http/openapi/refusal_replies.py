"""The refusals of an operation in the OpenAPI document: by status, each with an example."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from app.answering.batch import ANSWERS_USED
from app.answering.current_service import OPENING, STOPPED
from app.errors import (
    ContainedError,
    ForbiddenError,
    KeyLimitError,
    OpeningError,
    UnauthorizedError,
    UnavailableError,
)
from app.http import limits
from app.http.access.door import CROSS_SITE, MISDIRECTED, SEND_A_KEY
from app.http.endpoint import GIVEN_UP
from app.http.problems import (
    MEDIA_TYPE,
    CrossSiteError,
    HeadersTooLargeError,
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
from app.http.wire import connection_guard
from app.http.wire.bodies import JSON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.http.routes import RouteEntry

WITHOUT_A_RELEASE: Final = frozenset({"/healthz", "/v2", "/v2/health/live"})
STREAMS: Final = frozenset({"/query/stream", "/budget/events"})
LIMITED: Final = frozenset({"/query", "/v2/models/{name}/infer", "/invocations"})
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
HEADERS: Final = {
    "RateLimit-Policy": {
        "description": "limits of the key, where it has any",
        "schema": {"type": "string"},
        "example": '"answers";q=1000, "unstable";q=2',
    },
    "RateLimit": {
        "description": "what is left of them",
        "schema": {"type": "string"},
        "example": '"answers";r=983, "unstable";r=1',
    },
    "Retry-After": {
        "description": "seconds to wait",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
        "example": "5",
    },
    "WWW-Authenticate": {
        "description": "both schemes by which a key travels",
        "schema": {"type": "string"},
        "example": 'Bearer realm="conclave"',
    },
}
HEADER_OF_STATUS: Final = {
    HTTPStatus.SERVICE_UNAVAILABLE: "Retry-After",
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate",
}


def refusal_responses(
    entry: RouteEntry, own: Iterable[Exception], *, with_keys: bool
) -> dict[str, Any]:
    """Return every refusal of an operation: its own, those of all routes, of any connection."""
    responses: dict[str, Any] = {}
    is_v2 = is_below_v2(entry.path)
    for refusal in (*own, *_common(entry, with_keys=with_keys)):
        _add(responses, refusal, in_v2_form=is_v2)
    for refusal in OF_CONNECTIONS:
        _add(responses, refusal, in_v2_form=False)
    return dict(sorted(responses.items()))


def _common(entry: RouteEntry, *, with_keys: bool) -> Iterable[Exception]:
    """Yield the refusals that routes have in common."""
    yield Exception()
    if entry.path not in WITHOUT_A_RELEASE:
        yield OpeningError(OPENING)
        yield ContainedError(STOPPED)
        yield UnavailableError(GIVEN_UP)
    if entry.path in STREAMS:
        yield TooManyStreamsError(limits.FULL)
    if entry.role is None:
        return
    if entry.method == "POST":
        yield CrossSiteError(CROSS_SITE)
    if not with_keys:
        yield MisdirectedRequestError(MISDIRECTED)
        return
    yield UnauthorizedError(SEND_A_KEY)
    yield ForbiddenError("this route needs another role; send another key")
    if entry.path in LIMITED:
        yield KeyLimitError(ANSWERS_USED.format(limit=1000))


def _add(responses: dict[str, Any], refusal: Exception, *, in_v2_form: bool) -> None:
    """Put a refusal among those of its status, in the form that it is said in."""
    schema, media_type = ("V2Error", JSON) if in_v2_form else ("Problem", MEDIA_TYPE)
    status = kind_of(refusal).status
    response = responses.setdefault(str(int(status)), {"description": status.phrase, "content": {}})
    if status in HEADER_OF_STATUS:
        name = HEADER_OF_STATUS[status]
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"}}
    empty = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": {}}
    examples = response["content"].setdefault(media_type, empty)["examples"]
    value = v2_error_of(refusal) if in_v2_form else problem_of(refusal)
    examples[slug_of(refusal)] = {"value": value}
