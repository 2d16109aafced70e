"""The one writer: a queue, a thread for decisions, and the switch.

Requests that come while a commit is in flight form the next batch, in arrival
order.  Decisions run on one thread of their own, so that the event loop keeps
reading requests while the disk works.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import structlog

from app.errors import (
    ConclaveError,
    ContainedError,
    IntegrityError,
    RequestError,
    SwitchingError,
    UnavailableError,
)
from app.service.answer_query import CONTAINED
from app.service.batch import DEFERRED, Deferred
from app.service.steps import Edge, Step
from app.service.work_thread import WorkThread
from app.service.workload import QUERIES_BOUNDS, Buckets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.service.answer_query import QueryAnswerer
    from app.service.batch import Decision, Ticket
    from app.service.models import Query

    Pending: TypeAlias = asyncio.Future[Decision | ConclaveError]

BATCH_QUERIES_MAX: Final = 1024
QUIET_TURNS: Final = 2
"""Turns of the event loop without a new query after which a batch is decided: a request is
read in one and waits in the queue in the next."""

SWITCH_WAIT_SECONDS: Final = 30.0
SWITCH_RETRY_SECONDS: Final = 1.0
FOLLOW_SECONDS: Final = 0.25
"""How often a server of several looks for what the others have committed."""


SWITCHING: Final = "the published classifier is being made; try again in a moment"
QUEUE_FULL: Final = "too many queries are waiting; nothing was charged, try again"
CLOSING: Final = "the server is shutting down; nothing was charged, try again"

ResultT = TypeVar("ResultT")
log = structlog.get_logger("conclave.service")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A query in the queue and the caller that waits for its decision."""

    query: Query | Ticket
    future: Pending

    def settle(self, result: Decision | ConclaveError) -> None:
        """Give the caller its result; one that hung up has no use for it."""
        if not self.future.done():
            self.future.set_result(result)


