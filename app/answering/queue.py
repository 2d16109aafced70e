"""The writer's queue of queries, and the decisions on them.

How long a batch waits for queries that are likely to come right now.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from app.answering.answer_query import CONTAINED
from app.answering.batch import DEFERRED, Deferred
from app.errors import ContainedError, IntegrityError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from app.answering.batch import Decision
    from app.answering.queries import IdentifiedQueries

    Decisions: TypeAlias = Sequence[Decision | UnavailableError]
    Pending: TypeAlias = asyncio.Future["Decided | IntegrityError"]


class Recipient(Protocol):
    """What a caller has in place of a future: it is told in the turn of the commit itself."""

    def done(self) -> bool:
        """Return whether a result has no use any more."""

    def set_result(self, result: Decided | IntegrityError, /) -> None:
        """Take the decisions; raise nothing, for others are told in the same turn."""


class Decided(msgspec.Struct, frozen=True):
    """The decisions on queries that waited together.

    Attributes:
        decisions: of the first of them, in order.
        rest: of the others, which wait for the classifier; None where there are none.

    """

    decisions: Decisions
    rest: Pending | None = None


@dataclass(slots=True, eq=False)
class Waiting:
    """Queries of one caller in the queue, decided in one batch, with the waiting caller.

    Attributes:
        queries: in order, at least one.
        future: of the caller; one that hung up has no use for it.
        decisions: as far as they are known, the others deferred.

    """

    queries: IdentifiedQueries
    future: Pending
    decisions: Decisions = ()

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    def settle(self, decisions: Decisions) -> None:
        """Give the caller a decision for each query."""
        self._give(Decided(decisions))

    def settle_up_to(self, deferred: int, decisions: Decisions) -> Waiting:
        """Return results to the caller up to the first deferred query; return the queries after it.

        Args:
            deferred: its place.
            decisions: for each query.

        """
        if deferred == 0:
            self.decisions = decisions
            return self
        others = self.queries.part(deferred, len(self))
        rest = Waiting(others, asyncio.Future(), decisions[deferred:])
        self._give(Decided(decisions[:deferred], rest.future))
        return rest

    def end(self, result: Deferred | UnavailableError | IntegrityError) -> None:
        """Return the same result to the caller for every query that has none."""
        if isinstance(result, IntegrityError):
            self._give(result)
            return
        decisions = self.decisions or [DEFERRED] * len(self)
        self.settle([result if isinstance(each, Deferred) else each for each in decisions])

    def _give(self, result: Decided | IntegrityError) -> None:
        if not self.future.done():
            self.future.set_result(result)


class Queue:
    """Undecided queries in order of arrival; its length is the number of queries."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: deque[Waiting] = deque()
        self._query_count = 0

    def __len__(self) -> int:
        """Return the number of queries."""
        return self._query_count

    def extend(self, waiting: Iterable[Waiting]) -> None:
        """Append arrived queries."""
        for each in waiting:
            self._waiting.append(each)
            self._query_count += len(each.queries)

    def take(self, count_max: int) -> list[Waiting]:
        """Remove and return queries for a batch of at most ``count_max``, which each entry fits."""
        taken: list[Waiting] = []
        room = count_max
        while self._waiting and (count := len(self._waiting[0].queries)) <= room:
            taken.append(self._waiting.popleft())
            room -= count
        self._query_count -= count_max - room
        return taken


def parted(batch: Sequence[Waiting], decided: Sequence[Decision]) -> Iterable[Sequence[Decision]]:
    """Split the decisions of a batch by caller."""
    if len(batch) == len(decided):  # of one query each
        return ((decision,) for decision in decided)
    ends = accumulate(map(len, batch))
    return (decided[end - len(each) : end] for each, end in zip(batch, ends, strict=True))


def first_deferred(decisions: Decisions) -> int | None:
    """Return the index of the first query that is left to the classifier."""
    places = (place for place, each in enumerate(decisions) if isinstance(each, Deferred))
    return next(places, None)


async def decisions_of(pending: Iterable[Pending]) -> AsyncIterator[Decisions]:
    """Yield decisions in order, part by part, each as soon as it is committed.

    Raises:
        IntegrityError: the release has stopped.

    """
    for each in pending:
        following: Pending | None = each
        while following is not None:
            part = await _decided(following)
            yield part.decisions
            following = part.rest


async def all_decisions(pending: Sequence[Pending]) -> Decisions:
    """Return decisions in order, once all are committed; raises as :func:`decisions_of` does."""
    if len(pending) > 1:
        return [each async for part in decisions_of(pending) for each in part]
    part = await _decided(pending[0])
    if part.rest is None:  # without a generator, which a loop enters in a list and takes out again
        return part.decisions
    return [*part.decisions, *await all_decisions([part.rest])]


async def _decided(pending: Pending) -> Decided:
    part = await pending
    if isinstance(part, IntegrityError):
        raise part
    return part


def contained(error: BaseException) -> UnavailableError | IntegrityError:
    """Return an error that the writer foresees, or a fixed text for any other error.

    Whatever that one says may be private.
    """
    if isinstance(error, UnavailableError | IntegrityError):
        return error
    return ContainedError(CONTAINED)


class Arrivals:
    """Counts waiting queries against the expected number.

    Expected are as many as were answered last or waited by then: who was answered asks
    again.  Whether they come is public, and so is when: nothing here depends on a vote.
    """

    def __init__(self, count_max: int, quiet_seconds: float) -> None:
        """Expect as many as a batch may hold, as long as nobody is known to ask alone.

        Args:
            count_max: of one batch.
            quiet_seconds: without a further query, after which none is waited for.

        """
        self._count_max = count_max
        self._quiet_seconds = quiet_seconds
        self.expect(count_max)

    def expect(self, count: int) -> None:
        """Expect this many further queries from now on."""
        self._expected = min(count, self._count_max)
        self._seen, self._seen_at = 0, math.inf
        self._is_quiet = False

    def are_complete(self, waiting_count: int) -> bool:
        """Return whether all expected queries wait, or none has arrived for a while."""
        return self._is_quiet or waiting_count >= self._expected

    def note(self, waiting_count: int) -> None:
        """Note the number of waiting queries in a separate turn of the event loop.

        What was answered before is on its way by then, and the quiet begins.
        """
        now = time.monotonic()
        if waiting_count > self._seen:
            self._seen, self._seen_at = waiting_count, now
        self._is_quiet = now - self._seen_at >= self._quiet_seconds
