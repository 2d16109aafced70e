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
    from collections.abc import Iterator

    from numpy.typing import NDArray

WORD_BITS = 64
# Words of a test taken at once: a block of some hundred tests stays in a core's cache.
WORDS_PER_BLOCK = 512


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

    @property
    def test_count(self) -> int:
        """Number of tests, t."""
        return len(self.words[0])

    def restricted(self, test_index: int, outcome: int) -> Region:
        """Return the rows whose test ``test_index`` has ``outcome`` 0 or 1."""
        true_counts = self.single_counts()[:, test_index]
        if outcome:
            kept = tuple(words & words[test_index] for words in self.words)
            return Region(kept, true_counts)
        kept = tuple(words & ~words[test_index] for words in self.words)
        return Region(kept, self.counts - true_counts)

    def single_counts(self) -> NDArray[np.int64]:
        """Return rows of each label that satisfy each test, shape ``(L, t)``."""
        return np.stack(
            [np.bitwise_count(words).sum(axis=1, dtype=np.int64) for words in self.words]
        )

    def pair_counts(self) -> NDArray[np.int64]:
        """Return rows of each label that satisfy two tests, shape ``(L, t, t)``."""
        test_count = self.test_count
        counts = np.zeros((len(self.words), test_count, test_count), dtype=np.int64)
        for label, block in self._blocks():
            _add_pairs(block, counts[label])
        return counts + np.triu(counts, 1).transpose(0, 2, 1)

    def triple_counts(self) -> NDArray[np.int32]:
        """Return rows of each label that satisfy three tests, shape ``(L, t, t, t)``.

        Each unordered triple is counted once and copied to its other places.
        """
        test_count = self.test_count
        counts = np.zeros((len(self.words),) + (test_count,) * 3, dtype=np.int32)
        for label, block in self._blocks():
            for test in range(test_count):
                _add_pairs(block[test:] & block[test], counts[label, test, test:, test:])
        return _symmetric(counts)

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        for label, words in enumerate(self.words):
            for start in range(0, words.shape[1], WORDS_PER_BLOCK):
                yield label, np.ascontiguousarray(words[:, start : start + WORDS_PER_BLOCK])


def _packed(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return one bit vector a test, shape ``(t, words)``, padded with zeros."""
    row_count, test_count = bits.shape
    padded_count = -(-row_count // WORD_BITS) * WORD_BITS
    columns = np.zeros((test_count, padded_count // 8), dtype=np.uint8)
    columns[:, : -(-row_count // 8)] = np.packbits(bits, axis=0).T
    return columns.view(np.uint64)


def _add_pairs(block: NDArray[np.uint64], counts: NDArray[np.signedinteger]) -> None:
    """Add to ``counts[a, b]``, b >= a, the rows where both are set."""
    both = np.empty_like(block)
    for first in range(len(block)):
        rest = both[: len(block) - first]
        np.bitwise_and(block[first:], block[first], out=rest)
        counts[first, first:] += np.bitwise_count(rest).sum(axis=1, dtype=counts.dtype)


def _symmetric(counts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Copy ``counts[l, a, b, c]``, a <= b <= c, to every order of the three tests."""
    tests = np.arange(counts.shape[1])
    for first in tests:
        upper = counts[:, first, first:, first:]
        full = upper + np.triu(upper, 1).transpose(0, 2, 1)
        counts[:, first, first:, first:] = full
        counts[:, first:, first, first:] = full
        counts[:, first:, first:, first] = full
    return counts
