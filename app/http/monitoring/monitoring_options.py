"""The options by which requests are recorded for operators: times, log lines, trace spans.

A trace span is the record of one timed piece of work, which is sent to a collector of traces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.http.monitoring.request_ids_and_times import SECRET_BYTES, RequestIds
from app.http.monitoring.tracing import Tracing, open_tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Watching:
    """The options for recording requests: metrics of times, log lines, traces.

    Attributes:
        times: whether the durations of requests are counted, each in one of a few wide intervals.
        log_requests: whether each request gets a line in the log.
        ids: the generator of identifiers for requests that arrive without one.
        tracing: the maker of trace spans; None makes no spans.
        key_metrics: whether the metrics contain the number of answers of each API key.

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
        secret: a function that returns the given number of random bytes.

    Raises:
        ConfigurationError: traces are configured, and their libraries are not installed.

    """
    return Watching(
        times=settings.server.time_metrics,
        log_requests=settings.logs.requests,
        ids=RequestIds(secret(SECRET_BYTES)),
        tracing=open_tracing(settings.telemetry, secret),
        key_metrics=settings.server.key_metrics,
    )
