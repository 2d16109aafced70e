"""Conversion of tables of any kind to the columns that a classifier needs.

A column is read value by value: the result for a value does not depend on any other value.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, SupportsFloat, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Table(Protocol):
    """The interface of a table with named columns: a dict, a data frame, an Arrow table."""

    def __getitem__(self, name: Any, /) -> Any:  # noqa: ANN401 -- tables name columns variously
        """Return a column."""


Frame: TypeAlias = Table | Iterable[Sequence[Any] | Mapping[str, Any]]
"""A table, or rows: a two-dimensional array, or vectors as a query has them."""
Column: TypeAlias = Any
"""Values of a feature, in whatever a table keeps them."""

NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NUMBER_KINDS: Final = "fiu"
# How missing values of tables are called that are neither None nor NaN.
MISSING_TYPES: Final = frozenset({"NAType", "NaTType"})
LISTING_METHODS: Final = ("to_pylist", "to_list", "tolist")
TABLE_DIMENSIONS: Final = 2
# The spellings of a boolean, in small letters, and its numbers.
TRUTHS: Final[Mapping[object, str]] = dict.fromkeys(("true", "t", 1), "true") | dict.fromkeys(
    ("false", "f", 0), "false"
)
DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()
# A date, or a moment in the extended form of ISO 8601, whose date is what stands there.
ISO_DATE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class MissingTokens:
    """The texts that stand for a missing value, and their values if they are numbers or dates."""

    texts: frozenset[str]
    numbers: tuple[float, ...]
    dates: frozenset[dt.date]

    @classmethod
    def of(cls, missing: Iterable[str]) -> MissingTokens:
        """Return the texts that stand for a missing value: the given ones and the empty text."""
        texts = frozenset(missing)
        spelled = [float(each) for each in texts if NUMBER.fullmatch(each.strip(" \t"))]
        dates = {date for each in texts if (date := _date_in(each)) is not None}
        return cls(texts | {""}, tuple(filter(math.isfinite, spelled)), frozenset(dates))


def columns_of(frame: Frame, names: Sequence[str]) -> list[Any]:
    """Return one column of a table for each name, in the order of the names.

    Raises:
        ValueError: a column is missing, or rows have the wrong length.

    """
    if _has_named_columns(frame):
        table = cast("Table", frame)
        return [_named(table, name) for name in names]
    if isinstance(frame, np.ndarray):
        if frame.ndim != TABLE_DIMENSIONS or frame.shape[1] != len(names):
            raise ValueError(f"an array of {len(names)} columns is needed")
        return [frame[:, place] for place in range(len(names))]
    rows = list(cast("Iterable[Any]", frame))
    for number, row in enumerate(rows):
        _check_row(number, row, names)
    return [
        [row[name] if isinstance(row, Mapping) else row[place] for row in rows]
        for place, name in enumerate(names)
    ]


def numbers_of(column: Column, name: str, missing: MissingTokens) -> NDArray[np.float64]:
    """Return a numeric column, with NaN for missing values.

    Raises:
        ValueError: a value is neither a number nor missing.

    """
    array = column.to_numpy() if hasattr(column, "to_numpy") else column
    if isinstance(array, np.ndarray) and array.dtype.kind in NUMBER_KINDS:
        values = array.astype(np.float64)
    else:
        listed = [_number(value, name, missing.texts) for value in _listed(column)]
        values = np.array(listed, dtype=np.float64)
    for number in missing.numbers:
        values[values == number] = np.nan
    return values


def days_of(column: Column, name: str, missing: MissingTokens) -> NDArray[np.float64]:
    """Return a column of dates as days from 1970-01-01, with NaN for missing values.

    Raises:
        ValueError: a value is neither a date, nor a number of days, nor missing.

    """
    listed = [_day(value, name, missing) for value in _listed(column)]
    return np.array(listed, dtype=np.float64)


def codes_of(
    column: Column, name: str, categories: Sequence[str], missing: MissingTokens
) -> NDArray[np.int64]:
    """Return a categorical column as integer codes.

    The code of a listed category is its index; all other texts have one further code, and missing
    values another.

    Raises:
        ValueError: a value is neither a string nor missing.

    """
    other = len(categories)
    known = dict.fromkeys(missing.texts, other + 1)
    # A category counts as one even where it is a token of missing.
    known.update((category, code) for code, category in enumerate(categories))
    found = [_code(value, name, known, other) for value in _listed(column)]
    return np.array(found, dtype=np.int64)


def truths_of(
    column: Column, name: str, categories: Sequence[str], missing: MissingTokens
) -> NDArray[np.int64]:
    """Return a boolean column as :func:`codes_of` does, whatever spells true and false.

    Raises:
        ValueError: a value is neither a boolean, nor 0 or 1, nor a text, nor missing.

    """
    return codes_of([_truth(value) for value in _listed(column)], name, categories, missing)


def _has_named_columns(frame: Frame) -> bool:
    """Return whether columns are found by name; a list of rows has neither of these."""
    if isinstance(frame, np.ndarray):
        return frame.dtype.names is not None
    return isinstance(frame, Mapping) or any(
        hasattr(frame, attribute) for attribute in ("columns", "column_names")
    )


def _named(table: Table, name: str) -> Column:
    try:
        return table[name]
    except Exception:  # noqa: BLE001 -- every library of tables has an error of its own for it
        raise ValueError(f"there is no column {name}") from None


def _check_row(number: int, row: object, names: Sequence[str]) -> None:
    if isinstance(row, Mapping):
        absent = [name for name in names if name not in row]
        if absent:
            raise ValueError(f"row {number} has no {absent[0]}")
    elif isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(names):
        raise ValueError(f"row {number} is no vector of {len(names)} values")


def _listed(column: Column) -> list[object]:
    """Return a column's values as Python has them."""
    for method in LISTING_METHODS:
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _is_missing(value: object) -> bool:
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in MISSING_TYPES
    )


