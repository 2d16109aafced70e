"""The gRPC server: its limits, its start before the release opens, and its shutdown."""

from __future__ import annotations

import os

# Before the library is loaded: it would write lines of its own beside those of the log.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from app.errors import ConfigurationError
from app.http.protocols.v2_grpc.calls import Calls

if TYPE_CHECKING:
    import asyncio
    import socket

    from app.http.access.access_control import Access
    from app.http.limits import Limits
    from app.http.route_handling import Api

SETTING: Final = "server.grpc_port"
MILLISECONDS: Final = 1000
STOP_SECONDS_MAX: Final = 0.5


class InferenceServer:
    """A gRPC server of the inference protocol, on the web server's event loop."""

    def __init__(self, api: Api, access: Access) -> None:
        """Prepare the gRPC server without starting it.

        Args:
            api: the parts of the server that HTTP handlers use too, with the same counts and
                limits.
            access: the access control of the HTTP routes. The ``Host`` is not checked here, because
                browsers do not send HTTP/2 without TLS.

        """
        self._api = api
        self._access = replace(access, loopback_only=False)
        self._calls: Calls | None = None
        self._server: grpc.aio.Server | None = None

    async def start(self, reserved: socket.socket, under_way: set[asyncio.Task[Any]]) -> None:
        """Start listening for gRPC calls.

        Args:
            reserved: a socket that is bound to the address, and that this method closes.
            under_way: the process's requests in progress.

        Raises:
            ConfigurationError: another program has begun to listen on this address.

        """
        self._calls = Calls(self._api, self._access, under_way)
        self._server = grpc.aio.server(options=_options(self._api.limits))
        self._server.add_generic_rpc_handlers((self._calls.handlers(),))
        address = _address(reserved)
        try:
            self._server.add_insecure_port(address)
        except RuntimeError:
            raise ConfigurationError(
                SETTING, f"cannot listen on {address}; choose another"
            ) from None
        finally:
            reserved.close()
        await self._server.start()

    def drain(self) -> None:
        """Refuse new gRPC calls, and finish the calls in progress."""
        if self._calls is not None:
            self._calls.is_ending = True

    async def stop(self) -> None:
        """Stop listening for gRPC calls."""
        if self._server is not None:
            await self._server.stop(STOP_SECONDS_MAX)


def _address(reserved: socket.socket) -> str:
    """Return where a socket is bound, as clients of gRPC name it."""
    host, port = reserved.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _options(limits: Limits) -> list[tuple[str, int]]:
    """Return the limits of the HTTP layer as the library names them."""
    stalled = int(limits.stalled_seconds_max * MILLISECONDS)
    return [
        # Two servers on one port would each answer some of the calls.
        ("grpc.so_reuseport", 0),
        # Of a message, also once it is decompressed.
        ("grpc.max_receive_message_length", limits.body_bytes_max),
        ("grpc.max_metadata_size", limits.header_bytes_max),
        ("grpc.absolute_max_metadata_size", limits.header_bytes_max),
        ("grpc.max_concurrent_streams", limits.connections_per_client_max),
        ("grpc.server_handshake_timeout_ms", int(limits.header_seconds_max * MILLISECONDS)),
        ("grpc.max_connection_idle_ms", limits.keep_alive_seconds_max * MILLISECONDS),
        # A client that is gone without a word is found out by a ping.
        ("grpc.keepalive_time_ms", stalled),
        ("grpc.keepalive_timeout_ms", stalled),
    ]
