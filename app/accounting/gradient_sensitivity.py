"""How far one record moves a noisy gradient's sum, given the iterate it is taken at.

Claim: the squared length by which replacing one record moves the sum is at most what
:func:`squared_sensitivity` returns, for every two records.  Proof:
``docs/proofs/noisy_gradient.md``.

With two classes a row adds its residual times its vector v, no longer than C.  Exchanging
the label and the sign of v leaves the product as it is, so every row counts as one
without the label, and its residual is the logistic of its score, which lies between the
values at the ends of an interval of v's share along the iterate.  All pairs of intervals
are bounded; what is rounded is widened by far more than a rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.hypotheses.integer_residuals import BINARY, logistic, squared_length_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

INTERVALS: Final = 256
# Scores are widened by so many steps: the floor of a margin, and its mirror image's.
STEPS_BESIDE: Final = 2
# Far above the roundings of a handful of doubles.
SLACK: Final = 1 + 2**-40
STEPS_MAX: Final = 1e15


def squared_sensitivity(*, norm_bound: int, class_count: int, steps: float) -> int:
    """Bound the squared length by which replacing one row moves the sum.

    Args:
        norm_bound: C, the length of a row's vector at most.
        class_count: number of labels.
        steps: by how many steps the score of a row grows with each unit of its
            vector along the iterate, at most: the iterate's length.

    """
    invariant(norm_bound >= 1 and steps >= 0, "a vector and an iterate have lengths")
    plain = 4 * norm_bound**2 * squared_length_bound(class_count)
    if class_count > BINARY:
        return plain
    return min(plain, math.ceil(_largest_square(norm_bound, min(steps, STEPS_MAX)) * SLACK))


def _largest_square(norm_bound: int, steps: float) -> float:
    """Return the largest squared distance of two rows' products, over all pairs of intervals."""
    edges = np.linspace(-norm_bound, norm_bound, INTERVALS + 1)
    lower, upper = edges[:-1] - 2**-20, edges[1:] + 2**-20
    least, most = _logistic_range(lower * steps, upper * steps)
    # Along the iterate: products of two ranges, whose extremes lie at their ends.
    ends = np.stack([least * lower, least * upper, most * lower, most * upper])
    first, last = ends.min(axis=0), ends.max(axis=0)
    along = np.maximum(last[:, None] - first[None, :], last[None, :] - first[:, None])
    # Across it, where the directions of two rows may be opposite.
    nearest = np.maximum(0.0, np.maximum(lower, -upper))
    across = most * np.sqrt(np.maximum(0.0, norm_bound**2 - nearest**2) + 1.0)
    return float((along**2 + (across[:, None] + across[None, :]) ** 2).max())


def _logistic_range(
    lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest logistic of scores between two numbers of steps."""
    least = logistic(np.floor(lower).astype(np.int64) - STEPS_BESIDE)
    most = logistic(np.ceil(upper).astype(np.int64) + STEPS_BESIDE)
    return least.astype(np.float64), most.astype(np.float64)
