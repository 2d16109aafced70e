"""The queue of queries waiting for the writer thread, and the decisions on them.

A decision on a query is its new or recorded answer, a refusal, or the choice to leave the query to
the published classifier (a deferred decision).

The module also contains the rule for how long a batch waits for further queries that are likely to
arrive soon.
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
from app.answering.batch_decisions import DEFERRED, Deferred
from app.errors import ContainedError, IntegrityError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from app.answering.batch_decisions import Decision
    from app.answering.queries import IdentifiedQueries

    Decisions: TypeAlias = Sequence[Decision | UnavailableError]
    Pending: TypeAlias = asyncio.Future["Decided | IntegrityError"]


class Recipient(Protocol):
    """The interface of a caller that gets its answers at the moment of the commit."""

    def done(self) -> bool:
        """Return whether the caller no longer needs an answer."""

    def set_result(self, result: Decided | IntegrityError, /) -> None:
        """Accept decisions on queries; must not raise, as other callers are served next."""


class Decided(msgspec.Struct, frozen=True):
    """The decisions on queries that one caller queued together.

    Attributes:
        decisions: the decisions on the first queries of the caller, in order.
        rest: a future of the decisions on the other queries, which wait for the classifier; None if
            there are no other queries.

    """

    decisions: Decisions
    rest: Pending | None = None


@dataclass(slots=True, eq=False)
class Waiting:
    """The waiting queries of one caller, with the object that gets their decisions.

    Attributes:
        queries: the queries, in order, at least one.
        future: the caller's future, which gets the decisions; it is done already if the caller hung
            up.
        decisions: the known decisions; queries without one have a deferred decision.

    """

    queries: IdentifiedQueries
    future: Pending
    decisions: Decisions = ()

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    def settle(self, decisions: Decisions) -> None:
        """Give the waiting caller a decision for each of its queries."""
        if not self.future.done():
            self.future.set_result(Decided(decisions))

    def settle_up_to(self, deferred: int, decisions: Decisions) -> Waiting:
        """Give decisions up to the first query left to the classifier; return the other queries.

        Args:
            deferred: the index of the first query that is left to the classifier.
            decisions: a decision for each query.

        """
        if deferred == 0:
            self.decisions = decisions
            return self
        others = self.queries.part(deferred, len(self))
        rest = Waiting(others, asyncio.Future(), decisions[deferred:])
        self._give(Decided(decisions[:deferred], rest.future))
        return rest

    def end(self, result: Deferred | UnavailableError | IntegrityError) -> None:
        """Give the waiting caller the same result for every query that has no decision yet."""
        if isinstance(result, IntegrityError):
            self._give(result)
            return
        decisions = self.decisions or [DEFERRED] * len(self)
        self.settle([result if isinstance(each, Deferred) else each for each in decisions])

    def _give(self, result: Decided | IntegrityError) -> None:
        if not self.future.done():
            self.future.set_result(result)


class Queue:
    """The waiting queries in order of arrival.

    Attributes:
        query_count: the number of queries.

    """

    def __init__(self) -> None:
        """Start with no queries."""
        self._waiting: deque[Waiting] = deque()
        self.query_count = 0

    def extend(self, waiting: Iterable[Waiting]) -> None:
        """Append newly arrived queries to the queue."""
        for each in waiting:
            self._waiting.append(each)
            self.query_count += len(each.queries)

    def take(self, count_max: int) -> list[Waiting]:
        """Remove queries from the queue for a batch of at most ``count_max``, in whole requests."""
        taken: list[Waiting] = []
        room = count_max
        while self._waiting and (count := len(self._waiting[0].queries)) <= room:
            taken.append(self._waiting.popleft())
            room -= count
        self.query_count -= count_max - room
        return taken


def parted(batch: Sequence[Waiting], decided: Sequence[Decision]) -> Iterable[Sequence[Decision]]:
    """Return the decisions of a batch, divided by caller."""
    if len(batch) == 1:
        return [decided]
    if len(batch) == len(decided):  # of one query each
        return [(decision,) for decision in decided]
    ends = accumulate(map(len, batch))
    return (decided[end - len(each) : end] for each, end in zip(batch, ends, strict=True))


def first_deferred(decisions: Decisions) -> int | None:
    """Return the index of the first decision that leaves its query to the classifier."""
    places = (place for place, each in enumerate(decisions) if isinstance(each, Deferred))
    return next(places, None)


async def decisions_of(pending: Iterable[Pending]) -> AsyncIterator[Decisions]:
    """Yield decisions on queries in order, part by part, each as soon as it is committed.

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
    """Return a foreseen error unchanged, and an error with a fixed text for any other.

    The text of an unforeseen error may contain private values.
    """
    if isinstance(error, UnavailableError | IntegrityError):
        return error
    return ContainedError(CONTAINED)


class Arrivals:
    """A rule for how long to wait for further queries before a batch is decided.

    The rule expects as many queries as were answered in the last batch, and in addition those that
    were waiting at its end, because a client that got an answer usually asks again. The rule
    depends only on the number and times of requests, which are public, and not on votes.
    """

    def __init__(self, count_max: int, quiet_seconds: float) -> None:
        """Expect a full batch until a caller is known to ask one query at a time.

        Args:
            count_max: the largest number of queries in a batch.
            quiet_seconds: the time without a further query, in seconds, after which the rule stops
                waiting.

        """
        self._count_max = count_max
        self._quiet_seconds = quiet_seconds
        self.expect(count_max)

    def expect(self, count: int) -> None:
        """Wait for up to this many further queries before the next batch is decided."""
        self._expected = min(count, self._count_max)
        self._seen, self._seen_at = 0, math.inf
        self._is_quiet = False

    def are_complete(self, waiting_count: int) -> bool:
        """Return whether all expected queries are waiting, or none has arrived for a while."""
        return self._is_quiet or waiting_count >= self._expected

    def note(self, waiting_count: int) -> None:
        """Record how many queries wait now; the wait ends when this number stops growing.

        It is called when the answers of the last batch are on their way to the clients.
        """
        now = time.monotonic()
        if waiting_count > self._seen:
            self._seen, self._seen_at = waiting_count, now
        self._is_quiet = now - self._seen_at >= self._quiet_seconds
