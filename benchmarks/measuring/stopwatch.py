"""The time from `VOTE` to `COMMIT` of single queries, measured around the serving code."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.answering.answer_query import Edge, Step
from app.answering.queries import Fresh, Query, in_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from app.answering.answer_query import QueryAnswerer
    from benchmarks.measuring.margins import Kind, Margins

NANO: Final = 1e-9
MOMENTS: Final = {
    (Step.VOTE, Edge.BEFORE): "started",
    (Step.VOTE, Edge.AFTER): "voted",
    (Step.COMMIT, Edge.BEFORE): "decided",
    (Step.COMMIT, Edge.AFTER): "committed",
}


@dataclass(slots=True)
class Stopwatch:
    """An observer that notes when each step of the newest batch began and ended."""

    moments: dict[str, int] = field(default_factory=dict)

    def __call__(self, step: Step, edge: Edge) -> None:
        """Note the moment, in nanoseconds."""
        name = MOMENTS.get((step, edge))
        if name is not None:
            self.moments[name] = time.perf_counter_ns()


@dataclass(frozen=True, slots=True)
class Timed:
    """One query's times, in seconds from the beginning of `VOTE`.

    Attributes:
        kind: what its votes are like.
        stable: what it was answered.
        voted: until all models were evaluated, padding included.
        decided: until the answer was in the transaction.
        committed: until the commit was durable.

    """

    kind: Kind
    stable: bool
    voted: float
    decided: float
    committed: float


def shuffled(kinds: Sequence[Kind], count: int) -> list[Kind]:
    """Return each kind ``count`` times, in an order that the system's generator gives."""
    order = [kind for kind in kinds for _ in range(count)]
    random.SystemRandom().shuffle(order)
    return order


def time_queries(
    answerer: QueryAnswerer,
    margins: Margins,
    kinds: Iterable[Kind],
    *,
    first_number: int = 0,
    told: Callable[[int], None] = lambda _: None,
) -> list[Timed]:
    """Ask one fresh query a batch, in the order of ``kinds``, and time each.

    Args:
        answerer: of an open release; its observer gives way to the stopwatch.
        margins: where its kinds are.
        kinds: one a query.
        first_number: of the first vector, so that none is asked twice.
        told: how many are done, after each.

    """
    stopwatch = Stopwatch()
    answerer.observe = stopwatch
    timed: list[Timed] = []
    for number, kind in enumerate(kinds, start=first_number):
        query = Query(margins.vector(kind, number))
        (decision,) = answerer.answer_batch(answerer.identify(in_columns([query])))
        if not isinstance(decision, Fresh):
            message = "the ensemble answers every query that is timed"
            raise TypeError(message)
        timed.append(_timed(kind, stopwatch.moments, stable=decision.recorded.stable))
        told(len(timed))
    return timed


def _timed(kind: Kind, moments: dict[str, int], *, stable: bool) -> Timed:
    started = moments["started"]
    voted, decided, committed = (
        (moments[name] - started) * NANO for name in ("voted", "decided", "committed")
    )
    return Timed(kind, stable=stable, voted=voted, decided=decided, committed=committed)
