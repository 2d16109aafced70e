"""A public linear map that makes a linear classifier's inputs uncorrelated and similar in size.

The map is computed from public points (feature vectors) only, or from public frequencies if there
are no points. Private rows are mapped by it afterwards. The result for a row is called the row's
vector, and its length is limited to a maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import ConfigurationError
from app.learning.linear.integer_vectors import NORM_MAX, IntegerFeatures, are_exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

# The slope of a logistic at zero is a quarter.
CURVATURE_PARTS: Final = 4
RIDGE_MIN: Final = 1e-9
RIDGE_ROUNDS: Final = 40
# Directions of less variance, relative to the largest, are rounding.
SMALLEST: Final = 1e-6
# How much finer than the coordinates the map is written, where its sums allow.
GRID: Final = 1 << 6
TOO_MANY: Final = "are too many tests for a linear learner's exact sums: list fewer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicMap:
    """A public linear map of a linear classifier's inputs, with its output's mean and covariance.

    Attributes:
        matrix: the map, shape ``(inputs, outputs)``.
        offset: added to the output, so that its expected mean over people is about zero, shape
            ``(outputs,)``.
        covariance: the expected covariance of the output, shape ``(outputs, outputs)``.

    """

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @classmethod
    def of_points(
        cls,
        public_terms: NDArray[np.uint8] | NDArray[np.float64],
        matrix: NDArray[np.float64] | None = None,
    ) -> PublicMap:
        """Return a linear map, by default the identity, with its output's mean and covariance.

        The mean and covariance are computed from public points (feature vectors).

        Args:
            public_terms: the inputs of the points, shape ``(points, inputs)``, at least one point.
            matrix: the map, shape ``(inputs, outputs)``; None for the identity.

        """
        points = public_terms.astype(np.float64)
        if matrix is None:
            matrix = np.eye(points.shape[1])
        given = points @ matrix
        centred = given - given.mean(axis=0)
        return cls(
            matrix=matrix,
            offset=-given.mean(axis=0),
            covariance=centred.T @ centred / len(points),
        )

    @classmethod
    def of_shares(cls, tests: Sequence[BinaryTest]) -> PublicMap:
        """Return the identity map of feature tests, with its output's mean and covariance.

        The mean and covariance are computed from public frequencies.

        Args:
            tests: the public tests; each has the frequency with which it is true.

        """
        mean = np.array([test.public_frequency for test in tests], dtype=np.float64)
        both = np.outer(mean, mean)
        for row, one in enumerate(tests):
            for column, other in enumerate(tests):
                if one.feature_index == other.feature_index:
                    nested = one.cut is not None and other.cut is not None
                    alike = nested or row == column
                    both[row, column] = min(mean[row], mean[column]) if alike else 0.0
        return cls(matrix=np.eye(len(tests)), offset=-mean, covariance=both - np.outer(mean, mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """How much to shrink combinations of inputs that vary so little that noise would dominate them.

    The inputs are those of a linear classifier. The curvature of a combination of inputs is a
    quarter of its variance, as in the logistic loss.

    Attributes:
        noise: the standard deviation of the noise in a mean gradient, if rows' vectors have length
            1 and the whole privacy budget is spent on one step of the gradient descent.
        ridge: a factor in the number that is added to every curvature; ``noise**2`` and the
            approximate number of combinations that are not shrunk much are the other two factors.
        length: the maximum length of a row's vector, divided by half the expected length. For
            inputs with cosines it is divided by the median length among public points (feature
            vectors).
        ridge_min: the least number that is added to every curvature, since a curvature that is
            computed from few points may be too small.

    """

    noise: float
    ridge: float
    length: float
    ridge_min: float = RIDGE_MIN


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """A map of a classifier's inputs to uncorrelated coordinates, in floating point.

    Attributes:
        matrix: the map, shape ``(inputs, coordinates)``.
        offset: added to the output, shape ``(coordinates,)``.
        variances: the variance of each coordinate among people, shape ``(coordinates,)``. The last
            coordinate has the same value for all rows; its entry is the square of this value.

    """

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]
    variances: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """An integer map of a classifier's inputs to uncorrelated coordinates of bounded length.

    Attributes:
        features: the integer map.
        variances: the variance of each coordinate among people, shape ``(coordinates,)``. The last
            coordinate has the same value for all rows; its entry is the square of this value.

    """

    features: IntegerFeatures
    variances: NDArray[np.float64]


def whitened(public_map: PublicMap, shrinkage: Shrinkage) -> Whitening:
    """Return an integer map to uncorrelated coordinates, with a maximum length of rows' vectors.

    Args:
        public_map: a public map of the inputs, with the mean and covariance of its output.
        shrinkage: the shrinkage of combinations that vary little, and the maximum length.

    Raises:
        ConfigurationError: there are too many feature tests for exact sums.

    """
    found = directions(public_map, shrinkage)
    norm = shrinkage.length * math.sqrt(float((found.variances / CURVATURE_PARTS).sum()))
    return Whitening(_integers(found.matrix, found.offset, norm=norm), found.variances)


def directions(public_map: PublicMap, shrinkage: Shrinkage) -> Directions:
    """Return a linear map to coordinates that are uncorrelated and of nearly equal size.

    A combination of inputs with variance v is scaled by ``1 / sqrt(v / 4 + c)``. The constant c
    grows with the noise, so that a combination that noise would hide stays small. The last
    coordinate is the same for all rows.

    Args:
        public_map: a public map of the inputs, with the mean and covariance of its output.
        shrinkage: the shrinkage of combinations that vary little.

    """
    variances, vectors = np.linalg.eigh(public_map.covariance)
    kept = variances > max(SMALLEST * variances.max(initial=0.0), 0.0)
    vectors, variances = vectors[:, kept], np.append(variances[kept], 1.0)
    curvatures = variances / CURVATURE_PARTS
    lengths = 1 / np.sqrt(curvatures + _ridge(curvatures, shrinkage))
    matrix = public_map.matrix @ (vectors * lengths[:-1])
    matrix = np.hstack([matrix, np.zeros((len(matrix), 1))])
    offset = np.append(public_map.offset @ (vectors * lengths[:-1]), lengths[-1])
    return Directions(matrix, offset, variances * lengths**2)


def _ridge(curvatures: NDArray[np.float64], shrinkage: Shrinkage) -> float:
    """Solve for the ridge that noise asks for: it grows with the directions that are left."""
    ridge = shrinkage.ridge_min
    for _ in range(RIDGE_ROUNDS):
        left = float((curvatures / (curvatures + ridge)).sum())
        ridge = max(shrinkage.ridge * shrinkage.noise**2 * left, shrinkage.ridge_min)
    return ridge


def _integers(
    matrix: NDArray[np.float64], offset: NDArray[np.float64], *, norm: float
) -> IntegerFeatures:
    """Write a real map on the finest grid on which its sums are exact."""
    unit, grid = 1 << math.floor(math.log2(NORM_MAX / norm)), GRID
    while unit >= 1:
        whole, shift = np.rint(matrix * unit * grid), np.rint(offset * unit * grid)
        if are_exact(whole, shift):
            bound = math.floor(norm * unit)
            return IntegerFeatures(
                matrix=whole, offset=shift, grid=grid, unit=unit, norm_bound=bound
            )
        unit, grid = (unit, grid // 2) if grid > 1 else (unit // 2, grid)
    raise ConfigurationError("classifier", TOO_MANY)
