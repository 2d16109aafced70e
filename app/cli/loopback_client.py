"""An HTTP client for a server on this machine: one connection, one request at a time.

An audit sends a hundred thousand requests, so the client does without proxies, redirects, cookies
and certificates.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import httptools

from app.errors import InvariantError

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Mapping

READ_BYTES: Final = 1 << 16
REPLY_SECONDS_MAX: Final = 60.0
LATIN: Final = "latin-1"
"""What the octets of a header are read as, so that none is lost."""


@dataclass
class Reply:
    """A complete HTTP reply from a local server.

    Attributes:
        status: the HTTP status code.
        headers: names and values, in order.
        body: the body, without its transfer coding.

    """

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    is_complete: bool = False

    def header(self, name: str) -> str:
        """Return the reply's first header with a lower-case name; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


class _Parts:
    """Puts together what the parser calls out."""

    def __init__(self) -> None:
        self.reply = Reply()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.reply.headers.append((name.decode(LATIN), value.decode(LATIN)))

    def on_body(self, body: bytes) -> None:
        self.reply.body += body

    def on_message_complete(self) -> None:
        self.reply.is_complete = True


class LoopbackClient:
    """An open HTTP connection to a server on this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Use an open connection."""
        self._reader = reader
        self._writer = writer

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Reply:
        """Send one request and return the whole reply."""
        given = {"Host": "127.0.0.1", "Content-Length": str(len(body)), **(headers or {})}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in given.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode(LATIN) + body)
        return await asyncio.wait_for(self._receive(), REPLY_SECONDS_MAX)

    async def _receive(self) -> Reply:
        parts = _Parts()
        parser = httptools.HttpResponseParser(parts)
        while not parts.reply.is_complete:
            received = await self._reader.read(READ_BYTES)
            if not received:
                raise InvariantError("the server ended the connection within a reply")
            parser.feed_data(received)
        parts.reply.status = parser.get_status_code()
        return parts.reply


@asynccontextmanager
async def connected(listening: socket.socket) -> AsyncIterator[LoopbackClient]:
    """Yield an HTTP client that is connected to one of this process's own sockets."""
    host, port = listening.getsockname()[:2]
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield LoopbackClient(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()
