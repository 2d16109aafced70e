"""Models that vote for the most frequent label of the query's cell.

A cell is a part of a public division of the feature space. The model of a chunk votes for the most
frequent label among the chunk's rows in the query's cell. If several labels are equally frequent,
or if the chunk has no row in the cell, the vote is the first of these labels counted cyclically
from label ``i mod L``, where i is the public index of the chunk and L is the number of labels.
Therefore the votes of models without rows in the cell are spread evenly over the labels and nearly
cancel.

The ensemble stores only the number of votes for each label in each cell.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import InvariantError, LedgerCorruptError, invariant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellClass, CellSplits
    from app.learning.encoding.encoded_rows import EncodedRows

_MAGIC = b"CNCLCEL1"
_HEADER = struct.Struct("<8sIIQ")
_COUNT = np.dtype("<i8")


class CellEnsemble:
    """An ensemble of models whose votes depend only on the public cell in which the query lies.

    Args:
        splits: the public tree of feature tests that divides the feature space into cells.
        private_counts: the number of votes for each label in each cell, shape ``(cells, labels)``;
            the numbers of one cell add up to the number of models.

    """

    def __init__(self, splits: CellSplits, private_counts: NDArray[np.int64]) -> None:
        """Check that the votes of every cell add up to the same number of models."""
        invariant(len(private_counts) == splits.cell_count, "every cell has its votes")
        sums = private_counts.sum(axis=1)
        invariant(bool(np.all(sums == sums[0])), "every learner votes once in every cell")
        self._splits = splits
        self._counts = private_counts
        self._size = int(sums[0])

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of votes for each label in each cell, shape ``(cells, labels)``; private."""
        return self._counts

    @property
    def size(self) -> int:
        """The number of models, and so of votes on each query."""
        return self._size

    @property
    def class_count(self) -> int:
        """The number of labels."""
        return int(self._counts.shape[1])

    @property
    def is_scored(self) -> bool:
        """Whether votes come with scores (probabilities): always False for votes by cells."""
        return False

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query; secret.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Vote counts, shape ``(queries, labels)``.

        """
        return self._counts[self._splits.places(values)]

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raise an error, since models that vote by cells give no scores.

        Raises:
            InvariantError: always.

        """
        del values
        raise InvariantError("learners over cells vote only")

    def repeated(self, times: int) -> Self:
        """Return an ensemble with ``times`` copies of each model, to time a larger ensemble."""
        return type(self)(self._splits, self._counts * times)

    def to_bytes(self) -> bytes:
        """Return a header and the vote counts as little-endian bytes, for private storage."""
        cell_count, class_count = self._counts.shape
        header = _HEADER.pack(_MAGIC, cell_count, class_count, self._size)
        return header + self._counts.astype(_COUNT).tobytes()

    @classmethod
    def from_bytes(cls, splits: CellSplits, class_count: int, body: bytes) -> Self:
        """Return the ensemble that :meth:`to_bytes` wrote, given the same public cells.

        Args:
            splits: the public tree of feature tests that divides the feature space into cells.
            class_count: the number of labels.
            body: the bytes.

        Raises:
            LedgerCorruptError: the bytes do not encode an ensemble over these cells.

        """
        if len(body) < _HEADER.size or not body.startswith(_MAGIC):
            raise LedgerCorruptError("stored votes of cells do not start as such do")
        _, *shape, size = _HEADER.unpack_from(body)
        if shape != [splits.cell_count, class_count]:
            raise LedgerCorruptError("stored votes are those of other cells")
        if len(body) != _HEADER.size + shape[0] * shape[1] * _COUNT.itemsize:
            raise LedgerCorruptError("stored votes of cells have another length than they say")
        counts = np.frombuffer(body, dtype=_COUNT, offset=_HEADER.size).astype(np.int64)
        counts = counts.reshape(shape)
        if np.any(counts < 0) or np.any(counts.sum(axis=1) != size):
            raise LedgerCorruptError("stored votes of cells do not add up")
        return cls(splits, counts)


# Chunks whose rows are counted at once.
CHUNKS_PER_BLOCK = 1 << 14


def fit_cells(
    *,
    encoded: EncodedRows,
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    hypothesis_class: CellClass,
    first_chunk: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> CellEnsemble:
    """Return an ensemble of one model per chunk, from the labels of the rows in each cell.

    Args:
        encoded: the index of each permuted row's cell, shape ``(rows, 1)``.
        labels: class indices for training, in the same order, shape ``(rows,)``.
        offsets: the index at which each chunk starts, followed by the number of rows, shape
            ``(chunks + 1,)``.
        hypothesis_class: the public cells and the number of labels.
        first_chunk: the index of the first of these chunks among all chunks of the release.
        progress: a function that is called with the number of finished chunks and the number of all
            chunks.

    Returns:
        The ensemble, which must not leave the server.

    """
    splits, class_count = hypothesis_class.splits, hypothesis_class.class_count
    chunk_count = len(offsets) - 1
    turns = _turns(first_chunk, chunk_count, class_count)
    counts = np.tile(turns, (splits.cell_count, 1))
    for first in range(0, chunk_count, CHUNKS_PER_BLOCK):
        last = min(first + CHUNKS_PER_BLOCK, chunk_count)
        rows = slice(int(offsets[first]), int(offsets[last]))
        numbers = np.arange(first_chunk + first, first_chunk + last)
        chunks = np.repeat(numbers, np.diff(offsets[first : last + 1]))
        cells = encoded[rows][:, 0].astype(np.int64)
        _cast(counts, chunks, cells, labels[rows], class_count)
        if progress is not None:
            progress(last, chunk_count)
    return CellEnsemble(splits, counts)


def joined_cells(searched: CellClass, fitted: Sequence[CellEnsemble]) -> CellEnsemble:
    """Return one ensemble with the votes of several ensembles over the same cells."""
    return CellEnsemble(searched.splits, np.sum([each.counts for each in fitted], axis=0))


def _turns(first_chunk: int, chunk_count: int, class_count: int) -> NDArray[np.int64]:
    """Return how many of some chunks have each label as their turn, shape ``(L,)``."""
    turns: NDArray[np.int64] = np.bincount(
        np.arange(first_chunk, first_chunk + chunk_count) % class_count, minlength=class_count
    )
    return turns


def _cast(
    counts: NDArray[np.int64],
    chunks: NDArray[np.int64],
    cells: NDArray[np.int64],
    labels: NDArray[np.int64],
    class_count: int,
) -> None:
    """Move the vote of each chunk in each cell where it has rows from its turn to their label."""
    cell_count = len(counts)
    pairs, place = np.unique(chunks * cell_count + cells, return_inverse=True)
    turns, seen = pairs // cell_count % class_count, pairs % cell_count
    # Labels counted from the chunk's turn on, so that the first of the commonest wins.
    steps = (labels - turns[place]) % class_count
    tally = np.bincount(place * class_count + steps, minlength=len(pairs) * class_count)
    winners = (tally.reshape(-1, class_count).argmax(axis=1) + turns) % class_count
    np.subtract.at(counts, (seen, turns), 1)
    np.add.at(counts, (seen, winners), 1)
