"""The noise of mechanism ``noisy-vote``.

Claim: ``m`` adaptive queries, each adding discrete Gaussian noise of variance ``s^2``
to counts that one record moves by a vector of squared length ``v``, are (epsilon,
delta)-differentially private under replacement of one record, where for some order
``alpha > 1`` and ``r = m v / (2 s^2)``::

    exp((alpha-1)(alpha r - epsilon)) (1 - 1/alpha)^(alpha-1) / alpha <= delta

With two labels noise is added to one count, which moves by 1: ``v = 1``; with more,
one vote moves from a count to another: ``v = 2``.  Proof: ``app/privacy/noisy_vote/proof.md``.

:mod:`app.privacy.noisy_vote.calibration` finds the order and the variance, and checks them.

The least variance of discrete Gaussian noise whose Renyi divergences cover a delta.

A run whose every step adds discrete Gaussian noise of variance ``s^2`` to integers has
Renyi divergence at most ``alpha r`` at every order, where ``r = v / (2 s^2)`` and ``v``
is the sum over the steps of the squared length by which one record moves the integers.
It is (epsilon, delta)-differentially private where for some ``alpha > 1``::

    exp((alpha-1)(alpha r - epsilon)) (1 - 1/alpha)^(alpha-1) / alpha <= delta

Proof: ``app/privacy/noisy_vote/proof.md``.  The order is found in doubles, which only costs a
little noise where it is not the best one; it is then fixed as a rational, and the
variance is rounded up and checked from rationals, every rounding going against us.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, invariant
from app.privacy.arithmetic import reading, to_plain
from app.privacy.stability.profile_parameters import (
    ALPHA_GRID,
    DELTA_KEY,
    EPSILON_KEY,
    EPSILON_MAX,
    choose_ln_ratio,
    hits_hold,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# The variance keeps this many leading bits: less than 1e-10 above the smallest, and
# exactly a double.
VARIANCE_BITS: Final = 36
BISECTIONS: Final = 200
LN_EXCESS_BOUND: Final = 60.0


def least_variance(
    *, epsilon: Fraction, delta: Fraction, squared_shift: int
) -> tuple[Fraction, Fraction]:
    """Return ``(alpha, variance)`` for a whole run, the smallest variance there is.

    Args:
        epsilon: of the run, from 1e-6 to 1000.
        delta: of the run, from 1e-200 to 0.5.
        squared_shift: ``v``, summed over the steps, at least 1.

    Returns:
        A variance at most 1e-9 relative above the smallest real one;
        :func:`variance_covers` accepts it.

    """
    alpha = _best_order(float(epsilon), math.log(delta))
    # Its ln R for one hit is the largest (alpha - 1) tau of any mechanism.
    divergence = choose_ln_ratio(alpha, epsilon=epsilon, delta_svt=delta, cutoff=1)
    rate = divergence / (alpha * (alpha - 1))
    return alpha, _leading_bits_above(squared_shift / (2 * rate))


def variance_covers(
    *,
    epsilon: Fraction,
    delta: Fraction,
    squared_shift: int,
    alpha: Fraction,
    variance: Fraction,
) -> bool:
    """Tell, from rationals alone, whether a variance keeps the run within its budget."""
    rate = squared_shift / (2 * variance)
    return hits_hold(
        epsilon=epsilon,
        delta_svt=delta,
        alpha=alpha,
        ln_ratio=(alpha - 1) * alpha * rate,
        cutoff=1,
    )


def _best_order(epsilon: float, ln_delta: float) -> Fraction:
    """Return the order at which the divergence may be largest, on its grid.

    The logarithm of the claim's left side is convex in alpha, so its minimum is where
    the derivative ``(2 alpha - 1) r - epsilon + ln(1 - 1/alpha)`` is zero; with that r
    the minimum falls as alpha grows, and it has to be ``ln delta``.
    """
    low, high = -LN_EXCESS_BOUND, LN_EXCESS_BOUND
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _least(middle, epsilon) > ln_delta else (low, middle)
    return 1 + Fraction(max(1, round(Fraction(math.exp(low)) * ALPHA_GRID)), ALPHA_GRID)


def _least(ln_excess: float, epsilon: float) -> float:
    """Return the least ln delta over all orders, where it is at ``1 + e^ln_excess``."""
    excess = math.exp(ln_excess)
    cost = epsilon + math.log1p(1 / excess)
    return -excess * excess * cost / (1 + 2 * excess) - math.log1p(excess)


def _leading_bits_above(value: Fraction) -> Fraction:
    """Round up to :data:`VARIANCE_BITS` leading bits, at least."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    grid = Fraction(2) ** (exponent - VARIANCE_BITS)
    return math.ceil(value / grid) * grid


