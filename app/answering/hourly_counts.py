"""Counters of a server's work: answers by kind and hour, and histograms of batch sizes and times.

An answer is of one of three kinds: a new answer by vote, a recorded answer that is given again, or
an answer by the published classifier. The hourly counts also have a fourth kind, the refused
requests.

The times of answers are outside the privacy guarantee (``docs/guarantee.md``). The histograms show
less than the times that every client can measure: only the bucket of a value is kept, and the
buckets do not distinguish values by answer, by client or by stability.

All servers of a ledger share the hourly counts, which are kept over restarts. The counts are public
totals. They are written once a minute, and when the server ends, in a transaction of their own and
on a separate thread. An answer waits for this transaction at most as long as one small commit locks
the ledger.

The module also notifies listeners of changes of the public state.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from app.errors import ConclaveError
from app.ledger.database.hour_counts import HourCounts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from app.ledger.ledger import Ledger

SECONDS_BOUNDS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)
"""Upper bounds of the buckets of times, in seconds: each about five times the last."""

QUERIES_BOUNDS: Final = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
"""Upper bounds of the buckets of batches, in queries."""

log = structlog.get_logger("conclave.service")


class Buckets:
    """A histogram: the number of values in each bucket; the values themselves are not kept."""

    __slots__ = ("_bounds", "_counts")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Start with counts of zero; values above the last of ``bounds`` have their own bucket."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)

    def add(self, value: float) -> None:
        """Add 1 to the count of the histogram's bucket in which ``value`` lies."""
        self._counts[bisect_left(self._bounds, value)] += 1

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the number of values up to each bound, in Prometheus' cumulative form."""
        counts, total, found = list(self._counts), 0, []
        for bound, count in zip((*self._bounds, None), counts, strict=True):
            total += count
            found.append(("+Inf" if bound is None else str(bound), float(total)))
        return found

    def sum_of_bounds(self) -> float:
        """Return the sum of all values, each taken as the upper bound of its bucket.

        This sum is published instead of the exact sum, from which a single value could be computed.
        A value above the last bound counts as the last bound.
        """
        bounds = (*self._bounds, self._bounds[-1])
        return sum(bound * count for bound, count in zip(bounds, self._counts, strict=True))


FRESH: Final = "fresh"
REPEATED: Final = "repeated"
CLASSIFIED: Final = "classified"
ANSWER_KINDS: Final = (FRESH, REPEATED, CLASSIFIED)
"""New answers of the ensemble, recorded ones given again, and the published classifier's."""

RATE_SECONDS_MAX: Final = 300


class AnswerCounts:
    """The number and rate of answers that this process gave since it started, by kind.

    To compute rates, the counts at the end of each of the last ``RATE_SECONDS_MAX`` seconds are
    kept.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with counts of zero.

        Args:
            clock: a function that returns the seconds since a fixed moment and never goes back.

        """
        self._clock = clock
        self._began = clock()
        self._counts = dict.fromkeys(ANSWER_KINDS, 0)
        self._second = 0
        self._ends: deque[tuple[int, dict[str, int]]] = deque(maxlen=RATE_SECONDS_MAX + 1)

    def add(self, kind: str, count: int) -> None:
        """Add to the count of answers of one kind."""
        second = int(self._clock() - self._began)
        if second != self._second:
            self._ends.append((self._second, dict(self._counts)))
            self._second = second
        self._counts[kind] += count

    def count(self, kind: str) -> int:
        """Return the number of answers of one kind."""
        return self._counts[kind]

    def per_second(self, kind: str, *, window_seconds: int) -> float:
        """Return the mean answers per second over a window, or since the start if shorter.

        Args:
            kind: a kind of answer, one of ``ANSWER_KINDS``.
            window_seconds: the length of the window in seconds, at most ``RATE_SECONDS_MAX``.

        """
        now = int(self._clock() - self._began)
        start = now - window_seconds
        if self._second <= start:
            return 0.0  # nothing of any kind was given since
        ends = list(self._ends)
        place = bisect_right(ends, start, key=lambda each: each[0]) - 1
        before = ends[place][1][kind] if place >= 0 else 0
        return (self._counts[kind] - before) / max(1, min(window_seconds, now))


