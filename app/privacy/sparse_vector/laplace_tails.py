"""Tails of the difference of two discrete Laplace variables, rounded up.

``nu`` has scale ``b2`` and ``rho`` scale ``b1``; with ``a = e^(-1/b)`` the design's
closed form is::

    P(nu - rho > w) = C [ g (a2^(w+1)/(1-a2) + a1^(w+1)/(1-a1)) + H ]
    C = product of (1-a)/(1+a),  g = a1 a2 / (1 - a1 a2),
    H = (a2^(w+2)/(1-a2) - a1^(w+2)/(1-a1)) / (a2 - a1)

``H`` sums ``a1^x a2^(z-x)`` over ``z > w`` and ``0 <= x <= z``.  Summed by ``z`` first
it has positive terms only, so that equal and nearly equal scales need no care and
every operation can be rounded up::

    H = (a2 G + a1^(w+1)/(1-a1)) / (1-a2),  G = sum of a1^x a2^(w-x), 0 <= x <= w
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from app.errors import invariant
from app.privacy.arithmetic import DOWN, UP, exponential_down, exponential_up

if TYPE_CHECKING:
    from fractions import Fraction

_ONE: Final = Decimal(1)


class DifferenceTail:
    """The tail of ``nu - rho`` for two rational scales."""

    def __init__(self, *, threshold_scale: Fraction, query_scale: Fraction) -> None:
        """Bound what does not depend on the point.

        Args:
            threshold_scale: scale ``b1`` of ``rho``, above 0.
            query_scale: scale ``b2`` of ``nu``, above 0.

        """
        invariant(threshold_scale > 0 < query_scale, "scales are above zero")
        self._first = exponential_up(-1 / threshold_scale)
        self._second = exponential_up(-1 / query_scale)
        self._constant = UP.multiply(
            _mass_at_zero(exponential_down(-1 / threshold_scale)),
            _mass_at_zero(exponential_down(-1 / query_scale)),
        )
        product = UP.multiply(self._first, self._second)
        self._cross = UP.divide(product, DOWN.subtract(_ONE, product))

    def above(self, point: int) -> Decimal:
        """Return ``P(nu - rho > point)`` for a point of at least -1, rounded up."""
        invariant(point >= -1, "the closed form begins at zero")
        geometric, first_power, second_power = _power_sum(self._first, self._second, point + 1)
        first_rest = UP.divide(first_power, DOWN.subtract(_ONE, self._first))
        second_rest = UP.divide(second_power, DOWN.subtract(_ONE, self._second))
        by_size = UP.divide(
            UP.add(UP.multiply(self._second, geometric), first_rest),
            DOWN.subtract(_ONE, self._second),
        )
        crossed = UP.multiply(self._cross, UP.add(first_rest, second_rest))
        return UP.multiply(self._constant, UP.add(crossed, by_size))

    def smallest_point(self, limit: Decimal) -> int:
        """Return the smallest point of at least -1 beyond which lies ``limit`` or less.

        Args:
            limit: a probability above 0.

        """
        invariant(limit > 0, "a tail has mass everywhere")
        within = 1
        while self.above(within) > limit:
            within *= 2
        beyond = -2
        while within - beyond > 1:
            middle = (within + beyond) // 2
            within, beyond = (middle, beyond) if self.above(middle) <= limit else (within, middle)
        return within


def _mass_at_zero(ratio_below: Decimal) -> Decimal:
    """Return ``(1-a)/(1+a)``, rounded up by a lower bound of ``a``."""
    return UP.divide(UP.subtract(_ONE, ratio_below), DOWN.add(_ONE, ratio_below))


def _power_sum(first: Decimal, second: Decimal, count: int) -> tuple[Decimal, Decimal, Decimal]:
    """Return the sum of ``first^x second^(count-1-x)``, and both powers, rounded up.

    By doubling: with ``S_n`` for that sum, ``S_2n = S_n (first^n + second^n)`` and
    ``S_(n+1) = second S_n + first^n``.
    """
    total, first_power, second_power = Decimal(0), _ONE, _ONE
    for bit in f"{count:b}":
        total = UP.multiply(total, UP.add(first_power, second_power))
        first_power = UP.multiply(first_power, first_power)
        second_power = UP.multiply(second_power, second_power)
        if bit == "1":
            total = UP.add(UP.multiply(total, second), first_power)
            first_power = UP.multiply(first_power, first)
            second_power = UP.multiply(second_power, second)
    return total, first_power, second_power
