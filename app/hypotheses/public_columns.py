"""Public encoding of values as columns for learners that take numbers.

Every choice is public: numbers are scaled by their public bounds and
categories are known beforehand, so nothing is fitted on private rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Codes beyond the listed categories: other, and missing.
EXTRA_CODES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicColumn:
    """What encoding one feature needs of the public schema.

    Attributes:
        bounds: lower and upper bound of a number; None for a category.
        category_count: number of listed categories; None for a number.

    """

    bounds: tuple[float, float] | None = None
    category_count: int | None = None

    def __post_init__(self) -> None:
        """Refuse a column that is both or neither kind."""
        invariant((self.bounds is None) != (self.category_count is None), "a column has one kind")


def encode_columns(
    columns: Sequence[PublicColumn], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Encode values as finite numbers in [0, 1].

    Args:
        columns: one a feature.
        values: encoded rows, shape ``(n, d)``.

    Returns:
        Two columns a number, scaled to [0, 1] (0 where missing) and 1 where
        missing; ``categories + 2`` columns a category, one-hot with other and
        missing.

    """
    encoded = [_encode(column, values[:, index]) for index, column in enumerate(columns)]
    return np.concatenate([np.zeros((len(values), 0)), *encoded], axis=1)


def _encode(column: PublicColumn, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Encode one feature, shape ``(n, width)``."""
    if column.bounds is None:
        codes = np.arange((column.category_count or 0) + EXTRA_CODES)
        return np.equal(values[:, np.newaxis], codes).astype(np.float64)
    lower, upper = column.bounds
    missing = np.isnan(values)
    scaled = np.where(missing, 0.0, (values - lower) / max(upper - lower, np.finfo(float).tiny))
    return np.stack([scaled, missing.astype(np.float64)], axis=1)
