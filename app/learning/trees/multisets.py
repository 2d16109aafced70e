"""Sorted tuples with repetition, numbered: where tables of regions keep their entries.

The rank of ``x_0 <= x_1 <= ...`` is the sum of ``C(x_i + i, i + 1)``: the number
of multisets of that size before it, whatever the number of kinds.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def multiset_count(kind_count: int, size: int) -> int:
    """Return how many multisets of ``size`` there are over ``kind_count`` kinds, one or more."""
    return comb(kind_count + size - 1, size)


def multiset_rank(members: Sequence[int]) -> int:
    """Return the rank of one sorted multiset."""
    return sum(comb(member + place, place + 1) for place, member in enumerate(members))


def multiset_ranks(members: NDArray[np.int64], kind_count: int) -> NDArray[np.int64]:
    """Return the ranks of sorted multisets, which lie along the last axis."""
    ranks = np.zeros(members.shape[:-1], dtype=np.int64)
    for place in range(members.shape[-1]):
        ranks += _steps(kind_count, place)[members[..., place]]
    return ranks


def multisets(kind_count: int, size: int) -> NDArray[np.int64]:
    """Return all multisets by rank, shape ``(count, size)``."""
    listed = np.array(
        list(combinations_with_replacement(range(kind_count), size)), dtype=np.int64
    ).reshape(multiset_count(kind_count, size), size)
    ordered = np.empty_like(listed)
    ordered[multiset_ranks(listed, kind_count)] = listed
    return ordered


@cache
def _steps(kind_count: int, place: int) -> NDArray[np.int64]:
    """Return what each kind adds to a rank in its place."""
    return np.array([comb(kind + place, place + 1) for kind in range(kind_count)], dtype=np.int64)
