"""Decimal arithmetic with directed rounding, so that every error is on the safe side.

To bound a sum, product or quotient of positive numbers from above, use upper bounds of the numbers
that are added, multiplied or divided, use lower bounds of divisors, and round every operation up.
For a lower bound, use lower bounds of those numbers and upper bounds of divisors, and round every
operation down. The decimal contexts ``UP`` and ``DOWN`` round up and down, and have
:data:`~app.privacy.stability.table_inequality.DIGITS` digits.

The module also writes parameters as strings without loss and reads them back, and computes the
optimal composition of equal pure mechanisms, rounded up.

Claim: ``count`` mechanisms, each ``epsilon_each``-private and chosen adaptively, are together
(epsilon, delta)-private with::

    delta = sum over l of C(count, l) max(0, p^(count-l) q^l - e^epsilon p^l q^(count-l))
    p = 1 / (1 + e^-epsilon_each),  q = 1 - p,

and no smaller delta holds for all such mechanisms (Kairouz, Oh, Viswanath 2015, Theorem 3.3; in
this form, for every epsilon, Murtagh and Vadhan 2016, Theorem 1.5). The reason is that every pure
mechanism is a function of the randomised response to one bit, so the worst case is ``count``
randomised responses, of which ``l`` give the wrong bit.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from app.errors import InvariantError, invariant
from app.privacy.stability.table_inequality import DIGITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from dataclasses import Field

UP: Final = Context(prec=DIGITS, rounding=ROUND_CEILING)
DOWN: Final = Context(prec=DIGITS, rounding=ROUND_FLOOR)


def rounded(value: Fraction, context: Context) -> Decimal:
    """Return a rational number rounded in the direction of a decimal context."""
    # Exact: a context rounds the result of an operation and never its operands.
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def exponential_up(exponent: Fraction) -> Decimal:
    """Return an upper bound on ``e^exponent``."""
    # exp rounds to the nearest whatever the context says; one step more covers it.
    return UP.next_plus(UP.exp(rounded(exponent, UP)))


def exponential_down(exponent: Fraction) -> Decimal:
    """Return a lower bound on ``e^exponent``."""
    return DOWN.next_minus(DOWN.exp(rounded(exponent, DOWN)))


class Record(Protocol):
    """The type of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


def to_plain(record: Record) -> dict[str, str]:
    """Return every field of a dataclass as a string, without loss of precision."""
    return {each.name: str(getattr(record, each.name)) for each in fields(record)}


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise one clear error, within a ``with`` block, if stored parameters cannot be read.

    Args:
        what: the name of the parameters that the block reads, for the error's message.

    Raises:
        InvariantError: a parameter is missing, or its value is not a number.

    """
    try:
        yield
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        message = f"the persisted {what} are not such"
        raise InvariantError(message) from error


EPSILON_GRID: Final = 1 << 48
# Up to here every probability is within the range of the decimals.
COUNT_MAX: Final = 10**5
_ONE: Final = Decimal(1)


def composed_delta(*, epsilon_each: Fraction, count: int, epsilon: Fraction) -> Decimal:
    """Return the delta of composed mechanisms at ``epsilon``, rounded up.

    Args:
        epsilon_each: the epsilon of each mechanism, above 0.
        count: the number of mechanisms, from 1 to :data:`COUNT_MAX`.
        epsilon: the epsilon of the composition, at least 0.

    """
    invariant(epsilon_each > 0 <= epsilon, "an epsilon is not negative")
    invariant(1 <= count <= COUNT_MAX, "there are mechanisms, and not too many")
    odds_up, odds_down = exponential_up(-epsilon_each), exponential_down(epsilon_each)
    honest, lying = _all_honest(epsilon_each, count), _all_lying(epsilon_each, count)
    lying = DOWN.multiply(lying, exponential_down(epsilon))
    delta = Decimal(0)
    # Beyond this many lies no likelihood ratio exceeds e^epsilon.
    for lies in range(math.ceil((count - epsilon / epsilon_each) / 2)):
        delta = UP.add(delta, max(Decimal(0), UP.subtract(honest, lying)))
        honest = _next_term(honest, odds_up, count=count, lies=lies, context=UP)
        lying = _next_term(lying, odds_down, count=count, lies=lies, context=DOWN)
    return delta


def largest_pure_epsilon(*, count: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest epsilon at which ``count`` equal pure mechanisms together keep a budget.

    Args:
        count: the number of mechanisms, from 1 to :data:`COUNT_MAX`.
        epsilon: the epsilon of the composition, above 0.
        delta: the delta of the composition, in (0, 1).

    Returns:
        A multiple of ``2**-48``, rounded down; zero if no such multiple is small enough.

    """
    limit = rounded(delta, DOWN)

    def composes(steps: int) -> bool:
        each = Fraction(steps, EPSILON_GRID)
        return composed_delta(epsilon_each=each, count=count, epsilon=epsilon) <= limit

    # Plain addition needs no delta; delta tends to one, so that doubling ends.
    holds = math.floor(epsilon * EPSILON_GRID / count)
    fails = 2 * holds + 1
    while composes(fails):
        holds, fails = fails, 2 * fails
    while fails - holds > 1:
        middle = (holds + fails) // 2
        holds, fails = (middle, fails) if composes(middle) else (holds, middle)
    return Fraction(holds, EPSILON_GRID)


def _all_honest(epsilon_each: Fraction, count: int) -> Decimal:
    """Return ``p^count``, rounded up."""
    honest = UP.divide(_ONE, DOWN.add(_ONE, exponential_down(-epsilon_each)))
    return _power(honest, count, UP)


def _all_lying(epsilon_each: Fraction, count: int) -> Decimal:
    """Return ``q^count``, rounded down."""
    lying = DOWN.divide(_ONE, UP.add(_ONE, exponential_up(epsilon_each)))
    return _power(lying, count, DOWN)


def _power(base: Decimal, exponent: int, context: Context) -> Decimal:
    """Raise a positive number to a power, each product rounded in one direction."""
    power = _ONE
    for bit in f"{exponent:b}":
        power = context.multiply(power, power)
        power = context.multiply(power, base) if bit == "1" else power
    return power


def _next_term(term: Decimal, odds: Decimal, *, count: int, lies: int, context: Context) -> Decimal:
    """Return the term with one more lie: times ``(count - lies) / (lies + 1)`` and odds."""
    ways = context.multiply(term, Decimal(count - lies))
    return context.divide(context.multiply(ways, odds), Decimal(lies + 1))
