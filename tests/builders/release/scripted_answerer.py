"""An answerer that decides at the test's word, so that the writer is tested alone."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from app.answering.batch_decisions import DEFERRED
from app.answering.writer import Writer
from app.data.vectors import decode_key
from app.ledger.ledger import RecordedAnswer
from tests.builders.release.small_release import ask, identified

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.answering.answer_query import Edge, QueryAnswerer, Step
    from app.answering.batch_decisions import Decision
    from app.answering.queries import IdentifiedQueries
    from app.errors import IntegrityError

PATIENCE_SECONDS = 120.0
"""Longest wait of a test for something that is bound to happen."""


@dataclass
class ScriptedRelease:
    """Says whether the release is switching, and whether its table is to be drawn."""

    is_shared = False

    is_switching: bool = False
    must_open_statistics: bool = False


@dataclass
class ScriptedAnswerer:
    """Answers every query with its margin as number, or raises what it is told to.

    Attributes:
        failures: raised by the next batches, from the front; None answers.
        gate: closed, it holds a batch on the writer's thread.
        batches: the margins of every batch that was taken.
        switches_at: the margin at whose answer the switch begins.
        told: how many batches had been taken at each time that the log was to be written.

    """

    release: ScriptedRelease = field(default_factory=ScriptedRelease)
    failures: list[Exception | None] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    batches: list[list[int]] = field(default_factory=list)
    switches_at: int | None = None
    threads: set[str] = field(default_factory=set)
    told: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open the gate."""
        self.gate.set()

    def answer_batch(self, queries: IdentifiedQueries) -> list[Decision]:
        """Answer in order; queries after the one that switches are deferred."""
        self.threads.add(threading.current_thread().name)
        margins = margins_of(queries)
        self.batches.append(margins)
        assert self.gate.wait(PATIENCE_SECONDS)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return [self._decide(margin) for margin in margins]

    def _decide(self, margin: int) -> Decision:
        if self.release.is_switching:
            return DEFERRED
        self.release.is_switching = margin == self.switches_at
        return answered(margin)

    def observe(self, step: Step, edge: Edge) -> None:
        """Observe nothing."""

    def tell_committed(self) -> None:
        """Note that the log was to be written."""
        self.told.append(len(self.batches))


@dataclass
class Switch:
    """Publishes at the test's word.

    Attributes:
        failures: raised by the next attempts, from the front.
        gate: closed, it holds the switch on the writer's thread.
        attempts: how often it was begun.

    """

    answerer: ScriptedAnswerer
    failures: list[Exception] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    attempts: int = 0

    def __post_init__(self) -> None:
        """Open the gate."""
        self.gate.set()

    def __call__(self) -> None:
        """Publish, or fail as told."""
        self.attempts += 1
        assert self.gate.wait(PATIENCE_SECONDS)
        if self.failures:
            raise self.failures.pop(0)
        self.answerer.release.is_switching = False


def margins_of(queries: IdentifiedQueries) -> list[int]:
    """Return the margins of queries of ours."""
    margins = [decode_key(vector)[0] for vector in queries.vectors]
    return [int(margin) for margin in margins if isinstance(margin, float)]


def answered(margin: int) -> RecordedAnswer:
    """Return what a query of that margin is answered with."""
    return RecordedAnswer(margin, 1, stable=True)


def queries(*margins: int) -> IdentifiedQueries:
    """Return a query for each margin."""
    return identified([ask(margin) for margin in margins])


def writer_of(
    answerer: ScriptedAnswerer,
    switch: Switch | None = None,
    *,
    open_statistics: Callable[[], None] = lambda: None,
    on_change: Callable[[], None] = lambda: None,
    on_stop: Callable[[IntegrityError], None] = lambda _: None,
    pending_queries_max: int = 10_000,
) -> Writer:
    """Return a writer around a scripted answerer; its loop must be running."""
    return Writer(
        answerer=cast("QueryAnswerer", answerer),
        switch=switch or Switch(answerer),
        open_statistics=open_statistics,
        on_change=on_change,
        on_stop=on_stop,
        pending_queries_max=pending_queries_max,
    )
