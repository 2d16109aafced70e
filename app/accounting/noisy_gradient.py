"""The noise of the learner ``linear``: a sum of bounded integer vectors at every step.

Claim: adaptive steps, step t adding discrete Gaussian noise of variance ``c v / a_t`` to
every coordinate of a sum that one record moves by a vector of squared length at most
``v``, are (epsilon, delta)-differentially private under replacement of one record, where
``app.accounting.gaussian_noise`` accepts the variance ``c`` for a run that one record
moves by the sum of the ``a_t``.  Proof: ``docs/proofs/noisy_gradient.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from app.accounting.gaussian_noise import least_variance, variance_covers
from app.errors import ConfigurationError, invariant

EPSILON_KEY: Final = "privacy.shares.classifier"
DELTA_KEY: Final = "privacy.delta_shares.classifier"
EPSILON_MIN: Final = Fraction(1, 10**6)
EPSILON_MAX: Final = Fraction(1000)
DELTA_MIN: Final = Fraction(1, 10**200)
DELTA_MAX: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyGradientCalibration:
    """The noise of every step, with the budget it was made for.

    Attributes:
        epsilon: of the whole descent.
        delta: of the whole descent.
        step_weights: ``a_t``, a positive integer for every step.
        alpha: the Renyi order at which the descent is accounted.
        variance_ratio: ``c``, of the noise of a step of weight 1 to its squared sensitivity.

    """

    epsilon: Fraction
    delta: Fraction
    step_weights: tuple[int, ...]
    alpha: Fraction
    variance_ratio: Fraction

    def variance(self, step: int, *, squared_sensitivity: int) -> Fraction:
        """Return the variance of each coordinate's noise at a step, counted from 0."""
        return self.variance_ratio * squared_sensitivity / self.step_weights[step]


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
    alpha, ratio = least_variance(epsilon=epsilon, delta=delta, squared_shift=sum(step_weights))
    return NoisyGradientCalibration(
        epsilon=epsilon,
        delta=delta,
        step_weights=step_weights,
        alpha=alpha,
        variance_ratio=ratio,
    )


def check(calibration: NoisyGradientCalibration) -> None:
    """Assert everything that the claim needs of the noise, before a row is read.

    Raises:
        InvariantError: at the first thing that does not hold.

    """
    invariant(calibration.epsilon > 0, "epsilon is above zero")
    invariant(0 < calibration.delta < 1, "delta lies between zero and one")
    invariant(len(calibration.step_weights) > 0, "there is a step")
    invariant(min(calibration.step_weights) >= 1, "every step has a weight")
    invariant(calibration.alpha > 1, "the order is above one")
    invariant(calibration.variance_ratio > 0, "there is noise")
    covered = variance_covers(
        epsilon=calibration.epsilon,
        delta=calibration.delta,
        squared_shift=sum(calibration.step_weights),
        alpha=calibration.alpha,
        variance=calibration.variance_ratio,
    )
    invariant(covered, "the noise covers every step")
