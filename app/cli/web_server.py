"""The Uvicorn web server: its socket, its signals, its shutdown."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import signal
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import uvicorn

from app.errors import ConfigurationError
from app.http.limits import limits_of
from app.http.wire.connection_guard import cut_off_overdue
from app.http.wire.fast_requests import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from app.http.application import ConclaveApplication
    from app.main import Server

GRACEFUL_SECONDS: Final = 5
BACKLOG: Final = 2048
END_SECONDS: Final = 9.0
PARTING_LOOK_SECONDS: Final = 0.05
PARTING_LOOKS_MAX: Final = 20
TICKS_BETWEEN_LOOKS: Final = 5
OTHER_FILES: Final = 256
GRPC_PORT: Final = "server.grpc_port"


class WebServer(uvicorn.Server):
    """A web server that runs until a signal arrives or the opening of the release fails."""

    def __init__(
        self, application: ConclaveApplication, server: Server, listening: socket.socket
    ) -> None:
        """Serve ``server`` on a socket that is already bound."""
        self.limits = limits_of(server.settings)
        protocol = guarded(self.limits, application.plain)
        self._guard = protocol.guard
        super().__init__(
            uvicorn.Config(
                application,
                http=protocol,
                ws="none",
                loop="uvloop",
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                proxy_headers=False,  # nobody asks who sent a request but the connection's limits
                backlog=BACKLOG,
                timeout_keep_alive=self.limits.keep_alive_seconds_max,
                timeout_graceful_shutdown=GRACEFUL_SECONDS,
            )
        )
        self.server = server
        self.listening = listening
        self.grpc_listening = _grpc_socket(server)
        server.on_failure = self.stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen for gRPC calls and then HTTP requests, before the release opens."""
        if self.server.inference is not None and self.grpc_listening is not None:
            try:
                under_way = self.server_state.tasks
                await self.server.inference.start(self.grpc_listening, under_way)
            except ConfigurationError as error:
                self.server.failure = error
                self.should_exit = True
                return
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Disconnect clients that exceeded a time limit; called twice a second."""
        if counter % TICKS_BETWEEN_LOOKS == 0:
            now = asyncio.get_running_loop().time()
            cut_off_overdue(self.server_state.connections, now)
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Tell the server to finish its requests and end; any thread may call this method."""
        self.should_exit = True

    def serve_until_stopped(self) -> None:
        """Serve until stopped; raise the error if the release failed to open.

        Raises:
            ConclaveError: the reason why the release could not open.

        """
        _allow_files(self.limits.connections_max + OTHER_FILES)
        self.run(sockets=[self.listening])
        if self.server.failure is not None:
            raise self.server.failure

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Reply to every request that arrived before the shutdown, then close.

        This includes requests whose bytes the operating system has received and this process has
        not read yet, also on connections that are not accepted yet.
        """
        inference = self.server.inference
        self.server.slot.drain()
        self._guard.is_ending = True
        if inference is not None:
            inference.drain()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._accept_waiting()
        await super().shutdown(sockets)
        await self._part_with_clients()
        if inference is not None:
            await inference.stop()

    async def _accept_waiting(self) -> None:
        """Accept the connections that wait to be: each turn of the loop takes one or more."""
        queue = select.poll()
        queue.register(self.listening, select.POLLIN)
        # Those that came before the wish are first, and no more than the queue holds.
        for _ in range(BACKLOG + 1):
            if not queue.poll(0):
                return
            await asyncio.sleep(0)

    async def _part_with_clients(self) -> None:
        """Let clients that were given up while they sent read the reply that says so."""
        for _ in range(PARTING_LOOKS_MAX):
            if not self.server_state.connections:
                return
            await asyncio.sleep(PARTING_LOOK_SECONDS)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Treat SIGTERM and SIGINT as requests to finish and end, with exit code 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        wishes = (signal.SIGTERM, signal.SIGINT)
        before = {wish: signal.signal(wish, self._drain) for wish in wishes}
        try:
            yield
        finally:
            for wish, handler in before.items():
                signal.signal(wish, handler)

    def _drain(self, number: int, frame: FrameType | None) -> None:
        """Bind the server's socket before any other work."""
        del number, frame
        self.should_exit = True
        last = threading.Timer(END_SECONDS, os._exit, args=(0,))
        last.daemon = True
        last.start()


def _allow_files(count: int) -> None:
    """Let the process have so many files and sockets, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _grpc_socket(server: Server) -> socket.socket | None:
    """Return a socket that keeps the port of gRPC until its server listens there.

    Raises:
        ConfigurationError: it cannot be bound, or is that of HTTP.

    """
    settings = server.settings.server
    if settings.grpc_port is None:
        return None
    if settings.grpc_port and settings.grpc_port == settings.port:
        raise ConfigurationError(GRPC_PORT, "is the port of HTTP too; choose another")
    return listen(settings.host, settings.grpc_port, setting=GRPC_PORT)


def listen(
    host: str, port: int, *, any_free: bool = False, setting: str = "server.port"
) -> socket.socket:
    """Return the server's listening socket, bound before anything else is done.

    Args:
        host: the name or address on which to listen.
        port: the port on which to listen; 0 for any free port.
        any_free: whether to use any free port if ``port`` is taken.
        setting: the name of the setting that gave the port, for the error.

    Raises:
        ConfigurationError: the address cannot be bound.

    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        if any_free and port:
            return listen(host, 0)
        reason = (error.strerror or "the system refuses").lower()
        problem = f"cannot listen on {host}:{port}: {reason}; choose another"
        raise ConfigurationError(setting, problem) from None
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the URL of one of this process's sockets, as seen from this machine."""
    return f"http://{place_of(listening)}"


def place_of(listening: socket.socket) -> str:
    """Return the host and port of one of this process's sockets, as seen from this machine."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 -- compared, not bound
        host = "127.0.0.1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def end_process(exit_code: int) -> None:
    """End the process without waiting for threads whose results are no longer needed."""
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread of ours may fit learners, whose library may have threads that an end would wait for.
    left = threading.enumerate()[1:]
    if any(not each.daemon or each.name.startswith("conclave") for each in left):
        os._exit(exit_code)
    sys.exit(exit_code)
