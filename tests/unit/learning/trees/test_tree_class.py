"""Exact exponential weights over trees, against brute force over every tree."""

from __future__ import annotations

import math
from dataclasses import replace
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from app.errors import ConfigurationError
from app.learning.trees.tree_class import TreeClass
from app.noise.exact_choice import truncation_variation
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.enumeration import all_errors, pearson, unit_tests
from tests.builders.learners.remembered import Remembered

Rows = tuple[NDArray[np.uint8], NDArray[np.int64]]


def _rows(seed: int, *, row_count: int, test_count: int, class_count: int) -> Rows:
    """Draw rows whose first test is constant, so that every tree has empty regions."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, (row_count, test_count), dtype=np.uint8)
    bits[:, 0] = seed % 2
    return bits, generator.integers(0, class_count, row_count)


def _tree_class(test_count: int, *, depth: int, class_count: int) -> TreeClass:
    return TreeClass(tests=unit_tests(test_count), depth=depth, class_count=class_count)


CASES = [
    (depth, class_count, test_count, row_count)
    for depth, class_count, test_count in [
        (0, 2, 2), (0, 3, 2), (1, 2, 4), (1, 3, 4), (2, 2, 3), (2, 3, 3), (3, 2, 2), (3, 3, 2),
    ]
    for row_count in (0, 1, 12)
]  # fmt: skip


@pytest.mark.parametrize(("depth", "class_count", "test_count", "row_count"), CASES)
def test_the_log_normaliser_is_that_of_every_tree(
    depth: int, class_count: int, test_count: int, row_count: int
) -> None:
    """The factorised sum equals the sum over all parametrised trees to 1e-9."""
    epsilon = 0.7
    for seed in (1, 2):
        bits, labels = _rows(
            seed, row_count=row_count, test_count=test_count, class_count=class_count
        )
        errors = all_errors(bits, labels, depth=depth, class_count=class_count)
        computed = _tree_class(test_count, depth=depth, class_count=class_count).log_normaliser(
            bits, labels, epsilon
        )
        assert computed == pytest.approx(logsumexp(-0.5 * epsilon * errors), abs=1e-9)


@pytest.mark.parametrize(("depth", "class_count"), [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3)])
def test_without_rows_every_tree_weighs_one(depth: int, class_count: int) -> None:
    """An empty region counts all its trees: the normaliser is the size of the class."""
    hypotheses = _tree_class(5, depth=depth, class_count=class_count)
    bits, labels = np.zeros((0, 5), dtype=np.uint8), np.zeros(0, dtype=np.int64)
    assert hypotheses.log_normaliser(bits, labels, 0.1) == pytest.approx(
        log(hypotheses.size), abs=1e-9
    )
    assert hypotheses.size == 5 ** (2**depth - 1) * class_count ** (2**depth)


# Pearson's statistic over c - 1 degrees of freedom exceeds its mean by six
# standard deviations, c - 1 + 6 sqrt(2 (c - 1)), and 30 more, with
# probability below 1e-8 for every c used here (1 to 700); the words are
# seeded, so a pass stays a pass.
def _plausible(statistic: float, freedom: int) -> bool:
    return statistic < freedom + 6 * math.sqrt(2 * freedom) + 30


@pytest.mark.parametrize(
    ("depth", "class_count", "test_count", "trial_count"),
    [(1, 2, 4, 4000), (1, 3, 3, 4000), (2, 2, 2, 6000), (2, 3, 2, 8000), (3, 2, 2, 8000),
     (3, 3, 2, 4000)],
)  # fmt: skip
def test_trees_are_drawn_as_often_as_they_weigh(
    depth: int, class_count: int, test_count: int, trial_count: int
) -> None:
    """Every tree that expects five draws or more has its own cell, empty regions included."""
    epsilon = 1.5
    bits, labels = _rows(3, row_count=9, test_count=test_count, class_count=class_count)
    errors = all_errors(bits, labels, depth=depth, class_count=class_count)
    weights = np.exp(-0.5 * epsilon * errors)
    hypotheses = _tree_class(test_count, depth=depth, class_count=class_count)
    weighed = Remembered(hypotheses.weights(bits, labels, epsilon))
    noise = ScriptedNoise(seeded_words(depth))
    seen = np.zeros(errors.shape)
    bases = test_count ** np.arange(2**depth - 1)[::-1]
    for _ in range(trial_count):
        tree = weighed.draw(noise)
        seen[(int(bases @ np.array(tree.test_indices)), *tree.leaf_labels)] += 1
    expected = trial_count * weights / weights.sum()
    assert _plausible(*pearson(seen.ravel(), expected.ravel()))
    # The tests alone, every labelling summed: few cells, so every draw counts.
    leaves = tuple(range(1, errors.ndim))
    assert _plausible(*pearson(seen.sum(axis=leaves), expected.sum(axis=leaves)))


def test_a_draw_that_skips_empty_regions_is_caught() -> None:
    """The planted shortcut, one tree for an empty region, fails the same statistic."""
    epsilon, trial_count = 1.5, 4000
    bits, labels = _rows(3, row_count=9, test_count=2, class_count=2)
    errors = all_errors(bits, labels, depth=2, class_count=2).reshape(8, -1)
    marginal = np.exp(-0.5 * epsilon * errors).sum(axis=1)
    # Test 0 is true on every row: roots on it (0 .. 3) have one empty side of
    # 2 * 2**2 = 8 trees, which the shortcut weighs as one.
    faulty = marginal / np.where(np.arange(8) < 4, 8.0, 1.0)
    hypotheses = _tree_class(2, depth=2, class_count=2)
    weighed = Remembered(hypotheses.weights(bits, labels, epsilon))
    noise = ScriptedNoise(seeded_words(5))
    seen = np.zeros(8)
    for _ in range(trial_count):
        tree = weighed.draw(noise)
        seen[int(np.array([4, 2, 1]) @ np.array(tree.test_indices))] += 1
    assert _plausible(*pearson(seen, trial_count * marginal / marginal.sum()))
    assert not _plausible(*pearson(seen, trial_count * faulty / faulty.sum()))


def test_a_large_epsilon_draws_a_tree_without_error() -> None:
    """At epsilon 200 another tree has probability below 1e-40."""
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50, dtype=np.uint8)
    labels = (bits[:, 0] ^ bits[:, 1]).astype(np.int64)
    hypotheses = _tree_class(2, depth=2, class_count=2)
    tree = hypotheses.draw(bits, labels, 200.0, ScriptedNoise(seeded_words(1)))
    assert np.array_equal(tree.predict(bits), labels)


def test_the_error_bound_covers_the_arithmetic() -> None:
    """Normalisers of two orders of summation differ by far less than the bound allows."""
    bits, labels = _rows(6, row_count=3000, test_count=6, class_count=3)
    order = np.array([5, 0, 3, 1, 4, 2])
    hypotheses = _tree_class(6, depth=3, class_count=3)
    difference = hypotheses.log_normaliser(bits, labels, 0.3) - hypotheses.log_normaliser(
        bits[:, order], labels, 0.3
    )
    assert abs(difference) <= 2 * hypotheses.log_weight_error(3000, 0.3)
    assert 0.0 < hypotheses.log_weight_error(32_561, 0.1) < 1e-9


def test_the_error_bound_grows_with_the_depth_alone() -> None:
    """Numbers of errors are exact, so neither rows nor epsilon add to the bound."""
    shallow, deep = (_tree_class(6, depth=depth, class_count=2) for depth in (2, 3))
    least = shallow.log_weight_error(1000, 0.1)
    assert least == shallow.log_weight_error(2000, 0.2)
    assert least < deep.log_weight_error(1000, 0.1)


def test_truncation_adds_over_nodes_and_leaves() -> None:
    """A depth-2 tree takes three draws among tests and four among labels."""
    expected = 3 * truncation_variation(6) + 4 * truncation_variation(2)
    assert _tree_class(6, depth=2, class_count=2).truncation_variation == expected


@pytest.mark.parametrize(
    ("test_count", "depth", "digits"), [(400, 4, 44), (200, 5, 81), (3, 8, 199), (2, 9, 308)]
)
def test_a_class_out_of_reach_is_refused_with_its_size(
    test_count: int, depth: int, digits: int
) -> None:
    """400 tests at depth 4 make 400**15 * 2**16 trees, about 10^44."""
    with pytest.raises(
        ConfigurationError,
        match=rf"depth {depth} over {test_count} tests number about 10\^{digits}",
    ):
        _tree_class(test_count, depth=depth, class_count=2)


@pytest.mark.parametrize(
    ("test_count", "depth", "class_count"),
    [
        (86, 5, 2),
        (86, 5, 3),
        (86, 4, 10),
        (300, 4, 2),
        (2000, 3, 2),
        (5000, 2, 2),
        (70_000, 1, 2),
        (12, 7, 2),
    ],
)
def test_a_class_within_minutes_is_accepted(test_count: int, depth: int, class_count: int) -> None:
    """What is refused depends on the tests, the depth and the labels."""
    hypotheses = _tree_class(test_count, depth=depth, class_count=class_count)
    assert hypotheses.size == test_count ** (2**depth - 1) * class_count ** (2**depth)


@pytest.mark.parametrize(
    ("test_count", "depth", "row_count"),
    [(86, 5, 50_000), (86, 4, 10**6), (86, 3, 10**7), (86, 2, 10**9), (12, 7, 10**5)],
)
def test_rows_that_minutes_count_are_accepted(test_count: int, depth: int, row_count: int) -> None:
    """The rarer outcome of a test holds for a tenth of people here."""
    _rare(test_count, depth).refuse_rows(row_count)


@pytest.mark.parametrize(
    ("test_count", "depth", "row_count"), [(86, 5, 10**7), (86, 4, 10**8), (86, 3, 10**9)]
)
def test_rows_that_take_hours_are_refused(test_count: int, depth: int, row_count: int) -> None:
    """Weights do not grow with the rows, but counting does: n is public, and so is the refusal."""
    with pytest.raises(ConfigurationError, match=rf"^hypotheses.depth: counting {row_count} rows"):
        _rare(test_count, depth).refuse_rows(row_count)


def _rare(test_count: int, depth: int) -> TreeClass:
    tests = tuple(replace(test, public_frequency=0.1) for test in unit_tests(test_count))
    return TreeClass(tests=tests, depth=depth, class_count=2)


def test_trees_need_a_test() -> None:
    """Depth above zero without tests has no tree."""
    with pytest.raises(ConfigurationError, match="at least one test"):
        _tree_class(0, depth=1, class_count=2)
