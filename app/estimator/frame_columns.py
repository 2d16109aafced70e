"""Conversion of an array or data frame to a public schema and feature vectors.

The columns of a data frame have their own names, and the columns of an array are named by their
position. Whether a column contains numbers within bounds or categories is public configuration,
which the estimator's parameters state. Nothing is inferred from the type of a column, because its
type depends on the private rows, unless a parameter says ``"dtype"``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np

from app.data.field_values import ERRORS, CellError, twins
from app.data.schema import NumericFeature
from app.data.sources import column_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from app.data.vectors import Vector

UNKNOWN_BOUNDS: Final = (
    "bounds are not given and were read from the private rows, which no charge covers; give"
    " public ones with bounds="
)
NO_BOUNDS: Final = (
    "bounds: none for {names}; a number needs public (lower, upper), and what is no number needs"
    " categories="
)
NO_DTYPE: Final = (
    'categories: {name!r} is "dtype", and the column has neither a categorical nor a boolean dtype;'
    " list its categories"
)
NO_LIST: Final = 'categories: those of {name!r} must be a list, or "dtype"'
DTYPE: Final = "dtype"
INFINITE: Final = "a numeric column holds infinity"
NUMBER_KINDS: Final = "biuf"
BOOLEAN_KIND: Final = "b"
# Of these numpy writes the second for NaN beside text.
MISSING_TEXTS: Final = frozenset({"", "nan"})
NOTHING: Final[frozenset[str]] = frozenset()
NAMES_SHOWN: Final = 10
CALLER: Final = 3
PAIR: Final = 2
TRUTHS: Final[tuple[Any, ...]] = (0, 1)

Categories = Mapping[int | str, Iterable[object]] | str
"""Public categories by a column's place or name, each a list or ``"dtype"``; or ``"dtype"``."""


class UnchargedDataWarning(UserWarning):
    """Warning: a public parameter was derived from private rows, at an uncounted privacy cost."""


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """A numeric column, clipped to public bounds; NaN is a missing value."""

    name: str
    lower: float
    upper: float
    missing: frozenset[str] = NOTHING

    def cells(self, values: NDArray[np.generic]) -> list[float | str | None]:
        """Return each value as a number; None for a missing value.

        Raises:
            ValueError: a value is no finite number.

        """
        if values.dtype.kind in NUMBER_KINDS:
            numbers = (values.astype(np.float64) + 0.0).tolist()
        else:
            numbers = self._numbers(values.tolist())
        if any(map(math.isinf, numbers)):
            raise ValueError(INFINITE)
        return [None if math.isnan(number) else number for number in numbers]

    def table(self) -> dict[str, object]:
        """Return the column's feature as a TOML table of the configuration."""
        return {"name": self.name, "kind": "numeric", "bounds": [self.lower, self.upper]}

    def _numbers(self, values: Sequence[object]) -> list[float]:
        feature = NumericFeature(name=self.name, lower=self.lower, upper=self.upper)
        reader = column_values.NumericColumn(feature, MISSING_TEXTS | self.missing)
        try:
            return [reader.canonical(as_number(value)) for value in values]
        except CellError as error:
            message = f"a cell of the numeric column {self.name!r} {error}"
            raise ValueError(message) from None


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A categorical column: text is matched exactly, numbers by value; None is missing.

    If the categories are False and True, the numbers 0 and 1 stand for them, because an array that
    also contains numbers converts False and True to 0 and 1.
    """

    name: str
    categories: tuple[str, ...]
    is_boolean: bool = False
    missing: frozenset[str] = NOTHING

    def cells(self, values: NDArray[np.generic]) -> list[float | str | None]:
        """Return each value as text, for a category its name; None for a missing value."""
        reader = column_values.NamedColumn((*self.categories, *sorted(self.missing)))
        given = values.tolist()
        return [
            _canonical(reader, _as_truth(value) if self.is_boolean else value) for value in given
        ]

    def table(self) -> dict[str, object]:
        """Return the column's feature as a TOML table of the configuration."""
        return {"name": self.name, "kind": "categorical", "categories": list(self.categories)}


