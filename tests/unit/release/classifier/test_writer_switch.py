"""The writer at the switch and at its end: who waits, and for how long."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from app.answering import writer as writer_module
from app.answering.answer_query import CONTAINED
from app.answering.batch_decisions import DEFERRED
from app.answering.writer import CLOSING, QUEUE_FULL, SWITCH_WAIT_SECONDS, SWITCHING
from app.errors import (
    ContainedError,
    IntegrityError,
    InvariantError,
    LedgerUnavailableError,
    SwitchingError,
    UnavailableError,
)
from tests.builders.release.scripted_answerer import (
    ScriptedAnswerer,
    Switch,
    answered,
    writer_of,
)
from tests.builders.release.writer_calls import run, running, submit, submitting, texts, until

# -- the switch ------------------------------------------------------------------


def test_deferred_queries_wait_for_the_switch() -> None:
    """Queries behind the last answer are given to the classifier once it is there."""

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=2)
        switch = Switch(answerer)
        async with running(writer_of(answerer, switch)) as writer:
            results = await submit(writer, 1, 2, 3, 4)
            assert results == [answered(1), answered(2), DEFERRED, DEFERRED]
            assert await submit(writer, 5) == [answered(5)]
        assert switch.attempts == 1

    run(test())


def test_a_stop_during_the_last_batch_reaches_whom_it_defers() -> None:
    """What a batch leaves to the classifier is refused at once where the release has stopped."""

    async def test() -> None:
        answerer = ScriptedAnswerer(switches_at=1)
        answerer.gate.clear()
        stopped = IntegrityError("the ledger is not what was written")
        async with running(writer_of(answerer)) as writer:
            waiting = submitting(writer, 1, 2)
            await until(lambda: len(answerer.batches) == 1)
            writer.stop(stopped)
            answerer.gate.set()
            with pytest.raises(IntegrityError, match="not what was written"):
                await asyncio.wait_for(waiting, SWITCH_WAIT_SECONDS / 3)
            assert writer.waiting_count == 0

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
            results = await submit(writer, 1, 2)
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
            assert await submit(writer, 1) == [answered(1)]
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
                assert await submit(writer, 1, 2) == [answered(1), DEFERRED]
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
                await submit(writer, 1, 2)
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
            assert await submit(writer, 1) == [answered(1)]
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
                await submit(writer, 1)
        await writer.close()

    run(test())
