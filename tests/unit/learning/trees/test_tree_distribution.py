"""Weights of deep trees against exact recursion, and a draw from them."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from app.learning.trees import regions, upper_level_weights
from app.learning.trees.tree_class import TreeClass
from app.learning.trees.tree_distribution import Path, TreeSize, TreeWeights, draw_log_error
from app.learning.trees.upper_level_weights import PAIR_DEPTH, multiset_count
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.enumeration import pearson, unit_tests
from tests.builders.learners.exact_recursion import ARITHMETIC, ExactRecursion
from tests.builders.learners.remembered import Remembered

Rows = tuple[NDArray[np.uint8], NDArray[np.int64]]


def _rows(seed: int, *, row_count: int, test_count: int, class_count: int) -> Rows:
    """Draw rows of which a fifth has other labels than 0; their first test is constant."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, (row_count, test_count), dtype=np.uint8)
    bits[:, 0] = 1
    others = generator.random(row_count) < 0.2
    return bits, others * generator.integers(0, class_count, row_count)


def _weights(rows: Rows, *, depth: int, class_count: int, epsilon: float) -> TreeWeights:
    return TreeWeights.of(*rows, depth=depth, class_count=class_count, epsilon=epsilon)


# Depth, labels, tests, rows, epsilon.  At epsilon .7 every region is narrow,
# from 9 on none is, and among thousands of rows both kinds meet.
CASES = [
    (0, 2, 3, 9, 0.7),
    (1, 3, 3, 9, 0.7),
    (2, 2, 3, 12, 0.7),
    (2, 3, 3, 12, 9.0),
    (3, 2, 3, 0, 0.7),
    (3, 4, 3, 12, 300.0),
    (3, 2, 3, 2000, 2.0),
    (4, 2, 3, 12, 0.1),
    (4, 3, 3, 3000, 1.0),
    (5, 2, 4, 15, 1.0),
    (5, 3, 2, 1500, 2.0),
    (6, 2, 2, 9, 0.5),
    (7, 3, 2, 8, 3.0),
]


@pytest.mark.parametrize(("depth", "class_count", "test_count", "row_count", "epsilon"), CASES)
def test_sums_are_within_the_bound_of_exact_ones(
    depth: int, class_count: int, test_count: int, row_count: int, epsilon: float
) -> None:
    """The normaliser's relative error, taken in sixty digits, stays below eta and below 1e-9."""
    rows = _rows(1, row_count=row_count, test_count=test_count, class_count=class_count)
    exact = ExactRecursion(*rows, class_count, epsilon)
    weights = _weights(rows, depth=depth, class_count=class_count, epsilon=epsilon)
    expected = exact.sum(exact.everyone, depth).ln(ARITHMETIC)
    eta = draw_log_error(TreeSize(test_count=test_count, depth=depth, class_count=class_count))
    # Of the log itself, a double, only its last digit is lost besides.
    slack = 4 * math.ulp(float(expected)) + eta
    assert abs(Decimal(weights.log_normaliser()) - expected) <= slack < 1e-9


@pytest.mark.parametrize(("depth", "class_count", "test_count", "row_count", "epsilon"), CASES[1:])
def test_every_choice_of_a_tree_has_its_exact_share(
    depth: int, class_count: int, test_count: int, row_count: int, epsilon: float
) -> None:
    """Along a random way down, repeated and contradicted tests included, within the bound."""
    rows = _rows(2, row_count=row_count, test_count=test_count, class_count=class_count)
    exact = ExactRecursion(*rows, class_count, epsilon)
    weights = _weights(rows, depth=depth, class_count=class_count, epsilon=epsilon)
    eta = draw_log_error(TreeSize(test_count=test_count, depth=depth, class_count=class_count))
    generator = np.random.default_rng(3)
    for _ in range(4):
        path: Path = ()
        region = exact.everyone
        for levels in range(depth, 0, -1):
            terms = [exact.node(region, test, levels) for test in range(test_count)]
            _compare_shares(weights.log_weights(path), terms, eta)
            test, outcome = int(generator.integers(test_count)), int(generator.integers(2))
            path, region = (*path, (test, outcome)), exact.sides(region, test)[outcome]
        terms = [exact.leaf(region, label) for label in range(class_count)]
        _compare_shares(weights.log_weights(path), terms, eta)


def _compare_shares(log_weights: NDArray[np.float64], terms: list[Decimal], eta: float) -> None:
    """Compare the shares of choices that are not below the grid of a draw."""
    computed = log_weights - logsumexp(log_weights)
    total = sum(terms, Decimal(0)).ln(ARITHMETIC)
    for share, term in zip(computed, terms, strict=True):
        expected = float(term.ln(ARITHMETIC) - total)
        if expected > -134:
            assert share == pytest.approx(expected, abs=2 * eta + 1e-13)
        else:
            assert share < -133


