"""Brute force over every parametrised tree, written without the factorisation."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from app.learning.encoding.binary_tests import BinaryTest

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unit_tests(test_count: int) -> tuple[BinaryTest, ...]:
    """Return tests whose bits are the values themselves."""
    return tuple(
        BinaryTest(feature_index=index, cut=0.5, category_code=None, public_frequency=0.5)
        for index in range(test_count)
    )


def leaf_of(row: NDArray[np.uint8], tests: tuple[int, ...], depth: int) -> int:
    """Walk one row down a tree in heap order; return its leaf from the left."""
    node = 0
    for _ in range(depth):
        node = 2 * node + 1 + int(row[tests[node]])
    return node - len(tests)


def all_errors(
    bits: NDArray[np.uint8], labels: NDArray[np.int64], *, depth: int, class_count: int
) -> NDArray[np.int64]:
    """Count the errors of every tree.

    Returns:
        Shape ``(t**(2**depth - 1), L, ..., L)``: tests in lexicographic order,
        then one axis a leaf.

    """
    leaf_count = 2**depth
    every = []
    for tests in product(range(bits.shape[1]), repeat=leaf_count - 1):
        wrong = np.zeros((leaf_count, class_count), dtype=np.int64)
        for row, label in zip(bits, labels, strict=True):
            wrong[leaf_of(row, tests, depth)] += 1
            wrong[leaf_of(row, tests, depth), label] -= 1
        every.append(reduce(np.add.outer, wrong))
    return np.array(every)


def pearson(seen: NDArray[np.float64], expected: NDArray[np.float64]) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom.

    Cells that expect fewer than five are pooled into one, largest first.
    """
    order = np.argsort(-expected, kind="stable")
    seen, expected = seen[order], expected[order]
    kept = int((expected >= 5).sum())
    seen = np.append(seen[:kept], seen[kept:].sum())
    expected = np.append(expected[:kept], expected[kept:].sum())
    positive = expected > 0
    statistic = ((seen[positive] - expected[positive]) ** 2 / expected[positive]).sum()
    return float(statistic), int(positive.sum()) - 1
