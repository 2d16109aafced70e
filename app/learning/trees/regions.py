"""Exact integer counts of the private rows that have given outcomes of tests.

A class over ``t`` binary tests sees a row only as ``t`` bits and a label, so
the rows of each label are kept as one long bit vector a test.  Regions are
intersections and counts are numbers of set bits: no floating point, no merging,
and a work that depends on n and t only.

Counts of rows by label for every pair of tests, as exact numbers: whole ones, or on the grid
of the rows' weights.

Rows of the same outcomes are merged into one that carries how many it stands
for, by label.  A region is a list of tests that its rows satisfy; what is
counted where some of them fail follows from differences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.learning.encoding.encoded_rows import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.lists.hypothesis_list import Encoded

WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Region:
    """The rows of a region (all rows with given test outcomes), as bit vectors by label.

    Attributes:
        words: for each label, its rows' outcomes, shape ``(t, words)``; bits of
            rows outside the region are zero.
        counts: rows of each label in the region, shape ``(L,)``.

    """

    words: tuple[NDArray[np.uint64], ...]
    counts: NDArray[np.int64]

    @classmethod
    def packed(cls, bits: NDArray[np.uint8], labels: NDArray[np.int64], class_count: int) -> Self:
        """Return rows, given as test outcomes ``(n, t)`` and labels ``(n,)``, as bit vectors."""
        words = tuple(_packed(bits[labels == label]) for label in range(class_count))
        return cls(words, np.bincount(labels, minlength=class_count).astype(np.int64))

    def single_counts(self) -> NDArray[np.int64]:
        """Return the number of rows of each label that pass each test, shape ``(L, t)``."""
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


# Whole numbers below it are exact in float32, and so are their sums in any order.
SINGLE_PRECISION_MAX = 1 << 24
BITS_PER_BYTE: Final = 8
# Rows whose outcomes are held as numbers at once: some megabytes.
ROWS_PER_BLOCK: Final = 8192
# Parts are merged again where rows stand at least for so many each.
WORTHWHILE: Final = 2

Counts = NDArray[np.floating]


class RegionRows(Protocol):
    """The interface of a region's private rows, from which weights of trees are computed."""

    @property
    def class_count(self) -> int:
        """The number of labels, L."""
        ...

    @property
    def test_count(self) -> int:
        """The number of tests, t."""
        ...

    @property
    def number(self) -> np.dtype[np.floating]:
        """The number type in which counts of this many rows are exact."""
        ...

    def turned(self, turned: NDArray[np.uint8]) -> RegionRows:
        """Return the rows with some tests' outcomes inverted: those marked 1 in ``turned``."""
        ...

    def restricted(self, test_index: int, outcome: int) -> RegionRows:
        """Return only those rows for which the test ``test_index`` has ``outcome``."""
        ...

    def satisfies_any(self, pairs: NDArray[np.bool_]) -> bool:
        """Return whether any row has both test outcomes of any marked pair, ``(2 t, 2 t)``."""
        ...

    def label_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label, shape ``(L,)``."""
        ...

    def single_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label that pass each test, shape ``(L, t)``."""
        ...

    def statistics(self) -> Counts:
        """Return the counts from which trees of depth 2 on these rows are weighed, as an array."""
        ...


