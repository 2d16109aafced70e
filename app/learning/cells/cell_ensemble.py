"""Votes of k learners over public cells: one number of votes a cell and label says all."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import InvariantError, LedgerCorruptError, invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.cells.cell_splits import CellSplits

_MAGIC = b"CNCLCEL1"
_HEADER = struct.Struct("<8sIIQ")
_COUNT = np.dtype("<i8")


class CellEnsemble:
    """An :class:`~app.learning.ensemble.Ensemble` whose votes differ from cell to cell only.

    Args:
        splits: the public cells.
        private_counts: votes for each label in each cell, shape ``(C, L)``; every
            row sums to k.

    """

    def __init__(self, splits: CellSplits, private_counts: NDArray[np.int64]) -> None:
        """Check that every learner votes once in every cell."""
        invariant(len(private_counts) == splits.cell_count, "every cell has its votes")
        sums = private_counts.sum(axis=1)
        invariant(bool(np.all(sums == sums[0])), "every learner votes once in every cell")
        self._splits = splits
        self._counts = private_counts
        self._size = int(sums[0])

    @property
    def size(self) -> int:
        """Number of votes, k."""
        return self._size

    @property
    def class_count(self) -> int:
        """Number of labels, L."""
        return int(self._counts.shape[1])

    @property
    def is_scored(self) -> bool:
        """A vote over cells has no score."""
        return False

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return ``private_vote_count`` of encoded queries ``(B, d)``, shape ``(B, L)``."""
        return self._counts[self._splits.places(values)]

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Refuse: there are none."""
        del values
        raise InvariantError("learners over cells vote only")

    def repeated(self, times: int) -> Self:
        """Return an ensemble with every vote so many times."""
        return type(self)(self._splits, self._counts * times)

    def to_bytes(self) -> bytes:
        """Return a header and the counts, little-endian, as private state."""
        cell_count, class_count = self._counts.shape
        header = _HEADER.pack(_MAGIC, cell_count, class_count, self._size)
        return header + self._counts.astype(_COUNT).tobytes()

    @classmethod
    def from_bytes(cls, splits: CellSplits, class_count: int, body: bytes) -> Self:
        """Rebuild the ensemble from :meth:`to_bytes` and the same public cells.

        Raises:
            LedgerCorruptError: the body is no ensemble over these cells.

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
