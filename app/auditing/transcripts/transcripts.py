"""A lower bound on epsilon from everything that the servers of audited releases sent.

The replies of a release are divided into many *channels*: a label, a counter, an error's text, a
header, or everything together. A run gives one *reading* (value) on each channel. Some of the runs
serve to choose an event: the readings of every channel are sorted by how much likelier they are on
one data set than on the other, and the channel and set of readings that would prove the largest
epsilon are chosen. The probabilities of this event are then bounded from the other runs, which had
no part in the choice. So the audit needs no list of the values that may depend on a record, and it
tests only two events, one that is likelier on one data set and one that is likelier on the other,
however many channels there are.

A channel with many different readings separates the runs to which an event was fitted by mere
chance: a clock, for example, shows some seconds on one data set only. So the runs that choose are
divided by time into two halves, and each half tests the events that the other half proposes.
Readings that do not occur in both halves are treated as one reading.

The module also turns received replies into readings; no part of a reply is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from app.auditing.event_bounds import Bound, bounds_shown, detection_limit, largest_shown
from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.auditing.event_bounds import Floats

Transcript: TypeAlias = Mapping[str, str]
"""What was read, by channel; a channel that was silent is absent."""
Sides: TypeAlias = tuple[Sequence[Transcript], Sequence[Transcript]]
"""The transcripts of some runs on each of two neighbours."""
Reading: TypeAlias = tuple[str, str]
"""A channel, and what was read there."""
Counts: TypeAlias = tuple[Counter[str], Counter[str]]
"""How often each reading of a channel came on each of two neighbours."""
Halves: TypeAlias = tuple[Counts, Counts]
"""Those of the earlier runs and those of the later ones."""

BOUNDS_OF_AN_EVENT: Final = 2
ORDERS: Final = ((0, 1), (1, 0))
EVERYTHING: Final = "everything that was read"
OTHER: Final = "what was not read both earlier and later"
SILENT: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Trials:
    """The numbers that turn test runs into a bound: claim, runs and false-alarm probability.

    Attributes:
        epsilon: the claimed epsilon.
        delta: the claimed delta.
        runs: the number of test runs on each data set.
        false_alarm: the probability that the bound exceeds the true epsilon.

    """

    epsilon: float
    delta: float
    runs: int
    false_alarm: float

    @property
    def miss(self) -> float:
        """The probability that an event's true probability lies outside its confidence bound."""
        return self.false_alarm / (len(ORDERS) * BOUNDS_OF_AN_EVENT)

    @property
    def detection_limit(self) -> float:
        """The smallest epsilon above the claim that the audit would detect."""
        return detection_limit(self.epsilon, trials=self.runs, delta=self.delta, miss=self.miss)

    @property
    def largest_shown(self) -> float:
        """The largest lower bound on epsilon that this number of test runs could ever prove."""
        return max(0.0, largest_shown(trials=self.runs, delta=self.delta, miss=self.miss))


