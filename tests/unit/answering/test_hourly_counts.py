"""Answers are counted by kind, by second for rates, and by hour for a history in the ledger.

The history survives restarts, adds up over servers, and is bounded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.answering.hourly_counts import (
    ANSWER_KINDS,
    CLASSIFIED,
    FRESH,
    HOUR_SECONDS,
    RATE_SECONDS_MAX,
    REPEATED,
    AnswerCounts,
    Hourly,
)
from app.errors import LedgerUnavailableError
from app.ledger.database.hour_counts import HOURS_MAX, HourCounts
from app.ledger.verification import verify
from tests.builders.ledger.releases import create, open_release
from tests.builders.release.served import run, serving
from tests.builders.release.small_release import HIT, STABLE, ask
from tests.builders.server.serving import Served
from tests.http.end_to_end.test_generations import AGREED, Life

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from tests.builders.release.small_release import SmallRelease


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        """Start at zero."""
        self.seconds = 0.0

    def __call__(self) -> float:
        """Return them."""
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    """Return a clock at zero."""
    return Clock()


def counted(clock: Clock, seconds: Iterator[int], kind: str = FRESH) -> AnswerCounts:
    """Return counts to which two answers were added in each second."""
    counts = AnswerCounts(clock)
    for second in seconds:
        clock.seconds = second + 0.5
        counts.add(kind, 2)
    return counts


def test_each_kind_is_counted_by_itself(clock: Clock) -> None:
    """What one kind is given changes no other."""
    counts = AnswerCounts(clock)
    counts.add(REPEATED, 3)
    counts.add(CLASSIFIED, 5)
    counts.add(REPEATED, 1)
    assert [counts.count(kind) for kind in ANSWER_KINDS] == [0, 4, 5]


def test_a_rate_is_the_mean_of_its_window(clock: Clock) -> None:
    """Two a second for a minute are two a second over ten seconds, and over the minute."""
    counts = counted(clock, iter(range(60)))
    assert counts.per_second(FRESH, window_seconds=10) == 2
    assert counts.per_second(FRESH, window_seconds=RATE_SECONDS_MAX) == pytest.approx(120 / 59)
    assert counts.per_second(REPEATED, window_seconds=10) == 0


def test_a_rate_falls_while_nothing_is_asked(clock: Clock) -> None:
    """What was given before the window does not count, also where nothing came since."""
    counts = counted(clock, iter(range(60)))
    clock.seconds = 64.9
    assert counts.per_second(FRESH, window_seconds=10) == 1
    clock.seconds = 69.0
    assert counts.per_second(FRESH, window_seconds=10) == 0


def test_a_rate_before_the_window_is_full_is_of_the_time_since_the_start(clock: Clock) -> None:
    """In the first second a rate is over one second."""
    counts = AnswerCounts(clock)
    counts.add(FRESH, 6)
    assert counts.per_second(FRESH, window_seconds=10) == 6
    clock.seconds = 3.0
    assert counts.per_second(FRESH, window_seconds=10) == 2


def test_the_longest_window_is_kept_and_no_more(clock: Clock) -> None:
    """An hour of answers leaves as many seconds as the longest window, and its rate is true."""
    counts = counted(clock, iter(range(3600)))
    assert counts.per_second(FRESH, window_seconds=RATE_SECONDS_MAX) == 2
    assert len(counts._ends) == RATE_SECONDS_MAX + 1


def test_a_service_counts_what_it_gives(small_release: SmallRelease) -> None:
    """New, repeated and the classifier's, in one call or part by part; a refusal is none."""

    async def test() -> None:
        async with serving(small_release, [STABLE, HIT, STABLE, STABLE]) as service:

            def given() -> list[int]:
                answers = service.workload().answers
                return [answers.count(kind) for kind in ANSWER_KINDS]

            await service.answer_many([ask(9, "k"), ask(-9), ask(9), ask(3, "k")])
            assert given() == [2, 1, 0]
            parts = service.answer_in_turn([ask(9), ask(30), ask(-30), ask(45)])
            assert sum([len(part) async for part in parts]) == 4
            assert given() == [4, 2, 1]
            await service.answer_many([ask(45), ask(9), ask(9, "k")])
            assert given() == [4, 3, 3]

    run(test())


def opened(path: Path) -> Ledger:
    """Return the ledger of an open release."""
    ledger = create(path)
    open_release(ledger)
    return ledger


def asked(history: object) -> list[tuple[int, ...]]:
    """Return the hours of a document, each with its counts."""
    assert isinstance(history, dict)
    return [tuple(each.values()) for each in history["hours"]]


def test_a_history_survives_restarts(tmp_path: Path) -> None:
    """Requests of before and after are in one row of their hour, over HTTP; the ledger verifies."""
    life = Life(tmp_path)
    for place in range(2):
        with Served(life.settings, clock=lambda: life.now) as served:
            vector = life.near(AGREED)
            for _ in range(2):
                served.query(vector)
            served.query(["far"])
            history = served.get("/budget/history").json()
            assert asked(history) == [(int(life.now), *((place + 1) * n for n in (1, 0, 1, 0, 1)))]
    life.now += HOUR_SECONDS
    with Served(life.settings, clock=lambda: life.now) as served:
        served.stream([life.near(AGREED), ["far"]])
        times = [each[0] for each in asked(served.get("/budget/history").json())]
        assert times == [int(life.now) - HOUR_SECONDS, int(life.now)]
    assert [entry["kind"] for entry in life.entries()].count("AnswersReleased") > 0


def test_servers_of_one_ledger_add_up(tmp_path: Path) -> None:
    """What one has written and what the other has yet to write are one count."""
    ledger = opened(tmp_path / "shared.db")
    one, other = (Hourly(ledger, lambda: 7.5 * HOUR_SECONDS) for _ in range(2))
    one.add("fresh", 3, unstable=1)
    asyncio.run(one.write())
    asyncio.run(one.write())  # once only
    other.add("fresh", 2)
    other.add("classified", 4)
    shown = asked(asyncio.run(other.document()))
    assert shown == [(7 * HOUR_SECONDS, 5, 1, 0, 4, 0)]
    asyncio.run(other.write())
    assert ledger.hour_counts() == {7: HourCounts(5, 1, 0, 4, 0)}
    verify(ledger)


def test_old_hours_are_forgotten(tmp_path: Path) -> None:
    """As many as are kept stay, the newest."""
    ledger = opened(tmp_path / "old.db")
    ledger.add_hours({hour: HourCounts(1) for hour in range(1, HOURS_MAX + 1)})
    assert len(ledger.hour_counts()) == HOURS_MAX
    ledger.add_hours({HOURS_MAX + 2: HourCounts(1)})
    assert min(ledger.hour_counts()) == 3


def test_what_the_ledger_does_not_take_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost and nothing counted twice."""
    ledger = opened(tmp_path / "away.db")
    hourly = Hourly(ledger, lambda: 0.0)
    hourly.add("repeated", 2)
    with monkeypatch.context() as away:

        def refuse(_: object) -> None:
            raise LedgerUnavailableError("away")

        away.setattr(ledger, "add_hours", refuse)
        asyncio.run(hourly.write())
    hourly.add("repeated", 1)
    asyncio.run(hourly.write())
    assert ledger.hour_counts() == {0: HourCounts(repeated=3)}
