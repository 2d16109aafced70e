"""How many streams are open: each may hold a few megabytes, and a place for hours."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from app.http.refusals import TooManyStreamsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.http.access.door import Caller
    from app.http.limits import Limits

FULL: Final = "the server has as many open streams as it takes; end one, or try again"
FULL_FOR_KEY: Final = "this key has as many open streams as the server takes of one; end one"


class OpenStreams:
    """Open streams, of all clients and by key."""

    def __init__(self, limits: Limits) -> None:
        """Start with none."""
        self._limits = limits
        self._by_key: Counter[str] = Counter()
        self._count = 0

    def require_room(self, caller: Caller | None) -> None:
        """Let a further stream begin.

        Raises:
            TooManyStreamsError: there are as many as may be, of this key or of all.

        """
        if self._count >= self._limits.streams_max:
            raise TooManyStreamsError(FULL)
        if self._by_key[_name(caller)] >= self._limits.streams_per_key_max and caller is not None:
            raise TooManyStreamsError(FULL_FOR_KEY)

    @contextmanager
    def hold(self, caller: Caller | None) -> Iterator[None]:
        """Count a stream while it lasts."""
        name = _name(caller)
        self._count += 1
        self._by_key[name] += 1
        try:
            yield
        finally:
            self._count -= 1
            self._by_key[name] -= 1


def _name(caller: Caller | None) -> str:
    return "" if caller is None else caller.found.key.name
