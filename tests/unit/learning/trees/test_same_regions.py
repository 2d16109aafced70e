"""Regions that the meaning of tests makes the same: weighed once, with the same sums."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.encoding.binary_tests import BinaryTest, evaluate
from app.learning.trees.tree_class import TreeClass
from app.learning.trees.tree_distribution import TreeWeights
from app.learning.trees.upper_level_weights import excluded_literals, first_descriptions, multisets

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A number with missing values, categories with other and missing, and two tests twice.
TESTS = tuple(
    BinaryTest(feature_index=feature, cut=cut, category_code=code, public_frequency=0.5)
    for feature, cut, code in [
        (0, 1.0, None), (0, 3.0, None), (0, 2.0, None), (0, 2.0, None),
        (1, None, 0), (1, None, 1), (1, None, 3), (1, None, 1),
        (2, 0.5, None),
    ]
)  # fmt: skip
# Every row that the features allow.
VALUES = np.array([[x, code, y] for x in (np.nan, 0, 1, 2, 3) for code in range(4) for y in (0, 1)])


def _satisfying(literals: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell the rows of every possible kind that satisfy all literals."""
    bits = evaluate(TESTS, VALUES)
    held: NDArray[np.bool_] = (bits[:, literals >> 1] == literals & 1).all(axis=1)
    return held


def test_pairs_are_excluded_that_no_row_satisfies() -> None:
    """By what tests ask, missing values included: no more pairs, and no fewer."""
    excluded = excluded_literals(TESTS)
    for pair in combinations_with_replacement(range(len(excluded)), 2):
        assert excluded[pair] == (not _satisfying(np.array(pair)).any())
        assert excluded[pair] == excluded[pair[::-1]]


def test_only_tests_of_a_kind_are_compared() -> None:
    """Of a cut and a category of one feature nothing is known."""
    excluded = excluded_literals([TESTS[0], replace(TESTS[4], feature_index=0)])
    assert excluded.astype(int).tolist() == np.kron(np.eye(2), 1 - np.eye(2)).tolist()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_stands_for_a_region_is_the_same_region(size: int) -> None:
    """The same rows satisfy both, it stands for itself, and a quarter of regions need no sum."""
    excluded = excluded_literals(TESTS)
    ranks, regions = first_descriptions(excluded, size), multisets(len(excluded), size)
    assert np.array_equal(ranks[ranks], ranks)
    for region, rank in zip(regions, ranks, strict=True):
        assert np.array_equal(_satisfying(region), _satisfying(regions[rank]))
    if size > 1:
        assert len(np.unique(ranks)) < 3 * len(ranks) / 4


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_no_digit_changes(depth: int) -> None:
    """Tables are those that are weighed region by region, to the last bit."""
    generator = np.random.default_rng(depth)
    rows = generator.choice(len(VALUES), 60, p=generator.dirichlet(np.full(len(VALUES), 0.3)))
    bits, labels = evaluate(TESTS, VALUES[rows]), generator.integers(0, 3, 60)
    hypotheses = TreeClass(tests=TESTS, depth=depth, class_count=3)
    known = hypotheses.weights(bits, labels, 0.7)
    plain = TreeWeights.of(bits, labels, depth=depth, class_count=3, epsilon=0.7)
    for one, other in zip(known.tables, plain.tables, strict=True):
        assert np.array_equal(one.errors, other.errors)
        assert np.array_equal(one.factors, other.factors)


def test_rows_that_cannot_be_are_noticed() -> None:
    """Outcomes that contradict what the tests ask never reach a draw."""
    bits = np.zeros((3, len(TESTS)), dtype=np.uint8)
    bits[1, [4, 5]] = 1
    with pytest.raises(InvariantError, match="no row satisfies what tests exclude"):
        TreeClass(tests=TESTS, depth=3, class_count=2).weights(bits, np.zeros(3, np.int64), 1.0)
