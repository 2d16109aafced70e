"""The drain alarm: its fortune does not grow in a fair game, and grows where a budget drains.

Ville's inequality then bounds false alarms: a supermartingale that begins at 1 reaches 100
with probability 1/100 at most, ever.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from app.answering.outlook.drain_alarm import FALSE_ALARM_PROBABILITY, DrainAlarm
from app.errors import InvariantError


class Unscaled(DrainAlarm):
    """A planted fault: a hit pays as if the stake of the bet had not been laid."""

    def note_hit(self, units: int) -> None:
        """Pay the stake back once too often."""
        super().note_hit(units)
        self._logs = self._logs + np.log1p(self._bets)


class Backdated(DrainAlarm):
    """A planted fault: a beginning that is laid after the hit that it counts."""

    def note_hit(self, units: int) -> None:
        """Begin before the hit, on seeing it."""
        self._logs = np.vstack([self._logs, np.zeros((1, self._logs.shape[1]))])
        super().note_hit(units)


def played(alarm: DrainAlarm, *events: int) -> DrainAlarm:
    """Return the alarm after so many stable answers, or a hit where 0 or below."""
    after = copy.copy(alarm)
    for event in events:
        if event > 0:
            after.note_stable(event)
        else:
            after.note_hit(max(1, -event))
    return after


def growth(alarm: DrainAlarm, *, double: float = 0.0) -> float:
    """Return the fortune's expected growth by one fair answer, of which some use two units."""
    hit = alarm.pace / (1 + double)
    one, two, none = played(alarm, -1), played(alarm, -2), played(alarm, 1)
    expected = hit * ((1 - double) * one.fortune + double * two.fortune) + (1 - hit) * none.fortune
    return expected / alarm.fortune


HISTORIES = [(), (5,), (0,), (0, 0, 3), (40, 0, 0, 0, 1), (0, 100, 0, 0, 7, 0)]


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize(("cutoff", "limit"), [(5, 1000), (20, 40), (999, 1000), (700, 100_000)])
@pytest.mark.parametrize("double", [0.0, 0.5])
def test_a_fair_answer_does_not_grow_the_fortune(
    history: tuple[int, ...], cutoff: int, limit: int, double: float
) -> None:
    """Whatever came before, an answer of T/m units on average leaves the fortune as it is."""
    # Exact but for rounding: the sides of a bet are summed, nothing is drawn.
    alarm = played(DrainAlarm(cutoff=cutoff, limit=limit), *history)
    assert growth(alarm, double=double) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("fault", [Unscaled, Backdated])
def test_a_fortune_that_grows_by_itself_is_noticed(fault: type[DrainAlarm]) -> None:
    """The check above fails on alarms that would sound falsely."""
    assert growth(played(fault(cutoff=5, limit=1000), 40, 0)) > 1.001


def test_it_begins_at_one() -> None:
    """Nothing is known before the first answer."""
    alarm = DrainAlarm(cutoff=5, limit=1000)
    assert alarm.fortune == pytest.approx(1)
    assert not alarm.is_raised
    assert alarm.raised_at is None


def test_it_sounds_when_hits_come_tenfold() -> None:
    """A unit every twenty answers, not every two hundred, is told of in time."""
    alarm = DrainAlarm(cutoff=20, limit=4000)
    for _ in range(20):
        if not alarm.is_raised:
            alarm.note_stable(19)
            alarm.note_hit(1)
    assert alarm.is_raised
    assert alarm.raised_at is not None
    assert alarm.raised_at <= 8 * 20


def test_it_hears_a_burst_after_a_long_quiet_time() -> None:
    """Five hits in a row after two thousand stable answers sound, though the mean is low."""
    alarm = DrainAlarm(cutoff=20, limit=4000)
    alarm.note_stable(500)
    alarm.note_hit(1)
    alarm.note_stable(1500)
    for _ in range(5):
        alarm.note_hit(1)
    assert alarm.is_raised
    assert alarm.raised_at is not None
    assert 2001 < alarm.raised_at <= 2001 + 5


def test_it_falls_silent_again() -> None:
    """After long enough without a hit it sounds no more, and says that it did."""
    alarm = played(DrainAlarm(cutoff=20, limit=4000), 0, 0, 0, 0)
    assert alarm.is_raised
    alarm.note_stable(3000)
    assert not alarm.is_raised
    assert alarm.raised_at is not None


def test_it_seldom_sounds_falsely() -> None:
    """Of 2,000 whole releases that keep to their pace no more sound than one in a hundred."""
    # Where exactly one in a hundred would, 2,000 have 20 on average, and 48 or more with
    # probability 6e-8.
    generator = np.random.default_rng(20)
    cutoff, limit = 20, 2000
    sounded = 0
    for _ in range(2000):
        alarm = DrainAlarm(cutoff=cutoff, limit=limit)
        for stable in generator.geometric(cutoff / limit, cutoff) - 1:
            alarm.note_stable(int(stable))
            alarm.note_hit(1)
        sounded += alarm.raised_at is not None
    assert pytest.approx(0.01) == FALSE_ALARM_PROBABILITY
    assert sounded < 48


def test_many_hits_keep_few_beginnings() -> None:
    """A release of ten thousand hits holds no more than 256 beginnings."""
    alarm = DrainAlarm(cutoff=10_000, limit=10**7)
    for _ in range(10_000):
        alarm.note_stable(999)
        alarm.note_hit(1)
    assert len(alarm._logs) <= 256
    assert not alarm.is_raised


def test_a_fortune_without_bounds_is_a_number_still() -> None:
    """Hits without end overflow nothing."""
    alarm = played(DrainAlarm(cutoff=2000, limit=10**6), *[0] * 1500)
    assert alarm.is_raised
    assert alarm.fortune > 1e300


@pytest.mark.parametrize(("cutoff", "limit"), [(0, 10), (10, 10), (11, 10)])
def test_it_watches_only_what_can_drain_early(cutoff: int, limit: int) -> None:
    """Where T answers may be unstable of T or fewer there is no pace to exceed."""
    with pytest.raises(InvariantError):
        DrainAlarm(cutoff=cutoff, limit=limit)
