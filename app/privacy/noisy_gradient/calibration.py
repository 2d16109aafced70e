"""The least noise that each step of gradient descent must add to its sum of row vectors.

Claim: let step t add discrete Gaussian noise of variance ``c v / a_t + 16`` to every coordinate of
a sum that one record moves by a vector of squared length at most ``v``. Here ``a_t`` is a positive
weight of the step and ``c`` a constant. The steps may be adaptive. They are together (epsilon,
delta)-differentially private under replacement of one record, if two normal distributions of
variance ``c``, whose means have as squared distance the sum of the ``a_t``, are indistinguishable
at a slightly smaller epsilon and delta. The 16, and the small differences in epsilon and delta,
cover the rounding of the noise to integers. Proof: ``app/privacy/noisy_gradient/proof.md``.

Two normal distributions with the same deviation, whose means are ``mu`` deviations apart, are
(epsilon, delta)-indistinguishable if and only if (Balle and Wang 2018, Theorem 8)::

    F(mu/2 - epsilon/mu) - e^epsilon F(-mu/2 - epsilon/mu) <= delta

F being the standard normal distribution function. The left side is computed in decimals with
enough digits, and a bound on all rounding errors is added; the proof gives the formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache
from typing import Final

from app.errors import ConfigurationError, invariant
from app.privacy.stability.table_inequality import to_decimal

# What is decided is right to so many digits, beyond what the differences lose, ...
DIGITS: Final = 40
# ... of which so many are left to the roundings of all terms of the series.
GUARD_DIGITS: Final = 15
# A variance keeps so many leading bits: at most 2^-23 of it is above the least there is.
RATIO_BITS: Final = 24
RATIO_STEP: Final = Fraction(1, 1 << (RATIO_BITS - 1))

# Squared deviations, in units of epsilon and one, from which noise is not looked at.
SEPARATION_MAX: Final = 100
LN_TEN_ABOVE: Final = Fraction(2302586, 10**6)


def delta_bound(*, epsilon: Fraction, squared_separation: Fraction, digits: int) -> Decimal:
    """Return an upper bound on the delta between two normal distributions, to ``digits`` digits.

    Args:
        epsilon: the epsilon at which delta is computed, above 0, at most 1000.
        squared_separation: q, the squared distance of the means divided by the variance.
        digits: the number of decimal places, above 0.

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
    """Return whether normal noise keeps epsilon and delta if its mean moves; never wrongly true.

    If simple bounds already decide the answer, the exact condition is not computed. The mean moves
    by the square root of ``squared_shift``, and the variance of the noise is ``variance_ratio``.
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
    """Return the least noise variance that keeps epsilon and delta under a shift of the mean.

    Args:
        epsilon: the epsilon to keep, above 0, at most 1000.
        delta: the delta to keep, between 0 and 1.
        squared_shift: the square of the distance between the means on two neighbouring data sets,
            at least 1.

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


