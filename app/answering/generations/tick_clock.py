"""A clock for a release that grows: it checks for added rows and due scheduled updates.

Whether an update (tick) is due depends only on the clock and on public ledger entries. Models for
added rows are trained on a thread of their own, and join at the update that the ledger entry of the
added rows names.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from app.answering.worker_thread import in_daemon_thread
from app.errors import IntegrityError, UnavailableError

if TYPE_CHECKING:
    from app.answering.generations.generations_answerer import LivingAnswerer
    from app.answering.writer import Writer
    from app.ledger.entries.fold import LedgerState
    from app.release.generations.tick import Ticker

LOOK_SECONDS: Final = 0.25
"""How often the clock is looked at, and the ledger for what a command has appended."""
RETRY_SECONDS: Final = 1.0
"""How long after a tick, or a fit that failed, the next may begin."""

log = structlog.get_logger("conclave.service")


class TickClock:
    """A background task that checks for added rows and due updates while the release is served."""

    def __init__(self, answerer: LivingAnswerer, writer: Writer, ticker: Ticker) -> None:
        """Let ``writer`` make scheduled updates between two batches of ``answerer``."""
        self._answerer = answerer
        self._writer = writer
        self._ticker = ticker
        self._running: asyncio.Task[None] | None = None
        self._fitting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to check the clock, on the running event loop."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Stop checking the clock; a training of models that is in progress is abandoned."""
        for task in (self._running, self._fitting):
            if task is not None:
                task.cancel()
        self._ticker.waiting.end_turn()

    async def _run(self) -> None:
        release = self._answerer.release
        while not self._writer.has_stopped:
            await asyncio.sleep(LOOK_SECONDS)
            if not release.is_shared:  # where several servers write, the writer follows already
                await self._writer.catch_up()
            state = release.state
            is_fitting = self._fitting is not None and not self._fitting.done()
            if not is_fitting and await self._awaits_fit(state):
                self._fitting = asyncio.get_running_loop().create_task(self._fit())
            if self._ticker.is_due(state):
                self._writer.request_tick(lambda: self._answerer.tick(self._ticker))
                await asyncio.sleep(RETRY_SECONDS)

    async def _awaits_fit(self, state: LedgerState) -> bool:
        """Return whether there is something to train; ask again later if the ledger failed."""
        ticker = self._ticker
        try:
            # On another thread, since both ask the database.
            return await asyncio.to_thread(
                lambda: ticker.awaits_fit(state) or ticker.awaits_change(state)
            )
        except UnavailableError as error:
            log.warning("fit_postponed", error=type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)
        except IntegrityError as error:
            self._writer.stop(error)
        return False

    async def _fit(self) -> None:
        try:
            await in_daemon_thread(self._ticker.fit_waiting)
        except UnavailableError as error:
            log.warning("fit_postponed", error=type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)
        except Exception as error:  # noqa: BLE001 -- containment: whatever it says may be private
            log.error("fit_failed", error=type(error).__name__)  # noqa: TRY400 -- nor its trace
            await asyncio.sleep(RETRY_SECONDS)
