"""The table from error classes to HTTP statuses, and errors as RFC 9457 problem bodies.

A problem is the JSON body with which the server refuses a request. No other module mentions the
HTTP status of an error. The text of a problem is fixed, or names something public. For an exception
that is not one of Conclave's own, the problem only says that an internal error occurred.

The module also defines refusals that only occur in HTTP; all other errors are in ``app/errors.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from app.answering.service_slot import STOPPED
from app.errors import (
    BudgetExhaustedError,
    ForbiddenError,
    IdempotencyConflictError,
    IntegrityError,
    InvalidFeaturesError,
    InvalidHypothesisError,
    KeyLimitError,
    LedgerUnavailableError,
    MalformedBodyError,
    NoStatisticsError,
    NotPublishedError,
    OpeningError,
    RequestError,
    StatisticsNotOpenError,
    SwitchingError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedMediaTypeError,
    WaitingError,
)
from app.http.wire.headers_and_bodies import JSON

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.exceptions import HTTPException


class NotFoundError(RequestError):
    """The request's path matches no route."""

    slug = "not-found"


class MethodNotAllowedError(RequestError):
    """The path has a route, but not for this HTTP method."""

    slug = "method-not-allowed"

    def __init__(self, detail: str, *, allow: str) -> None:
        """Keep the methods that the path supports, in the form of the ``Allow`` header."""
        super().__init__(detail)
        self.allow = allow


class NotAcceptableError(RequestError):
    """The route cannot give any media type that the ``Accept`` header lists."""

    slug = "not-acceptable"


class InvalidParameterError(RequestError):
    """A route cannot read one of its query parameters or headers."""

    slug = "invalid-parameter"


class MisdirectedRequestError(RequestError):
    """The ``Host`` header does not name this server, which listens on loopback only."""

    slug = "misdirected-request"


class CrossSiteError(RequestError):
    """A browser sent the request on behalf of a page of another site."""

    slug = "cross-site"


class MalformedRequestError(RequestError):
    """The bytes received over a connection are not valid HTTP."""

    slug = "malformed-request"


class RequestTimeoutError(RequestError):
    """The client did not send its request, or its next line, in time."""

    slug = "request-timeout"


class HeadersTooLargeError(RequestError):
    """The request line and headers are longer than their limit."""

    slug = "headers-too-large"


class TooManyConnectionsError(UnavailableError):
    """The server, or one client of it, has reached its maximum of connections."""

    slug = "too-many-connections"
    retry_after_seconds = 5


class TooManyStreamsError(UnavailableError):
    """The server, or one API key, has reached its maximum of open streams."""

    slug = "too-many-streams"
    retry_after_seconds = 5


class IssuerUnavailableError(UnavailableError):
    """The signing keys of the OpenID provider are unknown and cannot be fetched."""

    slug = "issuer-unavailable"
    retry_after_seconds = 5


MEDIA_TYPE: Final = "application/problem+json"
V2_PATH: Final = "/v2"
TYPE_PREFIX: Final = "urn:conclave:problem:"
DETAIL_CHARACTERS_MAX: Final = 500
INTERNAL_SLUG: Final = "internal-error"
INTERNAL_DETAIL: Final = (
    "the server failed on this request and cannot say whether it was answered; sending "
    "the same features again is safe, and its operator finds the failure in the log"
)
NO_SUCH_PATH: Final = "there is no such path; GET /openapi.json lists the routes"


@dataclass(frozen=True, slots=True)
class Kind:
    """The public properties of all errors of one class: status, type and title."""

    status: HTTPStatus
    title: str


