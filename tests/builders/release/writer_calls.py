"""How tests start a writer, submit queries to it and wait."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from app.answering.queue import decisions_of
from tests.builders.release.scripted_answerer import PATIENCE_SECONDS, queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from app.answering.writer import Writer
    from app.errors import (
        UnavailableError,
    )


def run(test: Coroutine[None, None, None]) -> None:
    """Run a test on an event loop of its own, for no longer than it may take."""

    async def patiently() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await test

    asyncio.run(patiently())


@asynccontextmanager
async def running(writer: Writer) -> AsyncIterator[Writer]:
    """Start a writer and close it at the end."""
    writer.start()
    try:
        yield writer
    finally:
        await writer.close()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not holds():  # noqa: ASYNC110 -- what is waited for happens on another thread
        await asyncio.sleep(0.001)


async def submit(writer: Writer, *margins: int) -> list[object]:
    """Submit queries and wait until each is decided and committed."""
    parts = decisions_of(writer.enqueue(queries(*margins)))
    return [decision async for part in parts for decision in part]


def submitting(writer: Writer, *margins: int) -> asyncio.Task[list[object]]:
    """Submit queries in a task of their own, as a request does."""
    return asyncio.create_task(submit(writer, *margins))


def texts(refusals: list[object], kind: type[UnavailableError]) -> list[str]:
    """Return what refusals of one kind say."""
    assert all(type(refusal) is kind for refusal in refusals)
    return [str(refusal) for refusal in refusals]
