"""A table of counted decisions against every adversary of two of them, exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.stability import cell_table
from app.privacy.stability.cell_table import DecisionTable, calibrate, check
from app.privacy.stability.table_inequality import WORD_RANGE, Entry, Excess, Inequality

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPSILON, DELTA = Fraction(9, 10), Fraction(1, 10**6)


def worst_delta(table: DecisionTable, decisions: int) -> float:
    """Return the largest delta at the table's epsilon over adaptive adversaries.

    An adversary chooses, from what came before, a pair of neighbouring distances in either
    order, or a plurality that differs.  By homogeneity its gain from masses a and b is
    ``b V(a / b)``, and from ``b = 0`` it is a.  V is convex, so between nodes a chord is
    above it, and what is computed is an upper bound that the nodes make tight.
    """
    hits = np.array([float(Fraction(each, WORD_RANGE)) for each in table.thresholds])
    stays = np.array([float(Fraction(WORD_RANGE - each, WORD_RANGE)) for each in table.thresholds])
    one = np.concatenate([np.arange(len(hits) - 1), np.arange(1, len(hits))])
    other = np.concatenate([np.arange(1, len(hits)), np.arange(len(hits) - 1)])
    scale = math.exp(table.epsilon)
    logs = np.linspace(-3 * float(table.epsilon), 3 * float(table.epsilon), 1201)
    nodes = np.exp(logs)

    def last(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(0.0, ratios - scale)

    def before(values: NDArray[np.float64], ratio: float) -> float:
        """Return V at a ratio where what follows is worth ``values`` at the nodes."""

        def following(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
            inside = np.interp(ratios, nodes, values)
            # Beyond the last node the slope is at most 1; below the first V falls to 0.
            above = values[-1] + (ratios - nodes[-1])
            return np.where(ratios > nodes[-1], above, inside)

        at_hit = hits[other] * following(ratio * hits[one] / hits[other])
        at_stay = stays[other] * following(ratio * stays[one] / stays[other])
        flip = hits[0] * float(following(np.array([ratio]))[0]) + ratio * stays[0]
        return max(float((at_hit + at_stay).max()), float(flip))

    values = last(nodes)
    for _ in range(decisions - 1):
        values = np.array([before(values, ratio) for ratio in nodes])
    return before(values, 1.0)


@pytest.fixture(scope="module")
def table() -> DecisionTable:
    """Return the table of .9 of epsilon 1."""
    return calibrate(epsilon=EPSILON, delta=DELTA)


def test_a_table_of_two_decisions_takes_a_quarter_of_the_votes(table: DecisionTable) -> None:
    """At .9 of epsilon 1 the distances are 41 and 50, and the table holds."""
    check(table)
    assert (table.distance_at(1e-2), table.distance_at(1e-4)) == (41, 50)
    assert 1 - Fraction(table.thresholds[0], WORD_RANGE) ** 2 <= DELTA * Fraction(2, 5)


def test_two_decisions_stay_within_the_claim(table: DecisionTable) -> None:
    """The worst adversary of two comes to four fifths of delta, and never above it."""
    assert 0.75 < worst_delta(table, 2) / float(DELTA) <= 0.85


def test_a_third_decision_is_caught(table: DecisionTable) -> None:
    """What a release without the cells' record would allow is above the claim."""
    assert worst_delta(table, 3) > float(DELTA)


def test_a_table_of_one_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked in one order alone, it is refused, and the other order is above the claim."""

    def forward(self: Inequality, previous: Entry, following: Entry) -> tuple[Excess, Excess]:
        return (left_sides(self, previous, following)[0],) * 2

    left_sides = Inequality._left_sides
    with monkeypatch.context() as patch:
        patch.setattr(Inequality, "_left_sides", forward)
        # Undecorated: what is made here is nobody else's.
        faulty = cell_table._calibrated.__wrapped__(EPSILON, DELTA, 2, ())
        cell_table._check.__wrapped__(faulty)
    with pytest.raises(InvariantError, match="stay within R"):
        check(faulty)
    assert worst_delta(faulty, 2) > float(DELTA)


def test_altered_tables_are_refused(table: DecisionTable) -> None:
    """A wider budget, another first entry, and a further decision do not hold."""
    first, *others = table.thresholds
    for altered in (
        replace(table, decisions=3),
        replace(table, epsilon=EPSILON / 2),
        replace(table, delta_svt=table.delta_svt / 2),
        replace(table, delta_svt=table.delta),
        replace(table, thresholds=(first - (1 << 60), *others)),
        replace(table, thresholds=(first, *others[1:])),
        replace(table, thresholds=(first, *(each - each // 50 for each in others))),
        replace(table, thresholds=()),
    ):
        with pytest.raises(InvariantError):
            check(altered)


def test_budgets_without_a_table_are_refused_by_name() -> None:
    """Each names what to change."""
    with pytest.raises(ConfigurationError, match="epsilon"):
        calibrate(epsilon=Fraction(1, 10**5), delta=DELTA)
    with pytest.raises(ConfigurationError, match="delta"):
        cell_table.calibrate(epsilon=EPSILON, delta=Fraction(1, 1 << 70))
