"""Public grids of several resolutions over a few numeric features, with a label per cell.

A number is read as its rank among public cuts, how many of them it is at or above; a missing
one is at or above none.  A cell of a coarser level holds whole cells of the finest.
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
        features: indices of the numbers, in schema order.
        cuts: of each, what parts its intervals at the finest level, ascending.
        sides: intervals a feature at each level, coarsest first; each divides the next.

    """

    features: tuple[int, ...]
    cuts: tuple[tuple[float, ...], ...]
    sides: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse levels that do not nest, or cuts that do not make the finest."""
        invariant(len(self.features) == len(self.cuts) > 0, "every number has cuts")
        finest = self.sides[-1]
        invariant(all(len(cuts) == finest - 1 for cuts in self.cuts), "cuts part the finest level")
        invariant(all(cuts == tuple(sorted(cuts)) for cuts in self.cuts), "cuts ascend")
        pairs = zip(self.sides, self.sides[1:], strict=False)
        invariant(all(one < next_ and next_ % one == 0 for one, next_ in pairs), "levels nest")

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the rank of each value among its feature's finest thresholds, shape ``(n, d)``.

        Args:
            values: encoded by the public schema, shape ``(n, features)``.

        """
        columns = []
        for feature, cuts in zip(self.features, self.cuts, strict=True):
            ranks = np.searchsorted(cuts, values[:, feature], side="right")
            columns.append(np.where(np.isnan(values[:, feature]), 0, ranks))
        return np.stack(columns, axis=1).astype(np.uint8)

    def cell_count(self, side: int) -> int:
        """Return the number of cells of the grid at a resolution."""
        return int(side ** len(self.features))

    def cells(self, ranks: NDArray[np.uint8], side: int) -> NDArray[np.int64]:
        """Return the index of each row's cell at a resolution, shape ``(n,)``, in C order."""
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
        """Return the number of rows of each label in every cell, shape ``(cells, L)``.

        Args:
            ranks: of the rows, shape ``(n, d)``.
            labels: class indices, shape ``(n,)``.
            side: intervals a feature, of the level.
            class_count: number of labels, L.
            row_weights: what each row counts for, shape ``(n,)``; None for 1 each.

        """
        places = self.cells(ranks, side) * class_count + labels
        counts = np.bincount(places, row_weights, self.cell_count(side) * class_count)
        return counts.astype(np.float64).reshape(-1, class_count)


def equal_cuts(lower: float, upper: float, *, parts: int) -> tuple[float, ...]:
    """Return thresholds that divide an interval into equal parts, all above its lower bound.

    So that a number that is clipped to its bounds has the rank of the number itself.
    """
    start, length = Fraction(lower), Fraction(upper) - Fraction(lower)
    least = math.nextafter(lower, math.inf)
    return tuple(max(least, float(start + length * place / parts)) for place in range(1, parts))


def decided(
    grid: Grid, noisy_counts: Sequence[NDArray[np.int64]], scales: Sequence[Fraction]
) -> NDArray[np.int64]:
    """Return the label of each cell of the finest grid, chosen by noisy counts, ``(cells,)``.

    A cell answers by the finest level at which its lead stands out of the noise, and where none
    does, by the coarsest.

    Args:
        grid: the public cells.
        noisy_counts: of each level, shape ``(cells, s)``: with two labels the difference of
            the second's rows and the first's, with more a count each.
        scales: of each level's noise.

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
