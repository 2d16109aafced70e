"""A fast path for requests whose header bytes were seen before: no parser, no framework.

A client that keeps its connection open sends the same header bytes again and again. Once the web
server has parsed these headers, and the route has found that they need no further check, a request
that consists of the same header bytes and a complete body is read directly from the connection, and
its reply is written directly to it. All other cases use the ordinary path: other header bytes, an
incomplete request, two requests at once, a body that is refused, or a result that is no answer.

With 64 clients, an answer that is committed to disk takes 60 microseconds of processor time on this
path, and 104 on the ordinary path with the parser and a task. ``docs/performance.md`` has more.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import structlog
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.http.wire.connection_guard import OLDER_VERSIONS, Guard, GuardedProtocol

if TYPE_CHECKING:
    from asyncio import Transport
    from collections.abc import Mapping, Sequence

    from starlette.types import Scope

    from app.http.limits import Limits

HEAD_BYTES_MAX: Final = 4096
HEADS_MAX: Final = 512
"""Known heads: a client has one for each length of its bodies."""

_POST: Final = b"POST /"
_END_OF_HEAD: Final = b"\r\n\r\n"
_OK: Final = b"HTTP/1.1 200 OK\r\n"
_CLOSE: Final = b"connection: close\r\n"
# Of these each request has its own, or they say how bytes are to be read.
_TELLING: Final = frozenset(
    {
        b"content-encoding",
        b"expect",
        b"idempotency-key",
        b"inference-header-content-length",
        b"te",
        b"traceparent",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"x-request-id",
    }
)
log = structlog.get_logger("conclave.api")


class Head:
    """Parsed request headers, kept so that equal bytes need no second parsing.

    Attributes:
        body_bytes: the number of bytes of the body that follows.
        scope: the ASGI scope of a request with these headers, as the web server made it.
        route: the route's fast path, which answers such requests without the web framework.
        allowed: the route's result of checking these headers.

    """

    __slots__ = ("allowed", "body_bytes", "route", "scope")

    def __init__(
        self, body_bytes: int, scope: Mapping[str, Any], route: PlainRoute, allowed: object
    ) -> None:
        """Store the parsed headers with their route."""
        self.body_bytes = body_bytes
        self.scope = scope
        self.route = route
        self.allowed = allowed


class PlainRoute(Protocol):
    """The interface of a route that can answer requests without the web framework."""

    def admit(self, scope: Scope) -> object | None:
        """Check a request's headers, on behalf of all later requests with equal headers.

        The result is what the route needs to know of these requests, for example their sender; None
        if each of them must be checked by itself.

        Args:
            scope: the ASGI scope of a request with one Content-Length, as the web server made it.

        """

    def ask(self, exchange: Exchange) -> bool:
        """Start to answer a request; return False if the web framework must handle it."""

    def settle(self, exchange: Exchange, result: object) -> None:
        """Send the reply to a request, given its result: an answer, or an error."""


class _Nobody:
    """Stands in for the event that a task of the web server would wait for."""

    def set(self) -> None:
        """Do nothing, since no task waits."""


_NOBODY: Final = _Nobody()


class Exchange:
    """One request and its reply, without the web framework.

    The answering service sets the query's result on this object, as on an asyncio future.

    Attributes:
        head: the request's parsed headers.
        body: the request's whole body.
        kept: the data that the route keeps until the reply.

    """

    __slots__ = (
        "_is_left",
        "body",
        "connection",
        "disconnected",
        "head",
        "keep_alive",
        "kept",
        "response_complete",
        "transport",
    )
    message_event: ClassVar = _NOBODY
    more_body: ClassVar = False
    response_started: ClassVar = False

    def __init__(self, connection: PlainProtocol, head: Head, body: bytes) -> None:
        """Start with a request that was received whole."""
        self.connection = connection
        self.transport: Transport = connection.transport
        self.head = head
        self.body = body
        self.kept: Any = None
        self.keep_alive = True
        self.disconnected = self.response_complete = self._is_left = False

    # -- a future, to the service ----------------------------------------------

    def done(self) -> bool:
        """Return whether the request no longer needs a result."""
        return self._is_left

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop on whose thread the result must be set."""
        return self.connection.loop

    def set_result(self, result: object) -> None:
        """Send the reply for a result; errors are logged here and never raised."""
        try:
            self.head.route.settle(self, result)
        except Exception as error:  # noqa: BLE001 -- its text may be private
            self.leave()
            log.error(  # noqa: TRY400 -- a traceback may be private too
                "reply_aborted", path=self.head.scope["path"], error=type(error).__name__
            )
            self.transport.close()

    # -- a task, to the web server ---------------------------------------------

    def cancel(self, msg: object = None) -> None:
        """Cancel the request, as the web server does with tasks at the end of a shutdown."""
        del msg
        # In a turn of its own: the web server goes through all that wait in one.
        self.connection.loop.call_soon(self._give_up)

    def _give_up(self) -> None:
        if not self.done():
            self.set_result(asyncio.CancelledError())

    # -- replies ---------------------------------------------------------------

    def leave(self) -> None:
        """Remove the request from the server's set of tasks."""
        self._is_left = True
        tasks: set[Any] = self.connection.server_state.tasks
        tasks.discard(self)

    def reply(self, headers: bytes, body: bytes) -> None:
        """Write a reply with status 200 to the client.

        Args:
            headers: the header lines, each with its line end.
            body: the body, whose length the headers state.

        """
        self.response_complete = True
        self.leave()
        if self.disconnected:
            return
        if self.keep_alive:
            self.transport.write(b"%b%b\r\n%b" % (_OK, headers, body))
        else:
            self.transport.write(b"%b%b%b\r\n%b" % (_OK, headers, _CLOSE, body))
            self.transport.close()
        self.connection.end_exchange()

    def go_on(self, told: Mapping[str, object]) -> None:
        """Pass the request to the web framework, with ``told`` added to its ASGI scope."""
        self.leave()
        connection = self.connection
        own = {"server": connection.server, "client": connection.client}
        state = {"scheme": connection.scheme, "state": connection.app_state.copy()}
        scope: Any = {**self.head.scope, **own, **state, **told}
        scope["headers"] = [*scope["headers"]]
        cycle = RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=connection.flow,
            logger=connection.logger,
            access_logger=connection.access_logger,
            access_log=connection.access_log,
            default_headers=connection.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=self.keep_alive,
            on_response=connection.on_response_complete,
        )
        cycle.body += self.body
        cycle.more_body = False
        cycle.message_event.set()
        cycle.disconnected = self.disconnected
        connection.replace_cycle(self, cycle)


