"""Rows as integer vectors of bounded length, by a public linear map of public terms.

Every number is an integer that a double holds, so sums are exact in any order: the
vector of a row is the same whatever rows stand beside it, and its length is checked
and not estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Integers below it are doubles, and so are their sums while those stay below it.
EXACT_BOUND: Final = 1 << 53
# Coordinates are kept in 16 bits.
NORM_MAX: Final = 1 << 14
# So much shorter than the bound asks is what is cut to it: far above a double's rounding.
SHRINKAGE: Final = 1 - 2**-40
ROWS_PER_BLOCK: Final = 8192


def are_exact(matrix: NDArray[np.float64], offset: NDArray[np.float64]) -> bool:
    """Tell whether no image of bits under an integer map is too long for exact sums.

    Args:
        matrix: integers, shape ``(t, p)``.
        offset: integers, shape ``(p,)``.

    """
    largest = np.abs(matrix).sum(axis=0) + np.abs(offset)
    return sum(int(each) ** 2 for each in largest) < EXACT_BOUND


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerFeatures:
    """A public map from bits to integer vectors no longer than ``norm_bound``.

    A row's vector is ``(bits @ matrix + offset) / grid``, cut to the bound if it is
    longer, and every coordinate is then rounded towards zero.

    Attributes:
        matrix: integers as float64, shape ``(t, p)``.
        offset: likewise, shape ``(p,)``.
        grid: how much finer the map is than the coordinates, a power of two.
        unit: what a coordinate of 1.0 is written as, for reading weights.
        norm_bound: the largest Euclidean length, in units of the coordinates.

    """

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]
    grid: int
    unit: int
    norm_bound: int

    def __post_init__(self) -> None:
        """Check that no sum of the map, or of its squares, leaves the exact integers."""
        invariant(self.grid >= 1 <= self.unit, "grid and unit are positive")
        invariant(1 <= self.norm_bound <= NORM_MAX, "coordinates fit 16 bits")
        for integers in (self.matrix, self.offset):
            invariant(bool((integers == np.trunc(integers)).all()), "the map is of integers")
        invariant(are_exact(self.matrix, self.offset), "squared lengths are exact")

    @property
    def width(self) -> int:
        """Number of coordinates, p."""
        return len(self.offset)

    def coordinates(self, bits: NDArray[np.uint8]) -> NDArray[np.int16]:
        """Return the vectors of rows, int16 of shape ``(n, p)``, each a function of its bits.

        Args:
            bits: which terms hold, shape ``(n, t)``.

        """
        vectors = np.empty((len(bits), self.width), dtype=np.int16)
        for start in range(0, len(bits), ROWS_PER_BLOCK):
            block = bits[start : start + ROWS_PER_BLOCK].astype(np.float64)
            vectors[start : start + ROWS_PER_BLOCK] = self._bounded(block @ self.matrix)
        return vectors

    def _bounded(self, image: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cut vectors to the bound; what is still too long, which nothing is, is left out."""
        image = image + self.offset
        length = np.sqrt((image * image).sum(axis=1))
        bound = float(self.norm_bound * self.grid)
        shares = np.minimum(1.0, bound / np.maximum(length, 1.0)) * SHRINKAGE
        vectors = np.trunc(image * (shares / self.grid)[:, None])
        fits = (vectors * vectors).sum(axis=1) <= self.norm_bound**2
        return np.where(fits[:, None], vectors, 0.0)
