"""The canonical learner: the tree with the fewest errors on a chunk, with public tie-breaking.

Many trees may have the fewest errors on a chunk. All chunks choose among them by the same order, so
that models whose chunks are labelled by the same hypothesis agree even where no row of their chunk
decides. This keeps the votes stable.

Tests are ordered by ``q * (1 - q)``, largest first, where q is the public frequency with which the
feature test is true, and then by index. The root is the first test with which a tree has the fewest
errors. Each child is then the first test with which the subtree below it has the fewest errors.

A leaf gets the most frequent label of its rows. If several labels are equally frequent, it gets the
one of them that is most frequent among the rows of its parent node, and then the one with the
smallest index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.learning.trees.tree_search import Chunk, grow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

# Shares come as decimals, so that q and 1 - q tie in truth but not in doubles.
FREQUENCY_DECIMALS = 12


def canonical_order(tests: Sequence[BinaryTest]) -> NDArray[np.int64]:
    """Return the indices of the feature tests in the canonical order, shape ``(tests,)``.

    The tests whose public frequency is nearest to one half come first; ties keep the given order.
    """
    return order_by_spread(np.array([test.public_frequency for test in tests]))


def order_by_spread(frequencies: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices of frequencies q, ordered by ``q * (1 - q)`` with the largest first.

    Frequencies near one half come first; ties keep the given order.
    """
    spread = np.round(frequencies * (1.0 - frequencies), FREQUENCY_DECIMALS)
    return np.argsort(-spread, kind="stable").astype(np.int64)


def fit_tree(
    bits: NDArray[np.uint8], labels: NDArray[np.int64], *, depth: int, class_count: int
) -> NDArray[np.int64]:
    """Return the tree with the fewest errors on one chunk.

    Args:
        bits: outcomes 0 or 1 of the feature tests in canonical order, shape ``(rows, tests)``.
        labels: class indices, shape ``(rows,)``.
        depth: the number of tests between the root and a leaf.
        class_count: the number of labels.

    Returns:
        The tree, shape ``(1, 2**(depth + 1) - 1)``: the indices of its tests in heap order (level
        by level from the root), then the labels of its leaves.

    """
    chunk = Chunk.of(bits, labels, class_count)
    return grow(chunk, depth=depth, tree_count=1, rule=CanonicalRule())


def choose_hypothesis(errors: NDArray[np.int64], order: NDArray[np.int64]) -> int:
    """Return the index of the hypothesis with the fewest errors, the first in a given order.

    Args:
        errors: the number of errors of each hypothesis, shape ``(hypotheses,)``.
        order: the indices of the hypotheses, the preferred one first, shape ``(hypotheses,)``.

    """
    return int(order[np.argmin(errors[order])])


class CanonicalRule:
    """The rule that chooses the tree with the fewest errors, and the first of equally good ones."""

    def leaf(self, counts: NDArray[np.float32]) -> NDArray[np.floating]:
        """Return the number of rows in each leaf that have the leaf's most frequent label."""
        right: NDArray[np.floating] = counts.max(axis=0)
        return right

    def join(self, left: NDArray[np.floating], right: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the number of correctly labelled rows on both sides of a feature test together."""
        right_rows: NDArray[np.floating] = np.add(left, right)
        return right_rows

    def total(self, scores: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the number of correctly labelled rows below a node with its best feature test."""
        best: NDArray[np.floating] = scores.max(axis=-1)
        return best

    def choose(self, scores: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the index of the first of the best feature tests, for every node."""
        first: NDArray[np.int64] = scores.argmax(axis=-1)
        return first

    def label(
        self, leaf_counts: NDArray[np.float32], parent_counts: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Return each leaf's most frequent label; the counts of the parent node break ties."""
        tied = leaf_counts == leaf_counts.max(axis=0)
        chosen: NDArray[np.int64] = np.where(tied, parent_counts, -1.0).argmax(axis=0)
        return chosen
