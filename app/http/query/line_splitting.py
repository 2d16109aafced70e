"""Splitting of a byte stream into lines of bounded length.

The module also contains a bounded queue between two tasks, whose size is measured in bytes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized


@dataclass(frozen=True, slots=True)
class Overlong:
    """A placeholder for a line that was dropped because it was too long."""

    def __len__(self) -> int:
        """Return 1, the length that counts in a :class:`Channel`."""
        return 1


OVERLONG = Overlong()
Line = bytes | Overlong


class LineCutter:
    """A splitter of received bytes into whole lines; blank lines are dropped."""

    def __init__(self, *, line_bytes_max: int) -> None:
        """Start with no bytes received."""
        self._line_bytes_max = line_bytes_max
        self._rest = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """Return the lines that end in ``chunk``; the first may have begun in an earlier chunk."""
        first, *others = chunk.split(b"\n")
        self._append(first)
        if not others:
            return []
        lines = self._end_line()
        rest = others.pop()
        whole: list[Line] = [*map(bytes.strip, others)]
        limit = self._line_bytes_max
        if max(map(len, others), default=0) > limit:
            pairs = zip(others, whole, strict=True)
            whole = [line if len(piece) <= limit else OVERLONG for piece, line in pairs]
        lines += filter(None, whole)
        self._append(rest)
        return lines

    def finish(self) -> list[Line]:
        """Return the last line, if it had no newline at its end."""
        return self._end_line()

    def _append(self, piece: bytes) -> None:
        if self._skipping or len(self._rest) + len(piece) > self._line_bytes_max:
            self._skipping = True
            self._rest.clear()
        else:
            self._rest += piece

    def _end_line(self) -> list[Line]:
        line: Line = OVERLONG if self._skipping else bytes(self._rest).strip()
        self._skipping = False
        self._rest.clear()
        return [line] if line else []


ItemT = TypeVar("ItemT", bound="Sized")


class Channel(Generic[ItemT]):
    """A queue of limited length between a producer and a consumer task.

    The length of the queue is the number of bytes of its items. An item is accepted whenever
    this length is below the limit, so an empty queue accepts an item of any size.
    """

    def __init__(self, *, bytes_max: int) -> None:
        """Start with an empty, open queue."""
        self._items: list[ItemT] = []
        self._bytes_inside = 0
        self._bytes_max = bytes_max
        self._closed = False
        self._has_room = asyncio.Event()
        self._has_news = asyncio.Event()

    async def put(self, item: ItemT) -> None:
        """Append ``item`` after waiting until the queue has room."""
        await self.put_all([item])

    async def put_all(self, items: Sequence[ItemT]) -> None:
        """Append all items in order, waiting whenever the queue is full."""
        while items:
            while self._bytes_inside >= self._bytes_max:
                self._has_room.clear()
                await self._has_room.wait()
            inside = list(accumulate(map(len, items), initial=self._bytes_inside))
            count = min(len(items), bisect_left(inside, self._bytes_max))
            self._items.extend(items[:count])
            self._bytes_inside = inside[count]
            items = items[count:]
            self._has_news.set()

    async def take(self, *, count_max: int) -> list[ItemT]:
        """Wait for an item, and return up to ``count_max`` items; none if the queue ended."""
        while not self._items and not self._closed:
            self._has_news.clear()
            await self._has_news.wait()
        taken = self._items[:count_max]
        del self._items[:count_max]
        self._bytes_inside -= sum(map(len, taken))
        self._has_room.set()
        return taken

    def close(self) -> None:
        """End the queue: the consumer still gets the items in it, and no further ones."""
        self._closed = True
        self._has_news.set()