def _root_shares(rows: Rows, *, depth: int, shortcut: bool) -> NDArray[np.float64]:
    """Return the exact probabilities of a root's test and of its sides' tests."""
    exact = ExactRecursion(*rows, 2, 1.0, shortcut=shortcut)
    test_count = rows[0].shape[1]
    weights = np.empty((test_count,) * 3)
    for root, left, right in np.ndindex(weights.shape):
        sides = exact.sides(exact.everyone, root)
        terms = [
            exact.node(side, test, depth - 1)
            for side, test in zip(sides, (left, right), strict=True)
        ]
        weights[root, left, right] = float(terms[0] * terms[1] / exact.sum(exact.everyone, depth))
    shares: NDArray[np.float64] = weights.ravel() / weights.sum()
    return shares


def _plausible(seen: NDArray[np.float64], shares: NDArray[np.float64]) -> bool:
    """Tell whether Pearson's statistic is within six standard deviations and 30 of its mean.

    It exceeds that with probability below 1e-8; the words are seeded.
    """
    statistic, freedom = pearson(seen, seen.sum() * shares)
    return statistic < freedom + 6 * math.sqrt(2 * freedom) + 30


@pytest.mark.parametrize("depth", [4, 5])
def test_deep_trees_are_drawn_as_often_as_they_weigh(depth: int) -> None:
    """Draws fit the exact law of the first two levels; the planted shortcut's law does not."""
    rows = _rows(4, row_count=40, test_count=3, class_count=2)
    weights = Remembered(_weights(rows, depth=depth, class_count=2, epsilon=1.0))
    noise = ScriptedNoise(seeded_words(depth))
    seen = np.zeros(27)
    for _ in range(500):
        seen[int(np.array([9, 3, 1]) @ weights.draw(noise).test_indices[:3])] += 1
    assert _plausible(seen, _root_shares(rows, depth=depth, shortcut=False))
    assert not _plausible(seen, _root_shares(rows, depth=depth, shortcut=True))


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (upper_level_weights, "THREAD_COUNT_MAX", 1),
        (upper_level_weights, "PAIRS_PER_BATCH", 1),
        (upper_level_weights, "SIDES_PER_BLOCK", 1),
        (regions, "SINGLE_PRECISION_MAX", 0),
    ],
)
def test_no_digit_depends_on_how_the_work_is_shared(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: int
) -> None:
    """Threads, batches and the precision of whole counts leave every table as it is."""
    rows = _rows(5, row_count=300, test_count=6, class_count=3)
    before = _weights(rows, depth=5, class_count=3, epsilon=0.4)
    monkeypatch.setattr(module, name, value)
    after = _weights(rows, depth=5, class_count=3, epsilon=0.4)
    for one, other in zip(before.tables, after.tables, strict=True):
        assert np.array_equal(one.errors, other.errors)
        assert np.array_equal(one.factors, other.factors)


def test_without_rows_every_region_weighs_all_its_trees() -> None:
    """An empty region counts all its trees, at every depth."""
    empty = np.zeros((0, 3), dtype=np.uint8), np.zeros(0, dtype=np.int64)
    for depth in range(7):
        expected = TreeSize(test_count=3, depth=depth, class_count=2).tree_count
        computed = _weights(empty, depth=depth, class_count=2, epsilon=0.1).log_normaliser()
        assert computed == pytest.approx(math.log(expected), abs=1e-9)


@pytest.mark.parametrize(("test_count", "depth"), [(4, 2), (5, 3), (4, 4), (3, 5)])
def test_the_steps_that_are_told_follow_from_public_numbers(test_count: int, depth: int) -> None:
    """Whatever the rows, the same steps are told in the same order, up to all of them."""

    def told_of(seed: int, row_count: int) -> list[tuple[int, int]]:
        generator = np.random.default_rng(seed)
        told: list[tuple[int, int]] = []
        trees = TreeClass(
            tests=unit_tests(test_count),
            depth=depth,
            class_count=2,
            told=lambda done, total: told.append((done, total)),
        )
        bits = (generator.random((row_count, test_count)) < seed / 4).astype(np.uint8)
        trees.weights(bits, generator.integers(0, 2, row_count), 1.0)
        return told

    steps = told_of(0, 1)
    assert all(told_of(seed, count) == steps for seed, count in ((1, 40), (2, 200), (4, 7)))
    if depth <= PAIR_DEPTH:
        assert not steps
    else:
        done, totals = zip(*steps, strict=True)
        assert list(done) == sorted(set(done))
        assert done[-1] == totals[-1] == multiset_count(test_count, depth - PAIR_DEPTH)
        assert len(set(totals)) == 1
