"""A bounded queue between two tasks, measured in bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

ItemT = TypeVar("ItemT")


class Channel(Generic[ItemT]):
    """Items in order from one putting task to one taking task of an event loop.

    The bound is on the bytes inside before a put, so that an item larger than
    the bound still passes, alone.
    """

    def __init__(self, *, bytes_max: int) -> None:
        """Start empty and open."""
        self._items: deque[tuple[ItemT, int]] = deque()
        self._bytes_inside = 0
        self._bytes_max = bytes_max
        self._closed = False
        self._has_room = asyncio.Event()
        self._has_news = asyncio.Event()

    async def put(self, item: ItemT, *, size_bytes: int) -> None:
        """Wait for room, then append ``item``."""
        while self._bytes_inside >= self._bytes_max:
            self._has_room.clear()
            await self._has_room.wait()
        self._items.append((item, size_bytes))
        self._bytes_inside += size_bytes
        self._has_news.set()

    async def put_all(self, items: Sequence[tuple[ItemT, int]]) -> None:
        """Wait for room, then append items with their sizes, as often as it takes."""
        begin = 0
        while begin < len(items):
            while self._bytes_inside >= self._bytes_max:
                self._has_room.clear()
                await self._has_room.wait()
            for item in items[begin:]:
                self._items.append(item)
                self._bytes_inside += item[1]
                begin += 1
                if self._bytes_inside >= self._bytes_max:
                    break
            self._has_news.set()

    async def take(self, *, count_max: int) -> list[ItemT]:
        """Wait for items, then return all there are up to ``count_max``; none at the end."""
        while not self._items and not self._closed:
            self._has_news.clear()
            await self._has_news.wait()
        count = min(count_max, len(self._items))
        taken = [self._items.popleft() for _ in range(count)]
        self._bytes_inside -= sum(size_bytes for _, size_bytes in taken)
        self._has_room.set()
        return [item for item, _ in taken]

    def close(self) -> None:
        """Let the taker end once it has taken what is inside."""
        self._closed = True
        self._has_news.set()
