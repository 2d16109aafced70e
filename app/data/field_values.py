"""Conversion of one field to text, number, boolean or date, whatever its stored type.

A CSV file contains only text; other sources contain numbers and booleans too. The stored type is
the choice of the program that wrote the file, and often depends on all rows together. Therefore it
must not matter: 99, 99.0 and ``Decimal("99.00")`` are the same number. The names of categories and
classes in the public schema are called public names; a number is compared with them by its value.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    Plain: TypeAlias = str | bool | float | None

MISSING_CELL = ""
ERRORS = "surrogateescape"
BLANKS = " \t"
POINT = "."
DECIMAL_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Of names: a leading zero or plus makes a code, which text alone matches.
NAMED_NUMBER = re.compile(r"-?((?!0\d)(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf)", re.ASCII)
TRUTHS = {"true": True, "t": True, "false": False, "f": False}
TRUE_OR_FALSE = ("false", "true")
NO_BOOLEAN = "is neither true nor false"
# A date, or a moment in the extended form of ISO 8601, whose date is what stands there.
ISO_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)
DAY_ZERO = dt.date(1970, 1, 1).toordinal()
NO_DATE = "is not a date such as 2026-12-31"

_NUMBERS = (int, float, Decimal)
_TEXT_OR_TRUTH = (str, bool, type(None))


class CellError(Exception):
    """The error for a field that does not fit its column; its text never has the field's value."""


