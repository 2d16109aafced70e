"""Answers are counted by kind, and rates are means over whole seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.workload import (
    ANSWER_KINDS,
    CLASSIFIED,
    FRESH,
    RATE_SECONDS_MAX,
    REPEATED,
    AnswerCounts,
)
from tests.builders.release.served import run, serving
from tests.builders.release.small_release import HIT, STABLE, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

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
