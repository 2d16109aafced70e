"""A lower bound on epsilon from whole transcripts: everything that left some processes.

A transcript is a reading on each of many channels: a label, a counter, an error's text,
a header, everything together.  On some of the runs the readings of every channel are
ordered by how much likelier they are on one side, and the channel and the readings are
chosen that would show most; their probabilities are bounded on the other runs, which
had no say in the choice.  So no list of what may tell of a record is needed, and however
many channels there are, one event is tested in each order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from app.auditing.confidence import bounds_shown, detection_limit, largest_shown
from app.auditing.events import Bound
from app.errors import invariant

Transcript: TypeAlias = Mapping[str, str]
"""What was read, by channel; a channel that was silent is absent."""
Sides: TypeAlias = tuple[Sequence[Transcript], Sequence[Transcript]]
"""The transcripts of some runs on each of two neighbours."""
Reading: TypeAlias = tuple[str, str]
"""A channel, and what was read there."""

BOUNDS_OF_AN_EVENT: Final = 2
ORDERS: Final = ((0, 1), (1, 0))
EVERYTHING: Final = "everything that was read"
OTHER: Final = "what was read in one run only"
SILENT: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Trials:
    """How the runs that are tested are turned into a bound.

    Attributes:
        epsilon: claimed.
        delta: claimed.
        runs: on each side.
        false_alarm: probability that the bound is above the truth.

    """

    epsilon: float
    delta: float
    runs: int
    false_alarm: float

    @property
    def miss(self) -> float:
        """Probability with which one proportion leaves its bound."""
        return self.false_alarm / (len(ORDERS) * BOUNDS_OF_AN_EVENT)

    @property
    def detection_limit(self) -> float:
        """The smallest epsilon that would show as more than the claim."""
        return detection_limit(self.epsilon, trials=self.runs, delta=self.delta, miss=self.miss)

    @property
    def largest_shown(self) -> float:
        """The most that any process could show."""
        return max(0.0, largest_shown(trials=self.runs, delta=self.delta, miss=self.miss))


@dataclass(frozen=True, slots=True)
class Event:
    """Some readings of one channel."""

    channel: str
    readings: frozenset[str]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is looked for in the runs that are tested, as other runs have chosen it.

    Attributes:
        common: what was read in more than one of those.
        events: one for each order of the sides.

    """

    common: frozenset[Reading]
    events: tuple[Event, ...]

    def seen_in(self, transcript: Transcript) -> tuple[bool, ...]:
        """Return for each event whether it came."""
        reduced = _reduced(transcript, self.common)
        return tuple(reduced.get(event.channel, SILENT) in event.readings for event in self.events)


def suspect(sides: Sides, trials: Trials) -> Suspicion:
    """Choose what to look for.

    Args:
        sides: the runs that choose, at least one on each side.
        trials: the runs that will be looked at.

    """
    counts = Counter(reading for side in sides for run in side for reading in run.items())
    common = frozenset(reading for reading, count in counts.items() if count > 1)
    reduced = tuple([_reduced(run, common) for run in side] for side in sides)
    found = {channel for side in reduced for run in side for channel in run}
    channels = [*sorted(found - {EVERYTHING}), EVERYTHING]  # of two that tell alike, the plainer
    by_channel = {
        channel: tuple(Counter(run.get(channel, SILENT) for run in side) for side in reduced)
        for channel in channels
    }
    return Suspicion(common, tuple(_most_telling(by_channel, order, trials) for order in ORDERS))


def told_by(
    suspicion: Suspicion,
    seen: tuple[Sequence[tuple[bool, ...]], Sequence[tuple[bool, ...]]],
    trials: Trials,
) -> Bound:
    """Return the largest lower bound on epsilon, and the channel that shows it.

    Args:
        suspicion: what was looked for, which other runs have chosen.
        seen: for each run on each side which events came.
        trials: as many runs on each side.

    """
    invariant(all(len(side) == trials.runs for side in seen), "as many runs as were planned")
    found = Bound(0.0, "no channel tells")
    for number, (likely, unlikely) in enumerate(ORDERS):
        counts = (np.array([sum(run[number] for run in seen[side])]) for side in (likely, unlikely))
        shown = bounds_shown(*counts, trials=trials.runs, delta=trials.delta, miss=trials.miss)
        found = max(found, Bound(float(shown[0]), suspicion.events[number].channel))
    return found


def _reduced(transcript: Transcript, common: frozenset[Reading]) -> Transcript:
    """Put one reading in place of all that are not common, and add that of everything."""
    reduced = {
        channel: reading if (channel, reading) in common else OTHER
        for channel, reading in transcript.items()
    }
    return {**reduced, EVERYTHING: repr(sorted(reduced.items()))}


def _most_telling(
    by_channel: Mapping[str, tuple[Counter[str], ...]], order: tuple[int, int], trials: Trials
) -> Event:
    """Return the event that would show most if the tested runs were like these."""
    events = [
        _best_of(channel, sides[order[0]], sides[order[1]], trials)
        for channel, sides in by_channel.items()
    ]
    return max(events, key=lambda found: found[0])[1]


def _best_of(
    channel: str, likely: Counter[str], unlikely: Counter[str], trials: Trials
) -> tuple[tuple[float, float], Event]:
    """Return a channel's best event, with what it would show and how far its sides differ."""
    readings = sorted(
        likely.keys() | unlikely.keys(),
        key=lambda reading: ((likely[reading] + 0.5) / (unlikely[reading] + 0.5), reading),
        reverse=True,
    )
    rates = [
        (np.cumsum([side[reading] for reading in readings]) + 0.5) / (side.total() + 1)
        for side in (likely, unlikely)
    ]
    expected = (
        np.minimum(np.round(rate * trials.runs), trials.runs).astype(np.int64) for rate in rates
    )
    shown = bounds_shown(*expected, trials=trials.runs, delta=trials.delta, miss=trials.miss)
    best = int(np.argmax(shown))
    apart = float(rates[0][best] - rates[1][best])
    return (float(shown[best]), apart), Event(channel, frozenset(readings[: best + 1]))