def plain(value: object) -> Plain:
    """Return a value as text, boolean or float64; None for a missing value or NaN.

    Raises:
        CellError: the value has any other type.

    """
    if isinstance(value, _TEXT_OR_TRUTH):
        return value
    if isinstance(value, _NUMBERS):
        return _number(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode(errors=ERRORS)
    if isinstance(value, np.floating):
        return _number(float(value))
    if isinstance(value, np.integer | np.bool | np.bytes_):
        return plain(value.item())
    raise CellError("is neither text nor a number nor a boolean")


def boolean_spellings(value: bool) -> tuple[str, str]:  # noqa: FBT001 -- the value itself
    """Return the usual spellings of a boolean, the most likely one first."""
    return (str(value), str(value).lower())


def number_in(text: str) -> float | None:
    """Return the float64 of a decimal number's text; None for any other text.

    A number that is too large for float64 is infinite.
    """
    return float(text) + 0.0 if DECIMAL_NUMBER.fullmatch(text.strip(BLANKS)) else None


def with_point(text: str, decimal: str) -> str:
    """Return a number's text with its decimal separator replaced by a point.

    If the decimal separator is a comma, a point separates thousands. It becomes a comma, so that
    the text is refused as a number.

    Args:
        text: the number's text.
        decimal: the decimal separator, a point or a comma.

    """
    if decimal == POINT:
        return text
    return text.translate(str.maketrans(decimal + POINT, POINT + decimal))


def boolean_name(value: object, missing: frozenset[str]) -> str | None:
    """Return ``true`` or ``false`` for a value of a boolean feature; None if it is missing.

    Accepted values are booleans, the numbers 1 and 0 in any spelling, and the texts true, false, t
    and f in upper or lower case.

    Args:
        value: a value of any type.
        missing: texts that stand for a missing value; none of them spells a boolean.

    Raises:
        CellError: the value is neither a boolean nor missing.

    """
    given = plain(value)
    if _is_missing(given, missing):
        return None
    truth = given if isinstance(given, bool) else None
    if isinstance(given, str):
        truth = TRUTHS.get(given.strip(BLANKS).lower())
        given = number_in(given)
    if truth is None:
        truth = {0.0: False, 1.0: True}.get(given) if isinstance(given, float) else None
    if truth is None:
        raise CellError(NO_BOOLEAN)
    return TRUE_OR_FALSE[truth]


def day_number(value: object, missing: frozenset[str]) -> float | None:
    """Return the days from 1970-01-01 to the date in a value; None if it is missing.

    Of a date with a time, the date is used as it is written, in its own time zone.

    Args:
        value: a text in ISO 8601, a date, a ``datetime`` or a ``datetime64``.
        missing: texts that stand for a missing value; if such a text is a date, this date counts as
            missing.

    Raises:
        CellError: the value is not a date; numbers are not accepted.

    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[D]").item()
    given = value if isinstance(value, dt.date) else plain(value)
    day = day_in(given)
    if day is not None and not any(day_in(token) == day for token in missing):
        return day
    if day is not None or _is_missing(given, missing):
        return None
    raise CellError(NO_DATE)


def _is_missing(given: object, missing: frozenset[str]) -> bool:
    """Return whether a plain value is missing, or a number that stands for a missing one."""
    if given is None or given in missing:
        return True
    number = number_in(given) if isinstance(given, str) else given
    return isinstance(number, float) and number in finite_numbers(missing)


def day_in(value: object) -> float | None:
    """Return the days from 1970-01-01 to a date, given as a date or text; None otherwise.

    A text may be a date in ISO 8601, with or without a time.
    """
    if isinstance(value, dt.date):  # a datetime is one
        return float(value.toordinal() - DAY_ZERO)
    written = ISO_DATE.fullmatch(value.strip(BLANKS)) if isinstance(value, str) else None
    try:
        day = None if written is None else dt.date.fromisoformat(written[1])
    except ValueError:  # such as the 30th of February
        return None
    return None if day is None else day_in(day)


def iso_date(day: float) -> str:
    """Return the ISO 8601 date that is a number of days after 1970-01-01."""
    return dt.date.fromordinal(int(day) + DAY_ZERO).isoformat()


def finite_numbers(tokens: Iterable[str]) -> frozenset[float]:
    """Return the finite numbers among the texts that stand for a missing value."""
    numbers = map(number_in, tokens)
    return frozenset(number for number in numbers if number is not None and math.isfinite(number))


def named_number(name: str) -> float | None:
    """Return the number that the name of a category or class spells; None if it spells none."""
    return float(name) + 0.0 if NAMED_NUMBER.fullmatch(name) else None


class Names:
    """Public names of categories or classes, which are compared by spelling or by numeric value.

    Attributes:
        known: the names.
        have_numbers: whether one of the names is a number.
        have_booleans: whether one of the names is the spelling of a boolean.

    """

    def __init__(self, names: Iterable[str]) -> None:
        """Store the names; if two names are the same number, the first is used."""
        self.known = frozenset(names := tuple(names))
        self._by_number: dict[float, str] = {}
        for name in names:
            number = named_number(name)
            if number is not None:
                self._by_number.setdefault(number, name)
        self.have_numbers = bool(self._by_number)
        self.have_booleans = any(
            not self.known.isdisjoint(boolean_spellings(truth)) for truth in (True, False)
        )

    def of(self, given: Plain) -> str | None:
        """Return the public name that equals a value, or the value as text; None if missing."""
        if given is None or isinstance(given, str):
            return given
        if isinstance(given, bool):
            likeliest, other = boolean_spellings(given)
            return other if other in self.known and likeliest not in self.known else likeliest
        return self._by_number.get(given) or shortest(given)


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that spell the same number, and so are ambiguous; else None."""
    found: dict[float, str] = {}
    for name in names:
        number = named_number(name)
        if number is not None and found.setdefault(number, name) != name:
            return found[number], name
    return None


def shortest(number: float) -> str:
    """Return the shortest usual text of a number, for example 7 instead of 7.0."""
    return repr(number).removesuffix(".0")


def _number(value: float | Decimal) -> float | None:
    """Return the nearest float64, -0.0 as 0 and what is too large as infinite."""
    if isinstance(value, Decimal) and value.is_nan():
        return None
    try:
        number = float(value) + 0.0
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return None if math.isnan(number) else number
