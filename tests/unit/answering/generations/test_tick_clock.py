"""The clock of a release that grows goes on after the ledger could not be read for a while."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

import pytest

from app.answering.generations import tick_clock
from app.answering.generations.tick_clock import TickClock
from app.answering.writer import Writer
from app.errors import IntegrityError, LedgerCorruptError, LedgerUnavailableError
from app.ledger.entries.generations import generations_of
from tests.builders.release.growing_release import MINUTE, GrowingRelease

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_SECONDS = 60.0


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds, not for ever."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110 -- of another thread's doing
            await asyncio.sleep(0.005)


class Clocked:
    """A release that grows, with a writer and a clock that looks every few milliseconds."""

    def __init__(self, growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch) -> None:
        """Open the release; its reads of what waits beside the entries may be made to fail."""
        monkeypatch.setattr(tick_clock, "LOOK_SECONDS", 0.005)
        monkeypatch.setattr(tick_clock, "RETRY_SECONDS", 0.005)
        self._growing = growing
        self._answerer = growing.answerer()
        ledger = self._answerer.release.ledger
        self._beside = ledger.beside
        monkeypatch.setattr(ledger, "beside", self._read)
        self.failure: Exception | None = None
        self.failed = 0
        self.stops: list[IntegrityError] = []
        self.writer = Writer(
            answerer=self._answerer,
            switch=lambda: None,
            open_statistics=lambda: None,
            on_change=lambda: None,
            on_stop=self.stops.append,
            pending_queries_max=1,
        )
        self._clock = TickClock(self._answerer, self.writer, growing.ticker(ledger))

    async def __aenter__(self) -> Self:
        """Start both."""
        self.writer.start()
        self._clock.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End both."""
        self._clock.close()
        await self.writer.close()

    def _read(self, prefix: str) -> dict[str, bytes]:
        if self.failure is None:
            return self._beside(prefix)
        self.failed += 1
        raise self.failure

    @property
    def tick(self) -> int:
        """The number of the newest tick."""
        return generations_of(self._answerer.release.state.generations).tick

    async def pass_a_period(self) -> None:
        """Let a period pass, and wait for its tick."""
        before = self.tick
        self._growing.now += MINUTE
        await until(lambda: self.tick > before)


@pytest.fixture
def clocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clocked:
    """Return an open release whose clock is not started yet."""
    return Clocked(GrowingRelease(tmp_path), monkeypatch)


def test_ticks_go_on_after_the_ledger_was_away(clocked: Clocked) -> None:
    """Requests that cannot be read for a while are read later, and every period has its tick."""

    async def live() -> None:
        async with clocked:
            await clocked.pass_a_period()
            clocked.failure = LedgerUnavailableError("the ledger is away")
            await until(lambda: clocked.failed > 1)
            clocked.failure = None
            await clocked.pass_a_period()

    asyncio.run(live())
    assert clocked.stops == []


def test_an_altered_request_stops_the_server(clocked: Clocked) -> None:
    """It is told as any other alteration of the ledger that is found while the server runs."""

    async def live() -> None:
        async with clocked:
            clocked.failure = LedgerCorruptError("the private state has an altered piece")
            await until(lambda: clocked.writer.has_stopped)

    asyncio.run(live())
    assert [type(error) for error in clocked.stops] == [LedgerCorruptError]
