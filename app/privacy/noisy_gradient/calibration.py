"""The noise of the learner ``linear``: a sum of bounded integer vectors at every step.

Claim: adaptive steps, step t adding discrete Gaussian noise of variance ``c v / a_t + 16``
to every coordinate of a sum that one record moves by a vector of squared length at most
``v``, are (epsilon, delta)-differentially private under replacement of one record, where
two normal laws of variance ``c`` whose means' squared distance is the sum of the ``a_t``
show less than delta at epsilon.  The 16 makes up for the noise being of integers, to
within a factor that is charged.  Proof: ``docs/proofs/noisy_gradient.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from app.errors import ConfigurationError, invariant
from app.privacy.noisy_gradient.normal_profile import covers, least_ratio

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
    """The noise of every step, with the budget it was made for.

    Attributes:
        epsilon: of the whole descent.
        delta: of the whole descent.
        step_weights: ``a_t``, a positive integer for every step.
        variance_ratio: ``c``, of a step of weight 1 to its squared sensitivity.

    """

    epsilon: Fraction
    delta: Fraction
    step_weights: tuple[int, ...]
    variance_ratio: Fraction

    def variance(self, step: int, *, squared_sensitivity: int) -> Fraction:
        """Return the variance of each coordinate's noise at a step, counted from 0."""
        normal = self.variance_ratio * squared_sensitivity / self.step_weights[step]
        return normal + ROUNDING_VARIANCE


def calibrate(
    *, epsilon: Fraction, delta: Fraction, step_weights: tuple[int, ...]
) -> NoisyGradientCalibration:
    """Find the least noise for a budget.

    Args:
        epsilon: of the whole descent, from 1e-6 to 1000.
        delta: of the whole descent, from 1e-200 to 0.5.
        step_weights: how precise each step is, one or more positive integers.

    Raises:
        ConfigurationError: where the budget is out of range.

    """
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        problem = f"must leave the learner an epsilon from 0.000001 to {EPSILON_MAX}"
        raise ConfigurationError(EPSILON_KEY, problem)
    if not DELTA_MIN <= delta <= DELTA_MAX:
        raise ConfigurationError(DELTA_KEY, "must leave the learner a delta from 1e-200 to 0.5")
    epsilon_left, delta_left = _without_rounding(epsilon, delta)
    return NoisyGradientCalibration(
        epsilon=epsilon,
        delta=delta,
        step_weights=step_weights,
        variance_ratio=least_ratio(
            epsilon=epsilon_left, delta=delta_left, squared_shift=sum(step_weights)
        ),
    )


def check(calibration: NoisyGradientCalibration) -> None:
    """Assert everything that the claim needs of the noise, before a row is read.

    Raises:
        InvariantError: at the first thing that does not hold.

    """
    invariant(calibration.epsilon >= EPSILON_MIN, "epsilon is above zero")
    invariant(0 < calibration.delta < 1, "delta lies between zero and one")
    invariant(len(calibration.step_weights) > 0, "there is a step")
    invariant(min(calibration.step_weights) >= 1, "every step has a weight")
    invariant(calibration.variance_ratio > 0, "there is noise")
    epsilon, delta = _without_rounding(calibration.epsilon, calibration.delta)
    covered = covers(
        epsilon=epsilon,
        delta=delta,
        squared_shift=sum(calibration.step_weights),
        variance_ratio=calibration.variance_ratio,
    )
    invariant(covered, "the noise covers every step")


def _without_rounding(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return what normal noise may cost, so that the discrete one costs what is given."""
    return epsilon - 2 * LN_ROUNDING, delta * (1 - LN_ROUNDING)
