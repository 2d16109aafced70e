"""The writer: a queue of queries, a thread that decides them, and the switch to a classifier.

Requests that arrive during a commit form the next batch, in the order of arrival. Queries are
decided on a separate thread, so that the event loop continues to read requests while the ledger is
written to disk.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import structlog

from app.answering.answer_query import Edge, Step
from app.answering.batch_decisions import DEFERRED
from app.answering.hourly_counts import QUERIES_BOUNDS, Buckets
from app.answering.queries import NO_QUERIES
from app.answering.queue import (
    Arrivals,
    Queue,
    Waiting,
    contained,
    first_deferred,
    parted,
)
from app.answering.worker_thread import WorkThread
from app.errors import IntegrityError, SwitchingError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.answering.answer_query import QueryAnswerer
    from app.answering.batch_decisions import Decision, Deferred
    from app.answering.queries import IdentifiedQueries
    from app.answering.queue import Pending, Recipient
    from app.answering.replicas.forwarding import Forwarding

BATCH_QUERIES_MAX: Final = 1024
QUIET_SECONDS: Final = 0.0002
"""How long a batch waits, after the newest query in it, for those who were answered last and
are likely to ask again: a few turns of the event loop, and a fraction of a commit."""

SWITCH_WAIT_SECONDS: Final = 30.0
SWITCH_RETRY_SECONDS: Final = 1.0
TELL_SECONDS: Final = 0.005
"""How long the lines of the log wait for each other, which say what was committed."""

FOLLOW_SECONDS: Final = 0.25
"""How often a server of several looks for what the others have committed."""


SWITCHING: Final = "the published classifier is being made; try again in a moment"
QUEUE_FULL: Final = "too many queries are waiting; nothing was charged, try again"
CLOSING: Final = "the server is shutting down; nothing was charged, try again"

Failure: TypeAlias = UnavailableError | IntegrityError
ResultT = TypeVar("ResultT")
log = structlog.get_logger("conclave.service")


@dataclass(slots=True)
class Writer:
    """The one writer of a release, which makes all its decisions one after another.

    Attributes:
        answerer: the object that decides and commits batches, on this writer's thread only.
        switch: a function that draws and publishes the classifier.
        open_statistics: a function that draws and releases the statistics table after the last
            answer.
        on_change: a function that is called on the event loop after every commit.
        on_stop: a function that is called once when the release must stop serving.
        pending_queries_max: the largest number of queries that may wait; if none waits, all queries
            of one request are accepted, however many they are.
        forwarding: the connection to the server that commits the batches of all servers; None if
            this is the only server.
        batch_queries: a histogram of the numbers of queries per batch.

    """

    answerer: QueryAnswerer
    switch: Callable[[], None]
    open_statistics: Callable[[], None]
    on_change: Callable[[], None]
    on_stop: Callable[[IntegrityError], None]
    pending_queries_max: int
    forwarding: Forwarding | None = None
    batch_queries: Buckets = field(default_factory=lambda: Buckets(QUERIES_BOUNDS))
    _queue: Queue = field(default_factory=Queue)
    _parked: dict[Waiting, asyncio.TimerHandle] = field(default_factory=dict)
    _parked_count: int = 0  # of queries
    _arrivals: Arrivals = field(default_factory=lambda: Arrivals(BATCH_QUERIES_MAX, QUIET_SECONDS))
    _loop: asyncio.AbstractEventLoop | None = None
    _is_busy: bool = False  # something is under way on the thread
    _is_looking: bool = False  # for queries that a batch waits for
    _retry: asyncio.TimerHandle | None = None
    _tick: Callable[[], None] | None = None  # that is due
    _telling: asyncio.TimerHandle | None = None
    _closing: bool = False
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _stopped: IntegrityError | None = None
    _following: asyncio.Task[None] | None = None
    _listening: int | None = None  # descriptor, to messages of other servers
    _is_looking_around: bool = False  # for other servers
    _gathering: asyncio.TimerHandle | None = None
    _has_heard: bool = False  # queries of other servers wait
    _thread: WorkThread = field(default_factory=lambda: WorkThread("conclave-writer"))

    def start(self) -> None:
        """Start the writer on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._go_on()  # a switch that a restart interrupted goes on at once
        if self.answerer.release.is_shared:
            self._following = self._loop.create_task(self._follow())

    def drain(self) -> None:
        """Accept no further queries; answer the queued ones unless they wait for a classifier."""
        self._closing = True
        self._unpark(UnavailableError(CLOSING))
        self._go_on()

    async def close(self) -> None:
        """Accept no further queries, wait for work in progress, and end the thread."""
        self.drain()
        if self._following is not None:
            self._following.cancel()
        if self._loop is not None:
            await self._ended.wait()
        self._refuse_all(UnavailableError(CLOSING))
        if self.forwarding is not None:
            self._hear_nothing()
            await self._thread.run(self.forwarding.close)
        await asyncio.to_thread(self._thread.close)
        self.answerer.tell_committed()

    def enqueue(self, queries: IdentifiedQueries) -> list[Pending]:
        """Queue ``queries`` in order (ENQUEUE); return their decisions once they are committed.

        The queries are divided into parts of at most the size of a batch, and each returned future
        gives the decisions on one part, which is decided in one batch. Queries are decided even if
        their caller hangs up.

        Raises:
            IntegrityError: the release has stopped.

        """
        if self._stopped is not None:
            raise self._stopped
        starts = range(0, len(queries), BATCH_QUERIES_MAX)
        pending: list[Pending] = [asyncio.Future() for _ in starts]
        waiting = [
            Waiting(queries.part(start, start + BATCH_QUERIES_MAX), future)
            for start, future in zip(starts, pending, strict=True)
        ]
        refusal = self._refusal(len(queries))
        if refusal is None:
            self._take_in(waiting)
        else:
            for each in waiting:
                each.end(refusal)
        return pending

    def enqueue_alone(self, queries: IdentifiedQueries, recipient: Recipient) -> None:
        """Queue one query; ``recipient`` gets the decision on it.

        Raises:
            IntegrityError: the release has stopped.

        """
        if self._stopped is not None:
            raise self._stopped
        # No more is asked of its future than what a recipient has.
        waiting = Waiting(queries, recipient)  # type: ignore[arg-type]  # cast() is a call
        refusal = self._refusal(1)
        if refusal is None:
            self._take_in((waiting,))
        else:
            waiting.end(refusal)

    def _take_in(self, waiting: Sequence[Waiting]) -> None:
        self.answerer.observe(Step.ENQUEUE, Edge.BEFORE)
        if self.answerer.release.is_switching:
            for each in waiting:
                self._park(each)
        else:
            self._queue.extend(waiting)
            self._go_on()
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
        """The number of queued queries, including those that wait for a classifier."""
        return self._queue.query_count + self._parked_count

    # -- one thing after another -------------------------------------------------

    def _go_on(self) -> None:
        """Begin the next task, unless one is in progress, which will begin it when done."""
        if self._is_busy or self._loop is None:
            return
        is_serving = self._stopped is None and not self._closing
        if self._tick is not None and is_serving:
            tick, self._tick = self._tick, None
            self._do(tick, self._end_tick)
        elif self._has_heard and is_serving:
            self._begin_batch()
        elif self._queue.query_count and self._stopped is None:
            self._begin_batch_in_time(self._loop)
        elif is_serving and self._retry is None and self.answerer.release.is_switching:
            self._do(self.switch, self._end_switch)
        elif is_serving and self._retry is None and self.answerer.release.must_open_statistics:
            self._do(self.open_statistics, self._end_statistics)
        elif self._closing:
            self._ended.set()

    def _do(
        self, function: Callable[[], ResultT], then: Callable[[ResultT | Failure], None]
    ) -> None:
        """Call ``function`` on the writer's thread, ``then`` with what came of it, and go on."""

        def done(result: object, error: BaseException | None) -> None:
            self._is_busy = False
            try:
                then(result if error is None else contained(error))  # type: ignore[arg-type]  # its
            finally:
                self._go_on()
                if self.forwarding is not None:
                    self._listen()

        self._is_busy = True
        if self.forwarding is not None:
            self._hear_nothing()
        self._thread.give(function, done)

    def _begin_batch_in_time(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a batch, once those have come who are likely to share its commit.

        Those who were answered together ask together again.  Decided as soon as the first
        of them was read, every other commit was of one query.
        """
        forwarding = self.forwarding
        must_gather = forwarding is not None and forwarding.leads and not forwarding.is_complete
        if must_gather and not self._closing:
            self._gather(loop)
        elif self._closing or self._arrivals.are_complete(self._queue.query_count):
            self._begin_batch()
        elif not self._is_looking:
            self._is_looking = True
            loop.call_soon(loop.call_soon, self._look_again)

    def _look_again(self) -> None:
        """Begin the batch that waits for others, or look once more two turns of the loop later.

        In one turn requests are read, or replies are made and sent at its end; in the next
        the queries that were read are put into the queue.
        """
        self._is_looking = False
        if self._queue.query_count and not self._is_busy:
            self._arrivals.note(self._queue.query_count)
        self._go_on()

    def _begin_batch(self) -> None:
        batch = self._queue.take(BATCH_QUERIES_MAX)
        queries = batch[0].queries if batch else NO_QUERIES
        if len(batch) > 1:
            queries = queries.followed_by([waiting.queries for waiting in batch[1:]])
        self._has_heard = False
        query_count = len(queries)
        if batch:
            self.batch_queries.add(query_count)
        end = partial(self._end_batch, batch, query_count)
        decide = self.answerer if self.forwarding is None else self.forwarding
        self._do(partial(decide.answer_batch, queries), end)

    def _end_batch(
        self, batch: Sequence[Waiting], query_count: int, decided: Sequence[Decision] | Failure
    ) -> None:
        self._arrivals.expect(self._queue.query_count + query_count)
        if isinstance(decided, UnavailableError | IntegrityError):
            self._refuse(batch, decided)
            return
        self.answerer.observe(Step.RESPOND, Edge.BEFORE)
        self._give_out(batch, decided)
        self.answerer.observe(Step.RESPOND, Edge.AFTER)
        self.on_change()
        self._tell_later()

    def _give_out(self, batch: Sequence[Waiting], decided: Sequence[Decision]) -> None:
        """Give each caller the decisions of its queries."""
        is_switching = self.answerer.release.is_switching
        for waiting, own in zip(batch, parted(batch, decided), strict=True):
            deferred = first_deferred(own) if is_switching else None
            if deferred is None:
                waiting.settle(own)
            else:
                self._defer(waiting.settle_up_to(deferred, own))

    def _tell_later(self) -> None:
        """Log committed batches a moment after their replies.

        One client asks again within a tenth of a millisecond, which a line takes too: told
        at once, each line would come before the next query.
        """
        if self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(TELL_SECONDS, self._tell)

    def _tell(self) -> None:
        self._telling = None
        self.answerer.tell_committed()

    async def _on_thread(self, function: Callable[[], ResultT]) -> ResultT:
        """Run ``function`` on the writer's thread; an unforeseen error is contained."""
        try:
            return await self._thread.run(function)
        except Exception as error:  # noqa: BLE001 -- containment: whatever it says may be private
            raise contained(error) from None

    def _defer(self, waiting: Waiting) -> None:
        """Leave queries to the classifier, for which they wait until that is published."""
        if self._stopped is not None:  # meanwhile: nobody would wake them
            waiting.end(self._stopped)
        elif self._closing:
            waiting.end(UnavailableError(CLOSING))
        else:
            self._park(waiting)

    # -- other servers of the same ledger --------------------------------------

    async def _follow(self) -> None:
        """Show what other servers commit soon after; queries are decided by the ledger itself."""
        while self._stopped is None and not self._closing:
            if self.forwarding is not None:
                await self._look_around(self.forwarding)
            await asyncio.sleep(FOLLOW_SECONDS)
            await self.catch_up()

    async def _look_around(self, forwarding: Forwarding) -> None:
        """Find the other servers, or lead them."""
        self._is_looking_around = True
        self._hear_nothing()
        try:
            await self._on_thread(forwarding.look)
        except IntegrityError as error:
            self.stop(error)
        finally:
            self._is_looking_around = False
            self._listen()

    def _listen(self) -> None:
        """Wait for queries of other servers where this one leads and nothing is under way."""
        forwarding = self.forwarding
        if forwarding is None or self._is_busy or self._is_looking_around or self._loop is None:
            return
        if forwarding.has_waiting:
            self._decide_for_all()
        elif self._listening is None and forwarding.leads:
            descriptor = forwarding.descriptor
            if descriptor is not None:
                self._listening = descriptor
                self._loop.add_reader(descriptor, self._hear)

    def _hear_nothing(self) -> None:
        """Leave the connection to the thread."""
        if self._listening is not None and self._loop is not None:
            self._loop.remove_reader(self._listening)
            self._listening = None

    def _hear(self) -> None:
        """Take in what other servers have sent; decide it once those have who are likely to."""
        forwarding = self.forwarding
        if forwarding is None or self._loop is None:
            return
        forwarding.receive()
        if forwarding.is_complete or not forwarding.leads:
            self._decide_for_all()
        elif forwarding.has_waiting:
            self._gather(self._loop)

    def _gather(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait a moment for the servers that are likely to send queries."""
        forwarding = self.forwarding
        if self._gathering is None and forwarding is not None:
            self._gathering = loop.call_later(forwarding.gathering_seconds, self._decide_for_all)

    def _decide_for_all(self) -> None:
        """Begin a batch with what other servers have sent."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        self._hear_nothing()
        self._has_heard = True
        self._go_on()

    async def catch_up(self) -> None:
        """Read ledger entries that other servers have committed, between two batches."""
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
        if not self.answerer.release.is_switching:
            self._unpark(DEFERRED)
        self._go_on()
        self.on_change()

    # -- the switch ------------------------------------------------------------

    def _park(self, waiting: Waiting) -> None:
        """Let queries wait for the classifier, for a while."""
        loop = asyncio.get_running_loop()
        self._parked[waiting] = loop.call_later(SWITCH_WAIT_SECONDS, self._expire, waiting)
        self._parked_count += len(waiting)

    def _expire(self, waiting: Waiting) -> None:
        del self._parked[waiting]
        self._parked_count -= len(waiting)
        waiting.end(SwitchingError(SWITCHING))

    def _unpark(self, result: Deferred | Failure) -> None:
        parked, self._parked, self._parked_count = self._parked, {}, 0
        for waiting, timer in parked.items():
            timer.cancel()
            waiting.end(result)

    def _end_switch(self, drawn: Failure | None) -> None:
        """Give those who wait to the classifier; try again later where the ledger failed."""
        if self._drawn(drawn, "switch_postponed"):
            self._unpark(DEFERRED)
            self.on_change()

    @property
    def has_stopped(self) -> bool:
        """Whether the writer has stopped or is about to stop."""
        return self._stopped is not None or self._closing

    def request_tick(self, tick: Callable[[], None]) -> None:
        """Call ``tick`` (the scheduled update of rows) on the writer's thread next."""
        self._tick = tick
        self._go_on()

    def _end_tick(self, made: Failure | None) -> None:
        """Announce what joined; the clock asks again where the ledger failed."""
        if isinstance(made, UnavailableError):
            log.warning("tick_postponed", error=type(made).__name__)
        elif isinstance(made, IntegrityError):
            self.stop(made)
        else:
            self.on_change()

    def _end_statistics(self, drawn: Failure | None) -> None:
        """Announce the table; try again later if the ledger failed."""
        if self._drawn(drawn, "statistics_postponed"):
            self.on_change()

    def _drawn(self, drawn: Failure | None, postponed: str) -> bool:
        """Return whether what was to be drawn and published is committed."""
        if isinstance(drawn, UnavailableError):
            log.warning(postponed, error=type(drawn).__name__)
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(SWITCH_RETRY_SECONDS, self._try_again)
        elif isinstance(drawn, IntegrityError):
            self.stop(drawn)
        return drawn is None

    def _try_again(self) -> None:
        self._retry = None
        self._go_on()

    # -- refusals --------------------------------------------------------------

    def _refuse(self, batch: Sequence[Waiting], error: Failure) -> None:
        if isinstance(error, IntegrityError):
            self.stop(error)
        for waiting in batch:
            waiting.end(error)

    def _refuse_all(self, error: Failure) -> None:
        for waiting in self._queue.take(self._queue.query_count):
            waiting.end(error)
        self._unpark(error)

    def stop(self, error: IntegrityError) -> None:
        """Refuse all later and waiting queries after a failure; repeated calls do nothing."""
        if self._stopped is not None:
            return
        self._stopped = error
        log.error("release_stopped", error=type(error).__name__)
        self._refuse_all(error)
        if self.forwarding is not None:  # another server leads from now on
            self._hear_nothing()
            self._thread.give(self.forwarding.close, _ignore)
        self.on_stop(error)


def _ignore(result: object, error: BaseException | None) -> None:
    """Make nothing of the end of a connection that nobody uses any more."""
    del result, error
