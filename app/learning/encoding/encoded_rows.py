"""Encoded private rows, as one array or as consecutive blocks that are encoded on request.

The encoding of a hypothesis class is the form in which the class needs a row to compute its label,
for example the outcomes of feature tests. Encoded rows may take more memory than the rows
themselves. Code that counts rows reads one block after another, and keeps no block.

Rows have weights if a person may have several rows: the weights of a person's rows add up to at
most 1. Every weight is a multiple of ``1 / u`` for some integer u, so sums of weights are counted
exactly, as integers, in units of ``1 / u``. Without weights a row is one unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from app.learning.enumerated.hypothesis_list import Encoded

# Some ten megabytes of bits, and enough rows that the interpreter's share vanishes.
ROWS_PER_PART: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of rows from which a hypothesis class can draw a hypothesis; secret.

    Attributes:
        counts: the counts in units. Counts of several blocks of rows can be added.
        row_count: the number of all rows, or the sum of their weights, in units.
        unit_count: the number u of units in a row of weight 1; 1 if rows have no weights.

    """

    counts: NDArray[np.int64] = field(repr=False)
    row_count: int
    unit_count: int = 1

    @property
    def weighed(self) -> NDArray[np.float64]:
        """The counts as numbers of rows, or as sums of the rows' weights; exact."""
        return self.counts / self.unit_count

    def is_of(self, row_count: int) -> bool:
        """Return whether the tally agrees with the public number of rows or persons.

        Without weights it has exactly this number of rows. With weights, the weights add up to at
        most the number of persons.
        """
        if self.unit_count == 1:
            return self.row_count == row_count
        return self.row_count <= row_count * self.unit_count


class EncodedRows(Protocol):
    """The interface of a sequence of encoded rows: an array or a :class:`RowsByPart`."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def __getitem__(self, rows: slice, /) -> Encoded:
        """Return the encoded rows of a slice."""
        ...


class RowsByPart:
    """Rows that are encoded block by block, each block when it is requested, to save memory.

    Args:
        encode: a function that returns rows in the encoding of a hypothesis class; the encoded form
            of a row depends on this row only.
        values: feature values of the private rows, encoded by the public schema, shape
            ``(all rows, features)``.
        positions: the indices of the rows to use, in the order of use, shape ``(rows,)``; None for
            all rows.

    """

    def __init__(
        self,
        encode: Callable[[NDArray[np.float64]], Encoded],
        values: NDArray[np.float64],
        positions: NDArray[np.int64] | None = None,
    ) -> None:
        """Store references to the rows; nothing is copied."""
        self._encode = encode
        self._values = values
        self._positions = positions

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._values if self._positions is None else self._positions)

    def __getitem__(self, rows: slice, /) -> Encoded:
        """Return the encoded rows of a slice."""
        if self._positions is None:
            return self._encode(self._values[rows])
        return self._encode(self._values[self._positions[rows]])


class RowsInTurn:
    """Rows that are read in order, one chunk after another; several chunks are encoded at a time.

    Args:
        rows: the rows of all chunks, in the order in which they are read.

    """

    def __init__(self, rows: EncodedRows) -> None:
        """Start without encoded rows."""
        self._rows = rows
        self._held = rows[:0]
        self._start = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __getitem__(self, rows: slice, /) -> Encoded:
        """Return the encoded rows of a slice; some rows after it are encoded at the same time."""
        start, stop, _ = rows.indices(len(self))
        if not self._start <= start <= stop <= self._start + len(self._held):
            self._held = self._rows[start : max(stop, start + ROWS_PER_PART)]
            self._start = start
        return self._held[start - self._start : stop - self._start]


def parts(row_count: int) -> Iterator[slice]:
    """Yield consecutive slices that cover a number of rows; for no rows, one empty slice."""
    for start in range(0, max(row_count, 1), ROWS_PER_PART):
        yield slice(start, min(start + ROWS_PER_PART, row_count))


def weighed_parts(
    encoded: EncodedRows, labels: NDArray[np.int64], row_weights: NDArray[np.float64] | None
) -> Iterator[tuple[float, Encoded, NDArray[np.int64]]]:
    """Yield groups of rows with equal weight: the weight, the encoded rows and their labels.

    Args:
        encoded: all rows, in the encoding of a hypothesis class.
        labels: class indices, shape ``(rows,)``.
        row_weights: the weight of each row, shape ``(rows,)``; None for weight 1 each.

    """
    for rows in parts(len(labels)):
        part, its_labels = encoded[rows], labels[rows]
        if row_weights is None:
            yield 1, part, its_labels
            continue
        its_weights = row_weights[rows]
        for weight in np.unique(its_weights).tolist():
            alike = its_weights == weight
            yield weight, part[alike], its_labels[alike]


def predicted(
    predict: Callable[[Encoded], NDArray[np.int64]], encoded: EncodedRows
) -> NDArray[np.int64]:
    """Return the labels that a hypothesis gives to all rows, shape ``(rows,)``.

    Args:
        predict: the hypothesis, as a function from encoded rows to class indices.
        encoded: all rows, in the encoding of the hypothesis class.

    """
    labels = np.empty(len(encoded), dtype=np.int64)
    for rows in parts(len(encoded)):
        labels[rows] = predict(encoded[rows])
    return labels
