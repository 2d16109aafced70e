"""Halfspaces over one to three numeric features, with integer coefficients; two labels.

The coordinate of a value is its position between the bounds of its feature, in ``2**16`` equal
steps; a missing value is at the lower bound. All further arithmetic is exact integer arithmetic on
one row at a time. :mod:`app.learning.halfspaces.arrangement` shows that it cannot overflow.

A halfspace is a short list of hyperplanes ``w . u = b``, which are called levels. The first level
that does not contain a point u decides its label: 1 if ``w . u`` is above b, and else 0.

For given points there is one halfspace for each way in which halfspaces can label the points. The
points are rows, or the points of a public grid: one for every combination of intervals between the
features' public cuts (thresholds).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from app.errors import ConfigurationError
from app.learning.enumerated.enumerated_class import SIZE_MAX, EnumeratedClass
from app.learning.halfspaces.arrangement import COORDINATE_MAX, dichotomy_levels
from app.learning.halfspaces.lattice import Lattice, public_grid, used_lattice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.enumerated.hypothesis_list import Description, Encoded

CLASS_COUNT: Final = 2
# Bits of a coordinate in a key of a whole point: 0 to 2**16 are 17.
COORDINATE_BITS: Final = 17
# Values held at once, eight bytes each, so that they stay in a core's cache.
VALUES_PER_BLOCK: Final = 1 << 16
ROWS_PER_BLOCK: Final = 1 << 11


@dataclass(frozen=True, slots=True, eq=False)
class Halfspaces:
    """A list of halfspaces as a hypothesis class: label 1 inside a halfspace, and 0 outside.

    Attributes:
        lattice: the encoding of rows as points with integer coordinates.
        levels: the levels ``(w, b)`` of every halfspace, shape
            ``(halfspaces, dimensions, dimensions + 1)``. A point u has label 1 if the first of the
            values ``w . u - b`` that is not zero is positive.
        public_frequencies: a public estimate of the share of rows that each halfspace gives label
            1, shape ``(halfspaces,)``.

    """

    lattice: Lattice
    levels: NDArray[np.int64]
    public_frequencies: NDArray[np.float64]

    @property
    def class_count(self) -> int:
        """The number of labels, which is two."""
        return CLASS_COUNT

    def __len__(self) -> int:
        """Return the number of halfspaces."""
        return len(self.levels)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return rows as points with integer coordinates, shape ``(rows, dimensions)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        return self.lattice.encode(values)

    def predict(self, encoded: Encoded) -> NDArray[np.uint8]:
        """Return for every halfspace and row 1 if the row lies in the halfspace, else 0.

        Args:
            encoded: the points that :meth:`encode` returns.

        Returns:
            Labels, shape ``(halfspaces, rows)``.

        """
        points = np.asfortranarray(encoded.astype(np.int64, copy=False))
        shape = (len(self.levels), len(points))
        scratch = np.empty((2, *shape), dtype=np.int64)
        return _labels(self.levels, points, scratch).view(np.uint8)

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact number of errors of every halfspace, shape ``(halfspaces,)``.

        Rows at the same point are counted together. The errors of a halfspace are all rows of label
        1, less those inside it, plus the rows of label 0 inside it.

        Args:
            encoded: the points that :meth:`encode` returns.
            labels: class indices 0 or 1, shape ``(rows,)``.

        """
        points, excess = _weighed_points(encoded.astype(np.int64, copy=False), labels)
        errors = np.full(len(self), np.count_nonzero(labels), dtype=np.int64)
        return errors + self.sums(points, excess)

    def take(self, indices: NDArray[np.int64]) -> Self:
        """Return the halfspaces at ``indices``, in that order."""
        return type(self)(self.lattice, self.levels[indices], self.public_frequencies[indices])

    def describe(self, index: int) -> Description:
        """Return the integer coefficients of one halfspace as plain lists and numbers.

        The halfspace has one or more levels, each with ``weights`` and an ``offset``. Let u be a
        row's coordinates. The first level at which ``weights . u - offset`` is not zero decides the
        row's label: 1 if this value is positive, and else 0. The coordinate of a feature is
        ``(x - lower) / (upper - lower) * steps`` with ``steps = 2**16``, rounded to the nearest
        integer, where a half is rounded to the even one. The coordinate of a missing value is 0.
        """
        used = self.levels[index][self.levels[index].any(axis=1)]
        return {
            "kind": "halfspace",
            "features": list(self.lattice.feature_indices),
            "bounds": [list(bounds) for bounds in self.lattice.bounds],
            "steps": COORDINATE_MAX,
            "levels": [{"weights": row[:-1], "offset": row[-1]} for row in used.tolist()],
        }

    def sums(self, points: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the total weight of the points in each halfspace, shape ``(halfspaces,)``.

        The sums are computed exactly as floating-point numbers, since they are integers below
        ``2**53``.

        Args:
            points: integer coordinates, shape ``(points, dimensions)``.
            weights: the integer weight of each point, shape ``(points,)``.

        """
        columns = np.asfortranarray(points)
        row_count = max(1, min(len(points), ROWS_PER_BLOCK))
        step = max(1, VALUES_PER_BLOCK // row_count)
        scratch = np.empty((2, step, row_count), dtype=np.int64)
        sums = np.zeros(len(self), dtype=np.float64)
        for row in range(0, len(points), row_count):
            block = columns[row : row + row_count]
            weight = weights[row : row + row_count].astype(np.float64)
            for start in range(0, len(self), step):
                levels = self.levels[start : start + step]
                part = scratch[:, : len(levels), : len(block)]
                sums[start : start + step] += _labels(levels, block, part).astype(float) @ weight
        return sums.astype(np.int64)


def over(
    lattice: Lattice, points: NDArray[np.int64], *, weights: NDArray[np.int64] | None = None
) -> Halfspaces:
    """Return one halfspace for every labelling of integer points that halfspaces can make.

    Args:
        lattice: the encoding of rows as points with integer coordinates.
        points: integer coordinates, shape ``(points, dimensions)``; the number of points is public
            even if the points are private.
        weights: the public number of people that each point stands for; None for equal numbers.

    Raises:
        ConfigurationError: there may be too many labellings to list. This depends only on the
            number of points and dimensions.

    """
    refuse_points(len(points), lattice.dimension)
    levels = dichotomy_levels(points)
    halfspaces = Halfspaces(lattice, levels, np.full(len(levels), 0.5))
    counted = np.ones(len(points), dtype=np.int64) if weights is None else weights
    total = int(counted.sum())
    if not total:
        return halfspaces
    return Halfspaces(lattice, levels, halfspaces.sums(points, counted) / total)


def grid_halfspaces(
    tests: Sequence[BinaryTest], columns: Sequence[PublicColumn]
) -> EnumeratedClass:
    """Return one halfspace for every labelling of the points of the public grid.

    Args:
        tests: the public tests of features, whose cuts (thresholds) make the grid.
        columns: the public encoding of every feature.

    Raises:
        ConfigurationError: there are too many features or too many grid cells.

    """
    lattice = used_lattice(tests, columns)
    grid = public_grid(lattice, tests)
    refuse_points(grid.point_count, lattice.dimension)
    return _as_class(over(lattice, grid.points(), weights=grid.point_weights()))


def halfspace_dichotomies(lattice: Lattice, values: NDArray[np.float64]) -> EnumeratedClass:
    """Return one halfspace for every way in which halfspaces can label some rows.

    Args:
        lattice: the encoding of rows as points with integer coordinates.
        values: feature values of the rows, encoded by the public schema, shape
            ``(rows, features)``.

    Raises:
        ConfigurationError: there are too many rows.

    """
    return _as_class(over(lattice, lattice.encode(values)))


def dichotomy_bound(point_count: int, dimension: int) -> int:
    """Return the largest number of ways in which halfspaces can label a number of points.

    For m points in d dimensions it is ``2 sum_(i <= d) C(m - 1, i)`` with binomial coefficients C
    (Schlaefli; Cover 1965, Theorem 1).

    Args:
        point_count: the number of points.
        dimension: the number of dimensions.

    """
    if point_count == 0:
        return 1
    return 2 * sum(comb(point_count - 1, size) for size in range(dimension + 1))


def refuse_points(point_count: int, dimension: int) -> None:
    """Refuse points that may have too many labellings, judged by their public number only.

    Args:
        point_count: the number of points.
        dimension: the number of dimensions.

    Raises:
        ConfigurationError: there may be too many labellings; the message says how many, and which
            settings to change.

    """
    bound = dichotomy_bound(point_count, dimension)
    if bound > SIZE_MAX:
        problem = (
            f"halfspaces part {point_count} points in {dimension} dimensions in up to {bound} "
            f"ways, and at most {SIZE_MAX} can be listed: lower bins, list fewer cuts, or leave "
            "a feature out by an empty list of its tests"
        )
        raise ConfigurationError("hypotheses", problem)


def _as_class(halfspaces: Halfspaces) -> EnumeratedClass:
    """Return the class of a list; ``dim + 1`` is the VC dimension of all halfspaces."""
    dimension = min(halfspaces.lattice.dimension + 1, len(halfspaces).bit_length() - 1)
    return EnumeratedClass(halfspaces, dimension)


def _labels(
    levels: NDArray[np.int64], points: NDArray[np.int64], scratch: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which points each halfspace holds, shape ``(N, n)``.

    Args:
        levels: shape ``(N, dim, dim + 1)``.
        points: shape ``(n, dim)``, fastest where columns are contiguous.
        scratch: room for values and products, shape ``(2, N, n)``; memory
            that is used again costs a third of fresh one.

    """
    values, products = scratch
    np.multiply(levels[:, 0, :1], points[:, 0], out=values)
    for axis in range(1, points.shape[1]):
        np.multiply(levels[:, 0, axis : axis + 1], points[:, axis], out=products)
        values += products
    values -= levels[:, 0, -1:]
    labels: NDArray[np.bool_] = values > 0
    if not values.all():
        _label_ties(levels, points, labels, np.nonzero(values == 0))
    return labels


def _label_ties(
    levels: NDArray[np.int64],
    points: NDArray[np.int64],
    labels: NDArray[np.bool_],
    ties: tuple[NDArray[np.intp], ...],
) -> None:
    """Label the pairs of a halfspace and a point on its first level by the next levels."""
    halfspaces, rows = ties
    for level in range(1, levels.shape[1]):
        values = _values_at(levels[halfspaces, level], points[rows])
        labels[halfspaces, rows] = values > 0
        halfspaces, rows = halfspaces[values == 0], rows[values == 0]


def _values_at(levels: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``w . u - b`` of a level at a point, pair by pair."""
    values: NDArray[np.int64] = (levels[:, :-1] * points).sum(axis=1) - levels[:, -1]
    return values


def _weighed_points(
    points: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct points, and at each the rows of label 0 less those of label 1."""
    keys = points[:, 0].copy()
    for axis in range(1, points.shape[1]):
        keys = keys << COORDINATE_BITS | points[:, axis]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    excess = np.zeros(len(first), dtype=np.int64)
    np.add.at(excess, inverse, 1 - 2 * (labels != 0).astype(np.int64))
    return points[first], excess
