"""One value of a row: the text, number or boolean that it is, whatever its type.

A CSV holds text and nothing else; other sources hold numbers and booleans too.
Types are the writer's choice, and often follow from all rows together, so that
nothing depends on them: 99, 99.0 and ``Decimal("99.00")`` are one number, and a
number is found among public names by its value.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Plain: TypeAlias = str | bool | float | None

MISSING_CELL = ""
ERRORS = "surrogateescape"
BLANKS = " \t"
DECIMAL_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Of names: a leading zero or plus makes a code, which text alone matches.
NAMED_NUMBER = re.compile(r"-?((?!0\d)(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf)", re.ASCII)


_NUMBERS = (int, float, Decimal)
_TEXT_OR_TRUTH = (str, bool, type(None))


class CellError(Exception):
    """A cell that does not fit; the text says why and holds no value."""


def plain(value: object) -> Plain:
    """Return a value as text, a boolean, a float64, or None where it is missing, as NaN is.

    Raises:
        CellError: a value of any other type.

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
    """Return the usual texts of a boolean, the likelier first."""
    return (str(value), str(value).lower())


def number_in(text: str) -> float | None:
    """Return the float64 that a decimal number is, infinite beyond the largest; else None."""
    return float(text) + 0.0 if DECIMAL_NUMBER.fullmatch(text.strip(BLANKS)) else None


def finite_numbers(tokens: Iterable[str]) -> frozenset[float]:
    """Return the numbers among tokens for a missing value, which a number is compared with."""
    numbers = map(number_in, tokens)
    return frozenset(number for number in numbers if number is not None and math.isfinite(number))


def named_number(name: str) -> float | None:
    """Return the float64 that a category or a class names; None where it names none."""
    return float(name) + 0.0 if NAMED_NUMBER.fullmatch(name) else None


def names_by_number(names: Iterable[str]) -> Mapping[float, str]:
    """Return the first name of each number that has one."""
    found: dict[float, str] = {}
    for name in names:
        number = named_number(name)
        if number is not None:
            found.setdefault(number, name)
    return found


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that are one number, which no typed value tells apart."""
    found: dict[float, str] = {}
    for name in names:
        number = named_number(name)
        if number is not None and found.setdefault(number, name) != name:
            return found[number], name
    return None


def shortest(number: float) -> str:
    """Return the shortest usual text of a number: 7 and not 7.0."""
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
