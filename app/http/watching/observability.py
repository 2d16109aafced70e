"""What is kept of requests for whoever operates the server: times, lines, spans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.http.watching.identity import SECRET_BYTES, RequestIds
from app.http.watching.tracing import Tracing, open_tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Watching:
    """How closely requests are watched.

    Attributes:
        times: whether their times are counted, in coarse buckets.
        log_requests: whether each has a line in the log.
        ids: makes the names of those that came without.
        tracing: makes their spans; None makes none.

    """

    times: bool = True
    log_requests: bool = False
    ids: RequestIds = field(default_factory=lambda: RequestIds(bytes(SECRET_BYTES)))
    tracing: Tracing | None = None


def watching_of(settings: Settings, secret: Callable[[int], bytes]) -> Watching:
    """Return what an operator's configuration asks for.

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
    )