@dataclass(slots=True)
class Writer:
    """Serialises every decision of one release.

    Attributes:
        answerer: decides and commits batches, on this writer's thread only.
        switch: draws and publishes the classifier.
        on_change: called on the event loop after every commit.
        on_stop: called once when the release must stop serving.
        open_statistics: draws and releases the statistics table after the last answer.
        pending_queries_max: queries that may wait; where none waits, those of
            one caller are taken together, however many they are.
        batch_queries: sizes of the batches so far.

    """

    answerer: QueryAnswerer
    switch: Callable[[], None]
    open_statistics: Callable[[], None]
    on_change: Callable[[], None]
    on_stop: Callable[[IntegrityError], None]
    pending_queries_max: int
    batch_queries: Buckets = field(default_factory=lambda: Buckets(QUERIES_BOUNDS))
    _queue: deque[_Waiting] = field(default_factory=deque)
    _parked: dict[_Waiting, asyncio.TimerHandle] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _stopped: IntegrityError | None = None
    _task: asyncio.Task[None] | None = None
    _following: asyncio.Task[None] | None = None
    _thread: WorkThread = field(default_factory=lambda: WorkThread("conclave-writer"))
    _is_one_by_one: bool = False  # the last batch was one query, and nobody came meanwhile

    def start(self) -> None:
        """Start the writer's task on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._wake.set()  # a switch that a restart interrupted goes on at once
        if self.answerer.release.is_shared:
            self._following = asyncio.get_running_loop().create_task(self._follow())

    def drain(self) -> None:
        """Take no query any more, and let none wait for a switch; the queued are answered."""
        self._closing = True
        self._unpark(UnavailableError(CLOSING))
        self._wake.set()

    async def close(self) -> None:
        """Drain, wait for what is under way, and end the thread."""
        self.drain()
        if self._following is not None:
            self._following.cancel()
        if self._task is not None:
            await self._task
        self._refuse_all(UnavailableError(CLOSING))
        await asyncio.to_thread(self._thread.close)

    async def submit(self, queries: Sequence[Query | Ticket]) -> list[Decision | UnavailableError]:
        """ENQUEUE ``queries`` in order and wait until each is decided and committed.

        Raises:
            IntegrityError: the release has stopped.

        """
        results = await asyncio.gather(*self.enqueue(queries))
        return [decision_of(result) for result in results]

    def enqueue(self, queries: Sequence[Query | Ticket]) -> list[Pending]:
        """ENQUEUE ``queries`` in order; each result comes once it is decided and committed.

        A caller that hangs up and waits no more changes nothing: its queries
        are decided all the same.

        Raises:
            IntegrityError: the release has stopped.

        """
        if self._stopped is not None:
            raise self._stopped
        waiting = [_Waiting(query, asyncio.Future()) for query in queries]
        refusal = self._refusal(len(queries))
        if refusal is None:
            self._take_in(waiting)
        else:
            for each in waiting:
                each.settle(refusal)
        return [each.future for each in waiting]

    def _take_in(self, waiting: Sequence[_Waiting]) -> None:
        self.answerer.observe(Step.ENQUEUE, Edge.BEFORE)
        if self._must_switch():
            for each in waiting:
                self._park(each)
        else:
            self._queue.extend(waiting)
            self._wake.set()
        self.answerer.observe(Step.ENQUEUE, Edge.AFTER)

    def _refusal(self, count: int) -> UnavailableError | None:
        """Return why ``count`` further queries cannot wait, if they cannot."""
        if self._closing:
            return UnavailableError(CLOSING)
        if self.waiting_count and self.waiting_count + count > self.pending_queries_max:
            return UnavailableError(QUEUE_FULL)
        return None

    @property
    def waiting_count(self) -> int:
        """Queries in the queue, and those that wait for the switch."""
        return len(self._queue) + len(self._parked)

    async def _run(self) -> None:
        while not (self._closing and not self._queue):
            await self._wake.wait()
            self._wake.clear()
            while self._queue and self._stopped is None:
                await self._let_arrive()
                await self._answer_next_batch()
            if self._stopped is None and self._must_switch() and not self._closing:
                await self._switch()
            if self._stopped is None and self._must_open_statistics() and not self._closing:
                await self._open_statistics()

    async def _let_arrive(self) -> None:
        """Let the loop read what is coming in right now, so that it shares the next commit.

        Without it every other commit was of the few queries that were read first: those
        who were answered together ask together again.  One who asks alone is not kept
        waiting for others.
        """
        if self._is_one_by_one:
            return
        turns_without = 0
        while turns_without < QUIET_TURNS and len(self._queue) < BATCH_QUERIES_MAX:
            waiting_count = len(self._queue)
            await asyncio.sleep(0)
            turns_without = turns_without + 1 if len(self._queue) <= waiting_count else 0

    async def _answer_next_batch(self) -> None:
        size = min(len(self._queue), BATCH_QUERIES_MAX)
        if not size:  # what waited was refused meanwhile
            return
        batch = [self._queue.popleft() for _ in range(size)]
        queries = [waiting.query for waiting in batch]
        self.batch_queries.add(size)
        try:
            decisions = await self._on_thread(lambda: self.answerer.answer_batch(queries))
        except ConclaveError as error:
            self._refuse(batch, error)
            return
        self._is_one_by_one = size == 1 and not self._queue
        self.answerer.observe(Step.RESPOND, Edge.BEFORE)
        for waiting, decision in zip(batch, decisions, strict=True):
            if isinstance(decision, Deferred):
                self._defer(waiting)
            else:
                waiting.settle(decision)
        self.answerer.observe(Step.RESPOND, Edge.AFTER)
        self.on_change()

    async def _on_thread(self, function: Callable[[], ResultT]) -> ResultT:
        """Run ``function`` on the writer's thread; what it does not foresee is contained."""
        try:
            return await self._thread.run(function)
        except (UnavailableError, IntegrityError):
            raise
        except Exception:  # noqa: BLE001 -- containment: whatever it says may be private
            raise ContainedError(CONTAINED) from None

    def _defer(self, waiting: _Waiting) -> None:
        """Leave a query to the classifier, for which it waits until that is published."""
        if not self._must_switch():
            waiting.settle(DEFERRED)
        elif self._closing:
            waiting.settle(UnavailableError(CLOSING))
        else:
            self._park(waiting)

    # -- other servers of the same ledger --------------------------------------

    async def _follow(self) -> None:
        """Show what other servers commit soon after; queries are decided by the ledger itself."""
        while self._stopped is None and not self._closing:
            await asyncio.sleep(FOLLOW_SECONDS)
            await self.catch_up()

    async def catch_up(self) -> None:
        """Adopt what other servers have committed, between two batches."""
        try:
            has_changed = await self._on_thread(self.answerer.follow)
        except UnavailableError as error:
            log.warning("follow_postponed", error=type(error).__name__)
        except IntegrityError as error:
            self.stop(error)
        else:
            if has_changed:
                self._take_over()

    def _take_over(self) -> None:
        """Go on from what others have committed: a switch that is due, or one that is done."""
        if not self._must_switch():
            self._unpark(DEFERRED)
        self._wake.set()
        self.on_change()

    # -- the switch ------------------------------------------------------------

    def _must_switch(self) -> bool:
        return self.answerer.release.is_switching

    def _park(self, waiting: _Waiting) -> None:
        """Let a query wait for the classifier, for a while."""
        loop = asyncio.get_running_loop()
        self._parked[waiting] = loop.call_later(SWITCH_WAIT_SECONDS, self._expire, waiting)

    def _expire(self, waiting: _Waiting) -> None:
        del self._parked[waiting]
        waiting.settle(SwitchingError(SWITCHING))

    def _unpark(self, result: Decision | ConclaveError) -> None:
        parked, self._parked = self._parked, {}
        for waiting, timer in parked.items():
            timer.cancel()
            waiting.settle(result)

    async def _switch(self) -> None:
        """Draw the classifier; try again later where the ledger is unavailable."""
        if await self._drawn(self.switch, "switch_postponed"):
            self._unpark(DEFERRED)
            self.on_change()

    # -- the statistics table --------------------------------------------------

    def _must_open_statistics(self) -> bool:
        return self.answerer.release.must_open_statistics

    async def _open_statistics(self) -> None:
        """Draw the table; try again later where the ledger is unavailable."""
        if await self._drawn(self.open_statistics, "statistics_postponed"):
            self.on_change()

    async def _drawn(self, draw: Callable[[], None], postponed: str) -> bool:
        """Draw and publish on the writer's thread; return whether it is committed."""
        try:
            await self._on_thread(draw)
        except UnavailableError as error:
            log.warning(postponed, error=type(error).__name__)
            asyncio.get_running_loop().call_later(SWITCH_RETRY_SECONDS, self._wake.set)
            return False
        except IntegrityError as error:
            self.stop(error)
            return False
        return True

    # -- refusals --------------------------------------------------------------

    def _refuse(self, batch: Sequence[_Waiting], error: ConclaveError) -> None:
        if isinstance(error, IntegrityError):
            self.stop(error)
        for waiting in batch:
            waiting.settle(error)

    def _refuse_all(self, error: ConclaveError) -> None:
        while self._queue:
            self._queue.popleft().settle(error)
        self._unpark(error)

    def stop(self, error: IntegrityError) -> None:
        """Refuse everything from now on, and what waits; a second failure changes nothing."""
        if self._stopped is not None:
            return
        self._stopped = error
        log.error("release_stopped", error=type(error).__name__)
        self._refuse_all(error)
        self.on_stop(error)


def decision_of(result: Decision | ConclaveError) -> Decision | UnavailableError:
    """Return what belongs to one query; raise what stops the release.

    Raises:
        IntegrityError: the release has stopped.

    """
    if isinstance(result, ConclaveError) and not isinstance(
        result, (RequestError, UnavailableError)
    ):
        raise result
    return result
