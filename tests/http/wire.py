"""One request to an application, message by message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Message

PATIENCE_SECONDS: Final = 60.0
"""For what happens at once on a quiet machine."""


class Wire:
    """One HTTP request at the level of ASGI messages, for what httpx cannot do."""

    def __init__(
        self, application: FastAPI, method: str, path: str, headers: dict[str, str]
    ) -> None:
        """Prepare the request; entering starts it."""
        self._application = application
        path, _, query = path.partition("?")
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._outgoing: asyncio.Queue[Message] = asyncio.Queue()
        self.open_for_sending = asyncio.Event()
        self.open_for_sending.set()

    async def __aenter__(self) -> Self:
        """Start the application on the request."""
        application = self._application(self._scope, self._incoming.get, self._take)
        self.task = asyncio.create_task(application)
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the application if it has not ended."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _take(self, message: Message) -> None:
        await self.open_for_sending.wait()
        self._outgoing.put_nowait(message)

    def send(self, body: bytes, *, more: bool = True) -> None:
        """Send a piece of the request's body."""
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def hang_up(self) -> None:
        """Close the connection as a client."""
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> Message:
        """Return the next message of the reply, once it is there."""
        return await asyncio.wait_for(self._outgoing.get(), PATIENCE_SECONDS)

    async def receive_body(self) -> bytes:
        """Return the next piece of the reply's body; empty at its end."""
        message = await self.receive()
        assert message["type"] == "http.response.body"
        return bytes(message["body"])