@dataclass(frozen=True, slots=True)
class Event:
    """An event that an audit tests: a set of values in one part (channel) of a server's replies."""

    channel: str
    readings: frozenset[str]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The events that an audit looks for in its test runs, chosen from other runs.

    Attributes:
        common: the values that occurred in both halves (earlier and later) of the choosing runs.
        events: two events: one that seems likelier on the first data set, and one that seems
            likelier on the second.

    """

    common: frozenset[Reading]
    events: tuple[Event, ...]

    def seen_in(self, transcript: Transcript) -> tuple[bool, ...]:
        """Return for each chosen event whether it occurred in an audit run."""
        reduced = _reduced(transcript, self.common)
        return tuple(reduced.get(event.channel, SILENT) in event.readings for event in self.events)


def suspect(sides: Sides, trials: Trials) -> Suspicion:
    """Return the events to look for, chosen from audit runs on both data sets.

    Args:
        sides: the runs from which events are chosen, at least one on each data set, in the order
            of time.
        trials: the number of later runs that test the events, with the claim and the false-alarm
            probability.

    """
    earlier, later = (tuple(half) for half in zip(*map(_halved, sides), strict=True))
    common = frozenset(_readings(earlier) & _readings(later))
    halves = [
        [[_reduced(run, common) for run in side] for side in half] for half in (earlier, later)
    ]
    found = {channel for half in halves for side in half for run in side for channel in run}
    channels = [*sorted(found - {EVERYTHING}), EVERYTHING]  # of two that tell alike, the plainer
    by_channel = _first_of_alike({channel: _counted(halves, channel) for channel in channels})
    return Suspicion(common, tuple(_most_telling(by_channel, order, trials) for order in ORDERS))


def _halved(side: Sequence[Transcript]) -> tuple[Sequence[Transcript], Sequence[Transcript]]:
    """Return the earlier and the later half of some runs; one alone is both."""
    middle = len(side) // 2
    return side[:middle] or side, side[middle:]


def _readings(half: Sequence[Sequence[Transcript]]) -> set[Reading]:
    return {reading for side in half for run in side for reading in run.items()}


def _counted(halves: Sequence[Sequence[Sequence[Transcript]]], channel: str) -> Halves:
    """Count the readings of a channel, half by half and side by side."""
    earlier, later = (
        tuple(Counter(run.get(channel, SILENT) for run in side) for side in half) for half in halves
    )
    return (earlier[0], earlier[1]), (later[0], later[1])


def _first_of_alike(by_channel: Mapping[str, Halves]) -> dict[str, Halves]:
    """Leave out every channel that tells what an earlier one tells, in other readings.

    What a channel shows depends on how often its readings occurred, and on their order alone. Most
    channels have one reading in all runs.
    """
    first: dict[tuple[tuple[int, ...], ...], str] = {}
    for channel, halves in by_channel.items():
        sides = [side for half in halves for side in half]
        readings = sorted(set().union(*sides))
        first.setdefault(tuple(tuple(side[each] for each in readings) for side in sides), channel)
    return {channel: by_channel[channel] for channel in first.values()}


def told_by(
    suspicion: Suspicion,
    seen: tuple[Sequence[tuple[bool, ...]], Sequence[tuple[bool, ...]]],
    trials: Trials,
) -> Bound:
    """Return the largest lower bound on epsilon, and the part of the replies that proves it.

    Args:
        suspicion: the events that were chosen from other runs.
        seen: which of the events occurred, for each test run on each of the two data sets.
        trials: the number of test runs, with the claim and the false-alarm probability.

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
    by_channel: Mapping[str, Halves], order: tuple[int, int], trials: Trials
) -> Event:
    """Return the event, chosen by all runs, of the channel that half by half shows most."""
    found = max(by_channel, key=lambda name: _shown_crosswise(by_channel[name], order, trials))
    earlier, later = by_channel[found]
    likely, unlikely = (earlier[side] + later[side] for side in order)
    return Event(found, _best_readings(likely, unlikely, trials))


def _shown_crosswise(halves: Halves, order: tuple[int, int], trials: Trials) -> tuple[float, float]:
    """Return what a channel would show where each half tries what the other one proposes.

    The second number is how far its sides differ, where nothing would show.
    """
    came, asked = np.zeros(2), np.zeros(2)
    for proposing, trying in (halves, halves[::-1]):
        readings = _best_readings(proposing[order[0]], proposing[order[1]], trials)
        came += [sum(trying[side][reading] for reading in readings) for side in order]
        asked += [trying[side].total() for side in order]
    rates = (came + 0.5) / (asked + 1)
    (shown,) = _expected([rates[:1], rates[1:]], trials)
    return float(shown), float(rates[0] - rates[1])


def _best_readings(likely: Counter[str], unlikely: Counter[str], trials: Trials) -> frozenset[str]:
    """Return the readings of a channel that would show most in runs like these."""
    readings = sorted(
        likely.keys() | unlikely.keys(),
        key=lambda reading: ((likely[reading] + 0.5) / (unlikely[reading] + 0.5), reading),
        reverse=True,
    )
    rates = [
        (np.cumsum([side[reading] for reading in readings]) + 0.5) / (side.total() + 1)
        for side in (likely, unlikely)
    ]
    return frozenset(readings[: int(np.argmax(_expected(rates, trials))) + 1])


def _expected(rates: Sequence[Floats], trials: Trials) -> Floats:
    """Return what events of such rates on both sides would show, as often as is expected."""
    counts = (
        np.minimum(np.round(rate * trials.runs), trials.runs).astype(np.int64) for rate in rates
    )
    return bounds_shown(*counts, trials=trials.runs, delta=trials.delta, miss=trials.miss)


DEPTH_MAX = 32


def readings_of(document: object, channel: str) -> dict[str, str]:
    """Return each single value in a JSON document, and the length of every list and text.

    A single value is one that contains no other value: a text, number, truth value or None.

    Args:
        document: a JSON value (mappings, sequences, texts, numbers, truth values and None).
        channel: the part of the replies that contained the document; it begins the name of each
            reading.

    """
    return dict(_leaves(document, channel, DEPTH_MAX))


def _leaves(document: object, channel: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield readings; what is nested too deeply is one of them, whole."""
    if isinstance(document, Mapping) and depth:
        yield f"{channel}, members", repr(list(document))
        for name, member in document.items():
            yield from _leaves(member, f"{channel}.{name}", depth - 1)
    elif isinstance(document, Sequence) and not isinstance(document, str) and depth:
        yield f"{channel}, length", repr(len(document))
        for index, member in enumerate(document):
            yield from _leaves(member, f"{channel}[{index}]", depth - 1)
    else:
        yield channel, repr(document)
        if isinstance(document, str):
            yield f"{channel}, length", repr(len(document))
