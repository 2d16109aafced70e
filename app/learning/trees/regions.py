"""Exact counts of the private rows that have given outcomes of feature tests, by label.

A hypothesis class over tests needs only the outcomes of the tests on a row, and the row's label. A
region is the set of rows with given outcomes of some tests. There are two forms of rows:

* Bit vectors: for each label and test, one bit per row. Counts are numbers of set bits, and the
  work depends only on the numbers of rows and tests.
* Merged rows: rows with the same outcomes are stored once, with the number of such rows of each
  label, or the sum of their weights. From these rows come the counts for every pair of tests that
  are true; counts for false tests follow by subtraction.

All counts and sums are exact.
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
    from app.learning.enumerated.hypothesis_list import Encoded

WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Region:
    """The rows with given outcomes of some feature tests (a region), as bit vectors for each label.

    Attributes:
        words: for each label, the outcomes of all tests on its rows as bits of 64-bit integers,
            shape ``(tests, integers)``; bits of rows outside the region are zero.
        counts: the number of rows of each label in the region, shape ``(labels,)``.

    """

    words: tuple[NDArray[np.uint64], ...]
    counts: NDArray[np.int64]

    @classmethod
    def packed(cls, bits: NDArray[np.uint8], labels: NDArray[np.int64], class_count: int) -> Self:
        """Return rows as bit vectors.

        Args:
            bits: outcomes of the feature tests, shape ``(rows, tests)``.
            labels: class indices, shape ``(rows,)``.
            class_count: the number of labels.

        """
        words = tuple(_packed(bits[labels == label]) for label in range(class_count))
        return cls(words, np.bincount(labels, minlength=class_count).astype(np.int64))

    def single_counts(self) -> NDArray[np.int64]:
        """Return the number of rows of each label that pass each feature test.

        Returns:
            Counts, shape ``(labels, tests)``.

        """
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
    """The interface of a region's private rows, which the exponential mechanism over trees counts.

    A region is the set of rows with given outcomes of some feature tests.
    """

    @property
    def class_count(self) -> int:
        """The number of labels."""
        ...

    @property
    def test_count(self) -> int:
        """The number of feature tests."""
        ...

    @property
    def number(self) -> np.dtype[np.floating]:
        """The floating-point type in which counts of these rows are exact."""
        ...

    def turned(self, turned: NDArray[np.uint8]) -> RegionRows:
        """Return the rows with the outcomes of some feature tests inverted.

        Args:
            turned: 1 for each test whose outcome is inverted, else 0, shape ``(tests,)``.

        """
        ...

    def restricted(self, test_index: int, outcome: int) -> RegionRows:
        """Return only those rows for which one feature test has a given outcome.

        Args:
            test_index: the index of the test.
            outcome: the outcome, 0 or 1.

        """
        ...

    def satisfies_any(self, pairs: NDArray[np.bool_]) -> bool:
        """Return whether any row satisfies both conditions of any marked pair of conditions.

        A condition is one outcome of one feature test.

        Args:
            pairs: True for each marked pair, shape ``(2 * tests, 2 * tests)``; the index
                ``2 * a + o`` stands for the condition that the test with index a has the outcome o.

        """
        ...

    def label_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label, shape ``(labels,)``."""
        ...

    def single_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label that pass each feature test.

        Returns:
            Counts, shape ``(labels, tests)``.

        """
        ...

    def statistics(self) -> Counts:
        """Return the counts of rows that the exponential mechanism over trees of depth 2 needs.

        :meth:`RegionStatistics.of` describes the layout of the returned array.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergedRows:
    """The distinct rows, each with the number of equal rows of each label.

    Rows are merged block by block, so that time and memory grow at most in proportion to the number
    of rows. The same row may therefore occur once in each block.

    Attributes:
        packed: the outcomes of the feature tests on each distinct row, eight outcomes in a byte,
            shape ``(distinct rows, bytes)``.
        multiplicities: the number of equal rows of each label, or the sum of their weights, shape
            ``(labels, distinct rows)``.
        test_count: the number of tests.

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
        """Return the distinct rows, with their numbers or summed weights for each label.

        Args:
            bits: outcomes of the feature tests, shape ``(rows, tests)``.
            labels: class indices, shape ``(rows,)``.
            class_count: the number of labels.
            row_weights: the weight of each row, shape ``(rows,)``; None for weight 1 each.

        """
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
        """The number of labels."""
        return len(self.multiplicities)

    @property
    def number(self) -> np.dtype[np.floating]:
        """The floating-point type in which counts of these rows are exact."""
        return self.multiplicities.dtype

    def turned(self, turned: NDArray[np.uint8]) -> MergedRows:
        """Return the rows with the outcomes of some feature tests inverted.

        Args:
            turned: 1 for each test whose outcome is inverted, else 0, shape ``(tests,)``.

        """
        return replace(self, packed=self.packed ^ _packed_statistics(turned[np.newaxis]))

    def restricted(self, test_index: int, outcome: int) -> MergedRows:
        """Return only those rows for which one feature test has a given outcome.

        Args:
            test_index: the index of the test.
            outcome: the outcome, 0 or 1.

        """
        byte, place = divmod(test_index, BITS_PER_BYTE)
        outcomes = self.packed[:, byte] >> (BITS_PER_BYTE - 1 - place) & 1
        kept = np.flatnonzero(outcomes == outcome)
        return replace(self, packed=self.packed[kept], multiplicities=self.multiplicities[:, kept])

    def satisfies_any(self, pairs: NDArray[np.bool_]) -> bool:
        """Return whether any row satisfies both conditions of any marked pair of conditions.

        A condition is one outcome of one feature test.

        Args:
            pairs: True for each marked pair, shape ``(2 * tests, 2 * tests)``; the index
                ``2 * a + o`` stands for the condition that the test with index a has the outcome o.

        """
        for bits, _ in self._blocks():
            literals = np.stack([1 - bits, bits], axis=2).reshape(-1, 2 * self.test_count)
            if np.any((literals.T @ literals > 0) & pairs):
                return True
        return False

    def label_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label, shape ``(labels,)``."""
        counts: NDArray[np.float64] = self.multiplicities.sum(axis=1, dtype=np.float64)
        return counts

    def single_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label that pass each feature test.

        Returns:
            Counts, shape ``(labels, tests)``.

        """
        counts = np.zeros((self.class_count, self.test_count))
        for bits, weights in self._blocks():
            counts += weights @ bits
        return counts

    def statistics(self) -> Counts:
        """Return the counts of rows that the exponential mechanism over trees of depth 2 needs.

        :meth:`RegionStatistics.of` describes the layout of the returned array.
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
    """The counts of rows in several regions (sets of rows), by label and by pairs of feature tests.

    Attributes:
        signed: for each label l from 1, the number of rows of label l on which two tests are true,
            less the number of such rows of label 0, shape ``(regions, labels - 1, tests, tests)``.
        singles: the number of rows of each label that pass a test, shape
            ``(regions, labels, tests)``.
        totals: the number of rows of each label, shape ``(regions, labels)``.

    """

    signed: NDArray[np.float64]
    singles: NDArray[np.float64]
    totals: NDArray[np.float64]

    @classmethod
    def of(cls, flat: Counts, *, test_count: int, class_count: int) -> Self:
        """Return the counts of several regions from the arrays of :meth:`MergedRows.statistics`.

        Args:
            flat: one array per region, shape ``(regions, counts)``: first the counts by pairs of
                tests (:attr:`signed`), then by single tests (:attr:`singles`), then of all rows
                (:attr:`totals`).
            test_count: the number of feature tests.
            class_count: the number of labels.

        """
        parts = np.split(flat, np.cumsum(_part_lengths(test_count, class_count))[:-1], axis=1)
        signed, singles, totals = (part.astype(np.float64) for part in parts)
        return cls(
            signed.reshape(len(flat), class_count - 1, test_count, test_count),
            singles.reshape(len(flat), class_count, test_count),
            totals,
        )


def statistics_length(test_count: int, class_count: int) -> int:
    """Return the length of the array that contains the counts of one region."""
    return sum(_part_lengths(test_count, class_count))


def exact_outcomes(satisfied: Counts) -> Counts:
    """Return, for each subset of K feature tests, how many rows pass only the tests of the subset.

    Args:
        satisfied: for each subset of K tests, counts of the rows that pass at least the tests of
            the subset, shape ``(regions, 2**K, counts)``. Bit j of a subset's index says whether it
            contains test j. The array is overwritten.

    Returns:
        For each subset, the counts of the rows that pass the tests of the subset and no other of
        the K tests, in the same shape.

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
