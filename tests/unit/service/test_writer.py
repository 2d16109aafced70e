"""The one writer: batches in order of arrival, the wait for the switch, and its end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import pytest
from structlog.testing import capture_logs

from app.errors import (
    ContainedError,
    IntegrityError,
    InvariantError,
    LedgerUnavailableError,
    SwitchingError,
    UnavailableError,
)
from app.service import writer as writer_module
from app.service.answer_query import CONTAINED
from app.service.batch import DEFERRED
from app.service.writer import BATCH_QUERIES_MAX, CLOSING, QUEUE_FULL, SWITCHING, Writer
from tests.unit.service.scripted_answerer import (
    PATIENCE_SECONDS,
    ScriptedAnswerer,
    Switch,
    answered,
    queries,
    writer_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

ResultT = TypeVar("ResultT")


def run(test: Coroutine[None, None, None]) -> None:
    """Run a test on an event loop of its own, for no longer than it may take."""

    async def patiently() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await test

    asyncio.run(patiently())


@asynccontextmanager
async def running(writer: Writer) -> AsyncIterator[Writer]:
    """Start a writer and close it at the end."""
    writer.start()
    try:
        yield writer
    finally:
        await writer.close()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not holds():  # noqa: ASYNC110 -- what is waited for happens on another thread
        await asyncio.sleep(0.001)


def submitting(writer: Writer, *margins: int) -> asyncio.Task[list[object]]:
    """Submit queries in a task of their own, as a request does."""

    async def submit() -> list[object]:
        return list(await writer.submit(queries(*margins)))

    return asyncio.create_task(submit())


def texts(refusals: list[object], kind: type[UnavailableError]) -> list[str]:
    """Return what refusals of one kind say."""
    assert all(type(refusal) is kind for refusal in refusals)
    return [str(refusal) for refusal in refusals]


def test_what_comes_during_a_commit_is_the_next_batch() -> None:
    """Requests that arrive while a batch is decided form one batch, in arrival order."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.gate.clear()
        async with running(writer_of(answerer)) as writer:
            first = submitting(writer, 1)
            await until(lambda: len(answerer.batches) == 1)
            others = [submitting(writer, *margins) for margins in ((2, 3), (4,), (5, 6))]
            await asyncio.sleep(0.01)
            answerer.gate.set()
            results = await asyncio.gather(first, *others)
        assert answerer.batches == [[1], [2, 3, 4, 5, 6]]
        assert list(chain.from_iterable(results)) == [answered(margin) for margin in range(1, 7)]
        assert len(answerer.threads) == 1

    run(test())


def test_a_batch_is_bounded() -> None:
    """More queries than a batch may hold are decided in several, still in order."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        count = BATCH_QUERIES_MAX + 7
        async with running(writer_of(answerer)) as writer:
            results = await submitting(writer, *range(count))
        assert [len(batch) for batch in answerer.batches] == [BATCH_QUERIES_MAX, 7]
        assert results == [answered(margin) for margin in range(count)]

    run(test())


def test_no_query_needs_no_batch() -> None:
    """Submitting nothing returns nothing, and wakes nobody."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        async with running(writer_of(answerer)) as writer:
            assert await writer.submit([]) == []
        assert answerer.batches == []

    run(test())


def test_subscribers_learn_of_every_commit() -> None:
    """The change is told once a batch, after its callers have their answers."""

    async def test() -> None:
        changes: list[int] = []
        answerer = ScriptedAnswerer()
        writer = writer_of(answerer, on_change=lambda: changes.append(len(answerer.batches)))
        async with running(writer):
            await writer.submit(queries(1))
            await writer.submit(queries(2, 3))
        assert changes == [1, 2]

    run(test())


def test_a_failed_commit_is_told_to_its_batch_alone() -> None:
    """Callers of the batch get the refusal in each place; the next batch is decided."""

    async def test() -> None:
        answerer = ScriptedAnswerer(failures=[LedgerUnavailableError("no commit")])
        async with running(writer_of(answerer)) as writer:
            refused = await submitting(writer, 1, 2)
            assert texts(refused, LedgerUnavailableError) == ["no commit"] * 2
            assert await writer.submit(queries(3)) == [answered(3)]

    run(test())


