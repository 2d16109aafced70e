"""The least variance of discrete Gaussian noise whose Renyi divergences cover a delta.

A run whose every step adds discrete Gaussian noise of variance ``s^2`` to integers has
Renyi divergence at most ``alpha r`` at every order, where ``r = v / (2 s^2)`` and ``v``
is the sum over the steps of the squared length by which one record moves the integers.
It is (epsilon, delta)-differentially private where for some ``alpha > 1``::

    exp((alpha-1)(alpha r - epsilon)) (1 - 1/alpha)^(alpha-1) / alpha <= delta

Proof: ``docs/proofs/noisy_vote.md``.  The order is found in doubles, which only costs a
little noise where it is not the best one; it is then fixed as a rational, and the
variance is rounded up and checked from rationals, every rounding going against us.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from app.privacy.stability.profile_parameters import ALPHA_GRID, choose_ln_ratio, hits_hold

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