HOUR_SECONDS: Final = 3600
WRITE_SECONDS: Final = 60.0


class Hourly:
    """The hourly counts of answers and refusals that are not yet written to the database."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        """Start with no counts.

        Args:
            ledger: the ledger in which the hourly counts are recorded.
            clock: a function that returns the seconds since 1970.

        """
        self._ledger = ledger
        self._clock = clock
        self._counts: dict[int, Counter[str]] = {}
        self._writing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    def add(self, kind: str, count: int, *, unstable: int = 0) -> None:
        """Add answers of one kind, some of them unstable, or refused requests to the counts."""
        hour = int(self._clock()) // HOUR_SECONDS
        counts = self._counts.get(hour)
        if counts is None:
            counts = self._counts[hour] = Counter()
        counts[kind] += count
        if unstable:
            counts["unstable"] += unstable

    def start(self) -> None:
        """Start to write the counts to the database once a minute, on the running event loop."""
        self._writing = asyncio.get_running_loop().create_task(self._write_on())

    async def close(self) -> None:
        """End the regular writing, and write the counts that are left."""
        if self._writing is not None:
            self._writing.cancel()
            await self.write()

    async def write(self) -> None:
        """Write the counts to the database; counts that it does not accept are kept for later."""
        async with self._turn:
            taken, self._counts = self._counts, {}
            if not taken:
                return
            counts = {hour: HourCounts(**each) for hour, each in taken.items()}
            try:
                await asyncio.to_thread(self._ledger.add_hours, counts)
            except ConclaveError as error:
                # Of an altered ledger the next answer tells; a history stops no release.
                log.warning("history_postponed", error=type(error).__name__)
                for hour, each in taken.items():
                    self._counts.setdefault(hour, Counter()).update(each)

    async def document(self) -> dict[str, object]:
        """Return the body of ``GET /budget/history``; other servers' counts may be a minute late.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.

        """
        async with self._turn:
            hours = await asyncio.to_thread(self._ledger.hour_counts)
            for hour, mine in self._counts.items():
                before = hours.get(hour, HourCounts())
                hours[hour] = HourCounts(
                    *(count + mine[name] for name, count in before._asdict().items())
                )
        return {
            "hours": [
                {"time": hour * HOUR_SECONDS, **hours[hour]._asdict()} for hour in sorted(hours)
            ]
        }

    async def _write_on(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()


@dataclass(frozen=True, slots=True)
class Workload:
    """The length of the queue of queries, and counters since the process started.

    Attributes:
        waiting: the number of queries in the queue, including those that wait for the classifier.
        waiting_max: the largest number of queries that may wait.
        batch_queries: a histogram of the numbers of queries that were decided together.
        commit_seconds: a histogram of the durations of successful commits, in seconds.
        answers: the numbers of answers that were given, by kind.

    """

    waiting: int
    waiting_max: int
    batch_queries: Buckets = field(default_factory=lambda: Buckets(QUERIES_BOUNDS))
    commit_seconds: Buckets = field(default_factory=lambda: Buckets(SECONDS_BOUNDS))
    answers: AnswerCounts = field(default_factory=AnswerCounts)


class Changes:
    """The listeners that one service notifies of every change of its public state."""

    def __init__(self) -> None:
        """Start without listeners."""
        self._listeners: set[asyncio.Event] = set()
        self._closed = False

    def notify(self) -> None:
        """Notify every listener of a change."""
        for changed in self._listeners:
            changed.set()

    def close(self) -> None:
        """End the iterators of all listeners."""
        self._closed = True
        self.notify()

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[None]]:
        """Yield an iterator that yields after every change; changes close together are merged."""
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
