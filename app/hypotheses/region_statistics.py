"""Counts of rows by label for every pair of tests, as exact whole numbers.

Rows of the same outcomes are merged into one that carries how many it stands
for, by label.  A region is a list of tests that its rows satisfy; what is
counted where some of them fail follows from differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

# Whole numbers below it are exact in float32, and so are their sums in any order.
SINGLE_PRECISION_MAX = 1 << 24

Counts = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Distinct rows and how many of each label they stand for.

    Attributes:
        bits: outcomes as 0.0 or 1.0, shape ``(rows, t)``.
        multiplicities: rows of each label, shape ``(L, rows)``.

    """

    bits: Counts
    multiplicities: Counts

    @classmethod
    def of(cls, bits: NDArray[np.uint8], labels: NDArray[np.int64], class_count: int) -> Self:
        """Merge rows of ``bits`` (``(n, t)``) and ``labels`` (``(n,)``)."""
        number = np.float32 if len(bits) < SINGLE_PRECISION_MAX else np.float64
        _, kept, place = np.unique(_packed(bits), return_index=True, return_inverse=True)
        cells = np.bincount(labels * len(kept) + place, minlength=class_count * len(kept))
        return cls(bits[kept].astype(number), cells.reshape(class_count, -1).astype(number))

    @property
    def test_count(self) -> int:
        """Number of tests, t."""
        return int(self.bits.shape[1])

    @property
    def class_count(self) -> int:
        """Number of labels, L."""
        return len(self.multiplicities)

    def restricted(self, test_index: int, outcome: int) -> MergedRows:
        """Return the rows whose test ``test_index`` has ``outcome`` 0 or 1."""
        kept = np.flatnonzero(self.bits[:, test_index] == outcome)
        return MergedRows(self.bits[kept], self.multiplicities[:, kept])

    def satisfies_any(self, pairs: NDArray[np.bool_]) -> bool:
        """Tell whether some row satisfies both literals of a pair, shape ``(2 t, 2 t)``."""
        literals = np.stack([1 - self.bits, self.bits], axis=2).reshape(-1, 2 * self.test_count)
        return bool(np.any((literals.T @ literals > 0) & pairs))

    def label_counts(self) -> NDArray[np.float64]:
        """Return rows of each label, shape ``(L,)``."""
        counts: NDArray[np.float64] = self.multiplicities.sum(axis=1, dtype=np.float64)
        return counts

    def single_counts(self) -> NDArray[np.float64]:
        """Return rows of each label that satisfy each test, shape ``(L, t)``."""
        return (self.multiplicities @ self.bits).astype(np.float64)

    def statistics(self) -> Counts:
        """Return all counts that weigh trees of depth 2 on these rows, flat.

        The layout is that of :class:`RegionStatistics`.
        """
        signed = self.multiplicities[1:] - self.multiplicities[0]
        products = [(self.bits * weights[:, np.newaxis]).T @ self.bits for weights in signed]
        singles = self.multiplicities @ self.bits
        parts = [*products, singles, self.multiplicities.sum(axis=1)]
        return np.concatenate([part.ravel() for part in parts])


@dataclass(frozen=True, slots=True)
class RegionStatistics:
    """Counts in k regions.

    Attributes:
        signed: rows of label l less those of label 0, l from 1, that satisfy
            two tests, shape ``(k, L - 1, t, t)``.
        singles: rows of each label that satisfy a test, shape ``(k, L, t)``.
        totals: rows of each label, shape ``(k, L)``.

    """

    signed: NDArray[np.float64]
    singles: NDArray[np.float64]
    totals: NDArray[np.float64]

    @classmethod
    def of(cls, flat: Counts, *, test_count: int, class_count: int) -> Self:
        """Read ``k`` flat rows of :meth:`MergedRows.statistics`."""
        parts = np.split(flat, np.cumsum(_part_lengths(test_count, class_count))[:-1], axis=1)
        signed, singles, totals = (part.astype(np.float64) for part in parts)
        return cls(
            signed.reshape(len(flat), class_count - 1, test_count, test_count),
            singles.reshape(len(flat), class_count, test_count),
            totals,
        )


def statistics_length(test_count: int, class_count: int) -> int:
    """Return how many numbers a region's statistics are."""
    return sum(_part_lengths(test_count, class_count))


def exact_outcomes(satisfied: Counts) -> Counts:
    """Return counts by exact outcomes of K tests from counts by tests satisfied.

    Args:
        satisfied: for each subset of K tests, as bits of its index, counts of
            the rows that satisfy at least these, shape ``(m, 2**K, F)``;
            overwritten.

    Returns:
        For each subset, counts of the rows that satisfy exactly these.

    """
    multiset_count, subset_count, length = satisfied.shape
    for test in range(subset_count.bit_length() - 1):
        view = satisfied.reshape(multiset_count, -1, 2, 1 << test, length)
        view[:, :, 0] -= view[:, :, 1]
    return satisfied


def _part_lengths(test_count: int, class_count: int) -> tuple[int, int, int]:
    """Return how many numbers each attribute of :class:`RegionStatistics` has a region."""
    return (class_count - 1) * test_count**2, class_count * test_count, class_count


def _packed(bits: NDArray[np.uint8]) -> NDArray[np.void]:
    """Return each row's outcomes as one opaque value, which a constant keeps from being empty."""
    packed = np.packbits(np.pad(bits, ((0, 0), (0, 1))), axis=1)
    return packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
