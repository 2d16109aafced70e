"""From an array's columns to the public schema, and from its rows to feature vectors."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from app.data.vectors import Vector

UNKNOWN_BOUNDS: Final = (
    "bounds are not given and were read from the private rows, which no charge covers; give"
    " public ones with bounds="
)
CALLER: Final = 3
PAIR: Final = 2


class UnchargedDataWarning(UserWarning):
    """Something public was read from the private rows: the promise does not cover it."""


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """A column of numbers, clipped to public bounds; NaN is missing."""

    lower: float
    upper: float

    def cells(self, values: NDArray[np.generic]) -> list[float | str | None]:
        """Return the cells of a vector; adding 0.0 turns -0.0 into 0.0.

        Raises:
            ValueError: a cell is no finite number.

        """
        numbers = np.asarray(values, dtype=np.float64) + 0.0
        if np.isinf(numbers).any():
            message = "a numeric column holds infinity"
            raise ValueError(message)
        return [None if math.isnan(number) else number for number in numbers.tolist()]

    def table(self, name: str) -> dict[str, object]:
        """Return the feature as a configuration has it."""
        return {"name": name, "kind": "numeric", "bounds": [self.lower, self.upper]}


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column of categories, compared as text; None and NaN are missing."""

    categories: tuple[str, ...]

    def cells(self, values: NDArray[np.generic]) -> list[float | str | None]:
        """Return the cells of a vector."""
        return [None if _is_missing(value) else str(value) for value in values.tolist()]

    def table(self, name: str) -> dict[str, object]:
        """Return the feature as a configuration has it."""
        return {"name": name, "kind": "categorical", "categories": list(self.categories)}


@dataclass(frozen=True, slots=True)
class Columns:
    """The public columns of an array."""

    columns: tuple[NumericColumn | CategoricalColumn, ...]

    def vectors(self, values: NDArray[np.generic]) -> list[Vector]:
        """Return the rows of an array, shape (m, d), as feature vectors.

        Raises:
            ValueError: a numeric cell is no finite number.

        """
        cells = [column.cells(values[:, place]) for place, column in enumerate(self.columns)]
        return list(zip(*cells, strict=True))

    def tables(self) -> list[dict[str, object]]:
        """Return the features as a configuration has them."""
        return [column.table(f"x{place}") for place, column in enumerate(self.columns)]


def public_columns(
    values: NDArray[np.generic],
    *,
    bounds: ArrayLike | None,
    categories: Mapping[int, Sequence[object]] | None,
) -> Columns:
    """Return the columns that public parameters fix.

    Args:
        values: the private rows, shape (n, d); read only where bounds are not given.
        bounds: one pair for all numeric columns, or one a column; None reads them
            from the rows, with a warning.
        categories: by column index.

    Raises:
        ValueError: bounds that are none, or an index that is no column's.

    """
    width, named = values.shape[1], dict(categories or {})
    for place in named:
        if not 0 <= place < width:
            message = f"categories: {place} is no column; there are {width}"
            raise ValueError(message)
    numeric = [place for place in range(width) if place not in named]
    pairs = _read(values, numeric) if bounds is None else _given(bounds, width)
    return Columns(
        tuple(
            CategoricalColumn(tuple(map(str, named[place])))
            if place in named
            else NumericColumn(*pairs[place])
            for place in range(width)
        )
    )


def _given(bounds: ArrayLike, width: int) -> dict[int, tuple[float, float]]:
    """Return the bounds of each column, as they were given."""
    table = np.asarray(bounds, dtype=np.float64)
    if table.shape == (PAIR,):
        table = np.tile(table, (width, 1))
    if table.shape != (width, PAIR):
        message = f"bounds: must be one (lower, upper), or one for each of {width} columns"
        raise ValueError(message)
    return {place: (lower, upper) for place, (lower, upper) in enumerate(table.tolist())}


def _read(values: NDArray[np.generic], numeric: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Read bounds from the rows, and say so; a column of one value gets some width."""
    if not numeric:
        return {}
    warnings.warn(UNKNOWN_BOUNDS, UnchargedDataWarning, stacklevel=CALLER + 1)
    found = {}
    for place in numeric:
        column = np.asarray(values[:, place], dtype=np.float64)
        seen = column[np.isfinite(column)]
        lower, upper = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
        found[place] = (lower, upper) if lower < upper else (lower - 0.5, upper + 0.5)
    return found


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
