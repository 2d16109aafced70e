"""The one writer: a queue, a thread for decisions, and the switch.

Requests that come while a commit is in flight form the next batch, in arrival
order.  Decisions run on one thread of their own, so that the event loop keeps
reading requests while the disk works.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.errors import (
    ConclaveError,
    ContainedError,
    IntegrityError,
    LedgerUnavailableError,
    RequestError,
    SwitchingError,
    UnavailableError,
)
from app.mechanisms.universal import Phase
from app.service.answer_query import CONTAINED
from app.service.batch import DEFERRED, Deferred
from app.service.steps import Edge, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.service.answer_query import QueryAnswerer
    from app.service.batch import Decision
    from app.service.models import Query

BATCH_QUERIES_MAX: Final = 1024
QUEUE_QUERIES_MAX: Final = 65_536
SWITCH_WAIT_SECONDS: Final = 30.0
SWITCH_RETRY_SECONDS: Final = 1.0

SWITCHING: Final = "the published classifier is being drawn; try again in a moment"
QUEUE_FULL: Final = "too many queries are waiting; nothing was charged, try again"
CLOSING: Final = "the server is shutting down; nothing was charged, try again"


@dataclass(slots=True)
class _Waiting:
    """A query in the queue and the caller that waits for its decision."""

    query: Query
    future: asyncio.Future[Decision | ConclaveError]


@dataclass(slots=True)
class Writer:
    """Serialises every decision of one release.

    Attributes:
        answerer: decides and commits batches, on this writer's thread only.
        switch: draws and publishes the classifier; None where nothing follows.
        on_change: called on the event loop after every commit.
        on_stop: called once when the release must stop serving.
        padding_seconds: least time between taking a batch and replying to it.

    """

    answerer: QueryAnswerer
    switch: Callable[[], None]
    on_change: Callable[[], None]
    on_stop: Callable[[IntegrityError], None]
    padding_seconds: float = 0.0
    _queue: deque[_Waiting] = field(default_factory=deque)
    _parked: deque[_Waiting] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _stopped: IntegrityError | None = None
    _task: asyncio.Task[None] | None = None
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="conclave-writer")
    )

    def start(self) -> None:
        """Start the writer's task on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._wake.set()  # a switch that a restart interrupted goes on at once

    async def close(self) -> None:
        """Answer what is queued, refuse the rest, end the thread."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._refuse_all(LedgerUnavailableError(CLOSING))
        await asyncio.to_thread(self._thread.shutdown)

    async def submit(self, queries: Sequence[Query]) -> list[Decision | UnavailableError]:
        """ENQUEUE ``queries`` in order and wait until each is decided and committed.

        Raises:
            IntegrityError: the release has stopped.

        """
        if self._stopped is not None:
            raise self._stopped
        if self._closing or len(self._queue) + len(self._parked) >= QUEUE_QUERIES_MAX:
            refusal = CLOSING if self._closing else QUEUE_FULL
            return [LedgerUnavailableError(refusal)] * len(queries)
        waiting = [_Waiting(query, asyncio.Future()) for query in queries]
        self._queue.extend(waiting)
        self._wake.set()
        # A caller that hangs up is cancelled here; its queries are decided all the same.
        results = await asyncio.gather(*(each.future for each in waiting))
        return [_raise_integrity(result) for result in results]

    async def _run(self) -> None:
        while not (self._closing and not self._queue):
            await self._wake.wait()
            self._wake.clear()
            while self._queue and self._stopped is None:
                await self._answer_next_batch()
            if self._stopped is None and self._must_switch() and not self._closing:
                await self._switch()

    async def _answer_next_batch(self) -> None:
        size = min(len(self._queue), BATCH_QUERIES_MAX)
        batch = [self._queue.popleft() for _ in range(size)]
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            decisions = await loop.run_in_executor(
                self._thread,
                self.answerer.answer_batch,
                [waiting.query for waiting in batch],
            )
        except ConclaveError as error:
            await self._pad(started)
            self._refuse(batch, error)
            return
        await self._pad(started)
        self.answerer.observe(Step.RESPOND, Edge.BEFORE)
        for waiting, decision in zip(batch, decisions, strict=True):
            self._resolve(waiting, decision)
        self.on_change()

    async def _pad(self, started: float) -> None:
        """Wait until the batch took a public constant; see ``docs/guarantee.md``."""
        remaining = started + self.padding_seconds - asyncio.get_running_loop().time()
        if remaining > 0:
            await asyncio.sleep(remaining)

    def _resolve(self, waiting: _Waiting, decision: Decision) -> None:
        if isinstance(decision, Deferred) and self._must_switch():
            self._park(waiting)
        else:
            _settle(waiting, decision)

    # -- the switch ------------------------------------------------------------

    def _must_switch(self) -> bool:
        release = self.answerer.release
        return release.phase is Phase.CLASSIFIER and release.classifier is None

    def _park(self, waiting: _Waiting) -> None:
        self._parked.append(waiting)
        asyncio.get_running_loop().call_later(
            SWITCH_WAIT_SECONDS, _settle, waiting, SwitchingError(SWITCHING)
        )
        self._wake.set()

    async def _switch(self) -> None:
        """Draw the classifier; try again later where the ledger is unavailable."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self.switch)
        except UnavailableError:
            loop.call_later(SWITCH_RETRY_SECONDS, self._wake.set)
            return
        except IntegrityError as error:
            self._stop(error)
            return
        except Exception:  # noqa: BLE001 -- containment: whatever it says may be private
            self._stop(ContainedError(CONTAINED))
            return
        while self._parked:
            _settle(self._parked.popleft(), DEFERRED)
        self.on_change()

    # -- refusals --------------------------------------------------------------

    def _refuse(self, batch: Sequence[_Waiting], error: ConclaveError) -> None:
        if isinstance(error, IntegrityError):
            self._stop(error)
        for waiting in batch:
            _settle(waiting, error)

    def _refuse_all(self, error: ConclaveError) -> None:
        for waits in (self._queue, self._parked):
            while waits:
                _settle(waits.popleft(), error)

    def _stop(self, error: IntegrityError) -> None:
        self._stopped = error
        self._refuse_all(error)
        self.on_stop(error)


def _settle(waiting: _Waiting, result: Decision | ConclaveError) -> None:
    if not waiting.future.done():
        waiting.future.set_result(result)


def _raise_integrity(result: Decision | ConclaveError) -> Decision | UnavailableError:
    """Return what belongs to one query; raise what stops the release."""
    if isinstance(result, ConclaveError) and not isinstance(
        result, (RequestError, UnavailableError)
    ):
        raise result
    return result
