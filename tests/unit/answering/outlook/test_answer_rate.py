"""Answers by time: a bounded series, and rates over windows."""

from __future__ import annotations

import pytest

from app.answering.outlook.answer_rate import POINTS_MAX, Pace, Sample
from app.errors import InvariantError


def steady(seconds: int, *, each: int = 1) -> Pace:
    """Return the pace of ``each`` answers every second."""
    pace = Pace(Sample(0, 0, 0))
    for second in range(1, seconds + 1):
        pace.note(Sample(second, each * second, 0))
    return pace


def test_every_second_has_a_point_at_first() -> None:
    """A short history is kept whole; the last counts of a second stand for it."""
    pace = Pace(Sample(0, 7, 1))
    for sample in (Sample(0, 8, 1), Sample(2, 9, 1), Sample(2, 10, 2), Sample(5, 10, 2)):
        pace.note(sample)
    assert pace.points == [Sample(0, 7, 1), Sample(0, 8, 1), Sample(2, 10, 2)]
    assert pace.newest == Sample(2, 10, 2)


@pytest.mark.parametrize("seconds", [241, 1000, 86_400])
def test_a_long_history_is_bounded_and_true(seconds: int) -> None:
    """Points grow coarser; each is what was counted then, first and last are there."""
    pace = steady(seconds, each=3)
    assert len(pace.points) <= POINTS_MAX
    assert pace.points[0] == Sample(0, 0, 0)
    assert pace.points[-1] == Sample(seconds, 3 * seconds, 0)
    assert all(point.answered == 3 * point.second for point in pace.points)
    gaps = [b.second - a.second for a, b in zip(pace.points, pace.points[1:], strict=False)]
    assert max(gaps) <= 2 * pace.step_seconds
    # Half of the room is used at least, so that a day is not shown by a few points.
    assert len(pace.points) > POINTS_MAX // 2 - 2


def test_a_rate_is_that_of_its_window() -> None:
    """Answers of the last ten seconds count over ten, and none before."""
    pace = steady(100)
    pace.note(Sample(101, 150, 0))
    assert pace.answers_per_second(now=101, window_seconds=10) == pytest.approx(59 / 10)
    assert pace.answers_per_second(now=111, window_seconds=10) == 0
    assert pace.answers_per_second(now=300, window_seconds=300) == pytest.approx(0.5)
    assert pace.answers_per_second(now=500, window_seconds=300) == 0


def test_a_rate_of_the_beginning_counts_all() -> None:
    """Before a window has passed, the rate is that of the time since the beginning."""
    pace = Pace(Sample(0, 10, 0))
    pace.note(Sample(0, 70, 0))
    assert pace.answers_per_second(now=0, window_seconds=10) == 60
    assert pace.answers_per_second(now=4, window_seconds=10) == 15


def test_time_does_not_go_back() -> None:
    """The clock that it is told of only goes on."""
    pace = steady(5)
    with pytest.raises(InvariantError):
        pace.note(Sample(4, 9, 0))
