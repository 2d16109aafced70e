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


def whitened(
    moments: PublicMoments, *, ridge: float, norm: float, constant: float
) -> IntegerFeatures:
    """Return the map under which the terms have nearly the identity as covariance.

    A direction of variance v among the standardised terms is scaled by
    ``1 / sqrt(v + ridge)``, so that directions which public points hardly show are
    kept small.  The last coordinate is the same for all rows.

    Args:
        moments: of the terms, public.
        ridge: what is added to each variance, above 0.
        norm: the length that vectors are cut to, in units of a coordinate.
        constant: the last coordinate, at most ``norm``.

    Raises:
        ConfigurationError: the tests are so many that sums would not be exact.

    """
    # As if one point more had been half on either side: rare terms stay bounded.
    spread = np.sqrt(moments.mean * (1 - moments.mean) + 1 / (2 * moments.count))
    correlation = moments.covariance / np.outer(spread, spread)
    variances, directions = np.linalg.eigh(correlation)
    matrix = (directions / np.sqrt(np.maximum(variances, 0.0) + ridge)) / spread[:, None]
    offset = np.append(-moments.mean @ matrix, constant)
    return _integers(np.hstack([matrix, np.zeros((len(matrix), 1))]), offset, norm=norm)


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
