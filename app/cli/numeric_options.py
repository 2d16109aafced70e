"""Parsing of numeric command-line options, exactly and with errors that name the option."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

from app.errors import ConfigurationError

CHARACTERS_MAX: Final = 100
EXPONENT_MAX: Final = 100
WHOLE_DIGITS_MAX: Final = 18


def exact(option: str, text: str) -> Fraction:
    """Return the exact value of a finite decimal such as ``0.1`` or ``1e-6``.

    Args:
        option: the name of the option, for the error.
        text: the option's value on the command line.

    Raises:
        ConfigurationError: the text is no finite decimal; the error names the option.

    """
    try:
        value = Decimal(text) if len(text) <= CHARACTERS_MAX else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or abs(value.adjusted()) > EXPONENT_MAX:
        raise ConfigurationError(option, "must be a finite number, such as 0.1 or 1e-6")
    return Fraction(value)


def positive(option: str, text: str) -> Fraction:
    """Return the exact value of a decimal above zero."""
    value = exact(option, text)
    if value <= 0:
        raise ConfigurationError(option, "must be above 0")
    return value


def probability(option: str, text: str) -> Fraction:
    """Return the exact value of a decimal strictly between zero and one."""
    value = exact(option, text)
    if not 0 < value < 1:
        raise ConfigurationError(option, "must lie between 0 and 1, both excluded")
    return value


def rate(option: str, text: str) -> Fraction:
    """Return the exact value of a decimal from zero (included) to one (excluded)."""
    value = exact(option, text)
    if not 0 <= value < 1:
        raise ConfigurationError(option, "must be at least 0 and below 1")
    return value


def size(option: str, text: str) -> Fraction:
    """Return the exact value of a decimal of at least one, such as 1e40."""
    value = exact(option, text)
    if value < 1:
        raise ConfigurationError(option, "must be at least 1, such as 5000 or 1e40")
    return value


def count(option: str, text: str) -> int:
    """Return the value of an option that must be a whole number of at least one."""
    plain = text.isascii() and text.isdigit() and len(text) <= WHOLE_DIGITS_MAX
    if not plain or int(text) < 1:
        raise ConfigurationError(option, "must be a whole number of at least 1")
    return int(text)
