"""Faulty rules of a release with generations, each a double of a few lines.

``python -m tests.audit.planted.planted_generations`` prints the table of docs/audit.md: what the
exact worst case and the conditions find in each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

from app.auditing.generations.adversary_game import LivingGame
from app.auditing.generations.generation_rules import (
    AT_A_FLIP,
    BY_ONE,
    HITS_ARE_PAID,
    Rules,
    Standing,
    broken_rules,
)
from app.auditing.generations.worst_case import WorstCase
from app.privacy.stability.hit_table import calibrate
from app.privacy.voting.votes import tally_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EPSILON: Final = Fraction(1)
DELTA: Final = Fraction(1, 1000)
VOTES: Final = 48
DEPTH: Final = 7
"""Moves of the adversaries who prove a fault."""
MOVES_MAX: Final = 60
"""Moves of the adversaries who are covered, of whom the last gain less than can be told."""
LETTERS: Final = {HITS_ARE_PAID: "c", BY_ONE: "d", AT_A_FLIP: "e"}


@dataclass(frozen=True)
class CountersResetAtAJoin(Rules):
    """All counters start anew when a generation joins."""

    def events(self, standing: Standing) -> list[Standing]:
        """Return the joining of the next, with counters at 0."""
        none = (0,) * self.generation_count
        return [replace(event, hits=none) for event in super().events(standing)]


@dataclass(frozen=True)
class CountersLostAtARestart(Rules):
    """Counters are kept in memory only; a restart, or a tick, forgets them."""

    def events(self, standing: Standing) -> list[Standing]:
        """Return the joining of the next, and a restart."""
        forgot = replace(standing, hits=(0,) * self.generation_count)
        return [*super().events(standing), forgot]


@dataclass(frozen=True)
class OneCounterForAll(Rules):
    """T hits of all together retire the oldest, and the count starts anew for the rest."""

    def charged(self, standing: Standing, indices: Sequence[int]) -> Standing:
        """Count one hit of all."""
        if standing.further + 1 < self.cutoffs[0]:
            return replace(standing, further=standing.further + 1)
        retired = list(standing.retired)
        retired[indices[0]] = True
        return replace(standing, retired=tuple(retired), further=0)


@dataclass(frozen=True)
class NewestIsCharged(Rules):
    """A hit is charged to the newest generation only."""

    def charged(self, standing: Standing, indices: Sequence[int]) -> Standing:
        """Charge the last one."""
        return super().charged(standing, indices[-1:])


@dataclass(frozen=True)
class OldestIsCharged(Rules):
    """A hit is charged to the oldest generation only."""

    def charged(self, standing: Standing, indices: Sequence[int]) -> Standing:
        """Charge the first one."""
        return super().charged(standing, indices[:1])


@dataclass(frozen=True)
class LargestCutoffForAll(Rules):
    """Every generation has the T of the largest class."""

    def charged(self, standing: Standing, indices: Sequence[int]) -> Standing:
        """Charge all by the largest T."""
        largest = (max(self.cutoffs),) * self.generation_count
        return Rules(self.votes, largest).charged(standing, indices)


@dataclass(frozen=True)
class OneHitMore(Rules):
    """A generation goes on while its count is at most T."""

    def charged(self, standing: Standing, indices: Sequence[int]) -> Standing:
        """Charge all by a T that is one larger."""
        return Rules(self.votes, tuple(each + 1 for each in self.cutoffs)).charged(
            standing, indices
        )


@dataclass(frozen=True)
class RetiredVoteOn(Rules):
    """Those that retire in a batch vote on to its end, ``batch`` queries more."""

    batch: int = 16

    def active(self, standing: Standing) -> tuple[int, ...]:
        """Return all that have joined while the batch lasts."""
        if standing.further:
            return tuple(range(standing.joined))
        return super().active(standing)

    def after(self, standing: Standing, *, is_hit: bool) -> Standing:
        """Charge as ever, and begin or go on with the rest of the batch."""
        following = super().after(standing, is_hit=is_hit)
        hits = tuple(map(min, following.hits, self.cutoffs))
        if standing.further:
            return replace(following, hits=hits, further=standing.further - 1)
        begins = following.retired != standing.retired
        return replace(following, hits=hits, further=self.batch if begins else 0)


@dataclass(frozen=True)
class KeptDrawOfAnotherSet(RetiredVoteOn):
    """A draw whose commit failed is recorded after a generation that voted on it retired."""

    batch: int = 1


@dataclass(frozen=True)
class SumOfDistances(Rules):
    """The distance is the sum of the generations' own."""

    def own(self, active: Sequence[int], ones: Sequence[int]) -> list[int]:
        """Return each generation's own distance."""
        pairs = zip(active, ones, strict=True)
        return [tally_alone([self.votes[each] - count, count]).distance for each, count in pairs]

    def decided(self, active: Sequence[int], ones: Sequence[int]) -> tuple[int, int]:
        """Add distances up."""
        return super().decided(active, ones)[0], sum(self.own(active, ones))