def test_an_integrity_error_stops_the_release() -> None:
    """Everyone who waits gets the error, everyone who comes gets it, and it is told once."""

    async def test() -> None:
        answerer = ScriptedAnswerer(failures=[InvariantError("broken")])
        answerer.gate.clear()
        stopped: list[IntegrityError] = []
        async with running(writer_of(answerer, on_stop=stopped.append)) as writer:
            waiting = [submitting(writer, 1)]
            await until(lambda: len(answerer.batches) == 1)
            waiting.append(submitting(writer, 2))
            await asyncio.sleep(0.01)
            with capture_logs() as lines:
                answerer.gate.set()
                results = await asyncio.gather(*waiting, return_exceptions=True)
            with pytest.raises(InvariantError):
                await writer.submit(queries(3))
        assert [str(result) for result in results] == ["broken"] * 2
        assert [str(error) for error in stopped] == ["broken"]
        assert answerer.batches == [[1]]
        assert lines == [
            {"event": "release_stopped", "log_level": "error", "error": "InvariantError"}
        ]

    run(test())


def test_an_unforeseen_failure_has_one_fixed_text() -> None:
    """What the answerer did not contain itself is contained by the writer."""

    async def test() -> None:
        answerer = ScriptedAnswerer(failures=[RuntimeError("a private value")])
        async with running(writer_of(answerer)) as writer:
            with pytest.raises(ContainedError, match=CONTAINED):
                await writer.submit(queries(1))

    run(test())


def test_a_caller_that_hangs_up_changes_nothing() -> None:
    """Its query is decided all the same, and its neighbours get their answers."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.gate.clear()
        async with running(writer_of(answerer)) as writer:
            gone, other = submitting(writer, 1), submitting(writer, 2)
            await asyncio.sleep(0)
            gone.cancel()
            answerer.gate.set()
            assert await other == [answered(2)]
        assert list(chain.from_iterable(answerer.batches)) == [1, 2]

    run(test())


def test_a_full_queue_refuses_what_comes() -> None:
    """Beyond the setting a caller is refused whole; nothing of it is decided."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.gate.clear()
        async with running(writer_of(answerer, pending_queries_max=3)) as writer:
            taken = [submitting(writer, 1)]
            await until(lambda: len(answerer.batches) == 1)
            taken += [submitting(writer, 2, 3), submitting(writer, 4)]
            await asyncio.sleep(0.01)
            assert texts(await submitting(writer, 5), UnavailableError) == [QUEUE_FULL]
            answerer.gate.set()
            await asyncio.gather(*taken)
            assert await writer.submit(queries(6)) == [answered(6)]
        assert answerer.batches == [[1], [2, 3, 4], [6]]

    run(test())


def test_one_caller_is_never_too_many() -> None:
    """Where nothing waits a caller's queries are taken together, so that none starves."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        async with running(writer_of(answerer, pending_queries_max=1)) as writer:
            assert len(await writer.submit(queries(1, 2, 3))) == 3
        assert answerer.batches == [[1, 2, 3]]

    run(test())


# -- the switch ------------------------------------------------------------------


def test_deferred_queries_wait_for_the_switch() -> None:
    """Queries behind the last answer are given to the classifier once it is there."""

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=2)
        switch = Switch(answerer)
        async with running(writer_of(answerer, switch)) as writer:
            results = await writer.submit(queries(1, 2, 3, 4))
            assert results == [answered(1), answered(2), DEFERRED, DEFERRED]
            assert await writer.submit(queries(5)) == [answered(5)]
        assert switch.attempts == 1

    run(test())


def test_a_restart_takes_up_an_interrupted_switch() -> None:
    """A writer that starts in phase classifier without one draws it, unasked."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.release.is_switching = True
        switch = Switch(answerer)
        async with running(writer_of(answerer, switch)):
            await until(lambda: switch.attempts == 1)

    run(test())


def test_queries_that_come_during_a_switch_wait_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They get 503 in time though the writer's thread is busy, and leave nothing behind."""
    monkeypatch.setattr(writer_module, "SWITCH_WAIT_SECONDS", 0.05)

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=1)
        switch = Switch(answerer)
        switch.gate.clear()
        async with running(writer_of(answerer, switch)) as writer:
            results = await writer.submit(queries(1, 2))
            assert results[0] == answered(1)
            assert texts([results[1]], SwitchingError) == [SWITCHING]
            assert texts(await submitting(writer, 3, 4), SwitchingError) == [SWITCHING] * 2
            assert not writer._parked
            assert answerer.batches == [[1, 2]]
            late = submitting(writer, 5)
            await asyncio.sleep(0)
            switch.gate.set()
            assert await late == [DEFERRED]
        assert switch.attempts == 1

    run(test())