@dataclass(frozen=True, slots=True)
class MergedRows:
    """The distinct rows, each with the number of equal rows of each label.

    Rows are merged part by part, so that neither time nor memory grows faster than n;
    in different parts the same row may stand more than once.

    Attributes:
        packed: outcomes, eight a byte, shape ``(rows, ceil(t / 8))``.
        multiplicities: rows of each label, or what those count for, shape ``(L, rows)``.
        test_count: number of tests, t.

    """

    packed: NDArray[np.uint8]
    multiplicities: Counts
    test_count: int

    @classmethod
    def of(
        cls,
        bits: EncodedRows,
        labels: NDArray[np.int64],
        class_count: int,
        row_weights: NDArray[np.float64] | None = None,
    ) -> Self:
        """Return the distinct rows of ``bits`` (``(n, t)``), with weighted counts by label."""
        is_whole = row_weights is None and len(bits) < SINGLE_PRECISION_MAX
        number = np.float32 if is_whole else np.float64
        test_count = int(bits[:0].shape[1])
        packed, multiplicities = [], []
        for rows in parts(len(bits)):
            ones = _ones(labels[rows], class_count, number)
            counted = ones if row_weights is None else ones * row_weights[rows]
            merged = _merged(_packed_statistics(bits[rows]), counted)
            packed.append(merged[0])
            multiplicities.append(merged[1])
        together = np.concatenate(packed), np.concatenate(multiplicities, axis=1)
        if len(packed) > 1 and WORTHWHILE * len(together[0]) < len(bits):
            together = _merged(*together)
        return cls(*together, test_count)

    @property
    def class_count(self) -> int:
        """The number of labels, L."""
        return len(self.multiplicities)

    @property
    def number(self) -> np.dtype[np.floating]:
        """The number type in which counts of this many rows are exact."""
        return self.multiplicities.dtype

    def turned(self, turned: NDArray[np.uint8]) -> MergedRows:
        """Return the rows with some tests' outcomes inverted: those marked 1 in ``turned``."""
        return replace(self, packed=self.packed ^ _packed_statistics(turned[np.newaxis]))

    def restricted(self, test_index: int, outcome: int) -> MergedRows:
        """Return only those rows for which the test ``test_index`` has ``outcome``."""
        byte, place = divmod(test_index, BITS_PER_BYTE)
        outcomes = self.packed[:, byte] >> (BITS_PER_BYTE - 1 - place) & 1
        kept = np.flatnonzero(outcomes == outcome)
        return replace(self, packed=self.packed[kept], multiplicities=self.multiplicities[:, kept])

    def satisfies_any(self, pairs: NDArray[np.bool_]) -> bool:
        """Return whether any row has both test outcomes of any marked pair, ``(2 t, 2 t)``."""
        for bits, _ in self._blocks():
            literals = np.stack([1 - bits, bits], axis=2).reshape(-1, 2 * self.test_count)
            if np.any((literals.T @ literals > 0) & pairs):
                return True
        return False

    def label_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label, shape ``(L,)``."""
        counts: NDArray[np.float64] = self.multiplicities.sum(axis=1, dtype=np.float64)
        return counts

    def single_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label that pass each test, shape ``(L, t)``."""
        counts = np.zeros((self.class_count, self.test_count))
        for bits, weights in self._blocks():
            counts += weights @ bits
        return counts

    def statistics(self) -> Counts:
        """Return the counts from which trees of depth 2 on these rows are weighed, as an array.

        The layout is that of :class:`RegionStatistics`.
        """
        tests, classes = self.test_count, self.class_count
        products = np.zeros((classes - 1, tests, tests), dtype=self.number)
        singles = np.zeros((classes, tests), dtype=self.number)
        for bits, weights in self._blocks():
            for index, signed in enumerate(weights[1:] - weights[0]):
                products[index] += (bits * signed[:, np.newaxis]).T @ bits
            singles += weights @ bits
        totals = self.multiplicities.sum(axis=1)
        return np.concatenate([part.ravel() for part in (products, singles, totals)])

    def _blocks(self) -> Iterator[tuple[Counts, Counts]]:
        """Yield outcomes as 0.0 or 1.0, shape ``(b, t)``, and their multiplicities."""
        for start in range(0, len(self.packed), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            bits = np.unpackbits(self.packed[rows], axis=1, count=self.test_count)
            yield bits.astype(self.number), self.multiplicities[:, rows]


@dataclass(frozen=True, slots=True)
class RegionStatistics:
    """The counts of rows in k regions, by label and by pairs of tests.

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
        """Return the counts of ``k`` regions from the output of :meth:`MergedRows.statistics`."""
        parts = np.split(flat, np.cumsum(_part_lengths(test_count, class_count))[:-1], axis=1)
        signed, singles, totals = (part.astype(np.float64) for part in parts)
        return cls(
            signed.reshape(len(flat), class_count - 1, test_count, test_count),
            singles.reshape(len(flat), class_count, test_count),
            totals,
        )


def statistics_length(test_count: int, class_count: int) -> int:
    """Return the length of the array that holds the counts of one region."""
    return sum(_part_lengths(test_count, class_count))


def exact_outcomes(satisfied: Counts) -> Counts:
    """Return how many rows pass exactly a set of tests, from how many pass at least that set.

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


def _packed_statistics(bits: Encoded) -> NDArray[np.uint8]:
    """Return outcomes eight a byte, and one byte at least."""
    if not bits.shape[1]:
        return np.zeros((len(bits), 1), dtype=np.uint8)
    return np.packbits(bits.astype(np.uint8, copy=False), axis=1)


def _ones(labels: NDArray[np.int64], class_count: int, number: type[np.floating]) -> Counts:
    """Return 1 where a row has a label, shape ``(L, n)``."""
    ones: Counts = np.equal(labels, np.arange(class_count)[:, np.newaxis]).astype(number)
    return ones


def _merged(packed: NDArray[np.uint8], multiplicities: Counts) -> tuple[NDArray[np.uint8], Counts]:
    """Return each distinct row once, and what it stands for in all."""
    opaque = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, kept, place = np.unique(opaque, return_index=True, return_inverse=True)
    summed = [np.bincount(place, weights=one, minlength=len(kept)) for one in multiplicities]
    return packed[kept], np.stack(summed).astype(multiplicities.dtype)
