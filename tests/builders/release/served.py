"""A small release served without HTTP, and the answers that it may give."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from app.answering.answers import Answer
from app.answering.queries import Queries, in_columns
from app.answering.service import ConclaveService
from app.release.classifier.switch import switch_phase
from app.release.statistics.opening_table import open_statistics
from tests.builders.release.small_release import SmallRelease, VotesByMargin, seeded_noise

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence

    from app.answering.answer_query import QueryAnswerer
    from app.answering.answers import Told
    from app.answering.queries import Query
    from app.errors import IntegrityError

PATIENCE_SECONDS = 120.0


def run(test: Coroutine[None, None, None]) -> None:
    """Run a test on an event loop of its own, for no longer than it may take."""

    async def patiently() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await test

    asyncio.run(patiently())


class RowService(ConclaveService):
    """A service that takes queries row by row too, as tests write them."""

    async def answer_many(self, queries: Queries | Sequence[Query]) -> list[Told]:
        """Answer queries in order; a refusal stands in its query's place."""
        given = queries if isinstance(queries, Queries) else in_columns(queries)
        return await super().answer_many(given)

    def answer_in_turn(self, queries: Queries | Sequence[Query]) -> AsyncIterator[Sequence[Told]]:
        """Answer queries in order, part by part."""
        given = queries if isinstance(queries, Queries) else in_columns(queries)
        return super().answer_in_turn(given)


@asynccontextmanager
async def serving(
    release: SmallRelease,
    words: Iterable[int],
    *,
    stopped: list[IntegrityError] | None = None,
    votes: VotesByMargin | None = None,
    before_switch: Callable[[], object] = object,
) -> AsyncIterator[RowService]:
    """Open a release and serve it without HTTP."""
    answerer: QueryAnswerer = release.answerer(words)
    if votes is not None:
        answerer.release.private_ensemble = votes
    told: list[IntegrityError] = [] if stopped is None else stopped

    def switch() -> None:
        before_switch()
        switch_phase(answerer.release, seeded_noise(4))

    def open_table() -> None:
        before_switch()
        open_statistics(answerer.release, seeded_noise(5))

    service = RowService(
        answerer,
        switch=switch,
        open_statistics=open_table,
        on_stop=told.append,
        pending_queries_max=100,
    )
    service.start()
    try:
        yield service
    finally:
        await service.close()


def fresh(query_id: int, label: str | None = "yes", *, stable: bool = True) -> Answer:
    """Return a fresh answer of the ensemble."""
    return Answer(query_id, label, stable=stable, phase="ensemble", replayed=False)


def replay(query_id: int, label: str | None = "yes", *, stable: bool = True) -> Answer:
    """Return a recorded answer of the ensemble."""
    return Answer(query_id, label, stable=stable, phase="ensemble", replayed=True)


def published(label: str) -> Answer:
    """Return an answer of the published classifier."""
    return Answer(None, label, stable=True, phase="classifier", replayed=False)