KINDS: Final[Mapping[type[Exception], Kind]] = {
    MalformedBodyError: Kind(HTTPStatus.BAD_REQUEST, "Malformed body"),
    MalformedRequestError: Kind(HTTPStatus.BAD_REQUEST, "Malformed request"),
    InvalidParameterError: Kind(HTTPStatus.BAD_REQUEST, "Invalid parameter"),
    UnauthorizedError: Kind(HTTPStatus.UNAUTHORIZED, "No valid key"),
    ForbiddenError: Kind(HTTPStatus.FORBIDDEN, "Role does not allow this"),
    CrossSiteError: Kind(HTTPStatus.FORBIDDEN, "Request from another site"),
    NotFoundError: Kind(HTTPStatus.NOT_FOUND, "Not found"),
    NotPublishedError: Kind(HTTPStatus.NOT_FOUND, "No classifier yet"),
    NoStatisticsError: Kind(HTTPStatus.NOT_FOUND, "No statistics"),
    MethodNotAllowedError: Kind(HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed"),
    NotAcceptableError: Kind(HTTPStatus.NOT_ACCEPTABLE, "Not acceptable"),
    RequestTimeoutError: Kind(HTTPStatus.REQUEST_TIMEOUT, "Request timed out"),
    IdempotencyConflictError: Kind(HTTPStatus.CONFLICT, "Idempotency key used before"),
    StatisticsNotOpenError: Kind(HTTPStatus.CONFLICT, "Statistics not open"),
    BudgetExhaustedError: Kind(HTTPStatus.GONE, "Privacy budget exhausted"),
    KeyLimitError: Kind(HTTPStatus.TOO_MANY_REQUESTS, "Limit of this key reached"),
    TooLargeError: Kind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Too large"),
    UnsupportedMediaTypeError: Kind(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Unsupported media type"),
    MisdirectedRequestError: Kind(HTTPStatus.MISDIRECTED_REQUEST, "Not a name of this server"),
    InvalidFeaturesError: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid features"),
    InvalidHypothesisError: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid hypothesis"),
    HeadersTooLargeError: Kind(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Headers too large"),
    TooManyConnectionsError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections"),
    TooManyStreamsError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "Too many streams"),
    IssuerUnavailableError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "OpenID provider unavailable"),
    LedgerUnavailableError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "Ledger unavailable"),
    SwitchingError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "Switching to the classifier"),
    WaitingError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "Waiting for generations"),
    OpeningError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "Release is opening"),
    RequestError: Kind(HTTPStatus.BAD_REQUEST, "Bad request"),
    UnavailableError: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "Unavailable"),
    IntegrityError: Kind(HTTPStatus.INTERNAL_SERVER_ERROR, "Release stopped"),
    Exception: Kind(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error"),
}
CHALLENGES: Final = (
    (b"www-authenticate", b'Bearer realm="conclave"'),
    (b"www-authenticate", b'Basic realm="conclave", charset="UTF-8"'),
)


def kind_of(error: Exception) -> Kind:
    """Return the public properties of an error: those of its class or nearest base class."""
    return next(KINDS[each] for each in type(error).__mro__ if each in KINDS)


def slug_of(error: Exception) -> str:
    """Return the short name (slug) of an error class: the last part of the problem's ``type``."""
    if isinstance(error, (RequestError, UnavailableError, IntegrityError)):
        return error.slug
    return INTERNAL_SLUG


def problem_of(error: Exception) -> dict[str, object]:
    """Return the members of the RFC 9457 problem body for an error."""
    kind = kind_of(error)
    problem: dict[str, object] = {
        "type": TYPE_PREFIX + slug_of(error),
        "title": kind.title,
        "status": int(kind.status),
        "detail": public_detail(error),
    }
    if isinstance(error, InvalidFeaturesError):
        problem["feature"] = _public_text(error.feature)
    return problem


def problem_body(error: Exception) -> bytes:
    """Return the RFC 9457 problem body of an error as JSON."""
    return msgspec.json.encode(problem_of(error))


def is_below_v2(path: str) -> bool:
    """Return whether a path belongs to the Open Inference Protocol, with its own error form."""
    return path == V2_PATH or path.startswith(V2_PATH + "/")


def v2_error_of(error: Exception) -> dict[str, object]:
    """Return an error in the form of the Open Inference Protocol: one member ``error``."""
    return {"error": public_detail(error)}


def refusal_body(error: Exception, path: str) -> tuple[bytes, str]:
    """Return the body of a refusal, in the form that its path requires, and its media type."""
    if is_below_v2(path):
        return msgspec.json.encode(v2_error_of(error)), JSON
    return problem_body(error), MEDIA_TYPE


def problem_response(error: Exception, path: str = "") -> Response:
    """Return the complete HTTP reply of a refusal, with the headers that its status requires.

    Args:
        error: the error that caused the refusal.
        path: the request's path; below ``/v2`` a refusal has the form of the Open Inference
            Protocol.

    """
    body, media_type = refusal_body(error, path)
    response = Response(body, kind_of(error).status, media_type=media_type)
    if isinstance(error, UnauthorizedError):
        response.raw_headers.extend(CHALLENGES)
    if isinstance(error, MethodNotAllowedError):
        response.headers["allow"] = error.allow
    if isinstance(error, UnavailableError):
        response.headers["retry-after"] = str(error.retry_after_seconds)
    return response


def from_router(error: HTTPException) -> RequestError:
    """Return Conclave's error for a refusal by the router: unknown path or method."""
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allow = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        return MethodNotAllowedError(f"this path takes {allow}", allow=allow)
    return NotFoundError(NO_SUCH_PATH)


def public_detail(error: Exception) -> str:
    """Return an error's text for people; a fixed text for an error that was not foreseen."""
    if isinstance(error, (RequestError, UnavailableError)):
        return _public_text(error.detail)
    return STOPPED if isinstance(error, IntegrityError) else INTERNAL_DETAIL


def _public_text(text: str) -> str:
    """Cut what a client sent, and escape what UTF-8 cannot carry."""
    return text[:DETAIL_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode("utf-8")
