"""The halving learner draws uniformly from the trees without error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.chunks import chunk_offsets
from app.learning.trees import tree_search
from app.learning.trees.halving_learner import ERROR_PENALTY, TREES_PER_VOTE
from app.learning.trees.learners import fit_trees
from app.learning.trees.packed_trees import PackedTrees
from app.learning.trees.tree_class import TreeClass
from tests.builders.learners.enumeration import all_errors, pearson, unit_tests
from tests.builders.learners.exact_recursion import ExactRecursion

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK_COUNT = 80
CASES = [(1, 2, 4), (1, 3, 3), (2, 2, 3), (2, 3, 2), (3, 2, 2), (3, 3, 2)]


def _fit(
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    depth: int,
    class_count: int,
    chunk_count: int = CHUNK_COUNT,
) -> NDArray[np.int64]:
    """Fit the same chunk under 80 seeds; return 8,000 trees."""
    hypotheses = TreeClass(tests=unit_tests(bits.shape[1]), depth=depth, class_count=class_count)
    packed = fit_trees(
        "halving",
        bits=np.tile(bits, (chunk_count, 1)),
        labels=np.tile(labels, chunk_count),
        offsets=chunk_offsets(chunk_count * len(bits), chunk_count),
        hypothesis_class=hypotheses,
        secret=b"h" * 32,
    )
    assert (packed.size, packed.trees_per_vote) == (chunk_count, TREES_PER_VOTE)
    return packed._cells.astype(np.int64)


def _frequencies(
    trees: NDArray[np.int64], *, test_count: int, depth: int, class_count: int
) -> NDArray[np.float64]:
    """Count trees in the layout of the enumeration."""
    node_count = (1 << depth) - 1
    seen = np.zeros((test_count**node_count, *(class_count,) * (node_count + 1)))
    for tree in trees:
        row = int(tree[:node_count] @ test_count ** np.arange(node_count)[::-1])
        seen[(row, *tree[node_count:])] += 1
    return seen


def _plausible(statistic: float, freedom: int) -> bool:
    """Bound Pearson's statistic six standard deviations and 30 above its mean.

    Probability below 1e-8 for every number of cells here; seeds are fixed.
    """
    return statistic < freedom + 6 * math.sqrt(2 * freedom) + 30


def _weights(errors: NDArray[np.int64]) -> NDArray[np.float64]:
    least = errors.min()
    weights: NDArray[np.float64] = np.exp(-ERROR_PENALTY * (errors - least))
    return np.where(errors == 0, 1.0, 0.0) if least == 0 else weights


@pytest.mark.parametrize(("depth", "class_count", "test_count"), CASES)
@pytest.mark.parametrize("with_error", [False, True])
def test_trees_are_drawn_as_often_as_they_weigh(
    depth: int, class_count: int, test_count: int, *, with_error: bool
) -> None:
    """Zero-error trees uniformly; where there is none, by exp(-2 errors)."""
    generator = np.random.default_rng(depth)
    bits = generator.integers(0, 2, (6, test_count), dtype=np.uint8)
    bits[0], bits[1] = 0, 1
    labels = bits[:, 0].astype(np.int64) * (class_count - 1)
    if with_error:
        bits = np.concatenate([bits, bits])
        labels = np.concatenate([labels, (labels + 1) % class_count])
    errors = all_errors(bits, labels, depth=depth, class_count=class_count)
    assert (errors.min() > 0) == with_error
    trees = _fit(bits, labels, depth=depth, class_count=class_count)
    seen = _frequencies(trees, test_count=test_count, depth=depth, class_count=class_count)
    weights = _weights(errors)
    expected = len(trees) * weights / weights.sum()
    assert seen[weights == 0].sum() == 0
    assert _plausible(*pearson(seen.ravel(), expected.ravel()))
    leaves = tuple(range(1, seen.ndim))
    assert _plausible(*pearson(seen.sum(axis=leaves), expected.sum(axis=leaves)))


@pytest.mark.parametrize("with_error", [False, True])
def test_roots_of_deep_trees_are_drawn_as_often_as_they_weigh(*, with_error: bool) -> None:
    """At depth 4, by the sums over all trees under each root and each of its sides."""
    depth, test_count = 4, 3
    bits = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 0]], dtype=np.uint8)
    labels = np.array([0, 1, 1, 0, 1])
    if with_error:
        bits, labels = np.concatenate([bits, bits]), np.concatenate([labels, 1 - labels])
    penalty = ERROR_PENALTY if with_error else 100.0
    exact = ExactRecursion(bits, labels, 2, 2 * penalty)
    weights = np.empty((test_count,) * 3)
    for root, below, above in np.ndindex(weights.shape):
        sides = exact.sides(exact.everyone, root)
        terms = [
            exact.node(side, test, depth - 1)
            for side, test in zip(sides, (below, above), strict=True)
        ]
        weights[root, below, above] = float(terms[0] * terms[1])
    trees = _fit(bits, labels, depth=depth, class_count=2)
    assert trees.shape == (CHUNK_COUNT * TREES_PER_VOTE, 31)
    cells = trees[:, :3] @ np.array([9, 3, 1])
    seen = np.bincount(cells, minlength=27).astype(np.float64)
    expected = len(trees) * (weights / weights.sum()).ravel()
    assert _plausible(*pearson(seen, expected))
    right = PackedTrees(trees, depth=depth, class_count=2, trees_per_vote=1).vote_counts(bits)
    if not with_error:
        assert np.array_equal(right[np.arange(5), labels], np.full(5, len(trees)))


def test_small_batches_draw_from_the_same_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees grown one at a time are as free of errors as those grown together."""
    monkeypatch.setattr(tree_search, "BATCH_NUMBERS_MAX", 1)
    bits = np.array([[0, 1], [1, 0], [1, 1]], dtype=np.uint8)
    trees = _fit(bits, np.array([1, 0, 0]), depth=2, class_count=2, chunk_count=10)
    assert PackedTrees(trees, depth=2, class_count=2).vote_counts(bits).tolist() == [
        [0, len(trees)],
        [len(trees), 0],
        [len(trees), 0],
    ]


def test_a_constant_over_several_labels_is_drawn_by_its_errors() -> None:
    """Depth 0 has no tree without error; two to one votes are e^-2 to e^-4."""
    trees = _fit(np.zeros((3, 0), dtype=np.uint8), np.array([0, 1, 1]), depth=0, class_count=2)
    expected = len(trees) / (1 + np.exp(-2.0))
    # Five standard deviations of a binomial: false alarm 6e-7 over the seed.
    assert abs(int(trees.sum()) - expected) < 5 * np.sqrt(expected * (1 - expected / len(trees)))


def test_a_chunk_with_one_class_votes_it_everywhere() -> None:
    """No random leaf speaks against the only label that a chunk has seen."""
    trees = _fit(np.array([[0], [1]], dtype=np.uint8), np.array([2, 2]), depth=1, class_count=3)
    assert set(trees[:, 1:].ravel().tolist()) == {2}
