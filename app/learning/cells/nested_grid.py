"""Public grids of several resolutions over a few numeric features, with a label per cell.

Public cuts (thresholds) divide the range of each feature into intervals. A value is encoded as its
rank: the number of cuts that are at most the value, or 0 for a missing value. At a coarser
resolution, each cell is a union of cells of the finest grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A cell stands out of its noise where its lead is above so many scales of it.
SCALES_ABOVE: Final = 4
BINARY: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Public grids over the same features at several resolutions.

    Attributes:
        features: the indices of the numeric features, in the order of the schema.
        cuts: for each feature, the values that divide its intervals at the finest resolution,
            ascending.
        sides: the number of intervals per feature at each resolution, coarsest first; each number
            divides the next.

    """

    features: tuple[int, ...]
    cuts: tuple[tuple[float, ...], ...]
    sides: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check that the grids nest, and that the cuts (thresholds) make the finest grid."""
        invariant(len(self.features) == len(self.cuts) > 0, "every number has cuts")
        finest = self.sides[-1]
        invariant(all(len(cuts) == finest - 1 for cuts in self.cuts), "cuts part the finest level")
        invariant(all(cuts == tuple(sorted(cuts)) for cuts in self.cuts), "cuts ascend")
        pairs = zip(self.sides, self.sides[1:], strict=False)
        invariant(all(one < next_ and next_ % one == 0 for one, next_ in pairs), "levels nest")

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return each value's rank: the number of cuts of the finest grid at or below the value.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, all features)``.

        Returns:
            Ranks, shape ``(rows, grid features)``; the rank of a missing value is 0.

        """
        columns = []
        for feature, cuts in zip(self.features, self.cuts, strict=True):
            ranks = np.searchsorted(cuts, values[:, feature], side="right")
            columns.append(np.where(np.isnan(values[:, feature]), 0, ranks))
        return np.stack(columns, axis=1).astype(np.uint8)

    def cell_count(self, side: int) -> int:
        """Return the number of cells of the grid that has ``side`` intervals per feature."""
        return int(side ** len(self.features))

    def cells(self, ranks: NDArray[np.uint8], side: int) -> NDArray[np.int64]:
        """Return the index of each row's cell in the grid that has ``side`` intervals per feature.

        Args:
            ranks: the ranks that :meth:`encode` returns, shape ``(rows, grid features)``.
            side: the number of intervals per feature.

        Returns:
            Cell indices, shape ``(rows,)``; the last feature varies fastest.

        """
        places = ranks.astype(np.int64) // (self.sides[-1] // side)
        cells = np.zeros(len(ranks), dtype=np.int64)
        for column in places.T:
            cells = cells * side + column
        return cells

    def counts(
        self,
        ranks: NDArray[np.uint8],
        labels: NDArray[np.int64],
        side: int,
        class_count: int,
        row_weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the number of rows of each label in every cell, shape ``(cells, labels)``.

        Args:
            ranks: the ranks that :meth:`encode` returns, shape ``(rows, grid features)``.
            labels: class indices, shape ``(rows,)``.
            side: the number of intervals per feature, which selects the grid.
            class_count: the number of labels.
            row_weights: the amount by which each row raises a count, shape ``(rows,)``; None for 1
                each.

        """
        places = self.cells(ranks, side) * class_count + labels
        counts = np.bincount(places, row_weights, self.cell_count(side) * class_count)
        return counts.astype(np.float64).reshape(-1, class_count)


def equal_cuts(lower: float, upper: float, *, parts: int) -> tuple[float, ...]:
    """Return ``parts - 1`` cuts (thresholds) that divide an interval into equal parts.

    Every cut is above the lower bound, so that a value and the same value clipped to the interval
    have the same rank.
    """
    start, length = Fraction(lower), Fraction(upper) - Fraction(lower)
    least = math.nextafter(lower, math.inf)
    return tuple(max(least, float(start + length * place / parts)) for place in range(1, parts))


def decided(
    grid: Grid, noisy_counts: Sequence[NDArray[np.int64]], scales: Sequence[Fraction]
) -> NDArray[np.int64]:
    """Return the label of each cell of the finest grid, chosen by noisy counts, shape ``(cells,)``.

    The lead of a label in a cell is the difference between the two largest noisy counts. A cell
    gets the leading label at the finest resolution at which the lead is more than 4 times the
    noise's scale. If there is no such resolution, the cell gets the leading label at the coarsest
    one.

    Args:
        grid: the public cells.
        noisy_counts: one array per resolution. With two labels it has shape ``(cells, 1)`` and
            contains the number of rows with the second label less the number with the first; with
            more labels it has shape ``(cells, labels)``.
        scales: the scale of the noise at each resolution.

    """
    width = len(grid.features)
    labels, _ = _led(noisy_counts[0])
    labels = labels.reshape((grid.sides[0],) * width)
    for side, counts, scale in zip(grid.sides, noisy_counts, scales, strict=True):
        leading, leads = _led(counts)
        for axis in range(width):
            labels = np.repeat(labels, side // labels.shape[axis], axis=axis)
        stands_out = leads > int(SCALES_ABOVE * scale)
        labels = np.where(stands_out, leading, labels.ravel()).reshape((side,) * width)
    return labels.ravel()


def _led(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the label that leads in each cell, of equal ones the first, and by how much."""
    if counts.shape[1] == 1:
        return (counts[:, 0] > 0).astype(np.int64), np.abs(counts[:, 0])
    ordered = np.partition(counts, -BINARY, axis=1)
    return counts.argmax(axis=1).astype(np.int64), ordered[:, -1] - ordered[:, -BINARY]