class PlainProtocol(GuardedProtocol):
    """One HTTP connection that answers requests with known header bytes without parsing them."""

    routes: ClassVar[Sequence[PlainRoute]]
    heads: ClassVar[dict[bytes, Head]]

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Start the connection with no request in progress."""
        self._is_between = True
        self._idle_until = -math.inf
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Answer a request without the web framework if its headers are known; else parse it."""
        is_between = self._is_between
        if is_between and data.startswith(_POST):
            end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
            head = self.heads.get(data[:end])
            if head is not None and len(data) == end + head.body_bytes and self._is_free():
                if self._take(Exchange(self, head, data[end:])):
                    return
            elif head is None and end <= HEAD_BYTES_MAX:
                before = self._message_count
                super().data_received(data)
                if self._is_between and self._message_count == before + 1:
                    self._learn(data[:end], len(data) - end)
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Note that the parser has begun to read a request."""
        self._is_between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Note that no request is in progress, unless the connection closes or is upgraded."""
        parser = self.parser
        self._is_between = parser.should_keep_alive() and not parser.should_upgrade()
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was idle for the whole keep-alive time."""
        self.timeout_keep_alive_task = None
        cycle = self._cycle()
        if cycle is not None and not cycle.response_complete:
            return
        left = self._idle_until - self.loop.time()
        if left > 0:
            self._close_when_idle(left)
        else:
            super().timeout_keep_alive_handler()

    def end_exchange(self) -> None:
        """Process bytes that arrived during a reply, or start the keep-alive time."""
        if self.pipeline or self._is_in_message or self.transport.is_closing():
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self.timeout_keep_alive_task is None:
            self._close_when_idle(self.timeout_keep_alive)

    def replace_cycle(self, exchange: Exchange, cycle: RequestResponseCycle) -> None:
        """Let the web framework answer a request, after the fast path has given it up."""
        newest: object = self.cycle
        if newest is exchange:
            self.cycle = cycle
        self._start_asgi_task(cycle, self.app)

    def _close_when_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def _is_free(self) -> bool:
        """Return whether nothing else is under way or about to end."""
        cycle: Any = self.cycle
        is_idle = cycle is None or cycle.response_complete
        return is_idle and not (
            self._is_cut
            or self._is_ending
            or self.flow.write_paused
            or self.transport.is_closing()
            or self.server_state.default_headers
        )

    def _take(self, exchange: Exchange) -> bool:
        """Return whether the route took a request."""
        before, self.cycle = self.cycle, exchange  # type: ignore[assignment]  # it ends as one
        # It waits for no answer longer than the server does.
        tasks: set[Any] = self.server_state.tasks
        tasks.add(exchange)
        if exchange.head.route.ask(exchange):
            self._received_at = self.loop.time()
            self._receive_due = math.inf
            return True
        exchange.leave()
        self.cycle = before
        return False

    def _learn(self, head: bytes, body_bytes: int) -> None:
        """Keep a head that was parsed as one whole request, if the route has no more to see."""
        scope: dict[str, Any] = {**self.scope}
        if scope["http_version"] in OLDER_VERSIONS:
            return
        names = [name for name, _ in scope["headers"]]
        lengths = [text for name, text in scope["headers"] if name == b"content-length"]
        if lengths != [b"%d" % body_bytes] or not _TELLING.isdisjoint(names):
            return
        for route in self.routes:
            allowed = route.admit(scope)
            if allowed is not None:
                if len(self.heads) >= HEADS_MAX:
                    self.heads.clear()
                self.heads[head] = Head(body_bytes, scope, route, allowed)
                return


def guarded(limits: Limits, routes: Sequence[PlainRoute] = ()) -> type[GuardedProtocol]:
    """Return the connection class of a server with these limits.

    Args:
        limits: the limits on connections.
        routes: the fast paths of routes, which answer requests without the web framework; if empty,
            every request is parsed.

    """
    if not routes:
        return type("ServerProtocol", (GuardedProtocol,), {"guard": Guard(limits)})
    shared = {"guard": Guard(limits), "routes": tuple(routes), "heads": {}}
    return type("ServerProtocol", (PlainProtocol,), shared)
