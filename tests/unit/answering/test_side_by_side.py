"""Queries that come side by side, as a stream's lines do, get what they get one by one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.answering.queries import Asker, Queries
from app.data.vectors import replay_key
from app.errors import BudgetExhaustedError
from tests.builders.release.served import run, serving
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, ask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


WINDOWS = ((9, -9, 20), (9, 20, 20, 15, -20, 30), (9, -9, 44))


def window(margins: Sequence[int], asker: Asker | None = None) -> Queries:
    """Return queries as a stream's lines become."""
    return Queries.plain([replay_key(ask(margin).vector) for margin in margins], asker)


def released(folder: Path) -> SmallRelease:
    """Return a release in a folder of its own."""
    folder.mkdir()
    return SmallRelease(folder)


async def told(
    release: SmallRelease, words: Sequence[int], windows: Sequence[Queries]
) -> list[object]:
    """Return what is told of windows, refusals by their words."""
    async with serving(release, words) as service:
        given = [each for asked in windows for each in await service.answer_many(asked)]
    return [str(each) if isinstance(each, Exception) else each for each in given]


@pytest.mark.parametrize(
    ("words", "asker"),
    [([], None), ([HIT], Asker("web")), ([HIT, HIT], None), ([], Asker("web", answer_limit=2))],
    ids=["to the classifier", "a hit", "halted", "a limit"],
)
def test_each_gets_what_it_gets_alone(
    tmp_path: Path, words: list[int], asker: Asker | None
) -> None:
    """In every phase: new, recorded, repeated, refused, and left to the classifier."""

    async def test() -> None:
        drawn = [*words, *[STABLE] * 9]
        releases = [released(tmp_path / name) for name in ("one", "other")]
        windows = [window(margins, asker) for margins in WINDOWS]
        one_by_one = [window([each], asker) for margins in WINDOWS for each in margins]
        together = await told(releases[0], drawn, windows)
        assert together == await told(releases[1], drawn, one_by_one)

    run(test())


def test_parts_of_callers_join_one_batch(tmp_path: Path) -> None:
    """A window and queries of others are decided together in order, and each gets its own."""

    async def test() -> None:
        async with serving(
            released(tmp_path / "one"), [STABLE, HIT, STABLE, HIT, STABLE]
        ) as service:
            alone, several, last = await asyncio.gather(
                service.answer_many([ask(9)]),
                service.answer_many(window([9, -9, 20])),
                service.answer_many([ask(30), ask(31)]),
            )
        numbers = [getattr(each, "query_id", None) for each in [*alone, *several, *last]]
        assert numbers == [1, 1, 2, 3, 4, None]
        assert isinstance(last[1], BudgetExhaustedError)

    run(test())
