"""Scores of trees: the share of the second class in the leaf that a row reaches.

A leaf's score is fixed by the rows of the tree's own chunk.  Every query walks the
same number of steps in every tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Places held at once while many queries walk down many trees.
PLACES_MAX: Final = 1 << 22


def leaf_scores(
    trees: NDArray[np.integer],
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    depth: int,
) -> NDArray[np.float64]:
    """Return the share of class 1 among a chunk's rows in each leaf of its trees.

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
    """Return the leaf that each row reaches in each tree, counted from the left.

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
    """Return the mean over the members of each vote, added one by one in their order.

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
