"""A bounded queue between two tasks, measured in bytes."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized

ItemT = TypeVar("ItemT", bound="Sized")


class Channel(Generic[ItemT]):
    """Items in order from one putting task to one taking task of an event loop.

    The length of an item is its bytes.  The bound is on the bytes inside before a put,
    so that an item larger than the bound still passes, alone.
    """

    def __init__(self, *, bytes_max: int) -> None:
        """Start empty and open."""
        self._items: deque[ItemT] = deque()
        self._bytes_inside = 0
        self._bytes_max = bytes_max
        self._closed = False
        self._has_room = asyncio.Event()
        self._has_news = asyncio.Event()

    async def put(self, item: ItemT) -> None:
        """Wait for room, then append ``item``."""
        await self.put_all([item])

    async def put_all(self, items: Sequence[ItemT]) -> None:
        """Wait for room, then append items, as often as it takes."""
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
        """Wait for items, then return all there are up to ``count_max``; none at the end."""
        while not self._items and not self._closed:
            self._has_news.clear()
            await self._has_news.wait()
        count = min(count_max, len(self._items))
        taken = [self._items.popleft() for _ in range(count)]
        self._bytes_inside -= sum(map(len, taken))
        self._has_room.set()
        return taken

    def close(self) -> None:
        """Let the taker end once it has taken what is inside."""
        self._closed = True
        self._has_news.set()
