"""Refusals that only HTTP knows; those of the service are in ``app/errors.py``."""

from __future__ import annotations

from app.errors import RequestError, UnavailableError


class NotFoundError(RequestError):
    """No route has this path."""

    slug = "not-found"


class MethodNotAllowedError(RequestError):
    """The path has a route, but not for this method."""

    slug = "method-not-allowed"

    def __init__(self, detail: str, *, allow: str) -> None:
        """Keep the methods that the path has, as the ``Allow`` header lists them."""
        super().__init__(detail)
        self.allow = allow


class NotAcceptableError(RequestError):
    """The route cannot give any media type of the ``Accept`` header."""

    slug = "not-acceptable"


class InvalidParameterError(RequestError):
    """A query parameter or a header that the route cannot read."""

    slug = "invalid-parameter"


class MisdirectedRequestError(RequestError):
    """The ``Host`` header names another machine than this loopback server."""

    slug = "misdirected-request"


class CrossSiteError(RequestError):
    """A browser sent this on behalf of another site."""

    slug = "cross-site"


class MalformedRequestError(RequestError):
    """What came over a connection is not HTTP."""

    slug = "malformed-request"


class RequestTimeoutError(RequestError):
    """The client did not send its request, or its next line, in time."""

    slug = "request-timeout"


class HeadersTooLargeError(RequestError):
    """The request line and headers are longer than their limit."""

    slug = "headers-too-large"


class TooManyConnectionsError(UnavailableError):
    """The server, or one client of it, has as many connections as it takes."""

    slug = "too-many-connections"
    retry_after_seconds = 5


class TooManyStreamsError(UnavailableError):
    """The server, or one key of it, has as many open streams as it takes."""

    slug = "too-many-streams"
    retry_after_seconds = 5