def _number(value: object, name: str, texts: frozenset[str]) -> float:
    if _is_missing(value) or (isinstance(value, str) and value in texts):
        return math.nan
    if isinstance(value, bool | np.bool | str) or not isinstance(value, SupportsFloat):
        raise ValueError(f"{name}: a number is needed")  # noqa: TRY004 -- as all of a row's faults
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}: a number is beyond float64") from None


def _date_in(text: str) -> dt.date | None:
    """Return the date in a text in ISO 8601, with or without a time; None for any other text."""
    written = ISO_DATE.fullmatch(text.strip(" \t"))
    try:
        return None if written is None else dt.date.fromisoformat(written[1])
    except ValueError:  # such as the 30th of February
        return None


def _day(value: object, name: str, missing: MissingTokens) -> float:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[D]").item()
    if isinstance(value, str) and value not in missing.texts:
        value = _date_in(value)
        if value is None:
            raise ValueError(f"{name}: a date such as 2026-12-31 is needed")
    if isinstance(value, dt.date) and not _is_missing(value):  # a datetime is one
        day = value.toordinal()
        is_token = any(day == date.toordinal() for date in missing.dates)
        return math.nan if is_token else float(day - DAY_ZERO)
    return _number(value, name, missing.texts)


def _truth(value: object) -> object:
    """Return ``true`` or ``false`` for one of their spellings, and any other value unchanged."""
    if isinstance(value, str):
        text = value.strip(" \t").lower()
        return TRUTHS.get(float(text) if NUMBER.fullmatch(text) else text, value)
    return TRUTHS.get(value, value) if isinstance(value, SupportsFloat) else value


def _code(value: object, name: str, known: Mapping[str, int], other: int) -> int:
    if isinstance(value, bool | np.bool):
        likeliest = str(value)  # unless the categories say it as JSON does
        value = likeliest if likeliest in known else likeliest.lower()
    if isinstance(value, str):
        return known.get(value, other)
    if not _is_missing(value):
        raise ValueError(f"{name}: a string is needed")
    return other + 1
