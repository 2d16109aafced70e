"""A public map that makes public terms uncorrelated, and alike in size.

Only public points enter, or public shares where there are none: private rows are
mapped by it afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import ConfigurationError
from app.hypotheses.integer_features import NORM_MAX, IntegerFeatures, are_exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.hypotheses.binary_tests import BinaryTest

# The slope of a logistic at zero is a quarter.
CURVATURE_PARTS: Final = 4
RIDGE_START: Final = 1e-3
RIDGE_MIN: Final = 1e-9
RIDGE_ROUNDS: Final = 40
# How much finer than the coordinates the map is written, where its sums allow.
GRID: Final = 1 << 6
TOO_MANY: Final = "are too many tests for a linear learner's exact sums: list fewer"
# Without points, a share counts as if it were seen on so many.
SHARES_COUNT_AS: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class PublicMoments:
    """What is publicly known of the terms together.

    Attributes:
        mean: share of people for whom each term holds, shape ``(t,)``.
        covariance: shape ``(t, t)``.
        count: points that they were computed on.

    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    count: int

    @classmethod
    def of_points(cls, public_bits: NDArray[np.uint8]) -> PublicMoments:
        """Return the moments of public points: bits of shape ``(m, t)``, m positive."""
        points = public_bits.astype(np.float64)
        centred = points - points.mean(axis=0)
        return cls(points.mean(axis=0), centred.T @ centred / len(points), len(points))

    @classmethod
    def of_shares(cls, tests: Sequence[BinaryTest]) -> PublicMoments:
        """Return the moments of tests by their public shares, as if features were independent."""
        mean = np.array([test.public_frequency for test in tests], dtype=np.float64)
        both = np.outer(mean, mean)
        for row, one in enumerate(tests):
            for column, other in enumerate(tests):
                if one.feature_index == other.feature_index:
                    nested = one.cut is not None and other.cut is not None
                    alike = nested or row == column
                    both[row, column] = min(mean[row], mean[column]) if alike else 0.0
        return cls(mean, both - np.outer(mean, mean), SHARES_COUNT_AS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """How directions that noise would drown are kept small; public.

    Attributes:
        noise: deviation that the whole budget, spent on one step, would leave in a mean
            gradient of rows of length one.
        weight_variance: of a weight in the scaled terms' directions, held likely.
        ridge: how many times what noise allows is added to a direction's curvature.
        length: rows are cut to, times the usual length of public points.
        intercept_precision: with which the intercept is held to be zero.

    """

    noise: float
    weight_variance: float
    ridge: float
    length: float
    intercept_precision: float


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """A public map of terms, and what is known of its coordinates.

    Attributes:
        features: the map, in integers.
        variances: of the coordinates among people, shape ``(p,)``.
        prior: precision with which each coordinate's weight is held to be zero, ``(p,)``.

    """

    features: IntegerFeatures
    variances: NDArray[np.float64]
    prior: NDArray[np.float64]


def whitened(
    moments: PublicMoments, scales: NDArray[np.float64], shrinkage: Shrinkage
) -> Whitening:
    """Return the map under which scaled terms are uncorrelated, and nearly alike in size.

    A direction of variance v among the scaled terms, whose curvature in a logistic loss
    is ``v / 4``, is scaled by ``1 / sqrt(v / 4 + ridge)``: what noise would drown stays
    small.  The last coordinate is the same for all rows.

    Args:
        moments: of the terms, public.
        scales: relative size that each term is given, shape ``(t,)``.
        shrinkage: of small directions.

    Raises:
        ConfigurationError: the tests are so many that sums would not be exact.

    """
    covariance = moments.covariance * np.outer(scales, scales)
    total = float(np.trace(covariance))
    size = 1 / math.sqrt(total) if total > 0 else 1.0
    variances, directions = np.linalg.eigh(covariance * size**2)
    variances = np.append(np.maximum(variances, 0.0), 1.0)
    ridge = _ridge(variances / CURVATURE_PARTS, shrinkage)
    lengths = 1 / np.sqrt(variances / CURVATURE_PARTS + ridge)
    matrix = (scales * size)[:, None] * directions * lengths[:-1]
    offset = np.append(-moments.mean @ matrix, lengths[-1])
    coordinates = variances * lengths**2
    prior = np.full(len(variances), 1 / shrinkage.weight_variance)
    prior[-1] = shrinkage.intercept_precision
    norm = shrinkage.length * math.sqrt(float(coordinates.sum()))
    matrix = np.hstack([matrix, np.zeros((len(matrix), 1))])
    return Whitening(_integers(matrix, offset, norm=norm), coordinates, prior * lengths**2)


def _ridge(curvatures: NDArray[np.float64], shrinkage: Shrinkage) -> float:
    """Solve for the ridge that noise asks for: it grows with the directions that are left."""
    per_direction = (shrinkage.length * shrinkage.noise) ** 2 / shrinkage.weight_variance
    ridge = RIDGE_START
    for _ in range(RIDGE_ROUNDS):
        left = float((curvatures / (curvatures + ridge)).sum())
        ridge = max(shrinkage.ridge * per_direction * left, RIDGE_MIN)
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
