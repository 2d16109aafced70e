"""The privacy game of an adversary against one record, in a release to which rows are added.

The adversary knows all votes except those that the record affects, and chooses all votes before
every query. The adversary also decides when a generation of rows joins, and sees labels and
unstable answers. A random 64-bit number (word) decides whether the answer to a query is unstable; a
table says, for each distance of the query, how many of the ``2**64`` words make the answer
unstable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.auditing.generations.generation_rules import vote_pairs
from app.privacy.stability.table_inequality import WORD_RANGE

if TYPE_CHECKING:
    from app.auditing.generations.generation_rules import Rules, Standing
    from app.auditing.generations.worst_case import Outcome

    Moves = list[list[Outcome[Standing]]]


@dataclass(frozen=True)
class LivingGame:
    """A privacy game: an adversary queries a release to learn about one of its records.

    Attributes:
        rules: the rules of which generations vote, which are charged, and how votes decide.
        thresholds: for each distance (number of votes that may change before another label wins),
            the number of the ``2**64`` random words that make an answer unstable.
        record: the index of the generation that contains the record.
        votes_moved: the largest number of votes that the record can change; 1 if it is in one chunk
            only.
        also: the index of a second generation that contains the same person; None in a correct
            release.

    """

    rules: Rules
    thresholds: tuple[int, ...]
    record: int
    votes_moved: int = 1
    also: int | None = None
    _pairs: dict[tuple[int, ...], set[tuple[int, int, bool]]] = field(default_factory=dict)

    def start(self) -> Standing:
        """Return the public state of the game before the adversary's first move."""
        return self.rules.start()

    def moves(self, state: Standing) -> Moves:
        """Return the adversary's possible moves: queries and public events; none at the end."""
        active = self.rules.active(state)
        if all(state.joined > each and each not in active for each in self._slots):
            return []  # nothing depends on the record any more
        moves: Moves = [[(1.0, 1.0, event)] for event in self.rules.events(state)]
        if active:
            hit = self.rules.after(state, is_hit=True)
            none = self.rules.after(state, is_hit=False)
            moves += [self._query(pair, hit, none) for pair in sorted(self._distances(active))]
        return moves

    @property
    def _slots(self) -> tuple[int, ...]:
        return (self.record,) if self.also is None else (self.record, self.also)

    def _query(
        self, pair: tuple[int, int, bool], hit: Standing, none: Standing
    ) -> list[Outcome[Standing]]:
        distance, distance_other, flips = pair
        p, q = self._hit(distance), self._hit(distance_other)
        if flips:
            return [(p, q, hit), (1 - p, 0.0, none), (0.0, 1 - q, none)]
        return [(p, q, hit), (1 - p, 1 - q, none)]

    def _hit(self, distance: int) -> float:
        return self.thresholds[min(distance, len(self.thresholds) - 1)] / WORD_RANGE

    def _distances(self, active: tuple[int, ...]) -> set[tuple[int, int, bool]]:
        """Return both distances and whether the label differs, of all votes a record exchanges."""
        if active not in self._pairs:
            self._pairs[active] = {
                self._compared(active, one, other)
                for one, other in vote_pairs(
                    self.rules, active, self._slots, votes_moved=self.votes_moved
                )
            }
        return self._pairs[active]

    def _compared(
        self, active: tuple[int, ...], one: tuple[int, ...], other: tuple[int, ...]
    ) -> tuple[int, int, bool]:
        label, distance = self.rules.decided(active, one)
        label_other, distance_other = self.rules.decided(active, other)
        return distance, distance_other, label != label_other
