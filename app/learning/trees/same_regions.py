"""Which regions are the same, or empty, by what their tests ask: public, whatever the rows.

Of two cuts of one number the higher implies the lower, and two categories of
one feature exclude each other.  So some lists of literals describe a region
that another list describes as well, and its sums need computing once.  No
region is left out for what rows there are in it.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from app.learning.trees.multisets import multiset_ranks, multisets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest


def excluded_literals(tests: Sequence[BinaryTest]) -> NDArray[np.bool_]:
    """Return the pairs of literals that no row satisfies both of, shape ``(2 t, 2 t)``.

    The literal of test a with outcome o is ``2 a + o``.
    """
    excluded = np.zeros((2 * len(tests), 2 * len(tests)), dtype=np.bool_)
    for first, test in enumerate(tests):
        excluded[2 * first, 2 * first + 1] = True
        for second, other in enumerate(tests):
            if first == second or test.feature_index != other.feature_index:
                continue
            if test.cut is not None and other.cut is not None:
                # At or above the higher cut, and not at or above the lower.
                excluded[2 * first + 1, 2 * second] = test.cut >= other.cut
            elif test.cut is None and other.cut is None:
                same = test.category_code == other.category_code
                excluded[2 * first + 1, 2 * second + (not same)] = True
    return excluded | excluded.T


def first_descriptions(excluded: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Return, for each multiset of ``size`` literals, the rank of the one that stands for it.

    A literal that another one implies gives way to it; an empty region is that
    of a test both ways.  What stands for a region stands for itself.

    Args:
        excluded: pairs of literals that exclude each other, at least the two of each test.
        size: literals of a region; with one, each stands for itself.

    Returns:
        Ranks by rank, shape ``(regions,)``.

    """
    regions = multisets(len(excluded), size)
    if size == 1:
        return np.arange(len(regions))
    implied = excluded[:, np.arange(len(excluded)) ^ 1]
    # Of literals that imply each other, the first stays.
    gives_way = implied & (~implied.T | np.triu(np.ones_like(implied), 1))
    pairs = list(permutations(range(size), 2))
    is_empty = np.zeros(len(regions), dtype=np.bool_)
    for first, second in pairs:
        is_empty |= excluded[regions[:, first], regions[:, second]]
    for first, second in pairs * size:
        stays, goes = regions[:, first], regions[:, second]
        regions[:, second] = np.where(gives_way[stays, goes], stays, goes)
    regions[is_empty] = [0] * (size - 1) + [1]
    return multiset_ranks(np.sort(regions, axis=1), len(excluded))
