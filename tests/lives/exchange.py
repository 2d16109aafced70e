"""One request and the bytes of its reply, message by message and without a socket."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import ASGIApp, Message

REPLY_SECONDS_MAX = 120.0
JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        method: of HTTP.
        path: with its query.
        headers: by name; those of HTTP itself are added where they are absent.
        body: whole, or in pieces of which each is sent once the one before is answered.
        first_only: whether the client hangs up after the first piece of the reply.

    """

    method: str
    path: str
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    body: bytes | tuple[bytes, ...] = b""
    first_only: bool = False

    @property
    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The headers as a web server gives them."""
        given = self.headers.items() if hasattr(self.headers, "items") else self.headers
        pairs = [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in given]
        if not any(name == b"host" for name, _ in pairs):
            pairs.insert(0, (b"host", b"127.0.0.1"))
        has_length = any(name in {b"content-length", b"transfer-encoding"} for name, _ in pairs)
        if isinstance(self.body, bytes) and self.body and not has_length:
            pairs.append((b"content-length", b"%d" % len(self.body)))
        return pairs

    def scope(self) -> dict[str, Any]:
        """Return the scope of the request."""
        path, _, query = self.path.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": self.pairs,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }


class _Client:
    """What sends the pieces of a request and takes those of its reply."""

    def __init__(self, request: Request) -> None:
        self._whole = isinstance(request.body, bytes)
        self._pieces = [request.body] if isinstance(request.body, bytes) else [*request.body]
        self._first_only = request.first_only
        self._heard = asyncio.Event()
        self._heard.set()
        self._gone = asyncio.Event()
        self.status, self.headers, self.body = 0, list[tuple[bytes, bytes]](), b""

    async def receive(self) -> Message:
        """Send the next piece once the one before was answered; then hang up at the end."""
        if not self._pieces:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        if not self._whole:
            await self._heard.wait()
            self._heard.clear()
        piece = self._pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def send(self, message: Message) -> None:
        """Take a piece of the reply."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], [*message.get("headers", ())]
            return
        piece = message.get("body", b"")
        if self._first_only and self.body:
            return
        self.body += piece
        if piece:
            self._heard.set()
        if not message.get("more_body", False) or (self._first_only and self.body):
            self._gone.set()


async def reply_to(application: ASGIApp, request: Request) -> tuple[int, bytes, bytes]:
    """Return status, the reply as it would be on a wire, and its body."""
    client = _Client(request)
    async with asyncio.timeout(REPLY_SECONDS_MAX):
        await application(request.scope(), client.receive, client.send)
    lines = [b"HTTP %d" % client.status, *(b"%s: %s" % pair for pair in client.headers), b""]
    return client.status, b"\n".join([*lines, client.body]), client.body