@dataclass(frozen=True, slots=True)
class Columns:
    """The public columns of an array or a data frame."""

    columns: tuple[NumericColumn | CategoricalColumn, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def vectors(self, values: NDArray[np.generic]) -> list[Vector]:
        """Return the rows of an array, shape ``(rows, columns)``, as feature vectors.

        Raises:
            ValueError: a value of a numeric column is no finite number.

        """
        found = [column.cells(values[:, place]) for place, column in enumerate(self.columns)]
        return list(zip(*found, strict=True))

    def tables(self) -> list[dict[str, object]]:
        """Return the columns' features as TOML tables of the configuration."""
        return [column.table() for column in self.columns]


def is_frame(values: object) -> TypeGuard[Any]:
    """Return whether the given rows are a pandas data frame, or behave like one."""
    return hasattr(values, "iloc") and hasattr(values, "dtypes") and hasattr(values, "columns")


def as_given(values: ArrayLike) -> ArrayLike:
    """Return rows value by value, without conversion to a column's common type.

    A common type would depend on all rows. Therefore lists of rows, and the columns of a data
    frame, are returned with the type ``object``, and missing values of a data frame become None.
    """
    if is_frame(values):
        frame: ArrayLike = values.astype(object).where(values.notna(), None)
        return frame
    if hasattr(values, "dtype") or hasattr(values, "__array__"):
        return values
    return np.array(values, dtype=object)


def as_number(value: object) -> object:
    """Return a boolean as 0 or 1, and any other value unchanged."""
    return int(value) if isinstance(value, bool | np.bool) else value


def public_name(value: object) -> str:
    """Return the name of a category as text."""
    return value.decode(errors=ERRORS) if isinstance(value, bytes) else str(value)


def class_names(classes: NDArray[np.generic]) -> list[str]:
    """Return the name of each class as text, where False and True are named 0 and 1.

    Raises:
        ValueError: two names, such as 1 and 1.0, are the same number.

    """
    names = [public_name(as_number(each)) for each in classes.tolist()]
    pair = twins(names)
    if pair is not None:
        message = f"classes: {pair[0]!r} and {pair[1]!r} are one number"
        raise ValueError(message)
    return names


def public_columns(
    values: NDArray[np.generic],
    *,
    bounds: ArrayLike | Mapping[int | str, ArrayLike] | None,
    categories: Categories | None,
    names: Sequence[str] | None = None,
    dtypes: Sequence[object] | None = None,
    missing: frozenset[str] = NOTHING,
) -> Columns:
    """Return the public description of each column, from the estimator's parameters.

    Args:
        values: the private rows, shape ``(rows, columns)``; read only if ``bounds`` is None.
        bounds: one pair (lower, upper) for all numeric columns; a sequence with a pair for each
            column, in which the pairs of categorical columns are ignored; or a mapping from
            position or name to a pair, one for each numeric column. None reads the bounds from the
            rows, with a warning.
        categories: the categories of each categorical column, by position or name.
        names: the names of the columns; None for columns without names.
        dtypes: the dtypes of a data frame's columns, used only where ``categories`` says
            ``"dtype"``.
        missing: the texts that stand for a missing value, in addition to the empty text.

    Raises:
        ValueError: bounds are invalid, or a parameter names a column that does not exist.

    """
    width = values.shape[1]
    named = _categories(categories, names, dtypes, width)
    shown = [f"x{place}" for place in range(width)] if names is None else list(names)
    numeric = [place for place in range(width) if place not in named]
    if bounds is None:
        pairs = _read(values, numeric)
    else:
        pairs = _given(bounds, numeric, names=names, shown=shown)
    return Columns(
        tuple(
            _categorical(shown[place], named[place], missing)
            if place in named
            else NumericColumn(shown[place], *pairs[place], missing=missing)
            for place in range(width)
        )
    )


def _categorical(
    name: str, categories: Sequence[object], missing: frozenset[str]
) -> CategoricalColumn:
    """Return a column of categories, which are booleans where all of them are."""
    is_boolean = all(isinstance(each, bool | np.bool) for each in categories)
    return CategoricalColumn(name, tuple(map(public_name, categories)), is_boolean, missing)


def _categories(
    categories: Categories | None,
    names: Sequence[str] | None,
    dtypes: Sequence[object] | None,
    width: int,
) -> dict[int, Sequence[object]]:
    """Return the categories of each column that has any, by its place."""
    if isinstance(categories, str):
        if categories != DTYPE or dtypes is None:
            message = f'categories: must be a mapping, or "{DTYPE}" where X is a data frame'
            raise ValueError(message)
        every = {place: _of_dtype(dtype) for place, dtype in enumerate(dtypes)}
        return {place: found for place, found in every.items() if found is not None}
    given = _by_place("categories", categories or {}, names, width)
    found: dict[int, Sequence[object]] = {}
    for place, listed in given.items():
        name = place if names is None else names[place]
        is_dtype = isinstance(listed, str) and listed == DTYPE
        from_dtype = _of_dtype(dtypes[place]) if is_dtype and dtypes is not None else None
        if is_dtype and from_dtype is None:
            raise ValueError(NO_DTYPE.format(name=name))
        if not is_dtype and (isinstance(listed, str) or not isinstance(listed, Iterable)):
            raise ValueError(NO_LIST.format(name=name))
        found[place] = list(listed) if from_dtype is None else from_dtype  # type: ignore[call-overload]  # an iterable
    return found


def _of_dtype(dtype: object) -> Sequence[object] | None:
    """Return the categories of a column's dtype; None where it is of another kind."""
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return list(categories)
    return (False, True) if getattr(dtype, "kind", None) == BOOLEAN_KIND else None


def _by_place(
    parameter: str, given: Mapping[Any, object], names: Sequence[str] | None, width: int
) -> dict[int, object]:
    """Return what a parameter gives for columns, by their places.

    Raises:
        ValueError: a key that is no column, or two that are one.

    """
    found: dict[int, object] = {}
    for key, value in given.items():
        place = _place(parameter, key, names, width)
        if place in found:
            message = f"{parameter}: {key!r} is named twice, by its name and by its place"
            raise ValueError(message)
        found[place] = value
    return found


def _place(parameter: str, key: object, names: Sequence[str] | None, width: int) -> int:
    """Return the place of the column that a key names."""
    if isinstance(key, str):
        if names is None:
            message = f"{parameter}: {key!r} is a name, and X has none; name the column by place"
            raise ValueError(message)
        if key in names:
            return list(names).index(key)
        message = f"{parameter}: {key!r} is no column; there are {_shown(names)}"
        raise ValueError(message)
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < width:
        return int(key)
    message = f"{parameter}: {key!r} is no column; there are {width}"
    raise ValueError(message)


def _shown(names: Sequence[str]) -> str:
    """Return names for a line, the first of many."""
    more = len(names) - NAMES_SHOWN
    listed = ", ".join(map(repr, names[:NAMES_SHOWN]))
    return f"{listed} and {more} more" if more > 0 else listed


def _given(
    bounds: ArrayLike | Mapping[int | str, ArrayLike],
    numeric: Sequence[int],
    *,
    names: Sequence[str] | None,
    shown: Sequence[str],
) -> dict[int, tuple[float, float]]:
    """Return the bounds of each numeric column, as they were given."""
    width = len(shown)
    if isinstance(bounds, Mapping):
        given = _by_place("bounds", bounds, names, width)
        for place in given:
            if place not in numeric:
                message = f"bounds: {shown[place]!r} has categories, and takes no bounds"
                raise ValueError(message)
        without = [shown[place] for place in numeric if place not in given]
        if without:
            raise ValueError(NO_BOUNDS.format(names=_shown(without)))
    else:
        each: list[Any] = list(bounds) if isinstance(bounds, Iterable) else []
        is_one = len(each) == PAIR and all(np.ndim(limit) == 0 for limit in each)
        if not is_one and len(each) != width:
            message = f"bounds: must be one (lower, upper), or one for each of {width} columns"
            raise ValueError(message)
        given = {place: each if is_one else each[place] for place in numeric}
    return {place: _pair(given[place], shown[place]) for place in numeric}


def _pair(given: object, name: str) -> tuple[float, float]:
    """Return the bounds of one column."""
    try:
        lower, upper = np.asarray(given, dtype=np.float64).tolist()
        return float(lower), float(upper)
    except (TypeError, ValueError):
        message = f"bounds: those of {name!r} must be one (lower, upper) of numbers"
        raise ValueError(message) from None


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


def _as_truth(value: object) -> object:
    """Return the boolean that a number 0 or 1 is, anything else as it is."""
    is_truth = isinstance(value, Number) and value in TRUTHS
    return bool(value) if is_truth else value


def _canonical(reader: column_values.NamedColumn, value: object) -> str | None:
    """Return the name that a value is; None where it is missing."""
    try:
        return reader.canonical(value) or None
    except CellError:
        return str(value)
