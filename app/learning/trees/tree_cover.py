"""One tree for every dichotomy that trees over public tests make of some points.

Found level by level: what a subtree does to the points is all that the tree above
it depends on, so one subtree for every dichotomy is enough on each level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.learning.encoding.binary_tests import evaluate
from app.learning.trees.listed import TreeList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

LABEL_COUNT = 2


def covering_trees(
    tests: Sequence[BinaryTest], public_values: NDArray[np.float64], *, depth: int
) -> TreeList:
    """Return one tree with two labels for every dichotomy of public points.

    Args:
        tests: what trees may ask; without any only the constants are left.
        public_values: encoded points, shape ``(m, d)``; m at least 1.
        depth: levels of tests.

    """
    bits = np.unique(evaluate(tests, public_values), axis=0)
    outcomes = np.packbits(bits.T, axis=1)
    everywhere = np.packbits(np.ones(len(bits), dtype=np.uint8))
    labels = np.stack([np.zeros_like(everywhere), everywhere])
    cells = np.arange(LABEL_COUNT, dtype=np.int64)[:, np.newaxis]
    levels = depth if len(tests) else 0
    for level in range(levels):
        labels, cells = _one_level_up(outcomes, labels, cells, level)
    return TreeList(tests, cells, depth=levels, class_count=LABEL_COUNT)


def tree_candidate_count(test_count: int, *, depth: int) -> int:
    """Bound the trees that are looked at on the last level, hence those that are kept."""
    if test_count == 0:
        return LABEL_COUNT
    count = LABEL_COUNT
    for level in range(depth):
        # One level has two labels a test, and the constants.
        below = count if level != 1 else LABEL_COUNT * test_count + LABEL_COUNT
        count = test_count * below * below
    return count


def _one_level_up(
    outcomes: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    cells: NDArray[np.int64],
    level: int,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return trees one level deeper, one for each dichotomy, and their labels as bits."""
    size = len(labels)
    above, below = np.divmod(np.arange(size * size), size)
    found = np.concatenate(
        [(outcome & labels[above]) | (~outcome & labels[below]) for outcome in outcomes]
    )
    keys = np.ascontiguousarray(found).view(np.dtype((np.void, found.shape[1])))[:, 0]
    _, first = np.unique(keys, return_index=True)
    kept = np.sort(first)
    test, pair = np.divmod(kept, size * size)
    joined = _join(test, cells[below[pair]], cells[above[pair]], level)
    return found[kept], joined


def _join(
    test: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64], level: int
) -> NDArray[np.int64]:
    """Put a test above two subtrees each, in heap order, level after level."""
    parts = [test[:, np.newaxis]]
    start = 0
    for depth in range(level + 1):
        row = slice(start, start + (1 << depth))
        parts += [left[:, row], right[:, row]]
        start += 1 << depth
    return np.concatenate(parts, axis=1)
