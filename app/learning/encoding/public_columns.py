"""The public encoding of feature values as numeric columns, for learners that use numbers.

Numbers are scaled by their public bounds, and the categories are public. Therefore nothing is
fitted on private rows.
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
COLUMNS_A_NUMBER = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicColumn:
    """The public facts about one feature that its numeric encoding needs.

    Attributes:
        bounds: the lower and the upper bound of a numeric feature; None for a categorical one.
        category_count: the number of listed categories; None for a numeric feature.

    """

    bounds: tuple[float, float] | None = None
    category_count: int | None = None

    def __post_init__(self) -> None:
        """Check that the feature is either numeric or categorical."""
        invariant((self.bounds is None) != (self.category_count is None), "a column has one kind")

    @property
    def width(self) -> int:
        """The number of columns that encode the feature."""
        return COLUMNS_A_NUMBER if self.bounds else (self.category_count or 0) + EXTRA_CODES


class PackedColumns:
    """The numeric encoding of features, stored as arrays for fast use on small batches of rows.

    Args:
        columns: the public facts about each feature.

    Attributes:
        width: the number of columns.
        indicators: if all features are numeric, the indices of the columns that say which values
            are missing; otherwise empty.

    """

    def __init__(self, columns: Sequence[PublicColumn]) -> None:
        """Store the positions of the columns of numbers and of categories."""
        starts = np.cumsum([0, *(column.width for column in columns)])
        self.width = int(starts[-1])
        numbers = [index for index, column in enumerate(columns) if column.bounds]
        self._numbers = np.array(numbers, dtype=np.intp)
        self._scaled = starts[self._numbers]
        bounds = [column.bounds for column in columns if column.bounds]
        spans = [max(upper - lower, np.finfo(float).tiny) for lower, upper in bounds]
        # Of two dimensions, as the values of one query are: operations on arrays of one shape
        # take a fifth of the time.
        self._lower = np.array([[lower for lower, _ in bounds]])
        self._span = np.array([spans])
        categories = [
            (index, code)
            for index, column in enumerate(columns)
            if not column.bounds
            for code in range(column.width)
        ]
        self._features, codes = np.array(categories, dtype=np.intp).reshape(-1, 2).T
        self._places = starts[self._features] + codes
        self._codes = codes.astype(np.float64)
        self._is_numeric = len(numbers) == len(columns)
        self.indicators = self._scaled + 1 if self._is_numeric else np.empty(0, dtype=np.intp)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return feature values encoded as finite numbers in [0, 1].

        A numeric feature gives two columns: the value scaled to [0, 1] (0 if missing), and an
        indicator that is 1 if the value is missing. A categorical feature gives ``categories + 2``
        one-hot columns: one for each listed category, one for any other category, and one for a
        missing value.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            Columns, shape ``(rows, columns)``.

        """
        if self._is_numeric:
            return self._of_numbers(values)
        encoded = np.empty((len(values), self.width))
        numbers = values.take(self._numbers, axis=1)
        missing = np.isnan(numbers)
        scaled = (numbers - self._lower) / self._span
        encoded[:, self._scaled] = np.where(missing, 0.0, scaled)
        encoded[:, self._scaled + 1] = missing
        encoded[:, self._places] = values.take(self._features, axis=1) == self._codes
        return encoded

    def scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the encoded values without the indicators, all of which are zero.

        Args:
            values: as of :meth:`encode`.

        Returns:
            Columns, shape ``(rows, features)``; None if a value is missing or a feature is
            categorical.

        """
        if not len(self.indicators) or np.isnan(values).any():
            return None
        scaled: NDArray[np.float64] = values - self._lower
        scaled /= self._span
        return scaled

    def _of_numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Encode values that are all numbers, whose columns lie side by side."""
        encoded = np.empty((*values.shape, COLUMNS_A_NUMBER))
        missing = np.isnan(values)
        scaled = values - self._lower
        scaled /= self._span
        scaled[missing] = 0.0
        encoded[:, :, 0] = scaled
        encoded[:, :, 1] = missing
        return encoded.reshape(len(values), self.width)


def encode_columns(
    columns: Sequence[PublicColumn], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return feature values as numeric columns; :meth:`PackedColumns.encode` describes them.

    Args:
        columns: the public facts about each feature.
        values: feature values encoded by the public schema, shape ``(rows, features)``.

    Returns:
        Columns, shape ``(rows, columns)``.

    """
    return PackedColumns(columns).encode(values)
