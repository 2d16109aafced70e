"""Counts over regions of private rows, as exact integers.

A class over ``t`` binary tests sees a row only as ``t`` bits and a label, so
the rows of each label are kept as one long bit vector a test.  Regions are
intersections and counts are numbers of set bits: no floating point, no merging,
and a work that depends on n and t only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Region:
    """Rows of a region, by label, as bit vectors.

    Attributes:
        words: for each label, its rows' outcomes, shape ``(t, words)``; bits of
            rows outside the region are zero.
        counts: rows of each label in the region, shape ``(L,)``.

    """

    words: tuple[NDArray[np.uint64], ...]
    counts: NDArray[np.int64]

    @classmethod
    def packed(cls, bits: NDArray[np.uint8], labels: NDArray[np.int64], class_count: int) -> Self:
        """Pack rows of ``bits`` (``(n, t)``) and ``labels`` (``(n,)``)."""
        words = tuple(_packed(bits[labels == label]) for label in range(class_count))
        return cls(words, np.bincount(labels, minlength=class_count).astype(np.int64))

    def single_counts(self) -> NDArray[np.int64]:
        """Return rows of each label that satisfy each test, shape ``(L, t)``."""
        return np.stack(
            [np.bitwise_count(words).sum(axis=1, dtype=np.int64) for words in self.words]
        )


def _packed(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return one bit vector a test, shape ``(t, words)``, padded with zeros."""
    row_count, test_count = bits.shape
    padded_count = -(-row_count // WORD_BITS) * WORD_BITS
    columns = np.zeros((test_count, padded_count // 8), dtype=np.uint8)
    columns[:, : -(-row_count // 8)] = np.packbits(bits, axis=0).T
    return columns.view(np.uint64)
