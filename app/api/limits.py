"""Every maximum of the HTTP layer, with its unit in its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.settings import Settings

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one client may ask of the server at once.

    Attributes:
        body_bytes_max: of a request body that is read whole.
        batch_rows_max: of one request of the V2 protocol or MLflow's.
        line_bytes_max: of one line of a stream; a longer one is refused in its place.
        stream_lines_max: of a stream that are submitted together.
        stream_unread_bytes_max: of a stream's lines that wait to be submitted.
        stream_unsent_bytes_max: of a stream's replies that wait for the client to
            read.  A client that sends everything before it reads is served up to
            here, about 350,000 answers; beyond, it must read while it sends.
        ledger_entries_max: of one page of ``GET /ledger``.
        event_interval_seconds: least time between two events of one event stream.
        outlook_interval_seconds: least time between two outlooks of one event stream.
        outlook_seconds_max: longest time between them, while nothing changes.
        keep_alive_seconds: longest silence of an event stream.
        time_metrics: whether times are counted, in coarse buckets.

    """

    body_bytes_max: int = MEBIBYTE
    batch_rows_max: int = 65_536
    line_bytes_max: int = MEBIBYTE
    stream_lines_max: int = 512
    stream_unread_bytes_max: int = 4 * MEBIBYTE
    stream_unsent_bytes_max: int = 32 * MEBIBYTE
    ledger_entries_max: int = 1000
    event_interval_seconds: float = 0.1
    outlook_interval_seconds: float = 1.0
    outlook_seconds_max: float = 5.0
    keep_alive_seconds: float = 15.0
    time_metrics: bool = True


def limits_of(settings: Settings) -> Limits:
    """Return the limits that an operator's configuration sets."""
    return Limits(
        body_bytes_max=settings.server.request_bytes_max,
        line_bytes_max=settings.server.stream_line_bytes_max,
        time_metrics=settings.server.time_metrics,
    )
