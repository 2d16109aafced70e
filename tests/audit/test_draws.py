"""A draw's exact bound: nearly the whole of its share for what serves, more for faults."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.auditing import hypothesis_draws as audit_draws
from app.auditing.event_bounds import ROUNDING
from app.auditing.hypothesis_draws import draw_bound, rows_wanted
from app.learning.encoding.public_columns import PublicColumn
from app.learning.hypothesis import ClassAsked
from app.learning.registry import dichotomy_class
from app.learning.trees.tree_class import TreeClass
from app.privacy.budget.sampled_budget import PipelineBudget
from app.privacy.exponential.mechanism import Parameters
from tests.builders.learners.enumeration import unit_tests
from tests.builders.release.small_release import SmallRelease

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from app.auditing.event_bounds import Bound
    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.hypothesis import HypothesisClass

pytestmark = pytest.mark.audit

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(4))
DELTA = Fraction(1, 10**12)
POINT = np.array([1.0, 0.0, 1.0])


def classes() -> dict[str, HypothesisClass]:
    """Return classes that are weighed by tables, and by lists."""
    values = np.array([[0.0], [1.0], [2.0]])
    columns = (PublicColumn(bounds=(0.0, 2.0)),)
    listed = dichotomy_class(
        ClassAsked(kind="stumps", columns=columns, depth=1, class_count=2), values
    )
    trees = {
        f"trees of depth {depth}, {count} classes": TreeClass(
            tests=unit_tests(3), depth=depth, class_count=count
        )
        for depth, count in ((1, 2), (2, 2), (2, 3))
    }
    return {**trees, "stumps": listed}


@dataclass(frozen=True)
class Sharper:
    """A class that weighs with twice the parameter: the factor 2 lost in the notes."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        """Be the class itself in all else."""
        return getattr(self.inner, name)

    def log_normaliser(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Sum the weights ``exp(-epsilon errors)``."""
        total: float = self.inner.log_normaliser(encoded, labels, 2 * epsilon, row_weights)
        return total


def bound(hypotheses: HypothesisClass, epsilon: Fraction) -> Bound:
    """Return the bound of a draw whose share is ``epsilon``."""
    parameters = Parameters(
        epsilon=epsilon,
        delta_truncation=DELTA,
        row_count=rows_wanted(float(epsilon)),
        hypotheses=hypotheses,
    )
    columns = 1 if not isinstance(hypotheses, TreeClass) else len(POINT)
    return draw_bound(parameters, POINT[:columns])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", classes())
def test_a_draw_uses_its_share_and_stays_within(name: str, epsilon: Fraction) -> None:
    """The bound is above 98 % of the share, and never above the share itself."""
    shown = bound(classes()[name], epsilon).epsilon
    assert 0.98 * epsilon < shown <= epsilon + ROUNDING


def test_a_probability_is_that_of_the_listed_trees() -> None:
    """The bound is the log ratio that adding up all trees one by one gives."""
    from itertools import product

    rows, epsilon = (
        rows_wanted(1.0),
        Parameters(
            epsilon=Fraction(1),
            delta_truncation=DELTA,
            row_count=rows_wanted(1.0),
            hypotheses=classes()["trees of depth 1, 2 classes"],
        ).mechanism_epsilon,
    )
    chances = []
    for ones in (1, 0):
        weights = {0: 0.0, 1: 0.0}
        for test, *leaves in product(range(3), (0, 1), (0, 1)):
            label = leaves[int(POINT[test])]
            errors = ones if label == 0 else rows - ones
            weights[label] += float(np.exp(-epsilon * errors / 2))
        chances.append(weights[1] / sum(weights.values()))
    expected = np.log((chances[0] - float(DELTA)) / chances[1])
    shown = bound(classes()["trees of depth 1, 2 classes"], Fraction(1)).epsilon
    assert shown == pytest.approx(expected, rel=1e-9)


def test_a_draw_of_a_constant_class_shows_nothing() -> None:
    """Where no hypothesis gives the label, its event has no probability and no bound."""
    values = np.array([[0.0]])
    columns = (PublicColumn(bounds=(0.0, 2.0)),)
    one = dichotomy_class(
        ClassAsked(kind="stumps", columns=columns, depth=1, class_count=2), values
    )
    assert bound(one, Fraction(1)).epsilon <= 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_lost_factor_of_two_is_caught(epsilon: Fraction) -> None:
    """Weights exp(-epsilon errors) read above the share."""
    parameters = Parameters(
        epsilon=epsilon,
        delta_truncation=DELTA,
        row_count=rows_wanted(float(epsilon)),
        hypotheses=Sharper(classes()["trees of depth 2, 2 classes"]),
    )
    assert draw_bound(parameters, POINT).epsilon > 1.2 * epsilon


def test_a_configuration_s_draws_are_those_with_a_share(tmp_path: Path) -> None:
    """Relabelling and the classifier are audited at what each may cost."""
    found = audit_draws.audit_draws(SmallRelease(tmp_path, {}).settings())
    assert [(draw.mechanism, draw.epsilon) for draw in found] == [
        ("relabelling", 2.0),
        ("published classifier", 6.0),
    ]
    assert all(draw.holds and draw.exact.epsilon > 0.98 * draw.epsilon for draw in found)


def test_a_private_grid_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of the rows' own labellings is fixed by no public choice."""
    private = PipelineBudget(
        sampling_rate=Fraction(1),
        relabel_epsilon=Fraction(2),
        relabel_is_private=True,
        answers_epsilon=Fraction(1),
        answers_delta=Fraction(1, 10**6),
    )
    monkeypatch.setattr(audit_draws, "release_budget", lambda _: private)
    found = audit_draws.audit_draws(SmallRelease(tmp_path, {}).settings())
    assert [draw.mechanism for draw in found] == ["published classifier"]
