"""The bound on the excess error of a draw, and the rows that it asks for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.planning.sample_size import excess_error, rows_for_excess_error

COUNTS = st.integers(1, 10**400)
RATES = st.floats(1e-6, 0.5)
EPSILONS = st.floats(1e-3, 100)


def test_the_bound_is_the_notes() -> None:
    """For 432 hypotheses, beta 1/20, n 5760 and epsilon 1.8 it is 2 ln 8640 / 10368, by hand."""
    bound = excess_error(hypothesis_count=432, beta=0.05, row_count=5760, epsilon=1.8)
    assert bound == pytest.approx(2 * math.log(8640) / 10368, rel=1e-12)
    assert bound == pytest.approx(0.0017485, abs=1e-7)
    assert rows_for_excess_error(0.1, hypothesis_count=432, beta=0.05, epsilon=1.8) == 101


@given(COUNTS, RATES, RATES, EPSILONS)
def test_the_rows_asked_for_are_the_fewest(
    count: int, alpha: float, beta: float, epsilon: float
) -> None:
    """With them the bound is alpha or lower, and with one row fewer it is not."""
    rows = rows_for_excess_error(alpha, hypothesis_count=count, beta=beta, epsilon=epsilon)
    enough = excess_error(hypothesis_count=count, beta=beta, row_count=rows, epsilon=epsilon)
    assert enough <= alpha * (1 + 1e-12)
    if rows > 1:
        fewer = excess_error(hypothesis_count=count, beta=beta, row_count=rows - 1, epsilon=epsilon)
        assert fewer > alpha * (1 - 1e-12)
