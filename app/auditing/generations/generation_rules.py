"""The public rules by which batches of rows vote and pay; tests replace them by faulty ones.

:class:`Rules` contains the rules of Theorem G (``app/privacy/generations/accounts_proof.md``): all
active generations vote, an unstable answer is charged to each of them, and a generation stops
voting after the last unstable answer that its budget pays for. :func:`broken_rules` checks the
conditions of the proof exactly, by visiting every public state and every count of votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

from app.privacy.voting.votes import tally_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HITS_ARE_PAID: Final = "a generation votes on as many hits as it pays for, at most"
BY_ONE: Final = "one record moves the distance by one at most"
AT_A_FLIP: Final = "the distance is 0 where the label differs"


@dataclass(frozen=True, slots=True)
class Standing:
    """The public state of a release's batches of rows (generations) between two queries.

    Attributes:
        joined: the number of generations that have joined the vote; they join in order.
        hits: the number of unstable answers charged to each generation.
        retired: whether each generation has stopped voting.
        further: a number that correct rules do not use; a faulty rule in a test may store its state
            there.

    """

    joined: int
    hits: tuple[int, ...]
    retired: tuple[bool, ...]
    further: int = 0


@dataclass(frozen=True)
class Rules:
    """The public rules by which batches of rows join, vote and pay in a growing release.

    Attributes:
        votes: the number of votes (models) of each generation.
        cutoffs: the number of unstable answers that each generation can pay for.

    """

    votes: tuple[int, ...]
    cutoffs: tuple[int, ...]

    def start(self) -> Standing:
        """Return the state in which only the first batch of rows has joined the vote."""
        count = len(self.votes)
        return Standing(1, (0,) * count, (False,) * count)

    def active(self, standing: Standing) -> tuple[int, ...]:
        """Return the indices of the generations (batches of rows) whose models vote."""
        return tuple(each for each in range(standing.joined) if not standing.retired[each])

    def events(self, standing: Standing) -> list[Standing]:
        """Return the possible public states after the next batch of rows joins the vote."""
        if standing.joined == len(self.votes):
            return []
        return [Standing(standing.joined + 1, standing.hits, standing.retired, standing.further)]

    def after(self, standing: Standing, *, is_hit: bool) -> Standing:
        """Return the public state of all batches of rows after a stable or an unstable answer."""
        if not is_hit:
            return standing
        return self.charged(standing, self.active(standing))

    def charged(self, standing: Standing, indices: Sequence[int]) -> Standing:
        """Return the state after an unstable answer is charged to each generation that voted.

        Args:
            standing: the public state before the answer.
            indices: the indices of the generations that voted.

        """
        hits, retired = list(standing.hits), list(standing.retired)
        for each in indices:
            hits[each] += 1
            retired[each] = hits[each] >= self.cutoffs[each]
        return Standing(standing.joined, tuple(hits), tuple(retired), standing.further)

    def decided(self, active: Sequence[int], ones: Sequence[int]) -> tuple[int, int]:
        """Return the winning label, and how many votes may change before another label wins.

        Args:
            active: the indices of the generations that vote.
            ones: the number of votes for label 1 in each of these generations.

        """
        count, total = sum(ones), sum(self.votes[each] for each in active)
        tally = tally_alone([total - count, count])
        return tally.plurality, tally.distance

    @cached_property
    def generation_count(self) -> int:
        """The number of batches of rows (generations)."""
        return len(self.votes)


def vote_pairs(
    rules: Rules, active: Sequence[int], slots: Sequence[int], *, votes_moved: int = 1
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield pairs of vote counts for label 1 that differ by the change of one record or person.

    Args:
        rules: the rules, with each generation's number of votes.
        active: the indices of the generations that vote.
        slots: the indices of the generations that contain the record or person; only active
            generations count, and both vote counts are equal if none is active.
        votes_moved: the largest number of votes in a generation that the record can change; 1 if it
            is in one chunk only.

    """
    places = [active.index(each) for each in slots if each in active]
    steps = range(-votes_moved, votes_moved + 1)
    for ones in product(*(range(rules.votes[each] + 1) for each in active)):
        for moved in product(steps, repeat=len(places)):
            other = list(ones)
            for place, step in zip(places, moved, strict=True):
                other[place] += step
            if all(0 <= other[place] <= rules.votes[active[place]] for place in places):
                yield ones, tuple(other)


def broken_rules(rules: Rules, *, votes_moved: int = 1, slot_count: int = 1) -> list[str]:
    """Return the conditions of Theorem G's proof that the rules break; none if all hold.

    Args:
        rules: the rules of which generations vote, which are charged, and when they stop voting.
        votes_moved: the largest number of votes in one generation that a record can change.
        slot_count: the number of generations that contain the same person.

    """
    found, sets = _walked(rules)
    broken = [] if found else [HITS_ARE_PAID]
    by_one, at_a_flip = True, True
    for active in filter(None, sets):
        for slots in combinations(active, min(slot_count, len(active))):
            for one, other in vote_pairs(rules, active, slots, votes_moved=votes_moved):
                (label, distance), (label_other, distance_other) = (
                    rules.decided(active, ones) for ones in (one, other)
                )
                by_one = by_one and abs(distance - distance_other) <= 1
                same = label == label_other
                at_a_flip = at_a_flip and (same or distance == distance_other == 0)
    if not by_one:
        broken.append(BY_ONE)
    if not at_a_flip:
        broken.append(AT_A_FLIP)
    return broken


def _walked(rules: Rules) -> tuple[bool, set[tuple[int, ...]]]:
    """Return whether hits are paid for on every path, and the sets of generations that vote.

    A path knows what entries show: the hits on which each generation voted.
    """
    pending = [(rules.start(), (0,) * rules.generation_count)]
    known, sets = set(pending), set()
    while pending:
        standing, seen = pending.pop()
        active = rules.active(standing)
        sets.add(active)
        if any(seen[each] >= rules.cutoffs[each] for each in active):
            return False, sets
        with_hit = tuple(count + (each in active) for each, count in enumerate(seen))
        following = [(event, seen) for event in rules.events(standing)]
        if active:
            following.append((rules.after(standing, is_hit=False), seen))
            following.append((rules.after(standing, is_hit=True), with_hit))
        pending += [each for each in following if each not in known]
        known.update(following)
    return True, sets
