"""The integer coordinates that halfspaces use, and the public grid of points.

Public tests ``x >= cut`` divide the range of a numeric feature into intervals. The grid has one
point for every grid cell, which is a combination of one interval of each feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError, invariant
from app.learning.halfspaces.arrangement import COORDINATE_MAX, DIMENSION_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.public_columns import PublicColumn

# A public share of people as an integer: the product of three stays exact in a double.
SHARE_UNITS = 1 << 15


@dataclass(frozen=True, slots=True)
class Lattice:
    """The numeric features that halfspaces use, with the public bounds that scale them to integers.

    Attributes:
        feature_indices: the indices of one to three numeric features, in the order of the schema.
        bounds: the lower and the upper bound of each of these features.

    """

    feature_indices: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        """Refuse more than three features."""
        invariant(len(self.feature_indices) == len(self.bounds), "a feature has its bounds")
        if not 1 <= self.dimension <= DIMENSION_MAX:
            problem = (
                f"halfspaces take one to {DIMENSION_MAX} numeric features, and {self.dimension} "
                "have a cut: give the others an empty list in [hypotheses.tests]"
            )
            raise ConfigurationError("hypotheses.class", problem)

    @property
    def dimension(self) -> int:
        """The number of numeric features in use."""
        return len(self.feature_indices)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return rows as points with integer coordinates in ``[0, 2**16]``, ``(rows, dimensions)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        points = np.empty((len(values), self.dimension), dtype=np.int64)
        for axis, feature_index in enumerate(self.feature_indices):
            points[:, axis] = self.coordinates(axis, values[:, feature_index])
        return points

    def coordinates(self, axis: int, column: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the integer coordinate of every value of one feature; 0 for a missing value.

        Args:
            axis: the index of the feature among :attr:`feature_indices`.
            column: the values, shape ``(rows,)``.

        """
        return whole_steps(column, self.bounds[axis])


def whole_steps(column: NDArray[np.float64], bounds: tuple[float, float]) -> NDArray[np.int64]:
    """Return each value's distance from the lower bound, in steps of 1/2^16 of the range.

    A value beyond a bound counts as this bound, and a missing value as the lower bound.

    Args:
        column: values of one feature, shape ``(rows,)``.
        bounds: the lower and the upper bound of the feature.

    """
    lower, upper = bounds
    clipped = np.clip(column, lower, upper)
    steps = np.rint((clipped - lower) / (upper - lower) * COORDINATE_MAX)
    known = np.nan_to_num(steps, nan=0.0, posinf=COORDINATE_MAX, neginf=0.0)
    coordinates: NDArray[np.int64] = np.clip(known, 0, COORDINATE_MAX).astype(np.int64)
    return coordinates


def used_lattice(tests: Sequence[BinaryTest], columns: Sequence[PublicColumn]) -> Lattice:
    """Return integer coordinates for the numeric features that have a cut in the public tests.

    If no feature has a cut, the first feature is used; the only two halfspaces then give
    every row the same label.

    Args:
        tests: the public tests of features; tests of categories are ignored.
        columns: the public encoding of every feature.

    Raises:
        ConfigurationError: more than three features have a cut.

    """
    used = sorted({test.feature_index for test in tests if test.cut is not None}) or [0]
    bounds = tuple(columns[index].bounds or (0.0, 1.0) for index in used)
    return Lattice(tuple(used), bounds)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The public grid of integer points: one point for every cell between cuts (thresholds).

    Attributes:
        coordinates: for each feature, the middle of every interval between cuts.
        weights: for each feature, integers in proportion to a public estimate of the number of
            people in every interval.

    """

    coordinates: tuple[NDArray[np.int64], ...]
    weights: tuple[NDArray[np.int64], ...]

    @property
    def point_count(self) -> int:
        """The number of cells of the public grid, and so of its points."""
        return prod(map(len, self.coordinates))

    def points(self) -> NDArray[np.int64]:
        """Return the middle points of all grid cells, shape ``(points, dimensions)``."""
        return np.array(list(product(*self.coordinates)), dtype=np.int64)

    def point_weights(self) -> NDArray[np.int64]:
        """Return integers in proportion to the expected share of rows in every grid cell.

        The features are taken as independent. The shape is ``(points,)``.
        """
        return np.array([prod(map(int, cell)) for cell in product(*self.weights)], dtype=np.int64)


def public_grid(lattice: Lattice, tests: Sequence[BinaryTest]) -> Grid:
    """Return the public grid between the cuts (thresholds) of the features that halfspaces use.

    Args:
        lattice: the features and their integer coordinates.
        tests: the public tests of features, whose cuts make the grid.

    """
    coordinates, weights = [], []
    for axis, feature_index in enumerate(lattice.feature_indices):
        shares = {
            test.cut: test.public_frequency
            for test in tests
            if test.feature_index == feature_index and test.cut is not None
        }
        cuts = np.array(sorted(shares), dtype=np.float64)
        coordinates.append(_middles(lattice.coordinates(axis, cuts)))
        weights.append(_cell_weights([shares[cut] for cut in sorted(shares)]))
    return Grid(tuple(coordinates), tuple(weights))


def _middles(cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the middle of each cell; equally wide cells have equally spaced ones.

    Cuts are rounded to the lattice.  Were the middles of equal cells rounded
    one by one, points that should lie on a line would miss it by a step, and
    the grid would have many more dichotomies than it looks to have.
    """
    edges = np.concatenate([[0], cuts, [COORDINATE_MAX]])
    middles = (edges[:-1] + edges[1:]) // 2
    spacing = COORDINATE_MAX // len(middles)
    first = (COORDINATE_MAX - (len(middles) - 1) * spacing) // 2
    regular: NDArray[np.int64] = first + spacing * np.arange(len(middles), dtype=np.int64)
    is_near = bool((np.abs(regular - middles) <= len(middles)).all())
    is_inside = bool(((edges[:-1] < regular) & (regular < edges[1:])).all())
    return regular if is_near and is_inside else middles


def _cell_weights(shares: Sequence[float]) -> NDArray[np.int64]:
    """Return the share of people in each cell from the shares at or above each cut."""
    at_least = np.clip(np.array([1.0, *shares, 0.0]), 0.0, 1.0)
    inside = np.maximum(at_least[:-1] - at_least[1:], 0.0)
    weights: NDArray[np.int64] = np.rint(inside * SHARE_UNITS).astype(np.int64)
    return weights
