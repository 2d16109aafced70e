"""Limits on connections: their number, their speed, and the length of request headers.

The module extends Uvicorn's protocol class by a deadline for each event that a client can delay:
the end of its headers, the end of its body, and the reading of its reply. About once a second all
connections are checked, and those past their deadline are closed. If the reply has not begun, the
client first gets one that states the problem.

When the server ends, a connection still answers everything that arrived on it, the last reply with
``Connection: close``. A connection is closed without a reply only if the operating system has no
unread byte of it.

Uvicorn has no such deadlines, and the parts of Uvicorn that this module uses are not a public
interface: ``pyproject.toml`` therefore requires one fixed version of Uvicorn (``docs/adr``, number
0014).
"""

from __future__ import annotations

import math
import os
import socket
import struct
from array import array
from asyncio import Transport
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from fcntl import ioctl
from termios import FIONREAD
from typing import TYPE_CHECKING, ClassVar, Final

import structlog
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from app.errors import UnavailableError
from app.http.limits import Limits
from app.http.problems import (
    HeadersTooLargeError,
    MalformedRequestError,
    RequestTimeoutError,
    TooManyConnectionsError,
    kind_of,
    refusal_body,
    slug_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sized

    from uvicorn._types import ASGISendEvent

STREAM_PATHS: Final = frozenset({"/query/stream"})
"""Bodies that may take as long as they like: the stream itself limits its silence."""

PIPELINED_MAX: Final = 2000
"""More requests than one piece of bytes holds of any client that is no attack."""

CROWDED: Final = "a connection has too many requests that wait for their turn; use several"
OLDER_VERSIONS: Final = frozenset({"0.9", "1.0"})
"""Versions of HTTP before chunks and before "100 Continue"."""
BODY_HEADERS: Final = frozenset({b"content-length", b"transfer-encoding"})
MALFORMED: Final = (
    "what came is not HTTP/1.1 as RFC 9112 has it; a whole request before it may have been answered"
)
SLOW_BODY: Final = "the body did not arrive within {seconds:g} seconds; nothing was charged"
SLOW_HEADERS: Final = "the headers did not arrive within {seconds:g} seconds"
LONG_HEADERS: Final = (
    "the request line and headers are longer than {bytes_max} bytes; send fewer or shorter ones"
)
FULL: Final = "the server has as many connections as it takes; use one that is open, or try again"
FULL_FOR_CLIENT: Final = (
    "this address has as many connections as the server takes of one; use one that is open"
)
UPGRADE: Final = (
    "this server speaks HTTP/1.1 only, and reads no body after a header Upgrade; leave that header "
    "out (in some clients, by choosing HTTP/1.1), and nothing was charged"
)
LONG_TRAILERS: Final = (
    "what came beside the body, in trailers or extensions of chunks, is longer than {bytes_max} "
    "bytes; send the body alone"
)
ENDING: Final = (
    "the server is shutting down and the request did not come whole; nothing was charged, send it "
    "again in a moment"
)
AT_ONCE: Final = struct.pack("ii", 1, 0)
LOOK_SECONDS: Final = 0.02
log = structlog.get_logger("conclave.api")


@dataclass(slots=True)
class Guard:
    """The connection limits and counts that all connections of one server share.

    Attributes:
        limits: the maxima.
        by_address: the number of open connections of each client address.
        is_ending: whether the server is ending; a connection that opens then gets one last reply.

    """

    limits: Limits
    by_address: Counter[str] = field(default_factory=Counter)
    is_ending: bool = False

    def refusal(self, address: str, count: int) -> TooManyConnectionsError | None:
        """Return the error for a connection that exceeds a limit; None for an allowed connection.

        Args:
            address: the client's address.
            count: the number of open connections of all clients, this connection included.

        """
        if count > self.limits.connections_max:
            return TooManyConnectionsError(FULL)
        if self.by_address[address] > self.limits.connections_per_client_max:
            return TooManyConnectionsError(FULL_FOR_CLIENT)
        return None


class OrderlyFlow(FlowControl):
    """A flow control that receives nothing more while whole requests wait for their turn.

    Uvicorn receives more after each reply, however many of them wait, and faster than it replies.
    """

    def __init__(self, transport: Transport, waiting: Sized) -> None:
        """Start receiving; ``waiting`` has the requests of the connection that have to wait."""
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Receive more, unless requests wait; a request of which only a part came does not wait."""
        if not self._waiting:
            super().resume_reading()


class GuardedProtocol(HttpToolsProtocol):
    """One HTTP connection, which is closed if its client exceeds a time limit."""

    guard: ClassVar[Guard]

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Count a new connection; refuse and close it if it is over the limit."""
        super().connection_made(transport)
        self.flow = OrderlyFlow(transport, self.pipeline)
        self._receive_due = self.loop.time() + self.guard.limits.header_seconds_max
        self._write_due = self._close_due = math.inf
        self._received_at = self.loop.time()
        self._message_count = 0
        self._head_bytes = self._aside_bytes = 0
        self._is_in_head = False
        self._is_in_message = False
        self._is_cut = False
        self._is_ending = False
        self._has_kept_alive = True
        self._address = self.client[0] if self.client else ""
        self.guard.by_address[self._address] += 1
        refusal = self.guard.refusal(self._address, len(self.connections))
        if refusal is not None:
            self._cut(refusal)
        elif self.guard.is_ending:
            self.shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove an ended connection from the counts."""
        self.guard.by_address[self._address] -= 1
        if not self.guard.by_address[self._address]:
            del self.guard.by_address[self._address]
        super().connection_lost(exc)

    # -- receiving -------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, up to the length limit of a request's headers."""
        if self._is_cut:
            return
        self._received_at = self.loop.time()
        limits, before = self.guard.limits, self._message_count
        if not self._is_in_message and self._receive_due == math.inf:
            self._receive_due = self._received_at + limits.header_seconds_max
        self._aside_bytes += len(data)
        super().data_received(data)
        # What began in this piece, a head or trailers, is counted from the next one on.
        if self._is_in_head and before == self._message_count:
            self._head_bytes += len(data)
            if self._head_bytes > limits.header_bytes_max:
                self._cut(self._long_headers())
        is_in_body = self._is_in_message and not self._is_in_head
        if is_in_body and self._aside_bytes > limits.header_bytes_max:
            problem = LONG_TRAILERS.format(bytes_max=limits.header_bytes_max)
            self._cut(HeadersTooLargeError(problem))

    def on_message_begin(self) -> None:
        """Start the deadline for receiving a request's headers."""
        self._message_count += 1
        self._head_bytes = 0
        self._is_in_head = self._is_in_message = True
        self._receive_due = self.loop.time() + self.guard.limits.header_seconds_max
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Refuse too long headers, and start the deadline for receiving the body."""
        self._is_in_head = False
        if self._is_cut:
            return
        head_bytes = len(self.url) + sum(len(name) + len(text) + 4 for name, text in self.headers)
        if head_bytes > self.guard.limits.header_bytes_max:
            self._cut(self._long_headers())
            return
        if len(self.pipeline) >= PIPELINED_MAX:
            self._cut(TooManyConnectionsError(CROWDED))
            return
        if self.parser.should_upgrade() and not BODY_HEADERS.isdisjoint(dict(self.headers)):
            # The parser takes no body here: its bytes would be read as another request.
            self._cut(MalformedRequestError(UPGRADE))
            return
        before = self._cycle()
        super().on_headers_complete()
        self._aside_bytes = 0
        if self.scope["http_version"] in OLDER_VERSIONS:
            self.cycle.__class__ = OlderCycle
            self.cycle.waiting_for_100_continue = False
        # Trailers would be added to this list, and so to the headers that routes read.
        self.headers = []
        if self._is_ending:
            self._make_last(before)
        is_stream = self.scope.get("path") in STREAM_PATHS
        self._receive_due = (
            math.inf if is_stream else self.loop.time() + self.guard.limits.body_seconds_max
        )

    def on_body(self, body: bytes) -> None:
        """Accept a part of the body, unless the request was refused."""
        self._aside_bytes = 0
        if not self._is_cut:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Clear the deadline for receiving a request."""
        self._is_in_message = False
        self._receive_due = math.inf
        if not self._is_cut:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Set a deadline for receiving the rest of a body that no route reads; it is discarded."""
        if self._is_in_message and self._receive_due == math.inf:
            self._receive_due = self.loop.time() + self.guard.limits.body_seconds_max
        super().on_response_complete()
        if not self.transport.is_closing():
            self.flow.resume_reading()  # if none waits any more

    def send_400_response(self, msg: str) -> None:
        """Reply to malformed HTTP with a JSON body that describes the error."""
        del msg
        if not self._is_cut:
            self._cut(MalformedRequestError(MALFORMED))

    # -- sending ---------------------------------------------------------------

    def pause_writing(self) -> None:
        """Start a deadline for a client that does not read its reply."""
        self._write_due = self.loop.time() + self.guard.limits.stalled_seconds_max
        super().pause_writing()

    def resume_writing(self) -> None:
        """Clear the deadline for a client that does not read its reply."""
        self._write_due = math.inf
        super().resume_writing()

    # -- ending ----------------------------------------------------------------

    def shutdown(self) -> None:
        """Answer the requests that were received completely, then close the connection."""
        if self._is_ending or self._is_cut:
            return
        self._is_ending = True
        self._ending_due = self.loop.time() + self.guard.limits.drain_head_seconds_max
        if self._is_answering():
            self._make_last(None)
        self.loop.call_later(self.guard.limits.drain_quiet_seconds, self._end_if_quiet)

    def leave(self) -> None:
        """Close the connection after the last reply, discarding bytes that arrive late.

        If the connection were closed with unread bytes, it would be reset, and the client would
        lose the part of its reply that it has not read.
        """
        if not self._is_in_message and not _has_unread(self.transport):
            self.transport.close()
            return
        self._is_cut = True
        self.flow.resume_reading()
        self.transport.write_eof()
        self.loop.call_later(self.guard.limits.linger_seconds_max, self.transport.close)

    def _end_if_quiet(self) -> None:
        """Close a connection without a request; look again where one is on its way in."""
        if self._is_cut or self.transport.is_closing() or self._is_answering():
            return
        if not self._is_in_head and not _has_unread(self.transport):
            self.leave()
        elif self._is_in_head and self.loop.time() >= self._ending_due:
            self._cut(UnavailableError(ENDING))
        else:
            self.loop.call_later(LOOK_SECONDS, self._end_if_quiet)

    def _is_answering(self) -> bool:
        cycle = self._cycle()
        return cycle is not None and not cycle.response_complete

    def _make_last(self, before: RequestResponseCycle | None) -> None:
        """Let the newest request be the last; one before it, of which it was, is so no more."""
        if before is not None:
            before.keep_alive = self._has_kept_alive
        self._has_kept_alive = self.cycle.keep_alive
        self.cycle.keep_alive = False
        self.cycle.transport = LastTransport(self)

    # -- cutting off -----------------------------------------------------------

    def cut_off_if_due(self, now: float) -> None:
        """Close the connection if its deadline has passed."""
        limits = self.guard.limits
        if self.transport.is_closing():
            # It waits for the client to read what was written.
            self._close_due = min(self._close_due, now + limits.stalled_seconds_max)
            if now >= self._close_due:
                self._abort("closing")
        elif now >= self._write_due:
            # Who still sends may read later: a stream bounds what waits for it.
            if now >= self._received_at + limits.stalled_seconds_max:
                self._abort("reading")
        elif now >= self._receive_due and not self.flow.read_paused:
            self._time_out()

    def _time_out(self) -> None:
        limits = self.guard.limits
        if self._is_in_head:
            self._cut(RequestTimeoutError(SLOW_HEADERS.format(seconds=limits.header_seconds_max)))
        elif self._is_in_message:
            self._cut(RequestTimeoutError(SLOW_BODY.format(seconds=limits.body_seconds_max)))
        else:
            self._is_cut = True
            self.transport.close()

    def _abort(self, waiting_for: str) -> None:
        log.info("connection_aborted", step=waiting_for)
        _forget_unsent(self.transport)
        self.transport.abort()

    def _long_headers(self) -> HeadersTooLargeError:
        return HeadersTooLargeError(
            LONG_HEADERS.format(bytes_max=self.guard.limits.header_bytes_max)
        )

    def _cut(self, error: Exception) -> None:
        """Say why, where no other reply is under way, and close the connection."""
        self._is_cut = True
        log.info("connection_cut", problem=slug_of(error), error=type(error).__name__)
        if self._may_say():
            self.transport.write(_reply(error, self._path()))
        cycle = self._cycle()
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def _path(self) -> str:
        """Return the path of the newest request as far as it came; empty before the first."""
        url: bytes = getattr(self, "url", b"")  # uvicorn sets it when a request begins
        return url.partition(b"?")[0].decode("latin-1")

    def _may_say(self) -> bool:
        """Return whether the next reply that the client expects is the one to this request."""
        if self.pipeline:
            return False
        cycle = self._cycle()
        if cycle is None:
            return True
        if cycle.response_complete:
            # A body under way is one whose reply was given: it was not needed to the end.
            return self._is_in_head or not self._is_in_message
        return not cycle.response_started and not self._is_in_head

    def _cycle(self) -> RequestResponseCycle | None:
        """Return the newest request and its reply; None before the first."""
        return self.cycle


class OlderCycle(RequestResponseCycle):
    """A request of HTTP/1.0 and its reply, which has no chunks.

    A reply whose length is not known when it starts ends with the connection.
    """

    has_length = True

    async def send(self, message: ASGISendEvent) -> None:
        """Write a part of the reply to the client."""
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", [])}
            self.has_length = b"content-length" in names
            self.chunked_encoding = None if self.has_length else False
        elif message["type"] == "http.response.body" and not self.has_length:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class LastTransport(Transport):
    """The transport for the last reply on a connection, which is closed afterwards."""

    def __init__(self, connection: GuardedProtocol) -> None:
        """Wrap the transport of a connection."""
        super().__init__()
        self._connection = connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes of the reply to the client."""
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""
        return self._connection.transport.is_closing()

    def close(self) -> None:
        """Close the connection after reading and discarding the client's remaining bytes."""
        self._connection.leave()


def _has_unread(transport: Transport) -> bool:
    """Return whether the system holds unread bytes of a client."""
    count = array("i", [0])
    with suppress(AttributeError, OSError):
        ioctl(transport.get_extra_info("socket").fileno(), FIONREAD, count)
    return count[0] > 0


def _forget_unsent(transport: Transport) -> None:
    """Let the system reset the connection, rather than keep megabytes of unread replies."""
    known = transport.get_extra_info("socket")
    with suppress(AttributeError, OSError), socket.socket(fileno=os.dup(known.fileno())) as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)


def cut_off_overdue(connections: Iterable[object], now: float) -> None:
    """Close every connection whose deadline has passed; called about once a second."""
    for connection in list(connections):
        if isinstance(connection, GuardedProtocol):
            connection.cut_off_if_due(now)


def _reply(error: Exception, path: str) -> bytes:
    """Return a whole reply, after which the connection closes."""
    kind, (body, media_type) = kind_of(error), refusal_body(error, path)
    headers = [f"content-type: {media_type}", f"content-length: {len(body)}", "connection: close"]
    if isinstance(error, UnavailableError):
        headers.append(f"retry-after: {error.retry_after_seconds}")
    head = "\r\n".join([*headers, "", ""])
    return STATUS_LINE[int(kind.status)] + head.encode() + body
