"""Identifiers of a request (its request id, and its ids in a trace), its count and its time.

A client may send the header ``X-Request-Id``, and the header ``traceparent`` of W3C's Trace
Context; a header that is not well formed is ignored. Identifiers are made only for requests that
send such a header or are refused, so that other requests cost nothing. To count a request and its
time, the clock is read twice.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from app.answering.hourly_counts import SECONDS_BOUNDS, Buckets

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Message, Scope, Send

REQUEST_ID: Final = "x-request-id"
TRACEPARENT: Final = "traceparent"
TRACERESPONSE: Final = "traceresponse"
SECRET_BYTES: Final = 8
WELL_FORMED_ID: Final = re.compile(r"[A-Za-z0-9._:=+/@-]{1,128}")
# Version 00 has four parts; a later one may have more after a further dash.
WELL_FORMED_PARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_KEY: Final = "conclave.identity"
_SPAN_IDS: Final = 1 << 64


@dataclass(slots=True)
class Identity:
    """The identifiers of one request.

    Attributes:
        request_id: the identifier that the client sent, or one made here.
        trace_id: the id of the trace to which the request belongs, as 32 hexadecimal digits.
        parent_id: the id of the client's span, as 16 hexadecimal digits; None for a new trace.
        span_id: the id of this request's span.
        flags: the flags of the trace, as 2 hexadecimal digits; 01 if the trace is recorded.

    """

    request_id: str
    trace_id: str | None = None
    parent_id: str | None = None
    span_id: str | None = None
    flags: str = "00"

    @property
    def fields(self) -> dict[str, str]:
        """The identifiers as fields of a log line."""
        named = {
            "request_id": self.request_id,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
        }
        return {name: text for name, text in named.items() if text is not None}

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The identifiers as headers of the reply."""
        told = [(REQUEST_ID.encode(), self.request_id.encode())]
        if self.trace_id is not None:
            response = f"00-{self.trace_id}-{self.span_id}-{self.flags}"
            told.append((TRACERESPONSE.encode(), response.encode()))
        return told

    def telling(self, send: Send) -> Send:
        """Return ASGI's ``send``, extended to add these identifiers to a reply's headers."""

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self.headers]}
            await send(message)

        return tell


class RequestIds:
    """A generator of request ids that no other process repeats."""

    def __init__(self, secret: bytes) -> None:
        """Start with eight random bytes, which are not secret, and a counter."""
        self._prefix = secret.hex()
        self._first = int.from_bytes(secret, "big")
        self._numbers = count(1)

    def identity(self, headers: Headers) -> Identity:
        """Return the identifiers of a request, taken from its headers where possible."""
        number = next(self._numbers)
        given = headers.get(REQUEST_ID, "")
        is_named = WELL_FORMED_ID.fullmatch(given) is not None
        found = Identity(given if is_named else f"{self._prefix}-{number:x}")
        parents = headers.getlist(TRACEPARENT)
        parent = WELL_FORMED_PARENT.fullmatch(parents[0]) if len(parents) == 1 else None
        if parent is not None and (parent[1] != "00" or parent[5] is None):
            found.trace_id, found.parent_id = parent[2], parent[3]
            found.flags = f"{int(parent[4], 16) & 1:02x}"
            found.span_id = f"{(self._first + number) % _SPAN_IDS or 1:016x}"
        return found


def is_named(headers: Headers) -> bool:
    """Return whether a request's headers contain an identifier."""
    return REQUEST_ID in headers or TRACEPARENT in headers


def identity_of(scope: Scope, headers: Headers, ids: RequestIds) -> Identity:
    """Return the identifiers of a request; the first call for the request makes them."""
    known = known_identity(scope)
    if known is None:
        known = scope[_KEY] = ids.identity(headers)
    return known


def known_identity(scope: MutableMapping[str, Any]) -> Identity | None:
    """Return the identifiers of a request that were made before; None if none were."""
    found = scope.get(_KEY)
    return found if isinstance(found, Identity) else None


STARTED: Final = "conclave.started"
"""The key of a scope with the moment at which its request came, where that is not now."""

EVENT_STREAMS: Final = "events"
QUERY_STREAMS: Final = "queries"


class RequestMeter:
    """Counters of requests in progress, of open streams, and of times until replies began.

    Attributes:
        in_flight: the number of requests whose reply has not begun.
        streams: the number of open streams, by kind: of queries, or of events.
        started: the time when the process began to serve, in whole seconds since 1970.

    """

    def __init__(self, *, with_times: bool = True) -> None:
        """Start all counters at zero; without times the clock is never read."""
        self.in_flight = 0
        self.streams: Counter[str] = Counter({EVENT_STREAMS: 0, QUERY_STREAMS: 0})
        self.started = int(time.time())
        self.with_times = with_times
        self._routes: dict[tuple[str, str], dict[int, Buckets]] = {}

    def route(self, method: str, path: str) -> dict[int, Buckets]:
        """Return a route's counters of replies by HTTP status; the route's code increments them."""
        return self._routes.setdefault((method, path), {})

    def times(self) -> Iterator[tuple[tuple[str, str, str], Buckets]]:
        """Yield counts of reply times for every method, route and HTTP status that occurred."""
        for (method, path), by_status in list(self._routes.items()):
            for status, buckets in sorted(by_status.items()):
                yield (method, path, str(status)), buckets

    @contextmanager
    def stream(self, kind: str) -> Iterator[None]:
        """Count one stream as open during the ``with`` block."""
        self.streams[kind] += 1
        try:
            yield
        finally:
            self.streams[kind] -= 1


def count_reply(by_status: dict[int, Buckets], status: int, seconds: float) -> None:
    """Count one reply by its HTTP status and by the time until it began."""
    buckets = by_status.get(status)
    if buckets is None:
        buckets = by_status[status] = Buckets(SECONDS_BOUNDS)
    buckets.add(seconds)
