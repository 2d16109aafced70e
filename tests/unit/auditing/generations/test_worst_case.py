"""The exact worst case of mechanisms whose delta is known, and the rules that it plays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from app.auditing.generations.adversary_game import LivingGame
from app.auditing.generations.generation_rules import (
    AT_A_FLIP,
    BY_ONE,
    HITS_ARE_PAID,
    Rules,
    broken_rules,
)
from app.auditing.generations.worst_case import WorstCase
from app.privacy.stability.hit_table import calibrate


@dataclass(frozen=True)
class RandomizedResponse:
    """A bit told with probability p, ``left`` times; state: how often it may still be asked."""

    p: float
    left: int

    def start(self) -> int:
        """Return the number of answers."""
        return self.left

    def moves(self, state: int) -> list[list[tuple[float, float, int]]]:
        """Return the one move while there is an answer left."""
        if not state:
            return []
        p = self.p
        return [[(p, 1 - p, state - 1), (1 - p, p, state - 1), (0.0, 0.0, state - 1)]]


def test_randomized_response_has_its_delta() -> None:
    """One answer costs p - e^epsilon (1 - p), and two the composition's, from both sides."""
    for left, exact in ((1, 0.8 - math.e * 0.2), (2, 0.64 - math.e * 0.04)):
        worst = WorstCase(RandomizedResponse(0.8, left), 1.0, points=2000)
        assert worst.upper == pytest.approx(exact, abs=1e-4)
        assert worst.lower(3) == pytest.approx(exact, abs=1e-12)
        assert worst.lower(3) <= worst.upper + 1e-12


def test_an_event_of_one_side_alone_is_found() -> None:
    """An outcome that is impossible on the other side counts whole; a ratio may leave the grid."""
    worst = WorstCase(RandomizedResponse(1.0, 1), 5.0, moves_max=3)
    assert worst.upper == pytest.approx(1.0)
    assert worst.lower(2) == pytest.approx(1.0)
    steep = WorstCase(RandomizedResponse(1 - 1e-6, 2), 1.0, moves_max=1, span=3.0)
    assert steep.upper > 0.99
    assert steep.lower(0) == 0.0


def table() -> tuple[int, ...]:
    """Return a table of one hit."""
    return calibrate(epsilon=Fraction(1), delta=Fraction(1, 1000), cutoff=1).thresholds


def test_a_generation_in_company_costs_what_it_costs_alone() -> None:
    """Two generations of 12 votes, the record in either, against one of 24."""
    alone = WorstCase(LivingGame(Rules((24,), (1,)), table(), 0), 1.0)
    for record in (0, 1):
        game = LivingGame(Rules((12, 12), (2, 1) if record else (1, 2)), table(), record)
        assert WorstCase(game, 1.0).upper == pytest.approx(alone.upper, rel=1e-9)


def test_before_the_record_joins_others_may_all_retire() -> None:
    """Nobody votes then; the next may still join, and its queries can be asked."""
    rules = Rules((2, 2), (1, 1))
    game = LivingGame(rules, table(), 1)
    retired = rules.after(game.start(), is_hit=True)
    (joins,) = game.moves(retired)
    assert joins == [(1.0, 1.0, rules.events(retired)[0])]
    assert len(game.moves(joins[0][2])) > 1


def test_sound_rules_break_no_condition_and_a_record_in_two_chunks_breaks_two() -> None:
    """Votes that move by two move the distance by more than one somewhere, and flip above 0."""
    rules = Rules((6, 5), (2, 1))
    assert broken_rules(rules) == []
    assert broken_rules(rules, votes_moved=2) == [BY_ONE, AT_A_FLIP]


def test_a_person_with_a_slot_in_two_generations_costs_more_than_one_record() -> None:
    """Two votes move, and once the first generation has retired the second pays again."""
    rules = Rules((12, 12), (1, 1))
    assert broken_rules(rules, slot_count=2) == [BY_ONE, AT_A_FLIP]
    one, two = (WorstCase(LivingGame(rules, table(), 0, also=each), 1.0) for each in (None, 1))
    assert two.lower(4) > 1.5 * one.upper
    retired = rules.after(rules.start(), is_hit=True)
    assert LivingGame(rules, table(), 0, also=1).moves(retired)
    assert not LivingGame(rules, table(), 0).moves(retired)


@dataclass(frozen=True)
class NeverRetiring(Rules):
    """A generation goes on whatever it was charged."""

    def active(self, standing: object) -> tuple[int, ...]:
        """Return all."""
        del standing
        return tuple(range(self.generation_count))


def test_hits_that_nobody_pays_for_are_found() -> None:
    """Rules that forget retirement break the condition of the account."""
    assert broken_rules(NeverRetiring((3, 3), (1, 1))) == [HITS_ARE_PAID]