@dataclass(frozen=True)
class LeastDistance(SumOfDistances):
    """The distance is the least of the generations' own."""

    def decided(self, active: Sequence[int], ones: Sequence[int]) -> tuple[int, int]:
        """Take the least."""
        return super().decided(active, ones)[0], min(self.own(active, ones))


@dataclass(frozen=True)
class WeightedByAge(Rules):
    """Votes of the newest generation count twice, and the distance is half of their gap."""

    def decided(self, active: Sequence[int], ones: Sequence[int]) -> tuple[int, int]:
        """Weigh, then count."""
        weights = [1 + (each == active[-1]) for each in active]
        count = sum(weight * one for weight, one in zip(weights, ones, strict=True))
        total = sum(w * self.votes[each] for w, each in zip(weights, active, strict=True))
        tally = tally_alone([total - count, count])
        return tally.plurality, tally.distance


@dataclass(frozen=True)
class Fault:
    """A planted fault.

    Attributes:
        name: for people.
        rules: of votes and cutoffs.
        cutoffs: of two generations, the record's first; None for equal ones.
        votes_moved: by the record.
        slot_count: generations in which a person has a slot, the first ones.

    """

    name: str
    rules: Callable[[tuple[int, ...], tuple[int, ...]], Rules]
    cutoffs: tuple[int, ...] | None = None
    votes_moved: int = 1
    slot_count: int = 1


FAULTS: Final = (
    Fault("none", Rules),
    Fault("a counter that starts anew at a join", CountersResetAtAJoin),
    Fault("a counter that is lost at a restart or tick", CountersLostAtARestart),
    Fault("one counter for all", OneCounterForAll),
    Fault("only the newest is charged", NewestIsCharged),
    Fault("only the oldest is charged", OldestIsCharged),
    Fault("T of the largest class for all (1 and 2)", LargestCutoffForAll, (1, 2)),
    Fault("one hit more than T", OneHitMore),
    Fault("the retired vote to the end of a batch of 16", RetiredVoteOn),
    Fault("a kept draw is recorded under another set", KeptDrawOfAnotherSet),
    Fault("distances of generations added up", SumOfDistances),
    Fault("the least distance of generations", LeastDistance),
    Fault("votes weighted by age, d of half the gap", WeightedByAge),
    Fault("a record in two chunks", Rules, votes_moved=2),
    Fault("a person's later rows in a second generation", Rules, slot_count=2),
)


@dataclass(frozen=True)
class Found:
    """What the audit finds in a fault: letters of conditions, and proved deltas at T of 1 and 2."""

    letters: str
    deltas: tuple[float, float]


@cache
def single_release(cutoff: int, points: int = 400) -> WorstCase[Standing]:
    """Return the worst case of one release of all votes."""
    return _worst(Rules((VOTES,), (cutoff,)), cutoff, record=0, points=points)


def worst_of(
    fault: Fault, cutoff: int, *, generations: int = 4, points: int = 400
) -> WorstCase[Standing]:
    """Return the worst case of a fault, over the generations in which the record may be."""
    cutoffs = fault.cutoffs or (cutoff,) * generations
    rules = fault.rules((VOTES // len(cutoffs),) * len(cutoffs), cutoffs)
    if fault.slot_count > 1:
        return _worst(rules, cutoff, record=0, points=points, also=1)
    records = (0,) if fault.cutoffs else (0, len(cutoffs) - 1)
    made = [
        _worst(rules, max(cutoffs), record=each, points=points, votes_moved=fault.votes_moved)
        for each in records
    ]
    return max(made, key=lambda worst: worst.upper)


def _worst(
    rules: Rules,
    cutoff: int,
    *,
    record: int,
    points: int,
    votes_moved: int = 1,
    also: int | None = None,
) -> WorstCase[Standing]:
    table = calibrate(epsilon=EPSILON, delta=DELTA, cutoff=cutoff).thresholds
    game = LivingGame(rules, table, record, votes_moved, also)
    return WorstCase(game, float(EPSILON), points=points, moves_max=MOVES_MAX)


def letters_of(fault: Fault) -> str:
    """Return the letters of the conditions that a fault breaks, with two generations."""
    cutoffs = fault.cutoffs or (2, 2)
    rules = fault.rules((8, 8), cutoffs)
    broken = broken_rules(rules, votes_moved=fault.votes_moved, slot_count=fault.slot_count)
    return ", ".join(LETTERS[each] for each in broken)


def find(fault: Fault, *, generations: int = 4) -> Found:
    """Return what the audit finds in a fault; with cutoffs of its own, twice the same."""
    deltas = [worst_of(fault, each, generations=generations).lower(DEPTH) for each in (1, 2)]
    return Found(letters_of(fault), (deltas[0], deltas[1]))


def table() -> str:
    """Return the table of docs/audit.md."""
    lines = ["| fault | T = 1 | T = 2 | conditions |", "| --- | --- | --- | --- |"]
    for fault in FAULTS:
        found = find(fault)
        one, two = (f"{delta:.1e}" for delta in found.deltas)
        lines.append(f"| {fault.name} | {one} | {two} | {found.letters} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())  # noqa: T201 -- this is a program
