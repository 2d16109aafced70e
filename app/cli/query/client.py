"""A client of ``POST /query/stream`` that tries again what is safe to try again.

Everything is: a vector that was answered before gets its recorded answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Self

import httpx
import msgspec

from app.errors import ConfigurationError
from app.http.query.lines import LineCutter, Overlong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

Reply = dict[str, Any]
"""An answer's members, or a problem's; :func:`is_answer` tells which."""

NDJSON: Final = "application/x-ndjson"
ATTEMPTS_MAX: Final = 8
PAUSE_SECONDS: Final = 0.25
PAUSE_SECONDS_MAX: Final = 8.0
# A query may wait 30 s while the classifier is drawn.
TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)
REPLY_BYTES_MAX: Final = 1 << 20
URL: Final = "--url"


def is_answer(reply: Reply) -> bool:
    """Return whether a reply is an answer rather than a problem."""
    return "stable" in reply


class QueryClient:
    """One server, one key."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare to talk to ``url``; nothing is sent yet."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._url = url
        self._pause = pause
        try:
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=TIMEOUT, transport=transport
            )
        except (httpx.InvalidURL, ValueError):
            raise ConfigurationError(URL, f"{url!r} is not an address") from None

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        self._http.close()

    def schema(self) -> dict[str, object]:
        """Return the public schema.

        Raises:
            ConfigurationError: no server answers, or it refuses.

        """
        try:
            reply = self._http.get("schema")
        except (httpx.TransportError, httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise ConfigurationError(URL, f"no server answers at {self._url}") from None
        document = _document(reply.content)
        if not reply.is_success or not isinstance(document.get("features"), list):
            raise self._refused(document)
        return document

    def ask(self, lines: Sequence[bytes]) -> list[Reply]:
        """Return a reply to each of ``lines``, in order.

        Raises:
            ConfigurationError: the server went away for good, or refuses the client.

        """
        replies: dict[int, Reply] = {}
        for attempt in range(ATTEMPTS_MAX):
            waiting = [each for each in range(len(lines)) if _is_open(replies.get(each))]
            if not waiting:
                break
            if attempt:
                self._pause(min(PAUSE_SECONDS * 2**attempt, PAUSE_SECONDS_MAX))
            posted = self._post([lines[each] for each in waiting])
            # The replies run out early where the connection broke.
            replies.update(zip(waiting, posted, strict=False))
        if len(replies) < len(lines):
            raise ConfigurationError(URL, f"the server at {self._url} stopped answering")
        return [replies[each] for each in range(len(lines))]

    def _post(self, lines: Sequence[bytes]) -> Iterator[Reply]:
        content = b"".join(lines)
        headers = {"Content-Type": NDJSON}
        try:
            with self._http.stream(
                "POST", "query/stream", content=content, headers=headers
            ) as reply:
                if not reply.is_success:
                    yield from self._refused_whole(reply)
                    return
                yield from _documents(reply.iter_bytes())
        except httpx.TransportError:
            return

    def _refused_whole(self, reply: httpx.Response) -> Iterator[Reply]:
        """Give nothing where the server will be back, raise otherwise."""
        document = _document(reply.read())
        if not _is_open(document):
            raise self._refused(document)
        yield from ()

    def _refused(self, document: Reply) -> ConfigurationError:
        detail = document.get("detail", "what answers there is no Conclave server")
        return ConfigurationError(URL, f"{self._url}: {detail}")


def _is_open(reply: Reply | None) -> bool:
    """Return whether a line has no reply yet, or one that asks to come back."""
    return reply is None or reply.get("status") == httpx.codes.SERVICE_UNAVAILABLE


def _documents(chunks: Iterator[bytes]) -> Iterator[Reply]:
    """Cut at newlines only: a label may hold what else Unicode takes for a line's end."""
    cutter = LineCutter(line_bytes_max=REPLY_BYTES_MAX)
    for chunk in chunks:
        for line in cutter.feed(chunk):
            yield {} if isinstance(line, Overlong) else _document(line)


def _document(body: bytes) -> Reply:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, dict) else {}
