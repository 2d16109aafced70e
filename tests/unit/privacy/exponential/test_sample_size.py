"""The bound on the excess error of a draw, and the rows that it asks for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.trees.tree import Tree
from app.learning.trees.tree_class import TreeClass
from app.privacy.exponential.mechanism import excess_error, rows_for_excess_error

COUNTS = st.integers(1, 10**400)
RATES = st.floats(1e-6, 0.5)
EPSILONS = st.floats(1e-3, 100)


def test_the_bound_is_the_notes() -> None:
    """For 432 hypotheses, beta 1/20, n 5760 and epsilon 1.8 it is 2 ln 8640 / 10368, by hand."""
    bound = excess_error(hypothesis_count=432, beta=0.05, row_count=5760, epsilon=1.8)
    assert bound == pytest.approx(2 * math.log(8640) / 10368, rel=1e-12)
    assert bound == pytest.approx(0.0017485, abs=1e-7)
    assert rows_for_excess_error(0.1, hypothesis_count=432, beta=0.05, epsilon=1.8) == 101


@pytest.mark.parametrize(
    ("alpha", "hypothesis_count", "beta", "epsilon", "rows"),
    [
        # 2 (ln 1000000 + ln 20) / (.1 * 1) = 20 (13.8155106 + 2.9957323) = 336.22
        pytest.param(0.1, 10**6, 0.05, 1.0, 337, id="a million hypotheses"),
        # 2 (ln 24 + ln 100) / (.01 * .1) = 2000 (3.1780538 + 4.6051702) = 15566.45
        pytest.param(0.01, 24, 0.01, 0.1, 15567, id="few hypotheses and a small epsilon"),
        # 2 (31 ln 62 + 32 ln 2 + ln 20) / (.05 * .5) = 80 (127.9420633 + 22.1807098
        # + 2.9957323) = 12249.48: depth 5 over 62 tests
        pytest.param(0.05, 62**31 * 2**32, 0.05, 0.5, 12250, id="trees of depth 5"),
        # 2 (ln 1 + ln 2) / (.5 * 2) = 1.386
        pytest.param(0.5, 1, 0.5, 2.0, 2, id="one hypothesis"),
    ],
)
def test_the_rows_are_those_of_the_theorem(
    alpha: float, hypothesis_count: int, beta: float, epsilon: float, rows: int
) -> None:
    """The least n with n >= 2 (ln|H| + ln(1/beta)) / (epsilon alpha), worked out by hand."""
    found = rows_for_excess_error(
        alpha, hypothesis_count=hypothesis_count, beta=beta, epsilon=epsilon
    )
    assert found == rows


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


# -- the law of a draw, in full ------------------------------------------------------

TEST_COUNT = 6
STUMPS = TreeClass(
    tests=tuple(
        BinaryTest(feature_index=index, cut=1.0, category_code=None, public_frequency=0.5)
        for index in range(TEST_COUNT)
    ),
    depth=1,
    class_count=2,
)


def failure_probability(*, copies: int, alpha: float, epsilon: float) -> float:
    """Return the exact probability that a draw errs by more than alpha above the best.

    The rows are all 64 outcomes of six tests, some copies of each, and the
    first outcome is the label: one stump is right, and the 22 others that are
    not its negation err on half of the rows.
    """
    bits = np.array(list(itertools.product((0, 1), repeat=TEST_COUNT)) * copies, dtype=np.uint8)
    labels = bits[:, 0].astype(np.int64)
    weights = STUMPS.weights(bits, labels, epsilon)
    roots = probabilities(weights.log_weights(()))
    failing = []
    for test in range(TEST_COUNT):
        sides = [probabilities(weights.log_weights(((test, outcome),))) for outcome in (0, 1)]
        for leaves in itertools.product((0, 1), repeat=2):
            stump = Tree(test_indices=(test,), leaf_labels=leaves)
            if (stump.predict(bits) != labels).mean() > alpha:
                failing.append(roots[test] * sides[0][leaves[0]] * sides[1][leaves[1]])
    return math.fsum(failing)


def probabilities(log_weights: np.ndarray) -> np.ndarray:
    """Return what log weights say, summing to one."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("beta", [0.2, 0.05, 1e-3])
@pytest.mark.parametrize("copies", [1, 4, 30])
def test_with_the_rows_asked_for_a_draw_is_within_alpha(copies: int, beta: float) -> None:
    """It fails with probability beta at most, nearly that, and oftener at half the epsilon."""
    alpha, rows = 0.499, 64 * copies
    epsilon = 2 * (math.log(STUMPS.size) - math.log(beta)) / (rows * alpha)
    asked = rows_for_excess_error(alpha, hypothesis_count=STUMPS.size, beta=beta, epsilon=epsilon)
    assert asked in {rows, rows + 1}  # the last digit of epsilon decides
    failing = failure_probability(copies=copies, alpha=alpha, epsilon=epsilon)
    assert 0.7 * beta < failing <= beta
    assert failure_probability(copies=copies, alpha=alpha, epsilon=epsilon / 2) > 2 * beta