EPSILON_KEY: Final = "privacy.shares.classifier"
DELTA_KEY: Final = "privacy.delta_shares.classifier"
EPSILON_MIN: Final = Fraction(1, 10**6)
EPSILON_MAX: Final = Fraction(1000)
DELTA_MIN: Final = Fraction(1, 10**200)
DELTA_MAX: Final = Fraction(1, 2)
# What rounding normal noise to integers at random adds to its variance.
ROUNDING_VARIANCE: Final = 16
# By how much, as a logarithm, the law of at most so many draws so rounded may differ from
# the discrete one: 2^40 times 10^-136.
DRAWS_MAX: Final = 1 << 40
LN_ROUNDING: Final = Fraction(1, 1 << 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyGradientCalibration:
    """The noise variance of every gradient step, with the budget that it keeps.

    Attributes:
        epsilon: the epsilon of the whole descent.
        delta: the delta of the whole descent.
        step_weights: ``a_t``, a positive integer for every step; a step with a larger weight has
            less noise.
        variance_ratio: ``c``, the noise variance of a step of weight 1, divided by the step's
            squared sensitivity.

    """

    epsilon: Fraction
    delta: Fraction
    step_weights: tuple[int, ...]
    variance_ratio: Fraction

    def variance(self, step: int, *, squared_sensitivity: int) -> Fraction:
        """Return the noise variance of each coordinate at a gradient step, counted from 0."""
        normal = self.variance_ratio * squared_sensitivity / self.step_weights[step]
        return normal + ROUNDING_VARIANCE


def calibrate(
    *, epsilon: Fraction, delta: Fraction, step_weights: tuple[int, ...]
) -> NoisyGradientCalibration:
    """Return the least noise with which gradient descent keeps a budget.

    Args:
        epsilon: the epsilon of the whole descent, from 1e-6 to 1000.
        delta: the delta of the whole descent, from 1e-200 to 0.5.
        step_weights: a positive integer for each of one or more steps; a step with a larger weight
            has less noise.

    Raises:
        ConfigurationError: the budget is out of range.

    """
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        problem = f"must leave the learner an epsilon from 0.000001 to {EPSILON_MAX}"
        raise ConfigurationError(EPSILON_KEY, problem)
    if not DELTA_MIN <= delta <= DELTA_MAX:
        raise ConfigurationError(DELTA_KEY, "must leave the learner a delta from 1e-200 to 0.5")
    epsilon_left, delta_left = without_rounding(epsilon, delta)
    return NoisyGradientCalibration(
        epsilon=epsilon,
        delta=delta,
        step_weights=step_weights,
        variance_ratio=least_ratio(
            epsilon=epsilon_left, delta=delta_left, squared_shift=sum(step_weights)
        ),
    )


def separation_bound(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a bound on how far one record can move all steps of gradient descent together.

    The squared distance of each step is divided by the variance of the step's noise, and these
    quotients are added up. The bound holds for all numbers and weights of steps, because the noise
    found by :func:`calibrate` for one step of weight 1 is nearly the least for the budget. In a
    joint privacy account, where the cost of the answers and of the descent is computed together by
    a Renyi divergence of order alpha, all steps together have a divergence of at most ``alpha / 2``
    times this bound.

    Args:
        epsilon: the epsilon of the whole descent, from 1e-6 to 1000.
        delta: the delta of the whole descent, from 1e-200 to 0.5.

    Raises:
        ConfigurationError: the budget is out of range.

    """
    single = calibrate(epsilon=epsilon, delta=delta, step_weights=(1,))
    return (1 + RATIO_STEP) / single.variance_ratio


def check_separation(calibration: NoisyGradientCalibration, bound: Fraction) -> None:
    """Check that one record moves the descent no further than its privacy account allows.

    Args:
        calibration: the noise of the descent.
        bound: the squared distance, in variances of the noise, for which the joint account of
            answers and descent pays; :func:`separation_bound` computes it.

    Raises:
        InvariantError: a record can move the descent further.

    """
    moved = sum(calibration.step_weights) / calibration.variance_ratio
    invariant(moved <= bound, "a descent costs no more than its account has for it")


def check(calibration: NoisyGradientCalibration) -> None:
    """Raise an error unless the noise keeps the privacy claim, before a row is read.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    invariant(calibration.epsilon >= EPSILON_MIN, "epsilon is above zero")
    invariant(0 < calibration.delta < 1, "delta lies between zero and one")
    invariant(len(calibration.step_weights) > 0, "there is a step")
    invariant(min(calibration.step_weights) >= 1, "every step has a weight")
    invariant(calibration.variance_ratio > 0, "there is noise")
    epsilon, delta = without_rounding(calibration.epsilon, calibration.delta)
    covered = covers(
        epsilon=epsilon,
        delta=delta,
        squared_shift=sum(calibration.step_weights),
        variance_ratio=calibration.variance_ratio,
    )
    invariant(covered, "the noise covers every step")


def without_rounding(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that remain after the cost of rounding noise to integers."""
    return epsilon - 2 * LN_ROUNDING, delta * (1 - LN_ROUNDING)
