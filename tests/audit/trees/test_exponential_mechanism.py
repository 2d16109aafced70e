"""A lower bound on epsilon of the draw over trees, on worst-case neighbours.

Most rows say that every tree should answer class 1; replacing one of them by
a contradiction lowers the weight of nearly all trees and raises that of the
rare tree that answers class 0: the ratio of its probabilities comes close to
the whole claim, so a draw that is off by a factor of two is caught.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaincinv, logsumexp

from app.learning.trees.tree import Tree
from app.learning.trees.tree_class import TreeClass
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.enumeration import unit_tests
from tests.builders.learners.remembered import Remembered

if TYPE_CHECKING:
    from app.learning.trees.tree_distribution import Path

Rows = tuple[NDArray[np.uint8], NDArray[np.int64]]

EPSILON = 1.0
# Bounds hold together except with probability 2e-6: each of the two
# proportions leaves its interval with probability 1e-6.
MISS_PROBABILITY = 1e-6
TRIAL_COUNT = 12_000
ROOT_TESTS = 8


def _neighbours() -> tuple[Rows, Rows]:
    """Four rows that satisfy the test, all of class 1; then one of them of class 0."""
    bits = np.ones((4, 1), dtype=np.uint8)
    labels = np.ones(4, dtype=np.int64)
    other = labels.copy()
    other[0] = 0
    return (bits, labels), (bits, other)


def _trees(test_count: int) -> TreeClass:
    return TreeClass(tests=unit_tests(test_count), depth=1, class_count=2)


def _log_probability(hypotheses: TreeClass, tree: Tree, rows: Rows, epsilon: float) -> float:
    """Return the log probability with which the class draws ``tree``, from its own tables."""
    weighed = hypotheses.weights(*rows, epsilon)
    level: list[Path] = [()]
    tests, total = iter(tree.test_indices), 0.0
    for _ in range(hypotheses.depth):
        below: list[Path] = []
        for path in level:
            test = next(tests)
            total += _log_share(weighed.log_weights(path), test)
            below += [(*path, (test, outcome)) for outcome in (0, 1)]
        level = below
    for path, label in zip(level, tree.leaf_labels, strict=True):
        total += _log_share(weighed.log_weights(path), label)
    return total


def _log_share(log_weights: NDArray[np.float64], index: int) -> float:
    return float(log_weights[index] - logsumexp(log_weights))


def _lower_bound(hypotheses: TreeClass, epsilon: float) -> float:
    """Bound epsilon from below by draws: how often the rare answer comes on each side."""
    counts = []
    for seed, (bits, labels) in enumerate(_neighbours()):
        noise = ScriptedNoise(seeded_words(seed))
        weights = Remembered(hypotheses.weights(bits, labels, epsilon))
        drawn = (weights.draw(noise) for _ in range(TRIAL_COUNT))
        counts.append(sum(tree.leaf_labels[1] == 0 for tree in drawn))
    most = betaincinv(counts[0] + 1, TRIAL_COUNT - counts[0], 1 - MISS_PROBABILITY)
    least = betaincinv(counts[1], TRIAL_COUNT - counts[1] + 1, MISS_PROBABILITY)
    return math.log(least / most)


@pytest.mark.audit
def test_draws_stay_within_the_claim_and_use_most_of_it() -> None:
    """The bound is below epsilon, and above half of it: the audit has power."""
    # The answer of class 0 comes with probability .119 and .269, whose ratio
    # is e^.82; intervals of 12,000 draws take about .2 of it away.
    assert EPSILON / 2 < _lower_bound(_trees(1), EPSILON) <= EPSILON


@pytest.mark.audit
def test_a_lost_factor_of_two_is_caught() -> None:
    """Weights exp(-epsilon errors), as the notes' middle line has them, exceed the claim."""
    # Probabilities .018 and .119: their ratio is e^1.9, and the bound about 1.4.
    assert _lower_bound(_trees(1), 2 * EPSILON) > EPSILON


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("class_count", [2, 3])
def test_no_tree_moves_by_more_than_the_claim(depth: int, class_count: int) -> None:
    """Exactly, over random trees and replaced records: the log ratio stays within epsilon."""
    generator = np.random.default_rng(depth)
    hypotheses = TreeClass(tests=unit_tests(3), depth=depth, class_count=class_count)
    bits = generator.integers(0, 2, (7, 3), dtype=np.uint8)
    bits[:, 0] = 1
    labels = generator.integers(0, class_count, 7)
    slack = 4 * hypotheses.log_weight_error(7, EPSILON)
    for _ in range(30):
        other_bits, other_labels = bits.copy(), labels.copy()
        other_bits[0] = generator.integers(0, 2, 3)
        other_labels[0] = generator.integers(0, class_count)
        tree = Tree(
            test_indices=tuple(generator.integers(0, 3, 2**depth - 1).tolist()),
            leaf_labels=tuple(generator.integers(0, class_count, 2**depth).tolist()),
        )
        one = _log_probability(hypotheses, tree, (bits, labels), EPSILON)
        two = _log_probability(hypotheses, tree, (other_bits, other_labels), EPSILON)
        assert abs(one - two) <= EPSILON + slack


def test_an_empty_region_counted_once_exceeds_the_claim() -> None:
    """The planted shortcut moves the root's marginal by far more than epsilon allows."""
    # All tests are true of all rows, until one row fails test 0: the false side
    # of that root then weighs all its trees instead of one.
    constant = np.ones((6, ROOT_TESTS), dtype=np.uint8)
    split = constant.copy()
    split[0, 0] = 0
    labels = np.ones(6, dtype=np.int64)
    ratios = {}
    for shortcut in (False, True):
        marginals = [_root_marginal(bits, labels, shortcut=shortcut) for bits in (constant, split)]
        ratios[shortcut] = abs(math.log(marginals[0] / marginals[1]))
    assert ratios[False] <= EPSILON
    assert ratios[True] > EPSILON


def _root_marginal(bits: NDArray[np.uint8], labels: NDArray[np.int64], *, shortcut: bool) -> float:
    """Return the probability of test 0 at the root of depth-2 trees, by plain recursion."""

    def partition(rows: list[int], depth: int) -> float:
        if shortcut and not rows:
            return 1.0
        if depth == 0:
            errors = [sum(labels[row] != label for row in rows) for label in (0, 1)]
            return sum(math.exp(-EPSILON * error / 2) for error in errors)
        return sum(weight(rows, test, depth) for test in range(ROOT_TESTS))

    def weight(rows: list[int], test: int, depth: int) -> float:
        sides = [[row for row in rows if bits[row, test] == side] for side in (0, 1)]
        return partition(sides[0], depth - 1) * partition(sides[1], depth - 1)

    rows = list(range(len(bits)))
    return weight(rows, 0, 2) / partition(rows, 2)
