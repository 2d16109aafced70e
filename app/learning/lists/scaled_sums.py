"""Sums of weights ``exp(-decay errors)`` over astronomically many trees, in doubles.

A sum is kept as a whole number of errors and a factor of about 1 or more,

    sum = factor * exp(-decay * errors),

so that no sum leaves the range of doubles, however many rows err, and products
and references are exact.  Only factors are rounded, and their relative error
does not grow with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNIT_ROUNDOFF = 2.0**-53
# exp and log of numpy on float64 stay below one unit in the last place; four
# (eight roundoffs) are assumed, which any libm in use satisfies.
FUNCTION_ROUNDOFFS = 8
# exp of anything below -746 is less than half of the least double.
EXPONENT_MAX = 746
# The largest log of a factor.  A term that exp rounds to nothing, or to few
# digits, is then below 2**-70 of the sum it belongs to, and no sum overflows.
LOG_FACTOR_MAX = 690.0


@dataclass(frozen=True, slots=True)
class ScaledSums:
    """An array of sums ``factors * exp(-decay * errors)``.

    Attributes:
        errors: whole numbers, as doubles.
        factors: about 1 or more, of the same shape.

    """

    errors: NDArray[np.float64]
    factors: NDArray[np.float64]

    def __getitem__(self, index: int | NDArray[np.int64]) -> ScaledSums:
        """Select along the first axis."""
        return ScaledSums(np.asarray(self.errors[index]), np.asarray(self.factors[index]))

    def times(self, other: ScaledSums) -> ScaledSums:
        """Return the products: one rounding of the factor."""
        return ScaledSums(self.errors + other.errors, self.factors * other.factors)

    def total(self, decay: float, axis: int) -> ScaledSums:
        """Return the sums over ``axis``; see :func:`total_roundoffs`."""
        least = self.errors.min(axis=axis, keepdims=True)
        terms = np.exp((least - self.errors) * decay)
        terms *= self.factors
        return ScaledSums(least.squeeze(axis), terms.sum(axis=axis))

    def relative_logs(self, decay: float) -> NDArray[np.float64]:
        """Return the natural logs of the sums, but for a constant; see :func:`choice_roundoffs`."""
        logs: NDArray[np.float64] = np.log(self.factors)
        logs += (self.errors.min() - self.errors) * decay
        return logs


def log_sum_exp(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the sum of weights over the first axis; all are finite."""
    largest: NDArray[np.float64] = log_weights.max(axis=0)
    total: NDArray[np.float64] = np.exp(log_weights - largest).sum(axis=0)
    return largest + np.log(total)


def total_roundoffs(term_count: int) -> int:
    """Bound the roundoffs that :meth:`ScaledSums.total` adds to its terms' own.

    A term takes exp of an exact whole number times decay: one rounding of an
    exponent of at most 746 in size, and that of exp, then one product.  N
    positive terms add with at most N - 1 roundings each.
    """
    return EXPONENT_MAX + FUNCTION_ROUNDOFFS + 1 + term_count


def choice_roundoffs(log_factor_max: float) -> int:
    """Bound the roundoffs of a draw by :meth:`ScaledSums.relative_logs`, beyond its sums' own.

    A choice whose exponent is 746 below the least and more than a factor makes
    up for weighs nothing on the grid of a draw, whatever its digits.  Another's
    exponent is rounded three times, as a product, as a sum with the factor's
    log and where the draw subtracts the largest; log and exp have their own
    error.
    """
    exponent_max = EXPONENT_MAX + log_factor_max
    return ceil(3 * exponent_max + FUNCTION_ROUNDOFFS * (log_factor_max + 1))
