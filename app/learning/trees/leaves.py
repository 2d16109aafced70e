"""Votes of trees from the outcomes of all their tests, with equal work for every query.

All trees of an ensemble are complete and of one depth.  A node selects between what
its two sides say with three bitwise operations, from the leaves up to the root, so that
nothing of a tree or of a query shows in the time that it takes.  The outcomes of a
query are a bit: one alone fills a byte, and up to 64 queries share a machine word.

Scores of trees: the share of the second class in the leaf that a row reaches.

A leaf's score is fixed by the rows of the tree's own chunk.  Every query walks the
same number of steps in every tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.vote_counting import count_by_column

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

BINARY = 2
BYTE_QUERIES = 8
WORD_QUERIES = 64
# Trees whose outcomes are held at once: some hundred kilobytes at depth three.
TREES_PER_BLOCK = 1 << 13


class LeafSelection:
    """The labels of the leaves of k votes, each vote a plurality of several trees.

    Args:
        leaves: labels from left to right, shape ``(M, 2**depth)``; the trees of a
            vote are adjacent.
        class_count: number of labels, L.
        trees_per_vote: trees whose plurality is one vote, ties to the smallest label.

    """

    def __init__(
        self, leaves: NDArray[np.integer], *, class_count: int, trees_per_vote: int = 1
    ) -> None:
        """Store each bit of the leaf labels as bit masks."""
        self.tree_count, leaf_count = leaves.shape
        invariant(self.tree_count % trees_per_vote == 0, "every vote has its trees")
        invariant(trees_per_vote < 1 << BYTE_QUERIES, "the trees of a vote are counted in a byte")
        invariant(bool(np.all(leaves < class_count)), "a leaf holds a class index")
        self.class_count = class_count
        self.trees_per_vote = trees_per_vote
        self._depth = leaf_count.bit_length() - 1
        self._masks = {
            np.dtype(kind): _sides(_label_masks(leaves.T, class_count).astype(kind))
            for kind in (np.int8, np.int64)
        }

    def vote_counts(
        self,
        query_count: int,
        outcomes: Callable[[slice, slice], NDArray[np.signedinteger]],
    ) -> NDArray[np.int64]:
        """Return the votes on queries, a few queries and trees at a time.

        Args:
            query_count: number of queries, B.
            outcomes: given a block of queries and one of trees, returns the bits of
                every node, shape ``(2**depth - 1, trees)``, in the order of
                :func:`selection_order`: bit i of an ``int64`` for query i, or of up to
                eight of an ``int8``; bits beyond the queries say nothing.

        Returns:
            ``private_vote_count``, shape ``(B, L)``; every row sums to k.

        """
        counts = np.zeros((query_count, self.class_count), dtype=np.int64)
        step = max(1, TREES_PER_BLOCK // self.trees_per_vote) * self.trees_per_vote
        for start in range(0, query_count, WORD_QUERIES):
            queries = slice(start, min(start + WORD_QUERIES, query_count))
            for first in range(0, self.tree_count, step):
                trees = slice(first, min(first + step, self.tree_count))
                counts[queries] += self._count(
                    self._select(outcomes(queries, trees), trees), queries.stop - start
                )
        return counts

    def _select(
        self, outcomes: NDArray[np.signedinteger], trees: slice
    ) -> list[NDArray[np.signedinteger]]:
        """Carry each label bit from the leaves up to the root of every tree."""
        falses, changes = self._masks[outcomes.dtype]
        planes = zip(falses, changes, strict=True)
        return [self._root(outcomes, false[:, trees], change[:, trees]) for false, change in planes]

    def _root(
        self,
        outcomes: NDArray[np.signedinteger],
        false: NDArray[np.signedinteger],
        change: NDArray[np.signedinteger],
    ) -> NDArray[np.signedinteger]:
        if self._depth == 0:
            constant: NDArray[np.signedinteger] = false[0]
            return constant
        last = len(outcomes) // 2
        values = false ^ (outcomes[last:] & change)
        while last:
            above = last // 2
            left, right = values[: last - above], values[last - above :]
            values = left ^ (outcomes[above:last] & (left ^ right))
            last = above
        root: NDArray[np.signedinteger] = values[0]
        return root

    def _count(
        self, planes: list[NDArray[np.signedinteger]], query_count: int
    ) -> NDArray[np.int64]:
        """Turn label bits of trees into votes, then count them, shape ``(B, L)``."""
        if query_count == 1 and self.class_count == BINARY and self.trees_per_vote == 1:
            second = np.count_nonzero(planes[0] & 1)
            return np.array([[len(planes[0]) - second, second]])
        votes = self._pluralities([_by_query(plane, query_count) for plane in planes])
        counts = np.empty((self.class_count, votes.shape[1]), dtype=np.int64)
        for label in range(1, self.class_count):
            counts[label] = count_by_column(votes == label)
        counts[0] = len(votes) - counts[1:].sum(axis=0)
        return counts.T[:query_count]

    def _pluralities(self, planes: list[NDArray[np.uint8]]) -> NDArray[np.integer]:
        """Return each vote's label on each query, ties to the smallest, shape ``(k, w)``."""
        labels: NDArray[np.integer] = planes[0]
        for place, plane in enumerate(planes[1:], start=1):
            labels = labels | plane.astype(np.uint16) << place
        if self.trees_per_vote == 1:
            return labels
        grouped = labels.reshape(-1, self.trees_per_vote, labels.shape[1])
        if self.class_count == BINARY:
            seconds: NDArray[np.uint8] = grouped.sum(axis=1, dtype=np.uint8)
            return (seconds > self.trees_per_vote // BINARY).astype(np.uint8)
        counts = [
            (grouped == label).sum(axis=1, dtype=np.uint8) for label in range(self.class_count)
        ]
        most: NDArray[np.intp] = np.stack(counts).argmax(axis=0)
        return most


def selection_order(depth: int) -> NDArray[np.intp]:
    """Return the nodes of a tree in the order in which the votes evaluate them.

    Level by level, and within a level first all that are a false side, then in the same
    order their true ones: so the sides of a level are two halves of what is below it.
    """
    levels = [(1 << level) - 1 + _sides_first(level) for level in range(depth)]
    return np.concatenate([np.zeros(0, dtype=np.intp), *levels])


def _sides_first(level: int) -> NDArray[np.intp]:
    """Return places of a level, left to right, by their last turn, then the one before it."""
    order = np.zeros(1, dtype=np.intp)
    for _ in range(level):
        order = np.concatenate([2 * order, 2 * order + 1])
    return order


def _sides(masks: NDArray[np.signedinteger]) -> tuple[NDArray[np.signedinteger], ...]:
    """Return the bits of each last test's false leaf, and their difference to the true leaf's."""
    order = _sides_first(masks.shape[1].bit_length() - 1)
    half = max(1, len(order) // 2)
    false, true = masks[:, order[:half]], masks[:, order[half:]]
    return np.ascontiguousarray(false), np.ascontiguousarray(true ^ false[:, : true.shape[1]])


def _by_query(plane: NDArray[np.signedinteger], query_count: int) -> NDArray[np.uint8]:
    """Return one label bit of every tree on every query, shape ``(M, w)``, w at least B."""
    if query_count == 1 and plane.dtype == np.int8:
        return (plane & 1).view(np.uint8)[:, np.newaxis]
    octets = plane.view(np.uint8).reshape(len(plane), -1)
    return np.unpackbits(octets, axis=1, bitorder="little")


def _label_masks(leaves: NDArray[np.integer], class_count: int) -> NDArray[np.int8]:
    """Return all-ones or all-zeros bytes for each bit of each leaf's label.

    Returns:
        Shape ``(planes, 2**depth, M)``, least significant plane first.

    """
    plane_count = max(1, (class_count - 1).bit_length())
    return np.stack([-((leaves >> place) & 1).astype(np.int8) for place in range(plane_count)])


# Places held at once while many queries walk down many trees.
PLACES_MAX: Final = 1 << 22


def leaf_scores(
    trees: NDArray[np.integer],
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    depth: int,
) -> NDArray[np.float64]:
    """Return the share of class 1 among a chunk's rows in each leaf of the chunk's trees.

    Args:
        trees: shape ``(g, 2**(depth + 1) - 1)``: tests in heap order, then leaf labels.
        bits: outcomes of the tests on the chunk's rows, shape ``(m, t)``.
        labels: class indices of the rows, 0 or 1, shape ``(m,)``.
        depth: levels of tests.

    Returns:
        Shape ``(g, 2**depth)``, in [0, 1]; a leaf without a row has its label's 0 or 1.

    """
    node_count, leaf_count = (1 << depth) - 1, 1 << depth
    reached = reached_leaves(trees[:, :node_count], bits, depth=depth)
    places = (reached + leaf_count * np.arange(len(trees))[:, np.newaxis]).ravel()
    size = len(trees) * leaf_count
    rows = np.bincount(places, minlength=size)
    ones = np.bincount(places, weights=np.tile(labels == 1, len(trees)), minlength=size)
    shares = (ones / np.maximum(rows, 1)).reshape(len(trees), leaf_count)
    is_empty = (rows == 0).reshape(shares.shape)
    return np.where(is_empty, trees[:, node_count:], shares).astype(np.float64)


def reached_leaves(
    nodes: NDArray[np.integer], bits: NDArray[np.uint8], *, depth: int
) -> NDArray[np.int64]:
    """Return the index of the leaf that each row reaches in each tree, from the left.

    Args:
        nodes: tests in heap order, shape ``(M, 2**depth - 1)``.
        bits: outcomes of the tests, shape ``(B, t)``.
        depth: levels of tests.

    Returns:
        Shape ``(M, B)``.

    """
    places = np.zeros((len(nodes), len(bits)), dtype=np.int64)
    rows = np.arange(len(bits))
    for level in range(depth):
        tests = np.take_along_axis(nodes, places + (1 << level) - 1, axis=1)
        places = 2 * places + bits[rows, tests]
    return places


def vote_means(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean score of the trees of each vote, added in a fixed order.

    A sum over an axis adds in an order that the number of queries has a part in.

    Args:
        scores: shape ``(k, g, B)``.

    Returns:
        Shape ``(B, k)``.

    """
    total = np.zeros((scores.shape[0], scores.shape[2]))
    for member in range(scores.shape[1]):
        total += scores[:, member]
    means: NDArray[np.float64] = (total / scores.shape[1]).T
    return means
