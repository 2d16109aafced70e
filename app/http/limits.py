"""Every maximum of the HTTP layer, with the unit in its name.

A stream is a long request: of many queries, or for events (the budget after every change, and the
outlook, a forecast of when the budget is used up). The module also counts open streams of queries,
each of which may use a few megabytes for hours.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.http.problems import TooManyStreamsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.http.access.access_control import Caller
    from app.settings.settings import Settings

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The maximum bytes, rows, streams and connections that one client may use.

    Attributes:
        body_bytes_max: the largest request body, in bytes, except for streams.
        batch_rows_max: the most rows of one request by the Open Inference Protocol or by MLflow's.
        line_bytes_max: the longest line of a stream, in bytes; a longer line is refused, and the
            stream continues.
        stream_lines_max: the most lines of a stream that are answered together.
        stream_unread_bytes_max: the most bytes of a stream's lines that wait for an answer.
        stream_unsent_bytes_max: the most bytes of a stream's replies that wait for the client to
            read them. A client that sends everything before it reads anything can get about 350,000
            answers in this way; for more answers, it must read while it sends.
        ledger_entries_max: the most entries on one page of ``GET /ledger``.
        header_bytes_max: the largest request line with headers, in bytes.
        header_seconds_max: the longest time until the headers of a request or of a new connection
            are complete.
        body_seconds_max: the longest time from the end of the headers to the end of the body,
            except for streams.
        keep_alive_seconds_max: the longest time of a connection without a request after a reply.
        stream_idle_seconds_max: the longest time of a stream without a complete line.
        stalled_seconds_max: the longest time in which a client neither reads its reply nor sends.
        connections_max: the most connections of all clients.
        connections_per_client_max: the most connections of one address.
        streams_max: the most open streams of queries and of events, of all clients.
        streams_per_key_max: the most open streams of one API key.
        event_interval_seconds: the least time between two events of one event stream.
        outlook_interval_seconds: the least time between two outlooks of one event stream.
        outlook_seconds_max: the longest time between two outlooks while nothing changes.
        keep_alive_seconds: the longest time in which an event stream sends nothing.
        drain_quiet_seconds: during the server's shutdown, the time without bytes after which no
            more requests are expected on a connection or stream.
        drain_stream_seconds_max: during the shutdown, the longest time in which a stream is still
            read.
        drain_head_seconds_max: during the shutdown, the longest time until the headers of a request
            that has begun are complete.
        linger_seconds_max: the longest time in which a client that is still sending may read its
            last reply.

    """

    body_bytes_max: int = MEBIBYTE
    batch_rows_max: int = 65_536
    line_bytes_max: int = MEBIBYTE
    stream_lines_max: int = 1024
    stream_unread_bytes_max: int = 4 * MEBIBYTE
    stream_unsent_bytes_max: int = 32 * MEBIBYTE
    ledger_entries_max: int = 1000
    header_bytes_max: int = 32_768
    header_seconds_max: float = 10.0
    body_seconds_max: float = 60.0
    keep_alive_seconds_max: int = 5
    stream_idle_seconds_max: float = 600.0
    stalled_seconds_max: float = 60.0
    connections_max: int = 4096
    connections_per_client_max: int = 2048
    streams_max: int = 256
    streams_per_key_max: int = 64
    event_interval_seconds: float = 0.1
    outlook_interval_seconds: float = 1.0
    outlook_seconds_max: float = 5.0
    keep_alive_seconds: float = 15.0
    drain_quiet_seconds: float = 0.25
    drain_stream_seconds_max: float = 1.0
    drain_head_seconds_max: float = 4.0
    linger_seconds_max: float = 1.0


def limits_of(settings: Settings) -> Limits:
    """Return the limits that the configuration sets."""
    server = settings.server
    return Limits(
        body_bytes_max=server.request_bytes_max,
        line_bytes_max=server.stream_line_bytes_max,
        header_bytes_max=server.header_bytes_max,
        header_seconds_max=server.header_seconds_max,
        body_seconds_max=server.body_seconds_max,
        keep_alive_seconds_max=server.keep_alive_seconds_max,
        stream_idle_seconds_max=server.stream_idle_seconds_max,
        stalled_seconds_max=server.stalled_seconds_max,
        connections_max=server.connections_max,
        connections_per_client_max=server.connections_per_client_max,
        streams_max=server.streams_max,
        streams_per_key_max=server.streams_per_key_max,
    )


FULL: Final = "the server has as many open streams as it takes; end one, or try again"
FULL_FOR_KEY: Final = "this key has as many open streams as the server takes of one; end one"


class OpenStreams:
    """Counts of open query streams, in total and by API key."""

    def __init__(self, limits: Limits) -> None:
        """Start with no open streams."""
        self._limits = limits
        self._by_key: Counter[str] = Counter()
        self._count = 0

    def require_room(self, caller: Caller | None) -> None:
        """Check that a further query stream may be opened.

        Raises:
            TooManyStreamsError: the largest number of open streams is reached, for this API key or
                for all clients.

        """
        if self._count >= self._limits.streams_max:
            raise TooManyStreamsError(FULL)
        if self._by_key[_name(caller)] >= self._limits.streams_per_key_max and caller is not None:
            raise TooManyStreamsError(FULL_FOR_KEY)

    @contextmanager
    def hold(self, caller: Caller | None) -> Iterator[None]:
        """Count a query stream as open during the ``with`` block."""
        name = _name(caller)
        self._count += 1
        self._by_key[name] += 1
        try:
            yield
        finally:
            self._count -= 1
            self._by_key[name] -= 1


def _name(caller: Caller | None) -> str:
    return "" if caller is None else caller.name
