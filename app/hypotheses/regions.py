"""Counts over regions of private rows, as exact integers.

A class over ``t`` binary tests sees a row only as ``t`` bits and a label, so
equal rows are merged once and carried with a multiplicity.  All counts are
integers far below ``2**53`` and are held exactly in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# Rows multiplied at once: bounds the float copy of the bits.
ROWS_PER_BLOCK = 65_536
# Sums of non-negative integers below this are exact in float32, in any order.
FLOAT32_EXACT_BOUND = 1 << 24
_WORD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Region:
    """Distinct rows with their multiplicities, ordered by label.

    Attributes:
        bits: distinct outcomes, shape ``(m, t)``.
        labels: class indices in ascending order, shape ``(m,)``.
        multiplicities: how many private rows each stands for, shape ``(m,)``.
        class_count: number of labels, L.

    """

    bits: NDArray[np.uint8]
    labels: NDArray[np.int64]
    multiplicities: NDArray[np.int64]
    class_count: int

    @classmethod
    def merged(cls, bits: NDArray[np.uint8], labels: NDArray[np.int64], class_count: int) -> Self:
        """Merge equal rows of ``bits`` (``(n, t)``) and ``labels`` (``(n,)``)."""
        keys = _row_keys(bits)
        order = np.lexsort((*keys.T, labels))
        changes = np.ones(len(order), dtype=np.bool_)
        changes[1:] = (labels[order[1:]] != labels[order[:-1]]) | np.any(
            keys[order[1:]] != keys[order[:-1]], axis=1
        )
        starts = np.flatnonzero(changes)
        kept = order[starts]
        counts = np.diff(starts, append=len(order)).astype(np.int64)
        return cls(bits[kept], labels[kept], counts, class_count)

    def restricted(self, test_index: int, outcome: int) -> Region:
        """Return the rows whose test ``test_index`` has ``outcome`` 0 or 1."""
        inside = self.bits[:, test_index] == outcome
        return Region(
            self.bits[inside], self.labels[inside], self.multiplicities[inside], self.class_count
        )

    def label_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label, shape ``(L,)``."""
        weights = self.multiplicities.astype(np.float64)
        return np.bincount(self.labels, weights, self.class_count).astype(np.float64)

    def single_counts(self) -> NDArray[np.float64]:
        """Return rows of each label that satisfy each test, shape ``(L, t)``."""
        counts = np.zeros((self.class_count, self.bits.shape[1]))
        for label, ones, multiplicities in self._blocks():
            counts[label] += multiplicities @ ones
        return counts

    def pair_counts(self) -> NDArray[np.float64]:
        """Return rows of each label that satisfy two tests, shape ``(L, t, t)``."""
        test_count = self.bits.shape[1]
        counts = np.zeros((self.class_count, test_count, test_count))
        all_distinct = len(self.multiplicities) == int(self.multiplicities.sum())
        for label, ones, multiplicities in self._blocks():
            weighted = ones if all_distinct else ones * multiplicities[:, np.newaxis]
            counts[label] += weighted.T @ ones
        return counts

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.floating], NDArray[np.floating]]]:
        """Yield label, bits and multiplicities in a float type whose sums are exact."""
        exact_in_32 = int(self.multiplicities.sum()) < FLOAT32_EXACT_BOUND
        dtype = np.float32 if exact_in_32 else np.float64
        ends = np.searchsorted(self.labels, np.arange(self.class_count + 1))
        for label in range(self.class_count):
            for start in range(int(ends[label]), int(ends[label + 1]), ROWS_PER_BLOCK):
                rows = slice(start, min(start + ROWS_PER_BLOCK, int(ends[label + 1])))
                yield label, self.bits[rows].astype(dtype), self.multiplicities[rows].astype(dtype)


def _row_keys(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return each row's bits packed into 64-bit words, shape ``(n, words)``."""
    packed = np.packbits(bits, axis=1)
    byte_count = -(-max(packed.shape[1], 1) // _WORD_BYTES) * _WORD_BYTES
    padded = np.zeros((len(bits), byte_count), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)
