"""A real release behind the real application, asked without a socket.

The lifespan opens the release as it does under a web server; requests go
through httpx's ASGI transport.  One event loop belongs to each server, so that
tests stay plain functions.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from app.errors import OpeningError
from app.main import Server

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from app.settings.settings import Settings

NDJSON = {"Content-Type": "application/x-ndjson"}
OPENING_SECONDS_MAX = 120.0
ResultT = TypeVar("ResultT")


class Served:
    """A server that is open from ``with`` on.

    Attributes:
        server: the composition root's server.

    """

    def __init__(self, settings: Settings, *, wait: bool = True, **server: Any) -> None:
        """Serve ``settings``; without ``wait``, the release may still be opening."""
        self.server = Server(settings, **server)
        self._wait = wait
        self._loop = asyncio.new_event_loop()
        self._stack = ExitStack()
        self._application = self.server.application()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self._application), base_url="http://127.0.0.1"
        )

    def __enter__(self) -> Self:
        """Start the application and wait until the release is open."""
        lifespan = self._application.router.lifespan_context(self._application)
        self.run(lifespan.__aenter__())
        self._stack.callback(lambda: self.run(self._end()))
        self._stack.callback(lambda: self.run(lifespan.__aexit__(None, None, None)))
        try:
            if self._wait:
                self.wait_until_open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop the application as a web server would."""
        try:
            self._stack.close()
        finally:
            self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run ``coroutine`` beside the application until it is done."""
        return self._loop.run_until_complete(coroutine)

    def wait_until_open(self) -> None:
        """Wait until the release is open; raise why it cannot be."""
        self.run(asyncio.wait_for(self._opened(), OPENING_SECONDS_MAX))

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET request."""
        return self.run(self._client.get(path, **options))

    def budget(self) -> dict[str, Any]:
        """Return the body of ``GET /budget``."""
        budget: dict[str, Any] = self.get("/budget").json()
        return budget

    def query(self, features: object, key: str | None = None, **headers: str) -> httpx.Response:
        """Post one vector."""
        return self.run(self.post_query(features, key, **headers))

    def answer(self, features: object, key: str | None = None) -> dict[str, Any]:
        """Post one vector, which must be answered, and return the answer."""
        response = self.query(features, key)
        assert response.status_code == httpx.codes.OK, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def post_query(
        self, features: object, key: str | None = None, **headers: str
    ) -> httpx.Response:
        """Post one vector; several of these may run at once."""
        headers |= {} if key is None else {"Idempotency-Key": key}
        return await self._client.post("/query", json={"features": features}, headers=headers)

    def stream(self, vectors: Iterable[object]) -> list[dict[str, Any]]:
        """Post vectors as one stream, and return the reply to each line."""
        body = "".join(json.dumps({"features": vector}) + "\n" for vector in vectors)
        response = self.run(self._client.post("/query/stream", content=body, headers=NDJSON))
        assert response.status_code == httpx.codes.OK, response.text
        return [json.loads(line) for line in response.text.splitlines()]

    def post(self, path: str, body: object) -> httpx.Response:
        """Post a document."""
        return self.run(self._client.post(path, json=body))

    def post_json(self, path: str, body: object) -> dict[str, Any]:
        """Post a document, which must be answered, and return the reply's."""
        response = self.post(path, body)
        assert response.status_code == httpx.codes.OK, response.text
        reply: dict[str, Any] = response.json()
        return reply

    async def _opened(self) -> None:
        while True:
            if self.server.failure is not None:
                raise self.server.failure
            try:
                self.server.slot.check_open()
            except OpeningError:
                await asyncio.sleep(0.01)
            else:
                return

    async def _end(self) -> None:
        await self._client.aclose()
        await self._loop.shutdown_default_executor()
