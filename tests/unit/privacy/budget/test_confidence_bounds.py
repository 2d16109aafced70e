"""Clopper and Pearson's bounds, against printed values and the law that defines them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from app.privacy.budget.confidence_bounds import at_least, at_most, binomial_tail


@pytest.mark.parametrize(
    ("count", "trials", "lower", "upper"),
    [(0, 10, 0.0, 0.3085), (1, 10, 0.0025, 0.4450), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1)],
)
def test_bounds_are_those_of_the_tables(
    count: int, trials: int, lower: float, upper: float
) -> None:
    """The two-sided 95 % bounds of ten trials are the printed ones."""
    counts = np.array([count])
    assert at_least(counts, trials, 0.025)[0] == pytest.approx(lower, abs=5e-5)
    assert at_most(counts, trials, 0.025)[0] == pytest.approx(upper, abs=5e-5)


def test_a_bound_is_where_the_count_turns_improbable() -> None:
    """At the lower bound so many successes, at the upper so few, have the missing probability."""
    counts = np.arange(1, 40)
    lower, upper = at_least(counts, 40, 0.01), at_most(counts, 40, 0.01)
    assert binom.sf(counts - 1, 40, lower) == pytest.approx(0.01)
    assert binom.cdf(counts, 40, upper) == pytest.approx(0.01)


def test_the_tail_of_a_binomial_is_its_law() -> None:
    """At least so many of so many succeed as often as the binomial law says."""
    shares = np.linspace(0.01, 0.99, 20)
    assert binomial_tail(3, 17, shares) == pytest.approx(binom.sf(2, 17, shares))
