"""The writer opens the statistics table: once, again where the ledger fails, or never."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from app.answering import writer as writer_module
from app.answering.answer_query import CONTAINED
from app.errors import ContainedError, IntegrityError, InvariantError, LedgerUnavailableError
from tests.builders.release.scripted_answerer import ScriptedAnswerer, answered, writer_of
from tests.builders.release.writer_calls import run, running, submit, until

if TYPE_CHECKING:
    from app.answering.batch_decisions import Decision
    from app.answering.queries import IdentifiedQueries


@dataclass
class Table:
    """Opens at the test's word, or fails as told from the front."""

    answerer: ScriptedAnswerer
    failures: list[Exception] = field(default_factory=list)
    attempts: int = 0

    def __call__(self) -> None:
        """Open it."""
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        self.answerer.release.must_open_statistics = False


@dataclass
class LastAnswer(ScriptedAnswerer):
    """Has given its last answer once a batch was answered."""

    def answer_batch(self, queries: IdentifiedQueries) -> list[Decision]:
        """Answer, and let the table be due."""
        decisions = super().answer_batch(queries)
        self.release.must_open_statistics = True
        return decisions


def test_the_table_opens_after_the_last_answer() -> None:
    """Once, on the writer's thread, and everybody who watches the budget is told."""
    told: list[bool] = []

    async def test() -> None:
        answerer = LastAnswer()
        table = Table(answerer)
        writer = writer_of(answerer, open_statistics=table, on_change=lambda: told.append(True))
        async with running(writer):
            assert await submit(writer, 1) == [answered(1)]
            await until(lambda: table.attempts == 1 and len(told) == 2)
        assert table.attempts == 1

    run(test())


def test_a_restart_takes_up_what_was_not_released() -> None:
    """A writer that starts where the table is due opens it, unasked."""

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.release.must_open_statistics = True
        table = Table(answerer)
        async with running(writer_of(answerer, open_statistics=table)):
            await until(lambda: not answerer.release.must_open_statistics)
        assert table.attempts == 1

    run(test())


def test_a_ledger_that_fails_postpones_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again until it is committed; one line is logged each time."""
    monkeypatch.setattr(writer_module, "SWITCH_RETRY_SECONDS", 0.01)

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.release.must_open_statistics = True
        table = Table(answerer, [LedgerUnavailableError("later")] * 2)
        with capture_logs() as logs:
            async with running(writer_of(answerer, open_statistics=table)):
                await until(lambda: not answerer.release.must_open_statistics)
        assert table.attempts == 3
        postponed = {"event": "statistics_postponed", "error": "LedgerUnavailableError"}
        assert logs == [{**postponed, "log_level": "warning"}] * 2

    run(test())


@pytest.mark.parametrize(
    ("failure", "text"),
    [(InvariantError("broken"), "broken"), (RuntimeError("41 rows of Bob"), CONTAINED)],
)
def test_what_must_not_happen_stops_the_release(failure: Exception, text: str) -> None:
    """Nothing more is answered, and a text that may be private is replaced."""
    stopped: list[IntegrityError] = []

    async def test() -> None:
        answerer = ScriptedAnswerer()
        answerer.release.must_open_statistics = True
        table = Table(answerer, [failure])
        writer = writer_of(answerer, open_statistics=table, on_stop=stopped.append)
        async with running(writer):
            await until(lambda: bool(stopped))
            with pytest.raises(IntegrityError):
                await submit(writer, 1)

    run(test())
    (error,) = stopped
    assert str(error) == text
    assert isinstance(error, (InvariantError, ContainedError))
