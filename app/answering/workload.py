"""Counts of answers and of the writer's work, and durations in coarse public buckets.

The time of an answer is outside the guarantee (``docs/guarantee.md``), and what is
counted here is coarser than what every client measures: a value is forgotten as soon
as it is known which bucket it is in, and buckets are not told apart by what was
answered, by whom it was asked, or whether it was stable.

Telling whoever listens that what is public has changed.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SECONDS_BOUNDS: Final = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)
"""Upper bounds of the buckets of times, in seconds: each about five times the last."""

QUERIES_BOUNDS: Final = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
"""Upper bounds of the buckets of batches, in queries."""


class Buckets:
    """Counts of values by bucket; the values themselves are not kept."""

    __slots__ = ("_bounds", "_counts")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Start with counts of zero; values above the last of ``bounds`` have their own bucket."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)

    def add(self, value: float) -> None:
        """Count a value in the bucket (range of values) in which it lies."""
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

        It stands for the sum of the values, which would give back a single one.  What
        exceeds the last bound counts as that bound.
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
    """The numbers and rates of answers by kind, since this process started.

    Counts at the ends of the last seconds are kept, for rates; nothing finer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with counts of zero.

        Args:
            clock: seconds since any moment, which never go back.

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
            kind: one of ``ANSWER_KINDS``.
            window_seconds: at most ``RATE_SECONDS_MAX``.

        """
        now = int(self._clock() - self._began)
        start = now - window_seconds
        if self._second <= start:
            return 0.0  # nothing of any kind was given since
        ends = list(self._ends)
        place = bisect_right(ends, start, key=lambda each: each[0]) - 1
        before = ends[place][1][kind] if place >= 0 else 0
        return (self._counts[kind] - before) / max(1, min(window_seconds, now))


@dataclass(frozen=True, slots=True)
class Workload:
    """The number of waiting queries, and the writer's counters since the process started.

    Attributes:
        waiting: queries in the queue, and those that wait for the switch.
        waiting_max: queries that may wait.
        batch_queries: sizes of the batches that were decided together.
        commit_seconds: how long commits took that succeeded.
        answers: what was given, by kind.

    """

    waiting: int
    waiting_max: int
    batch_queries: Buckets = field(default_factory=lambda: Buckets(QUERIES_BOUNDS))
    commit_seconds: Buckets = field(default_factory=lambda: Buckets(SECONDS_BOUNDS))
    answers: AnswerCounts = field(default_factory=AnswerCounts)


class Changes:
    """The listeners that are notified of changes of one service; used on the event loop."""

    def __init__(self) -> None:
        """Start without listeners."""
        self._listeners: set[asyncio.Event] = set()
        self._closed = False

    def notify(self) -> None:
        """Tell every listener that something has changed."""
        for changed in self._listeners:
            changed.set()

    def close(self) -> None:
        """End the iterators of all listeners for changes."""
        self._closed = True
        self.notify()

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[None]]:
        """Yield an iterator with one item for each change of the service's public state."""
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