BINARY: Final = 2
ANSWERS_KEY: Final = "answers.queries"
EPSILON_MIN: Final = Fraction(1, 10**6)
DELTA_MIN: Final = Fraction(1, 10**200)
DELTA_MAX: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyVoteCalibration:
    """The noise that serves, with the budget it was made for.

    Attributes:
        epsilon: share of epsilon that the answers may use.
        delta: share of delta that the answers may use.
        answer_limit: answers m until the halt.
        class_count: the number L of labels.
        alpha: the Renyi order at which the run is accounted.
        variance: ``s^2``, in votes squared.

    """

    epsilon: Fraction
    delta: Fraction
    answer_limit: int
    class_count: int
    alpha: Fraction
    variance: Fraction

    @property
    def cutoff(self) -> None:
        """T, which the noisy vote does not have: no answer is unstable."""
        return

    def lead_at(self, probability: float) -> int:
        """Return the lead in votes at which a plurality loses at most this often.

        The noise that has to make up for a lead is at least as narrow as a Gaussian:
        with two labels it is twice that of one count, with more the difference of
        two counts' noise, for each of the other labels.

        Args:
            probability: of another label's being answered, in (0, 1).

        """
        return math.ceil(math.sqrt(self.lead_squared_a_variance(probability) * self.variance))

    def lead_squared_a_variance(self, probability: float) -> float:
        """Return the square of that lead, before it is rounded up, for a variance of one.

        Args:
            probability: as in :meth:`lead_at`.

        """
        if self.class_count == BINARY:
            return -8 * math.log(probability)
        return -4 * math.log(probability / (self.class_count - 1))

    def to_plain(self) -> dict[str, str]:
        """Write the parameters in strings only, without loss."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, str]) -> NoisyVoteCalibration:
        """Read what :meth:`to_plain` wrote; :func:`check` says whether it holds.

        Raises:
            InvariantError: where a key is absent or a value is not a number.

        """
        with reading("parameters of the noisy vote"):
            return cls(
                epsilon=Fraction(plain["epsilon"]),
                delta=Fraction(plain["delta"]),
                answer_limit=int(plain["answer_limit"]),
                class_count=int(plain["class_count"]),
                alpha=Fraction(plain["alpha"]),
                variance=Fraction(plain["variance"]),
            )


def calibrate(
    *, epsilon: Fraction, delta: Fraction, answer_limit: int, class_count: int
) -> NoisyVoteCalibration:
    """Find the smallest variance for a budget.

    Args:
        epsilon: share of epsilon for the answers, from 1e-6 to 1000.
        delta: share of delta for the answers, from 1e-200 to 0.5.
        answer_limit: answers m until the halt, at least 1.
        class_count: labels L, at least 2.

    Returns:
        A variance at most 1e-9 relative above the smallest real one; :func:`check`
        accepts it.

    Raises:
        ConfigurationError: where the budget is out of range.

    """
    _refuse_out_of_range(epsilon=epsilon, delta=delta, answer_limit=answer_limit)
    alpha, variance = least_variance(
        epsilon=epsilon, delta=delta, squared_shift=answer_limit * _squared_shift(class_count)
    )
    return NoisyVoteCalibration(
        epsilon=epsilon,
        delta=delta,
        answer_limit=answer_limit,
        class_count=class_count,
        alpha=alpha,
        variance=variance,
    )


def check(calibration: NoisyVoteCalibration) -> None:
    """Assert everything that the claim needs of the noise, before it serves.

    Raises:
        InvariantError: at the first thing that does not hold.

    """
    invariant(calibration.epsilon > 0, "epsilon is above zero")
    invariant(0 < calibration.delta < 1, "delta lies between zero and one")
    invariant(calibration.answer_limit >= 1, "there is an answer")
    invariant(calibration.class_count >= BINARY, "there are two or more classes")
    invariant(calibration.alpha > 1, "the order is above one")
    invariant(calibration.variance > 0, "the variance is above zero")
    covered = variance_covers(
        epsilon=calibration.epsilon,
        delta=calibration.delta,
        squared_shift=calibration.answer_limit * _squared_shift(calibration.class_count),
        alpha=calibration.alpha,
        variance=calibration.variance,
    )
    invariant(covered, "the variance covers every answer")


def _squared_shift(class_count: int) -> int:
    """Return how far one vote moves the counts that get noise, squared."""
    return 1 if class_count == BINARY else 2


def _refuse_out_of_range(*, epsilon: Fraction, delta: Fraction, answer_limit: int) -> None:
    """Refuse a budget for which there is no variance, naming what to change."""
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        raise ConfigurationError(EPSILON_KEY, f"must be from 0.000001 to {EPSILON_MAX}")
    if not DELTA_MIN <= delta <= DELTA_MAX:
        raise ConfigurationError(DELTA_KEY, "must be from 1e-200 to 0.5")
    if answer_limit < 1:
        raise ConfigurationError(ANSWERS_KEY, "must be at least 1")