def test_queries_that_wait_for_the_switch_count_as_waiting() -> None:
    """The bound of the queue holds for them too."""

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=1)
        switch = Switch(answerer)
        switch.gate.clear()
        async with running(writer_of(answerer, switch, pending_queries_max=2)) as writer:
            assert await writer.submit(queries(1)) == [answered(1)]
            waiting = submitting(writer, 2, 3)
            await asyncio.sleep(0)
            assert texts(await submitting(writer, 4), UnavailableError) == [QUEUE_FULL]
            switch.gate.set()
            assert await waiting == [DEFERRED, DEFERRED]

    run(test())


def test_a_switch_is_tried_again_where_the_ledger_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger's failure postpones the switch; who waits goes on waiting."""
    monkeypatch.setattr(writer_module, "SWITCH_RETRY_SECONDS", 0.01)

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=1)
        switch = Switch(answerer, failures=[LedgerUnavailableError("no commit")] * 2)
        with capture_logs() as lines:
            async with running(writer_of(answerer, switch)) as writer:
                assert await writer.submit(queries(1, 2)) == [answered(1), DEFERRED]
        assert switch.attempts == 3
        assert [line["event"] for line in lines] == ["switch_postponed"] * 2

    run(test())


@pytest.mark.parametrize(
    ("failure", "kind", "text"),
    [
        (InvariantError("broken"), InvariantError, "broken"),
        (ValueError("a private value"), ContainedError, CONTAINED),
    ],
)
def test_a_switch_that_fails_stops_the_release(
    failure: Exception, kind: type[Exception], text: str
) -> None:
    """Whoever waits for the classifier gets the error, an unforeseen one by a fixed text."""

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=1)
        stopped: list[IntegrityError] = []
        writer = writer_of(answerer, Switch(answerer, [failure]), on_stop=stopped.append)
        async with running(writer):
            with pytest.raises(kind, match=text):
                await writer.submit(queries(1, 2))
        assert [str(error) for error in stopped] == [text]

    run(test())


# -- the end -----------------------------------------------------------------------


def test_what_is_queued_is_answered_before_the_end() -> None:
    """Draining takes nothing more, decides what it took, and then ends the thread."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.gate.clear()
        writer = writer_of(answerer)
        writer.start()
        first = submitting(writer, 1)
        await until(lambda: len(answerer.batches) == 1)
        queued = submitting(writer, 2)
        await asyncio.sleep(0)
        writer.drain()
        assert texts(await submitting(writer, 3), UnavailableError) == [CLOSING]
        answerer.gate.set()
        await writer.close()
        assert [await first, await queued] == [[answered(1)], [answered(2)]]
        assert answerer.batches == [[1], [2]]

    run(test())


def test_nobody_waits_for_a_switch_when_the_server_ends() -> None:
    """Draining refuses at once whoever waits for the classifier, before it is drawn."""

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=1)
        switch = Switch(answerer)
        switch.gate.clear()
        async with running(writer_of(answerer, switch)) as writer:
            assert await writer.submit(queries(1)) == [answered(1)]
            waiting = submitting(writer, 2)
            await until(lambda: switch.attempts == 1)
            writer.drain()
            assert texts(await waiting, UnavailableError) == [CLOSING]
            switch.gate.set()
        assert switch.attempts == 1

    run(test())


def test_no_switch_is_begun_after_draining() -> None:
    """The last queued batch may reach the switch: it is left to the next start."""

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=2)
        answerer.gate.clear()
        switch = Switch(answerer)
        async with running(writer_of(answerer, switch)) as writer:
            last = submitting(writer, 1, 2, 3)
            await until(lambda: len(answerer.batches) == 1)
            writer.drain()
            answerer.gate.set()
            results = await last
        assert results[:2] == [answered(1), answered(2)]
        assert texts(results[2:], UnavailableError) == [CLOSING]
        assert switch.attempts == 0

    run(test())


def test_a_writer_that_stopped_can_be_closed() -> None:
    """Closing after a stop neither waits nor fails."""

    async def test() -> None:
        answerer = ScriptedAnswerer(failures=[InvariantError("broken")])
        async with running(writer_of(answerer)) as writer:
            with pytest.raises(InvariantError):
                await writer.submit(queries(1))
        await writer.close()

    run(test())
