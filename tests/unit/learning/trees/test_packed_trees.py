"""Packed evaluation equals one tree at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError, LedgerCorruptError
from app.learning.trees import packed_trees
from app.learning.trees.packed_trees import PackedTrees, TreeEnsemble
from app.learning.trees.tree import Tree
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEST_COUNT = 5


def _random_trees(
    generator: np.random.Generator, *, count: int, depth: int, class_count: int
) -> NDArray[np.int64]:
    tests = generator.integers(0, TEST_COUNT, (count, (1 << depth) - 1))
    return np.concatenate([tests, generator.integers(0, class_count, (count, 1 << depth))], axis=1)


def _naive_votes(
    trees: NDArray[np.int64], bits: NDArray[np.uint8], *, class_count: int, trees_per_vote: int
) -> NDArray[np.int64]:
    node_count = trees.shape[1] // 2
    labels = np.array(
        [
            Tree(
                test_indices=tuple(tree[:node_count].tolist()),
                leaf_labels=tuple(tree[node_count:].tolist()),
            ).predict(bits)
            for tree in trees
        ]
    )
    counts = np.zeros((len(bits), class_count), dtype=np.int64)
    for start in range(0, len(trees), trees_per_vote):
        for query in range(len(bits)):
            group = labels[start : start + trees_per_vote, query]
            counts[query, np.bincount(group, minlength=class_count).argmax()] += 1
    return counts


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("class_count", [2, 3, 5])
@pytest.mark.parametrize("trees_per_vote", [1, 4])
def test_votes_are_those_of_every_tree(
    depth: int, class_count: int, trees_per_vote: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches around 8 and 64 queries, blocks of trees, and ties within a vote."""
    monkeypatch.setattr(packed_trees, "TREES_PER_BLOCK", 10)
    generator = np.random.default_rng(depth)
    trees = _random_trees(generator, count=24, depth=depth, class_count=class_count)
    packed = PackedTrees(trees, depth=depth, class_count=class_count, trees_per_vote=trees_per_vote)
    bits = generator.integers(0, 2, (131, TEST_COUNT), dtype=np.uint8)
    expected = _naive_votes(trees, bits, class_count=class_count, trees_per_vote=trees_per_vote)
    for count in (0, 1, 8, 9, 64, 65, 131):
        assert np.array_equal(packed.vote_counts(bits[:count]), expected[:count])
    assert packed.size == 24 // trees_per_vote
    assert set(expected.sum(axis=1)) == {packed.size}


def test_a_tie_within_a_vote_goes_to_the_smallest_class() -> None:
    """One constant tree each for classes 2 and 1: the vote is class 1."""
    packed = PackedTrees(np.array([[2], [1]]), depth=0, class_count=3, trees_per_vote=2)
    assert packed.vote_counts(np.zeros((1, 0), dtype=np.uint8)).tolist() == [[0, 1, 0]]


def test_bytes_rebuild_the_same_votes() -> None:
    """An ensemble survives storage next to its public tests."""
    generator = np.random.default_rng(1)
    trees = _random_trees(generator, count=30, depth=2, class_count=3)
    ensemble = TreeEnsemble(unit_tests(TEST_COUNT), PackedTrees(trees, depth=2, class_count=3))
    again = TreeEnsemble.from_bytes(unit_tests(TEST_COUNT), ensemble.to_bytes())
    values = generator.random((20, TEST_COUNT))
    assert np.array_equal(again.vote_counts(values), ensemble.vote_counts(values))
    assert (again.size, again.class_count) == (30, 3)
    assert again.to_bytes() == ensemble.to_bytes()


def test_other_bytes_are_corruption() -> None:
    """Another start, another length, and tests that do not exist are refused."""
    body = PackedTrees(np.array([[4, 0, 1]]), depth=1, class_count=2).to_bytes()
    for altered in (b"", b"nope" + body[4:], body[:-1], body + b"\0"):
        with pytest.raises(LedgerCorruptError):
            PackedTrees.from_bytes(altered)
    with pytest.raises(LedgerCorruptError, match="tests"):
        TreeEnsemble.from_bytes(unit_tests(4), body)


@pytest.mark.parametrize(
    ("cells", "trees_per_vote"),
    [([[0, 0]], 1), ([[0, 0, 2]], 1), ([[70000, 0, 1]], 1), ([[0, 0, 1]], 2), ([[0, 0, 1]], 256)],
)
def test_what_is_no_ensemble_is_refused(cells: list[list[int]], trees_per_vote: int) -> None:
    """Widths, labels, 16-bit tests and groups are checked when trees are packed."""
    with pytest.raises(InvariantError):
        PackedTrees(np.array(cells), depth=1, class_count=2, trees_per_vote=trees_per_vote)
