"""A whole reply of JSON, for the busiest route.

It takes 2 microseconds of the processor less than Starlette's, which encodes its headers
from text: a tenth of what a query takes between the web server and the service.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from app.http.wire.bodies import JSON

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_CONTENT_TYPE: Final = (b"content-type", JSON.encode())


class JsonReply:
    """A whole reply of JSON, with status 200."""

    __slots__ = ("_body", "raw_headers")
    status_code: Final = HTTPStatus.OK

    def __init__(self, body: bytes) -> None:
        """Reply with a document's bytes; ``raw_headers`` may be added to."""
        self._body = body
        self.raw_headers = [_CONTENT_TYPE, (b"content-length", b"%d" % len(body))]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply."""
        del scope, receive
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})
