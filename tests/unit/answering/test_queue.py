"""Queries that wait together: what is taken for a batch, and how their decisions come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from app.answering.answers import in_turn
from app.answering.batch_decisions import DEFERRED
from app.answering.queue import Queue, Waiting, decisions_of, first_deferred
from app.errors import InvariantError, UnavailableError
from tests.builders.release.scripted_answerer import answered, queries
from tests.builders.release.writer_calls import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from app.answering.queue import Decisions


def waiting(count: int) -> Waiting:
    """Return so many queries that wait together; a loop must be running."""
    return Waiting(queries(*range(count)), asyncio.Future())


async def taken(*pending: Waiting) -> list[list[object]]:
    """Return every part of decisions."""
    return [list(part) async for part in decisions_of([each.future for each in pending])]


def test_a_batch_divides_no_callers_queries() -> None:
    """What fits is taken in order, and whoever does not fit is first in the next batch."""

    async def test() -> None:
        queue, came = Queue(), [waiting(count) for count in (1, 3, 4, 1, 2)]
        queue.extend(came)
        assert queue.query_count == 11
        assert queue.take(5) == came[:2]
        assert queue.query_count == 7
        assert queue.take(5) == came[2:4]
        assert queue.take(5) == came[4:]
        assert (queue.take(5), queue.query_count) == ([], 0)

    run(test())


def test_what_is_answered_does_not_wait_for_the_classifier() -> None:
    """Decisions before the first deferred one come at once, the others in a part of their own."""

    async def test() -> None:
        caller = waiting(4)
        decisions: Decisions = [answered(1), DEFERRED, answered(2), DEFERRED]
        rest = caller.settle_up_to(1, decisions)
        parts = decisions_of([caller.future])
        assert list(await anext(parts)) == [answered(1)]
        assert not rest.future.done()
        assert len(rest) == 3
        rest.end(refusal := UnavailableError("too long"))
        assert list(await anext(parts)) == [refusal, answered(2), refusal]

    run(test())


def test_a_caller_whose_first_query_is_deferred_waits_for_all() -> None:
    """It goes on waiting as it is, and then gets its decisions in one part."""

    async def test() -> None:
        caller = waiting(2)
        assert caller.settle_up_to(0, [DEFERRED, answered(2)]) is caller
        caller.end(DEFERRED)
        assert await taken(caller) == [[DEFERRED, answered(2)]]

    run(test())


def test_a_release_that_stops_is_told_to_every_caller() -> None:
    """Decisions that came before are given, and then the error is raised."""

    async def test() -> None:
        answered_one, stopped = waiting(1), waiting(2)
        answered_one.settle([answered(1)])
        stopped.end(InvariantError("broken"))
        assert await taken(answered_one) == [[answered(1)]]
        with pytest.raises(InvariantError):
            await taken(answered_one, stopped)

    run(test())


def test_a_caller_that_hung_up_is_given_nothing() -> None:
    """Its future is done, and is left as it is."""

    async def test() -> None:
        gone = waiting(1)
        gone.future.cancel()
        gone.settle([answered(1)])
        gone.end(UnavailableError("late"))
        assert gone.future.cancelled()

    run(test())


@pytest.mark.parametrize(
    ("decisions", "place"),
    [([answered(1), DEFERRED, DEFERRED], 1), ([answered(1)], None), ([], None)],
)
def test_the_first_deferred_query_is_found(decisions: Decisions, place: int | None) -> None:
    """Its place, or none where every query is decided."""
    assert first_deferred(decisions) == place


@pytest.mark.parametrize(
    ("known", "parts", "expected"),
    [
        ({}, ["ab", "c"], ["ab", "c"]),
        ({0: "x", 1: "y", 3: "z"}, ["ab", "c"], ["xy", "azb", "c"]),
        ({0: "x", 1: "y"}, [], ["xy"]),
        ({2: "x", 3: "y"}, ["a", "b"], ["a", "bxy"]),
        ({}, [], []),
    ],
)
def test_what_is_known_at_once_stands_in_its_place(
    known: dict[int, str], parts: list[str], expected: list[str]
) -> None:
    """What leads comes without waiting, and what follows a part comes with it."""

    async def come() -> AsyncIterator[Sequence[str]]:
        for part in parts:
            yield part

    async def test() -> None:
        told = [part async for part in in_turn(known, come())]
        assert ["".join(part) for part in told] == expected
        assert known or told == cast("list[Sequence[str]]", parts)

    run(test())
