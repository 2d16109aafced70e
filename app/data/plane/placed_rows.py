"""Packed rows in chunks: the position in the permutation and the label of each row.

A row's slot follows from its position in the public order of parts and from the release's key;
its label from its own codes, where a hypothesis relabels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.privacy.voting.keyed_slots import Slots, chunk_of_slots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from app.data.plane.summaries import PackedRows
    from app.learning.encoding.cell_codes import CellCodes
    from app.learning.trees.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRows:
    """Rows in the order of their chunks; secret, and never shown by ``repr``.

    Attributes:
        codes: shape ``(f, m)``.
        labels: that they take, uint8 (m,).
        offsets: where each chunk's rows begin, shape ``(k + 1,)``.

    """

    codes: NDArray[np.uint8] = field(repr=False)
    labels: NDArray[np.uint8] = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)

    def of_chunks(
        self, chunks: slice
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return codes, labels and chunk numbers (from 0) of the rows of some chunks."""
        ends = self.offsets[chunks.start : chunks.stop + 1]
        rows = slice(int(ends[0]), int(ends[-1]))
        numbers = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        return self.codes[:, rows], self.labels[rows].astype(np.int64), numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """The rule that assigns packed rows to chunks.

    Attributes:
        firsts: position of each part's first row.
        key: of the slots; secret.
        row_count: the public n.
        size: the number of chunks, k.
        coding: of the tests.
        hypothesis: that relabels; None where rows keep their labels; secret.

    """

    firsts: Mapping[int, int]
    key: bytes = field(repr=False)
    row_count: int
    size: int
    coding: CellCodes
    hypothesis: Tree | None = field(repr=False)

    def placed(self, parts: list[PackedRows]) -> PlacedRows:
        """Return the rows of some parts in the order of chunks; each part is freed once copied."""
        slots = Slots(self.key, self.row_count)
        chunks = [self._chunks(part, slots) for part in parts]
        counts = sum(
            (np.bincount(each, minlength=self.size) for each in chunks),
            start=np.zeros(self.size, dtype=np.int64),
        )
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        codes = np.empty((len(self.coding.features), int(offsets[-1])), dtype=np.uint8)
        labels = np.empty(codes.shape[1], dtype=np.uint8)
        free = offsets[:-1].copy()
        while parts:
            part, its_chunks = parts.pop(), chunks.pop()
            for rows in _blocks(len(its_chunks)):
                order, places = _places(its_chunks[rows], free)
                block = part.codes[:, rows]
                labels[places] = self._labels(block, part.labels[rows])[order]
                codes[:, places] = block[:, order]
        return PlacedRows(codes, labels, offsets)

    def _chunks(self, part: PackedRows, slots: Slots) -> NDArray[np.uint32]:
        """Return the chunk of each row of a part."""
        first, chunks = self.firsts[part.number], np.empty(len(part.labels), dtype=np.uint32)
        for rows in _blocks(len(chunks)):
            positions = np.arange(first + rows.start, first + rows.stop)
            chunks[rows] = chunk_of_slots(slots.of(positions), count=self.row_count, size=self.size)
        return chunks

    def _labels(self, codes: NDArray[np.uint8], labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the labels that rows take."""
        if self.hypothesis is None:
            return labels
        tests = np.array(self.hypothesis.test_indices, dtype=np.int64)
        nodes = np.zeros(codes.shape[1], dtype=np.int64)
        for _ in range(self.hypothesis.depth):
            nodes = 2 * nodes + 1 + self.coding.outcomes(codes, tests[nodes])
        leaves = np.array(self.hypothesis.leaf_labels, dtype=np.uint8)
        return leaves[nodes - len(tests)]


ROWS_AT_ONCE = 1 << 17


def _blocks(count: int) -> Iterator[slice]:
    """Yield slices of so many rows that what is computed of them stays small."""
    for start in range(0, count, ROWS_AT_ONCE):
        yield slice(start, min(start + ROWS_AT_ONCE, count))


def _places(
    chunks: NDArray[np.uint32], free: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows in the order of their chunks, and the place of each among all; take the places.

    Args:
        chunks: of some rows, shape ``(m,)``.
        free: first free place of each chunk, shape ``(k,)``; moved on.

    """
    order = np.argsort(chunks, kind="stable")
    sorted_chunks = chunks[order]
    counts = np.bincount(chunks, minlength=len(free))
    begins = np.cumsum(counts) - counts
    places = free[sorted_chunks] + np.arange(len(order)) - begins[sorted_chunks]
    free += counts
    return order, places
