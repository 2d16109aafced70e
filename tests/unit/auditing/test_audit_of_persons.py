"""Exact bounds of what one person of up to fifty rows shows: the claim, and more for faults.

Neighbours differ in all rows of one person.  Every bound is computed and none is sampled, so no
alarm is false, and the power is that of the assertions: what serves shows nearly its claim.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.auditing.event_bounds import ROUNDING
from app.auditing.hypothesis_draws import (
    ROWS_OF_A_PERSON,
    audit_draws,
    draw_bound,
    gradient_bound,
    grid_bound,
    rows_wanted,
    scored_tree_bound,
)
from app.data.persons import WEIGHT_UNITS, Persons
from app.learning.trees.tree_class import TreeClass
from app.privacy.exponential.mechanism import Parameters
from app.privacy.exponential.scored_tree import Parameters as ScoredTreeParameters
from app.privacy.noisy_gradient import mechanism as noisy_gradient
from tests.builders.learners.enumeration import unit_tests
from tests.builders.mechanisms.descending import DELTA, descent_parameters
from tests.builders.mechanisms.gridding import grid_parameters
from tests.builders.release.rows_of_persons import of_persons

if TYPE_CHECKING:
    from pathlib import Path

    from app.privacy.noisy_grid.mechanism import Parameters as GridParameters

# The quick test is part of every run, the long one of `make audit`.
ROW_COUNTS = [
    pytest.param(ROWS_OF_A_PERSON),
    *(pytest.param(rows, marks=pytest.mark.audit) for rows in range(1, ROWS_OF_A_PERSON)),
]
POINT = np.array([1.0, 0.0, 1.0])


def tree_parameters(epsilon: Fraction = Fraction(1)) -> Parameters:
    """Return the parameters of a draw of stumps."""
    return Parameters(
        epsilon=epsilon,
        delta_truncation=Fraction(1, 10**12),
        row_count=rows_wanted(float(epsilon)),
        hypotheses=TreeClass(tests=unit_tests(3), depth=1, class_count=2),
    )


def grid_of_persons() -> GridParameters:
    """Return the parameters of counts by person, at epsilon 1."""
    return replace(grid_parameters(), unit_count=WEIGHT_UNITS)


def scored_tree_of_persons() -> ScoredTreeParameters:
    """Return the parameters of a scored tree of persons, at epsilon 1."""
    trees = TreeClass(tests=unit_tests(3), depth=1, class_count=2)
    return ScoredTreeParameters(
        epsilon=Fraction(1),
        delta_truncation=Fraction(1, 10**12),
        row_count=rows_wanted(1.0),
        hypotheses=trees,
        unit_count=WEIGHT_UNITS,
    )


@pytest.mark.parametrize("rows", ROW_COUNTS)
def test_a_person_uses_the_claim_and_stays_within(rows: int) -> None:
    """Draws, descents and counts show nearly epsilon of all rows of one person, and no more."""
    shown = (
        draw_bound(tree_parameters(), POINT, rows).epsilon,
        gradient_bound(descent_parameters(), delta=float(DELTA), rows_each=rows).epsilon,
        grid_bound(grid_of_persons(), rows_each=rows).epsilon,
        scored_tree_bound(scored_tree_of_persons(), POINT, rows).epsilon,
    )
    for each in shown:
        assert 0.9 < each <= 1 + ROUNDING


def test_rows_that_count_for_one_each_show_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: what fifty rows move is paid for as one."""
    monkeypatch.setattr(noisy_gradient, "shared_out", lambda missed, _: missed)
    monkeypatch.setattr(Persons, "weights", property(lambda each: np.ones(len(each.numbers))))
    rows = ROWS_OF_A_PERSON
    assert draw_bound(tree_parameters(), POINT, rows).epsilon > 10
    assert gradient_bound(descent_parameters(), delta=float(DELTA), rows_each=rows).epsilon > 10
    assert grid_bound(grid_of_persons(), rows_each=rows).epsilon > 10
    assert scored_tree_bound(scored_tree_of_persons(), POINT, rows).epsilon > 10


def test_weights_to_the_nearest_show_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: rows of a unit and a half each count for two."""
    rows = 2 * WEIGHT_UNITS // 3
    assert draw_bound(tree_parameters(), POINT, rows).epsilon <= 1 + ROUNDING
    assert grid_bound(grid_of_persons(), rows_each=rows).epsilon <= 1 + ROUNDING

    def nearest(persons: Persons) -> np.ndarray:
        units = np.floor(WEIGHT_UNITS / persons.row_counts + 0.5)
        return np.asarray(units / WEIGHT_UNITS)

    monkeypatch.setattr(Persons, "weights", property(nearest))
    assert draw_bound(tree_parameters(), POINT, rows).epsilon > 1.2
    assert grid_bound(grid_of_persons(), rows_each=rows).epsilon > 1.2


def test_residuals_rounded_away_from_zero_show_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a person of very many rows has a third more than one."""
    rows = 2 * (WEIGHT_UNITS // 2) // 3 + 1  # each would be given 2 units for 1 and a half
    honest = gradient_bound(descent_parameters(), delta=float(DELTA), rows_each=rows).epsilon
    assert honest <= 1

    def away(missed: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(missed) * -(-np.abs(missed) // counts[:, None]))

    monkeypatch.setattr(noisy_gradient, "shared_out", away)
    assert gradient_bound(descent_parameters(), delta=float(DELTA), rows_each=rows).epsilon > 1.2


@pytest.mark.parametrize("learner", ["exponential", "linear", "kernel", "grid", "scored-tree"])
def test_the_draws_of_a_configuration_are_audited_by_person(tmp_path: Path, learner: str) -> None:
    """``conclave audit`` replaces fifty rows where persons are named."""
    more = {"classifier__tests": '{"group": []}'} if learner == "grid" else {}
    small = of_persons(tmp_path, classifier__learner=learner, data__persons="900", **more)
    found = audit_draws(small.settings())
    assert [draw.mechanism for draw in found] == ["relabelling", "published classifier"]
    assert all(draw.holds and draw.exact.epsilon > 0.9 * draw.epsilon for draw in found)
