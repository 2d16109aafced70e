"""From an array's columns to the public schema, and from its rows to feature vectors."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.schema import NumericFeature
from app.data.sources import cells
from app.data.spelling import ERRORS, CellError, twins

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from app.data.vectors import Vector

UNKNOWN_BOUNDS: Final = (
    "bounds are not given and were read from the private rows, which no charge covers; give"
    " public ones with bounds="
)
INFINITE: Final = "a numeric column holds infinity"
NUMBER_KINDS: Final = "biuf"
# Of these numpy writes the second for NaN beside text.
MISSING_TEXTS: Final = frozenset({"", "nan"})
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
        """Return the cells of a vector, each a function of its value; -0.0 is 0.

        Raises:
            ValueError: a cell is no finite number.

        """
        if values.dtype.kind in NUMBER_KINDS:
            numbers = (values.astype(np.float64) + 0.0).tolist()
        else:
            numbers = self._numbers(values.tolist())
        if any(map(math.isinf, numbers)):
            raise ValueError(INFINITE)
        return [None if math.isnan(number) else number for number in numbers]

    def table(self, name: str) -> dict[str, object]:
        """Return the feature as a configuration has it."""
        return {"name": name, "kind": "numeric", "bounds": [self.lower, self.upper]}

    def _numbers(self, values: Sequence[object]) -> list[float]:
        feature = NumericFeature(name="", lower=self.lower, upper=self.upper)
        reader = cells.NumericColumn(feature, MISSING_TEXTS)
        try:
            return [reader.canonical(as_number(value)) for value in values]
        except CellError as error:
            message = f"a cell of a numeric column {error}"
            raise ValueError(message) from None


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column of categories: text by its spelling, a number by its value; None is missing."""

    categories: tuple[str, ...]

    def cells(self, values: NDArray[np.generic]) -> list[float | str | None]:
        """Return the cells of a vector, each a function of its value."""
        reader = cells.NamedColumn(self.categories)
        return [_canonical(reader, value) for value in values.tolist()]

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
        found = [column.cells(values[:, place]) for place, column in enumerate(self.columns)]
        return list(zip(*found, strict=True))

    def tables(self) -> list[dict[str, object]]:
        """Return the features as a configuration has them."""
        return [column.table(f"x{place}") for place, column in enumerate(self.columns)]


def as_given(values: ArrayLike) -> ArrayLike:
    """Return rows without a type of their own as objects: numpy's follows from all of them."""
    if hasattr(values, "dtype") or hasattr(values, "__array__"):
        return values
    return np.array(values, dtype=object)


def as_number(value: object) -> object:
    """Return a boolean as the number that it is to numpy, anything else as it is."""
    return int(value) if isinstance(value, bool | np.bool) else value


def public_name(value: object) -> str:
    """Return the name of a category as text."""
    return value.decode(errors=ERRORS) if isinstance(value, bytes) else str(value)


def public_labels(classes: NDArray[np.generic]) -> cells.LabelColumn:
    """Return what finds a label among classes, each label alone.

    Raises:
        ValueError: two classes are one number.

    """
    names = [public_name(as_number(each)) for each in classes.tolist()]
    pair = twins(names)
    if pair is not None:
        message = f"classes: {pair[0]!r} and {pair[1]!r} are one number"
        raise ValueError(message)
    return cells.LabelColumn(names)


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
            CategoricalColumn(tuple(map(public_name, named[place])))
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


def _canonical(reader: cells.NamedColumn, value: object) -> str | None:
    """Return the name that a value is; None where it is missing."""
    try:
        return reader.canonical(value) or None
    except CellError:
        return str(value)
