"""Conversion of tables of any kind to the columns that a classifier needs.

A column is read value by value: the result for a value does not depend on any other value.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
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
# Of names: a leading zero or plus makes a code, which text alone matches.
NAMED_NUMBER: Final = re.compile(r"-?((?!0\d)(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf)", re.ASCII)
NUMBER_KINDS: Final = "fiu"
NUMBER_TYPES: Final = (int, float, Decimal, np.integer, np.floating)
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


@dataclass(frozen=True, slots=True)
class Names:
    """The public names of a feature's categories and of missing values, with their codes.

    Attributes:
        codes: the code of each name.
        numbers: the code of each name that spells a number, by the number; if there is one, any
            number is accepted.
        has_booleans: whether a name spells a boolean, so that booleans are accepted.
        other: the code of any other text or number.

    """

    codes: Mapping[str, int]
    numbers: Mapping[float, int]
    has_booleans: bool
    other: int

    @classmethod
    def of(cls, categories: Sequence[str], missing: MissingTokens) -> Names:
        """Return the names of a categorical feature."""
        other = len(categories)
        codes = {category: code for code, category in enumerate(categories)}
        # A category counts as one even where it is a token of missing.
        codes |= {text: other + 1 for text in sorted(missing.texts) if text not in codes}
        numbers: dict[float, int] = {}
        for name, code in codes.items():
            if NAMED_NUMBER.fullmatch(name):
                numbers.setdefault(float(name) + 0.0, code)
        spelled = {"True", "true", "False", "false"}
        has_booleans = not spelled.isdisjoint(codes)
        return cls(codes, numbers, has_booleans, other)

    @property
    def wanted(self) -> str:
        """What a value may be, in words."""
        number = ["a number"] if self.numbers else []
        return " or ".join(["a string", *number, *(["a boolean"] if self.has_booleans else [])])


def codes_of(
    column: Column, name: str, categories: Sequence[str], missing: MissingTokens
) -> NDArray[np.int64]:
    """Return a categorical column as integer codes.

    The code of a listed category is its index; all other texts have one further code, and missing
    values another. As on a server, a number or a boolean is the category that spells it, and is
    refused if no category spells any.

    Raises:
        ValueError: a value is neither a string nor missing, nor a number or boolean that is
            accepted.

    """
    names = Names.of(categories, missing)
    return np.array([_code(value, name, names) for value in _listed(column)], dtype=np.int64)


def truths_of(
    column: Column, name: str, categories: Sequence[str], missing: MissingTokens
) -> NDArray[np.int64]:
    """Return a boolean column as :func:`codes_of` does, whatever spells true and false.

    As on a server, a text or a number that spells neither, and is not missing, is refused.

    Raises:
        ValueError: a value is neither true, nor false, nor missing.

    """
    codes = Names.of(categories, missing).codes
    found = [_truth_code(value, name, codes, missing) for value in _listed(column)]
    return np.array(found, dtype=np.int64)


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


def _truth_code(value: object, name: str, codes: Mapping[str, int], missing: MissingTokens) -> int:
    """Return the code of a value of a boolean feature."""
    text = "" if _is_missing(value) else value
    if isinstance(text, str) and text in missing.texts:
        return codes[""]
    given = text
    if isinstance(text, str):
        spelled = text.strip(" \t")
        given = float(spelled) if NUMBER.fullmatch(spelled) else spelled.lower()
    if isinstance(given, (str, bool, np.bool, *NUMBER_TYPES)):
        if given in missing.numbers:
            return codes[""]
        if given in TRUTHS:
            return codes[TRUTHS[given]]
    raise ValueError(f"{name}: true or false is needed")


def _code(value: object, name: str, names: Names) -> int:
    if isinstance(value, str):
        return names.codes.get(value, names.other)
    if _is_missing(value):
        return names.other + 1
    if isinstance(value, bool | np.bool) and names.has_booleans:
        likeliest = str(value)  # unless the categories say it as JSON does
        return names.codes.get(likeliest, names.codes.get(likeliest.lower(), names.other))
    if isinstance(value, NUMBER_TYPES) and not isinstance(value, bool | np.bool):
        number = _finite(value, name)
        if names.numbers:
            return names.numbers.get(number, names.other)
    raise ValueError(f"{name}: {names.wanted} is needed")


def _finite(value: SupportsFloat, name: str) -> float:
    """Return a number as float64; one beyond it is refused."""
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name}: a number is beyond float64")
    return number
