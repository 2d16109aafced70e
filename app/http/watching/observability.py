"""Recording of requests for operators: times, log lines, trace spans.

What a process counts of its requests; it costs a request two looks at the clock.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.answering.workload import SECONDS_BOUNDS, Buckets
from app.http.watching.identity import SECRET_BYTES, RequestIds
from app.http.watching.tracing import Tracing, open_tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Watching:
    """The options for recording requests: metrics of times, log lines, traces.

    Attributes:
        times: whether their times are counted, in coarse buckets.
        log_requests: whether each has a line in the log.
        ids: makes the names of those that came without.
        tracing: makes their spans; None makes none.
        key_metrics: whether metrics have the answers of each key.

    """

    times: bool = True
    log_requests: bool = False
    ids: RequestIds = field(default_factory=lambda: RequestIds(bytes(SECRET_BYTES)))
    tracing: Tracing | None = None
    key_metrics: bool = False


def watching_of(settings: Settings, secret: Callable[[int], bytes]) -> Watching:
    """Return the options that an operator configured.

    Args:
        settings: the whole configuration.
        secret: draws as many random bytes as it is told.

    Raises:
        ConfigurationError: traces are asked for and their libraries are not installed.

    """
    return Watching(
        times=settings.server.time_metrics,
        log_requests=settings.logs.requests,
        ids=RequestIds(secret(SECRET_BYTES)),
        tracing=open_tracing(settings.telemetry, secret),
        key_metrics=settings.server.key_metrics,
    )


STARTED: Final = "conclave.started"
"""The key of a scope with the moment at which its request came, where that is not now."""

EVENT_STREAMS: Final = "events"
QUERY_STREAMS: Final = "queries"


class RequestMeter:
    """Counters of requests in progress, open streams, and times until replies began.

    Attributes:
        in_flight: requests whose reply has not begun.
        streams: open streams by what they carry.
        started: when the process began to serve, in whole seconds since 1970.

    """

    def __init__(self, *, with_times: bool = True) -> None:
        """Start all counters at zero; without times the clock is never read."""
        self.in_flight = 0
        self.streams: Counter[str] = Counter({EVENT_STREAMS: 0, QUERY_STREAMS: 0})
        self.started = int(time.time())
        self.with_times = with_times
        self._routes: dict[tuple[str, str], dict[int, Buckets]] = {}

    def route(self, method: str, path: str) -> dict[int, Buckets]:
        """Return one route's counters by status, which its endpoint increments."""
        return self._routes.setdefault((method, path), {})

    def times(self) -> Iterator[tuple[tuple[str, str, str], Buckets]]:
        """Yield the time counts of every method, route and status that occurred."""
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
    """Count one reply by its status and its time."""
    buckets = by_status.get(status)
    if buckets is None:
        buckets = by_status[status] = Buckets(SECONDS_BOUNDS)
    buckets.add(seconds)
