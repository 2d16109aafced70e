"""Queries in the writer's queue, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from app.answering.answer_query import CONTAINED
from app.answering.batch import DEFERRED, Deferred
from app.answering.fresh import FreshAnswers
from app.errors import ContainedError, IntegrityError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from app.answering.batch import Decision
    from app.answering.queries import Ticket
    from app.answering.types import Query

    Decisions: TypeAlias = Sequence[Decision | UnavailableError]
    Pending: TypeAlias = asyncio.Future["Decided | IntegrityError"]


class Decided(msgspec.Struct, frozen=True):
    """What became of queries that waited together.

    Attributes:
        decisions: of the first of them, in order.
        rest: of the others, which wait for the classifier; None where there are none.

    """

    decisions: Decisions
    rest: Pending | None = None


@dataclass(slots=True, eq=False)
class Waiting:
    """Queries of one caller in the queue, decided in one batch, and the caller that waits.

    Attributes:
        queries: in order, at least one.
        future: of the caller; one that hung up has no use for it.
        decisions: as far as they are known, the others deferred.

    """

    queries: Sequence[Query | Ticket]
    future: Pending
    decisions: Decisions = ()

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    def settle(self, decisions: Decisions) -> None:
        """Give the caller a decision for each query."""
        self._give(Decided(decisions))

    def settle_up_to(self, deferred: int, decisions: Decisions) -> Waiting:
        """Give the caller what comes before the first deferred query; return what goes on waiting.

        Args:
            deferred: its place.
            decisions: for each query.

        """
        if deferred == 0:
            self.decisions = decisions
            return self
        rest = Waiting(self.queries[deferred:], asyncio.Future(), decisions[deferred:])
        self._give(Decided(decisions[:deferred], rest.future))
        return rest

    def end(self, result: Deferred | UnavailableError | IntegrityError) -> None:
        """Give the caller one result for every query that has none."""
        if isinstance(result, IntegrityError):
            self._give(result)
            return
        decisions = self.decisions or [DEFERRED] * len(self)
        self.settle([result if isinstance(each, Deferred) else each for each in decisions])

    def _give(self, result: Decided | IntegrityError) -> None:
        if not self.future.done():
            self.future.set_result(result)


class Queue:
    """What waits to be decided, in order of arrival; its length is the number of queries."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: deque[Waiting] = deque()
        self._query_count = 0

    def __len__(self) -> int:
        """Return the number of queries."""
        return self._query_count

    def extend(self, waiting: Iterable[Waiting]) -> None:
        """Append what came."""
        for each in waiting:
            self._waiting.append(each)
            self._query_count += len(each.queries)

    def take(self, count_max: int) -> list[Waiting]:
        """Take what fits in a batch of at most ``count_max`` queries; none is more than that."""
        taken: list[Waiting] = []
        room = count_max
        while self._waiting and (count := len(self._waiting[0].queries)) <= room:
            taken.append(self._waiting.popleft())
            room -= count
        self._query_count -= count_max - room
        return taken


def parted(batch: Sequence[Waiting], decided: Sequence[Decision]) -> Iterable[Sequence[Decision]]:
    """Return of the decisions of a batch those of each caller."""
    if len(batch) == len(decided):  # of one query each
        return ((decision,) for decision in decided)
    ends = accumulate(map(len, batch))
    return (decided[end - len(each) : end] for each, end in zip(batch, ends, strict=True))


def first_deferred(decisions: Decisions) -> int | None:
    """Return the place of the first query that is left to the classifier."""
    if isinstance(decisions, FreshAnswers):
        return None
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
            part = await decided(following)
            yield part.decisions
            following = part.rest


async def decided(pending: Pending) -> Decided:
    """Wait for decisions; raises as :func:`decisions_of` does."""
    result = await pending
    if isinstance(result, IntegrityError):
        raise result
    return result


def contained(error: BaseException) -> UnavailableError | IntegrityError:
    """Return an error that the writer foresees, or a fixed text in place of one that it does not.

    Whatever that one says may be private.
    """
    if isinstance(error, UnavailableError | IntegrityError):
        return error
    return ContainedError(CONTAINED)
