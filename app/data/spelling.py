"""The text of a typed value, so that a class or a category is found by value.

A CSV holds text and nothing else; other sources hold numbers and booleans too.
Each of those has its usual spellings, and the first that is a public name
counts: 1.0 is the class ``1.0`` where there is one, else the class ``1``.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

MISSING_CELL = ""
ERRORS = "surrogateescape"


class CellError(Exception):
    """A cell that does not fit; the text says why and holds no value."""


def spelled(value: object, names: Collection[str]) -> str:
    """Return a value as the text that a CSV would hold.

    Args:
        value: text, bytes of text, a boolean, a number, or None for what is
            missing, as NaN is.
        names: the public categories or classes, and what stands for a missing
            value.

    Raises:
        CellError: a value of any other type.

    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode(errors=ERRORS)
    spellings = _spellings(value)
    return next((text for text in spellings if text in names), spellings[0])


def _spellings(value: object) -> tuple[str, ...]:
    """Return the usual texts of a value that is none, the likeliest first."""
    if value is None or (isinstance(value, float | Decimal) and math.isnan(value)):
        return (MISSING_CELL,)
    if isinstance(value, bool):
        return (str(value), str(value).lower())
    if isinstance(value, int):
        return (str(value),)
    if isinstance(value, float):
        return (repr(value), f"{value:.0f}") if value.is_integer() else (repr(value),)
    if isinstance(value, Decimal):
        return (str(value), f"{value.normalize():f}") if value.is_finite() else (str(value),)
    raise CellError("is neither text nor a number nor a boolean")
