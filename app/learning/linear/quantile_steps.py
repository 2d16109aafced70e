"""Numeric features as inputs of a linear classifier, in whole steps between public quantiles.

The score of a linear classifier is a weighted sum of its inputs. A test ``x >= cut`` only says on
which side of the cut a value lies. A score that changes gradually with the value would need many
tests, so the value itself is an input too. It is measured between a low and a high public
quantile, and a value beyond a quantile counts as this quantile, because few people have extreme
values.

The input is a whole number of steps, computed from the row's own value only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.linear.cosine_features import MAGNITUDE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

# The share of public points below the lowest step, and above the highest.
OUTER_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numeric features that are inputs of a linear classifier, scaled by public quantiles.

    Attributes:
        feature_indices: the indices of the numeric features, in the order of the schema.
        bounds: for each feature, the values at step 0 and at step 256 (:data:`MAGNITUDE`).

    """

    feature_indices: tuple[int, ...] = ()
    bounds: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        """Check that every feature has two different bounds."""
        invariant(len(self.feature_indices) == len(self.bounds), "a number has its bounds")
        invariant(all(lower < upper for lower, upper in self.bounds), "bounds lie apart")

    def __len__(self) -> int:
        """Return the number of numeric features."""
        return len(self.bounds)

    @classmethod
    def known(cls, public_values: NDArray[np.float64], feature_indices: Iterable[int]) -> Numbers:
        """Return the numeric features whose low and high quantiles differ among public points.

        Args:
            public_values: feature values of the points, encoded by the public schema, shape
                ``(points, features)``. Without points the result has no feature.
            feature_indices: the indices of the numeric features to try, in the order of the schema.

        """
        found = {}
        for index in feature_indices:
            values = np.sort(public_values[:, index])
            values = values[~np.isnan(values)]
            outer = int(OUTER_SHARE * len(values))
            if len(values) and values[outer] < values[-1 - outer]:
                found[index] = (float(values[outer]), float(values[-1 - outer]))
        return cls(tuple(found), tuple(found.values()))

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int16]:
        """Return the numeric features of rows in whole steps, shape ``(rows, numeric features)``.

        A missing value is at step 0.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        found = np.zeros((len(values), len(self)), dtype=np.int16)
        for place, (index, (lower, upper)) in enumerate(
            zip(self.feature_indices, self.bounds, strict=True)
        ):
            clipped = np.clip(values[:, index], lower, upper)
            steps = np.rint((clipped - lower) / (upper - lower) * MAGNITUDE)
            found[:, place] = np.nan_to_num(steps, nan=0.0)
        return found


NO_NUMBERS: Final = Numbers()
