"""The delta of two normal laws at an epsilon, bounded from above in decimals.

Two normal laws of one deviation, whose means lie ``mu`` deviations apart, are
(epsilon, delta)-indistinguishable exactly where (Balle and Wang 2018, Theorem 8)::

    F(mu/2 - epsilon/mu) - e^epsilon F(-mu/2 - epsilon/mu) <= delta

F being the standard normal distribution.  With ``q = mu^2`` and the series
``U(y) = 1 + y/3 + y^2/(3 5) + ...``, which gives ``F(x) = 1/2 + x U(x^2) e^(-x^2/2) /
sqrt(2 pi)`` for every x, the left side is::

    e^(-a/2) ((epsilon + q/2) U(b) - (epsilon - q/2) U(a)) / sqrt(2 pi q) - (e^epsilon - 1)/2

where ``a = (epsilon - q/2)^2 / q`` and ``b = (epsilon + q/2)^2 / q`` are rational.  It is
computed with as many digits as the differences lose, and what all its roundings may
come to is added.  Proof: ``docs/proofs/noisy_gradient.md``.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache
from typing import Final

from app.privacy.stability.inequality import to_decimal

# What is decided is right to so many digits, beyond what the differences lose, ...
DIGITS: Final = 40
# ... of which so many are left to the roundings of all terms of the series.
GUARD_DIGITS: Final = 15
# A variance keeps so many leading bits: at most 2^-23 of it is above the least there is.
RATIO_BITS: Final = 24

# Squared deviations, in units of epsilon and one, from which noise is not looked at.
SEPARATION_MAX: Final = 100
LN_TEN_ABOVE: Final = Fraction(2302586, 10**6)


def delta_bound(*, epsilon: Fraction, squared_separation: Fraction, digits: int) -> Decimal:
    """Return a number above the delta of two normal laws, by less than ten to minus ``digits``.

    Args:
        epsilon: above 0, at most 1000.
        squared_separation: q, the square of how many deviations lie between the means.
        digits: behind the point, above 0.

    """
    half = squared_separation / 2
    below, above = epsilon - half, epsilon + half
    # The terms are no larger than e^epsilon.
    places = digits + GUARD_DIGITS + math.ceil(float(epsilon) / math.log(10))
    with localcontext(Context(prec=places)):
        near = to_decimal(below**2 / squared_separation)
        far = to_decimal(above**2 / squared_separation)
        density = (-near / 2).exp() / (2 * _pi(places) * to_decimal(squared_separation)).sqrt()
        first = density * to_decimal(above) * _series(far)
        second = density * to_decimal(below) * _series(near)
        whole = to_decimal(epsilon).exp() / 2
        magnitude = first + abs(second) + whole + 1
        error = magnitude * Decimal(10) ** (GUARD_DIGITS - places)
        return first - second - whole + Decimal(1) / 2 + error


def covers(
    *, epsilon: Fraction, delta: Fraction, squared_shift: int, variance_ratio: Fraction
) -> bool:
    """Tell whether normal noise of a variance hides a shift, every rounding going against us.

    Where the answer is plain the series, which would be long, is not asked: a shift of
    that many deviations is never hidden, and delta is below ``e^(-a/2)``.
    """
    separation = squared_shift / variance_ratio
    if separation > SEPARATION_MAX * (epsilon + 1):
        return False
    near = (epsilon - separation / 2) ** 2 / separation
    if 2 * epsilon > separation and near / 2 > 1 - LN_TEN_ABOVE * math.floor(_log10(delta)):
        return True
    digits = DIGITS + math.ceil(-_log10(delta))
    found = delta_bound(epsilon=epsilon, squared_separation=separation, digits=digits)
    return Fraction(found) <= delta


def least_ratio(*, epsilon: Fraction, delta: Fraction, squared_shift: int) -> Fraction:
    """Return the least variance of :data:`RATIO_BITS` leading bits that hides a shift.

    Args:
        epsilon: above 0, at most 1000.
        delta: between 0 and 1.
        squared_shift: the square of the shift, at least 1.

    """

    def hides(variance: Fraction) -> bool:
        return covers(
            epsilon=epsilon, delta=delta, squared_shift=squared_shift, variance_ratio=variance
        )

    # From where the privacy loss is epsilon on the average: few terms of the series, and
    # little more noise than that is wanted.
    start = squared_shift / (2 * epsilon)
    power = Fraction(2) ** (start.numerator.bit_length() - start.denominator.bit_length())
    while not hides(power):
        power *= 2
    while hides(power / 2):
        power /= 2
    grid = power / 2**RATIO_BITS
    low, high = 2 ** (RATIO_BITS - 1), 2**RATIO_BITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if hides(middle * grid) else (middle, high)
    return high * grid


def _log10(value: Fraction) -> float:
    """Return the decimal logarithm of a rational that may be too small for a double."""
    return math.log10(value.numerator) - math.log10(value.denominator)


def _series(square: Decimal) -> Decimal:
    """Return U of a number that is not negative, in the current context.

    All terms are positive.  They are added until each is less than half of the one before
    and the last one below what the context tells apart, so the rest is below a rounding.
    """
    total = term = Decimal(1)
    odd = 1
    least = Decimal(10) ** -getcontext().prec
    while term > total * least or 2 * square > odd + 2:
        odd += 2
        term = term * square / odd
        total += term
    return total


@cache
def _pi(places: int) -> Decimal:
    """Return pi to so many digits, by Machin's arctangents in integers."""
    unit: int = 10 ** (places + GUARD_DIGITS)
    return Decimal(4 * (4 * _arctangent(5, unit) - _arctangent(239, unit))) / unit


def _arctangent(inverse: int, unit: int) -> int:
    """Return the arctangent of ``1 / inverse`` in units, right to one a term."""
    total = power = unit // inverse
    odd = 1
    while power:
        power //= -(inverse**2)
        odd += 2
        total += power // odd
    return total
