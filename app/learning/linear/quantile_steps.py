"""Numeric features as inputs of a score, in whole steps between public quantiles.

A test of a cut says on which side a number lies.  What follows a number evenly would need a test
at every value, so the number itself is an input beside them.  Few people are far out, so it counts
from one public quantile to another: beyond them it lies on the nearer one.

It is read in whole steps, of its own row alone: one difference, quotient, product and rounding of
doubles.
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
    """The numeric features used as inputs, with public quantiles for their scale.

    Attributes:
        feature_indices: the numeric features, in schema order.
        bounds: of each, the values at no step and at :data:`MAGNITUDE` steps.

    """

    feature_indices: tuple[int, ...] = ()
    bounds: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a number without two bounds."""
        invariant(len(self.feature_indices) == len(self.bounds), "a number has its bounds")
        invariant(all(lower < upper for lower, upper in self.bounds), "bounds lie apart")

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return len(self.bounds)

    @classmethod
    def known(cls, public_values: NDArray[np.float64], feature_indices: Iterable[int]) -> Numbers:
        """Return the numeric features whose outer quantiles differ among the public points.

        Args:
            public_values: encoded public points, shape ``(m, d)``; m may be 0, which gives none.
            feature_indices: numeric features, in schema order.

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
        """Return the numeric features of encoded rows in whole steps, shape ``(n, len(self))``.

        A missing number is at the lower bound, no step away.
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
