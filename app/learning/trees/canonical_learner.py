"""The canonical learner: a tree with the fewest errors, by the same tie-breaking in any chunk.

Tests are ordered by ``q (1 - q)`` descending, q their public frequency, then
by index; the first root that attains the least error is taken, then at each
child the first test that attains that child's own least error.  A leaf takes
its majority; among labels that tie there, the one with most rows in the
parent region, then the smallest: for two labels that is the parent's majority
for a tied or empty leaf, then class 0, and with more labels a tied leaf never
takes a label that would cost an error.  Chunks that agree on the relabelled
concept then agree on what no row of theirs decides, which is what keeps votes
stable.
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
    """Return the order in which tests win ties, ``(t,)``: the most even public splits first."""
    return order_by_spread(np.array([test.public_frequency for test in tests]))


def order_by_spread(frequencies: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return indices of frequencies q, those nearest one half first: ``q (1 - q)`` descending."""
    spread = np.round(frequencies * (1.0 - frequencies), FREQUENCY_DECIMALS)
    return np.argsort(-spread, kind="stable").astype(np.int64)


def fit_tree(
    bits: NDArray[np.uint8], labels: NDArray[np.int64], *, depth: int, class_count: int
) -> NDArray[np.int64]:
    """Return the tree with fewest errors on one chunk.

    Args:
        bits: outcomes of the tests in canonical order, shape ``(m, t)``.
        labels: shape ``(m,)``.
        depth: levels of tests.
        class_count: number of labels.

    Returns:
        Shape ``(1, 2**(depth + 1) - 1)``: tests in heap order, then leaf labels.

    """
    chunk = Chunk.of(bits, labels, class_count)
    return grow(chunk, depth=depth, tree_count=1, rule=CanonicalRule())


def choose_hypothesis(errors: NDArray[np.int64], order: NDArray[np.int64]) -> int:
    """Return the first hypothesis of a list, in the given order, with the fewest errors."""
    return int(order[np.argmin(errors[order])])


class CanonicalRule:
    """The rule that chooses the tree with the fewest errors; the first one among equals."""

    def leaf(self, counts: NDArray[np.float32]) -> NDArray[np.floating]:
        """Return how many rows of a leaf have its majority label."""
        right: NDArray[np.floating] = counts.max(axis=0)
        return right

    def join(self, left: NDArray[np.floating], right: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the number of correctly labelled rows on both sides of a test together."""
        right_rows: NDArray[np.floating] = np.add(left, right)
        return right_rows

    def total(self, scores: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the number of rows that the tree below a node labels right by its best test."""
        best: NDArray[np.floating] = scores.max(axis=-1)
        return best

    def choose(self, scores: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the first of the best tests, at every node."""
        first: NDArray[np.int64] = scores.argmax(axis=-1)
        return first

    def label(
        self, leaf_counts: NDArray[np.float32], parent_counts: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Return each leaf's majority label; the parent node's majority decides ties."""
        tied = leaf_counts == leaf_counts.max(axis=0)
        chosen: NDArray[np.int64] = np.where(tied, parent_counts, -1.0).argmax(axis=0)
        return chosen
