"""The one writer: batches in order of arrival, refusals, and a bounded queue."""

from __future__ import annotations

import asyncio
from itertools import chain

import pytest
from structlog.testing import capture_logs

from app.answering import writer as writer_module
from app.answering.answer_query import CONTAINED
from app.answering.writer import BATCH_QUERIES_MAX, QUEUE_FULL
from app.errors import (
    ContainedError,
    IntegrityError,
    InvariantError,
    LedgerUnavailableError,
    UnavailableError,
)
from tests.builders.release.scripted_answerer import (
    PATIENCE_SECONDS,
    ScriptedAnswerer,
    answered,
    writer_of,
)
from tests.builders.release.writer_calls import run, running, submit, submitting, texts, until


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


def test_queries_that_are_being_read_share_a_batch() -> None:
    """Callers whose queries come in turns of the loop one after another are decided together."""

    async def test() -> None:
        answerer = ScriptedAnswerer()

        async def after_turns(turns: int) -> list[object]:
            for _ in range(turns):
                await asyncio.sleep(0)
            return list(await submit(writer, turns))

        async with running(writer_of(answerer)) as writer:
            await asyncio.gather(*(after_turns(turns) for turns in range(1, 6)))
        assert answerer.batches == [[1, 2, 3, 4, 5]]

    run(test())


def test_who_was_answered_together_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is decided once as many have come as were answered, and not before."""
    monkeypatch.setattr(writer_module, "QUIET_SECONDS", PATIENCE_SECONDS / 2)

    async def test() -> None:
        answerer = ScriptedAnswerer()
        writer = writer_of(answerer)
        writer._arrivals.expect(3)
        async with running(writer):
            waiting = [submitting(writer, 1, 2)]
            await asyncio.sleep(0.02)
            assert not answerer.batches
            waiting.append(submitting(writer, 3))
            await asyncio.gather(*waiting)
            waiting = [submitting(writer, 4), submitting(writer, 5)]
            await asyncio.sleep(0.02)
            waiting.append(submitting(writer, 6, 7))
            await asyncio.gather(*waiting)
        assert answerer.batches == [[1, 2, 3], [4, 5, 6, 7]]

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
            assert await submit(writer) == []
        assert answerer.batches == []

    run(test())


def test_subscribers_learn_of_every_commit() -> None:
    """The change is told once a batch, after its callers have their answers."""

    async def test() -> None:
        changes: list[int] = []
        answerer = ScriptedAnswerer()
        writer = writer_of(answerer, on_change=lambda: changes.append(len(answerer.batches)))
        async with running(writer):
            await submit(writer, 1)
            await submit(writer, 2, 3)
        assert changes == [1, 2]

    run(test())


def test_commits_are_logged_together_a_moment_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is written between two queries of one client, and none is left at the end."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        async with running(writer_of(answerer)) as writer:
            monkeypatch.setattr(writer_module, "TELL_SECONDS", PATIENCE_SECONDS)
            await submit(writer, 1)
            await submit(writer, 2)
            assert answerer.told == []
        assert answerer.told == [2]
        monkeypatch.setattr(writer_module, "TELL_SECONDS", 0.0)
        async with running(writer_of(answerer)) as writer:
            await submit(writer, 3)
            await until(lambda: answerer.told == [2, 3])

    run(test())


def test_a_failed_commit_is_told_to_its_batch_alone() -> None:
    """Callers of the batch get the refusal in each place; the next batch is decided."""

    async def test() -> None:
        answerer = ScriptedAnswerer(failures=[LedgerUnavailableError("no commit")])
        async with running(writer_of(answerer)) as writer:
            refused = await submitting(writer, 1, 2)
            assert texts(refused, LedgerUnavailableError) == ["no commit"] * 2
            assert await submit(writer, 3) == [answered(3)]

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
                await submit(writer, 3)
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
                await submit(writer, 1)

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
            assert await submit(writer, 6) == [answered(6)]
        assert answerer.batches == [[1], [2, 3, 4], [6]]

    run(test())


def test_one_caller_is_never_too_many() -> None:
    """Where nothing waits a caller's queries are taken together, so that none starves."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        async with running(writer_of(answerer, pending_queries_max=1)) as writer:
            assert len(await submit(writer, 1, 2, 3)) == 3
        assert answerer.batches == [[1, 2, 3]]

    run(test())


def test_who_asks_alone_is_not_kept_waiting() -> None:
    """After a batch of one, during which nobody came, a query is decided as it comes."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        async with running(writer_of(answerer)) as writer:
            await submit(writer, 1)
            alone = submitting(writer, 2)
            # Who comes so many turns later would share its batch if it waited for quiet turns.
            for _ in range(3):
                await asyncio.sleep(0)
            await asyncio.gather(alone, submitting(writer, 3))
        assert answerer.batches == [[1], [2], [3]]

    run(test())
