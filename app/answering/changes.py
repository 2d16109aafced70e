"""Telling whoever listens that what is public has changed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Changes:
    """Listeners of one service; used on the event loop."""

    def __init__(self) -> None:
        """Begin without a listener."""
        self._listeners: set[asyncio.Event] = set()
        self._closed = False

    def notify(self) -> None:
        """Tell every listener that something has changed."""
        for changed in self._listeners:
            changed.set()

    def close(self) -> None:
        """End what every listener iterates over."""
        self._closed = True
        self.notify()

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[None]]:
        """Yield an iterator that yields once for every change, coalesced."""
        changed = asyncio.Event()
        self._listeners.add(changed)
        try:
            yield self._each(changed)
        finally:
            self._listeners.discard(changed)

    async def _each(self, changed: asyncio.Event) -> AsyncIterator[None]:
        while not self._closed:
            await changed.wait()
            changed.clear()
            yield
