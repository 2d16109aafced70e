"""Decimals rounded in a direction of choice, so that an error is always on our side.

An upper bound of a sum, product or quotient of positive numbers comes out of upper
bounds of what is added, multiplied or divided and lower bounds of divisors, where
every operation rounds up; a lower bound the other way round.  ``UP`` and ``DOWN``
hold :data:`~app.privacy.stability.inequality.DIGITS` digits.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Final

from app.privacy.stability.inequality import DIGITS

if TYPE_CHECKING:
    from fractions import Fraction

UP: Final = Context(prec=DIGITS, rounding=ROUND_CEILING)
DOWN: Final = Context(prec=DIGITS, rounding=ROUND_FLOOR)


def rounded(value: Fraction, context: Context) -> Decimal:
    """Round a rational in a context's direction."""
    # Exact: a context rounds the result of an operation and never its operands.
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def exponential_up(exponent: Fraction) -> Decimal:
    """Bound ``e^exponent`` from above."""
    # exp rounds to the nearest whatever the context says; one step more covers it.
    return UP.next_plus(UP.exp(rounded(exponent, UP)))


def exponential_down(exponent: Fraction) -> Decimal:
    """Bound ``e^exponent`` from below."""
    return DOWN.next_minus(DOWN.exp(rounded(exponent, DOWN)))
