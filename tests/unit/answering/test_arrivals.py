"""How long a batch waits for those who are likely to ask again."""

from __future__ import annotations

import pytest

from app.answering.queue import Arrivals

QUIET_SECONDS = 0.5


class Clock:
    """A clock that stands until it is set."""

    now = 100.0

    def monotonic(self) -> float:
        """Return what it was set to."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that arrivals are timed by."""
    standing = Clock()
    monkeypatch.setattr("app.answering.queue.time", standing)
    return standing


def test_a_batch_is_complete_with_as_many_as_are_expected(clock: Clock) -> None:
    """One fewer is not enough while the clock stands, and more are."""
    arrivals = Arrivals(1024, QUIET_SECONDS)
    arrivals.expect(3)
    for waiting_count in (1, 2):
        arrivals.note(waiting_count)
        assert not arrivals.are_complete(waiting_count)
    assert arrivals.are_complete(3)
    assert arrivals.are_complete(4)
    assert clock.now == Clock.now


def test_nobody_is_waited_for_who_does_not_come(clock: Clock) -> None:
    """The quiet is counted from the newest query, as a turn of the loop has noted it."""
    arrivals = Arrivals(1024, QUIET_SECONDS)
    arrivals.expect(3)
    arrivals.note(1)
    clock.now += 0.9 * QUIET_SECONDS
    arrivals.note(2)
    clock.now += 0.9 * QUIET_SECONDS
    arrivals.note(2)
    assert not arrivals.are_complete(2)
    clock.now += 0.2 * QUIET_SECONDS
    assert not arrivals.are_complete(2)  # nobody has looked since
    arrivals.note(2)
    assert arrivals.are_complete(2)


def test_the_next_batch_begins_anew(clock: Clock) -> None:
    """Neither the quiet nor the count of one batch tells of the next."""
    arrivals = Arrivals(1024, QUIET_SECONDS)
    arrivals.note(5)
    clock.now += QUIET_SECONDS
    arrivals.note(5)
    assert arrivals.are_complete(5)
    arrivals.expect(6)
    assert not arrivals.are_complete(5)
    arrivals.note(5)
    assert not arrivals.are_complete(5)


def test_no_more_are_expected_than_a_batch_holds(clock: Clock) -> None:
    """However many were answered or wait, a full batch waits for nobody."""
    arrivals = Arrivals(8, QUIET_SECONDS)
    arrivals.expect(20)
    assert arrivals.are_complete(8)
    assert not arrivals.are_complete(7)
    assert clock.now == Clock.now
