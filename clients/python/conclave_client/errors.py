"""The client's errors: one class for each group of similar problems.

A problem is the JSON document with which a server refuses a request (RFC 9457).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE_PREFIX: Final = "urn:conclave:problem:"
NO_CONCLAVE: Final = "what answers there is no Conclave server"
# What may be sent again: the server, or a proxy before it, will be back.
PASSING_STATUSES: Final = frozenset({408, 502, 503, 504})
KEY_STATUSES: Final = frozenset({401, 403})
CLIENT_ERRORS: Final = range(400, 500)
# The type of a problem that has none of its own.
BLANK: Final = "about:blank"


class ConclaveError(Exception):
    """The base class of errors: a server's refusal, or a failed connection.

    Attributes:
        detail: one line for people, whose wording may change between versions.
        slug: the last part of the problem's type, such as ``invalid-features``; None if no server
            named it.
        status: the HTTP status; None without a reply.
        feature: the name of the feature at fault; None if the problem names none.
        request_id: the identifier by which the server's operator finds the request; None if
            unknown.
        retry_after_seconds: the time that the server asks the client to wait, in seconds; None if
            it asks for none.

    """

    def __init__(
        self,
        detail: str,
        *,
        slug: str | None = None,
        status: int | None = None,
        feature: str | None = None,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        """Keep what is known of the problem."""
        super().__init__(detail)
        self.detail = detail
        self.slug = slug
        self.status = status
        self.feature = feature
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds


class InvalidRequestError(ConclaveError):
    """The request does not fit the release; change it before sending it again."""


class AccessError(ConclaveError):
    """The API key or the client's address has no access to the route."""


class NotPublishedError(ConclaveError):
    """The classifier or the statistics table is not published yet, or never will be."""


class LimitReachedError(ConclaveError):
    """The release or the API key has used up its answers; recorded ones are still repeated."""


class UnavailableError(ConclaveError):
    """No answer came after all attempts; sending the same request later is safe."""


class ServerFailedError(ConclaveError):
    """The server failed or stopped the release; its operator has to act."""


class NotConclaveError(ConclaveError):
    """The program at this address is not a Conclave server."""


FAMILIES: Final[Mapping[str, type[ConclaveError]]] = {
    "malformed-body": InvalidRequestError,
    "malformed-request": InvalidRequestError,
    "invalid-parameter": InvalidRequestError,
    "not-found": InvalidRequestError,
    "method-not-allowed": InvalidRequestError,
    "not-acceptable": InvalidRequestError,
    "idempotency-conflict": InvalidRequestError,
    "too-large": InvalidRequestError,
    "unsupported-media-type": InvalidRequestError,
    "invalid-features": InvalidRequestError,
    "invalid-hypothesis": InvalidRequestError,
    "headers-too-large": InvalidRequestError,
    "unauthorized": AccessError,
    "forbidden": AccessError,
    "cross-site": AccessError,
    "misdirected-request": AccessError,
    "not-published": NotPublishedError,
    "no-statistics": NotPublishedError,
    "statistics-not-open": NotPublishedError,
    "budget-exhausted": LimitReachedError,
    "key-limit": LimitReachedError,
    "request-timeout": UnavailableError,
    "ledger-unavailable": UnavailableError,
    "issuer-unavailable": UnavailableError,
    "switching": UnavailableError,
    "waiting": UnavailableError,
    "opening": UnavailableError,
    "too-many-connections": UnavailableError,
    "too-many-streams": UnavailableError,
    "unavailable": UnavailableError,
    "release-stopped": ServerFailedError,
    "internal-error": ServerFailedError,
}


def error_of(
    problem: Mapping[str, Any],
    *,
    status: int | None = None,
    request_id: str | None = None,
    retry_after_seconds: float | None = None,
) -> ConclaveError:
    """Return the error for a problem document that a server sent.

    Args:
        problem: the members of the document, which may also be something other than a problem.
        status: the HTTP status of the reply; None for a line of a stream, whose problem contains
            its own status.
        request_id: the identifier of the request in the reply.
        retry_after_seconds: the time that the reply asks the client to wait, in seconds.

    """
    kind, told = problem.get("type"), problem.get("status")
    detail, feature = problem.get("detail"), problem.get("feature")
    slug = kind.removeprefix(TYPE_PREFIX) if isinstance(kind, str) and kind != BLANK else None
    found = status if status is not None else told if isinstance(told, int) else None
    family = _family(slug, found) if isinstance(detail, str) else _bare_family(found)
    return family(
        detail if isinstance(detail, str) else NO_CONCLAVE,
        slug=slug,
        status=found,
        feature=feature if isinstance(feature, str) else None,
        request_id=request_id,
        retry_after_seconds=retry_after_seconds,
    )


def _family(slug: str | None, status: int | None) -> type[ConclaveError]:
    """Return the class of a problem; of one that a later server names, by its status."""
    if slug is not None and slug in FAMILIES:
        return FAMILIES[slug]
    if status in PASSING_STATUSES:
        return UnavailableError
    if status in KEY_STATUSES:
        return AccessError
    return InvalidRequestError if status in CLIENT_ERRORS else ServerFailedError


def _bare_family(status: int | None) -> type[ConclaveError]:
    """Return the class of what is no problem document: a proxy's, or a stranger's."""
    return UnavailableError if status in PASSING_STATUSES else NotConclaveError
