"""The grid of a public list of tests: a point for every way to fall among cuts and codes.

Every row there can be has a place on the grid, and all hypotheses that only ask
these tests label the row like the grid's point.  Nothing here depends on rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from app.learning.tables.representative_domain import representative_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest


@dataclass(frozen=True, slots=True, eq=False)
class CutGrid:
    """The product of the tests' axes.

    Attributes:
        axes: for each feature, values that stand for all of its values; the first
            is NaN, for what satisfies no test.
        is_numeric: for each feature, whether its tests are cuts.

    """

    axes: tuple[NDArray[np.float64], ...]
    is_numeric: tuple[bool, ...]

    @classmethod
    def of(cls, tests: Sequence[BinaryTest], feature_count: int) -> Self:
        """Return the grid of the tests on so many features."""
        references: dict[int, list[float]] = {}
        for test in tests:
            value = test.cut if test.cut is not None else float(test.category_code or 0)
            references.setdefault(test.feature_index, []).append(value)
        numeric = {test.feature_index for test in tests if test.cut is not None}
        return cls(
            tuple(representative_axes(references, feature_count)),
            tuple(feature in numeric for feature in range(feature_count)),
        )

    @property
    def point_count(self) -> int:
        """Number of points, a public constant."""
        return math.prod(len(axis) for axis in self.axes)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return where each row lies, in the order in which the product is listed.

        Args:
            values: encoded rows, shape ``(n, d)``; the places are as secret as they are.

        Returns:
            Shape ``(n,)``, each from 0 to ``point_count - 1`` and a function of its row.

        """
        places = np.zeros(len(values), dtype=np.int64)
        for axis, numeric, column in zip(self.axes, self.is_numeric, values.T, strict=True):
            rank = _rank(axis[1:], column) if numeric else _match(axis[1:], column)
            places = places * len(axis) + rank
        return places


def _rank(cuts: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many cuts each number is at or above; none where it is missing."""
    ranks = np.searchsorted(cuts, column, side="right")
    return np.where(np.isnan(column), 0, ranks).astype(np.int64)


def _match(codes: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return one more than the index of each code, 0 where no test names it."""
    if not len(codes):
        return np.zeros(len(column), dtype=np.int64)
    found = np.minimum(np.searchsorted(codes, column), len(codes) - 1)
    return np.where(codes[found] == column, found + 1, 0).astype(np.int64)
