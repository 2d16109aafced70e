"""An exact random choice among finitely many alternatives, given the logs of their weights.

Each weight is divided by the largest weight and rounded down to a multiple of ``2**-192``. The
rounded weights are integers in units of ``2**-192``, and a uniform random integer below their sum
selects one alternative. Sums and random numbers are integers, never floating-point numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from math import ldexp
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

SCALE_BITS = 192


def draw_index(log_weights: NDArray[np.float64], noise: NoiseSource) -> int:
    """Return a random index with probability proportional to ``exp(log_weights)``.

    Args:
        log_weights: natural logs of the weights, shape ``(alternatives,)``, secret. A log of minus
            infinity is allowed, and its alternative is never drawn; at least one log is finite.
        noise: the source of randomness.

    Returns:
        An index into ``log_weights``. The total variation distance between its distribution and the
        distribution proportional to ``exp(log_weights - max(log_weights))``, as numpy computes
        these exponentials, is at most :func:`truncation_variation`.

    Raises:
        InvariantError: no log is finite, or one is NaN.

    """
    cumulative = list(accumulate(_grid_weights(log_weights)))
    return bisect_right(cumulative, noise.below(cumulative[-1]))


def draw_repeated(
    log_weights: NDArray[np.float64], counts: Sequence[int], noise: NoiseSource
) -> tuple[int, int]:
    """Return a random alternative, where many alternatives have the same weight.

    The distribution is the one of :func:`draw_index` on a list that has every alternative
    separately.

    Args:
        log_weights: the natural log of each distinct weight, shape ``(weights,)``, secret. Minus
            infinity is allowed.
        counts: the number of alternatives that have each weight, at least 1, secret.
        noise: the source of randomness.

    Returns:
        The index of the drawn alternative's weight in ``log_weights``, and the index of the
        alternative among all alternatives of this weight.

    Raises:
        InvariantError: no log is finite, or one is NaN.

    """
    weights = _grid_weights(log_weights)
    groups = [weight * count for weight, count in zip(weights, counts, strict=True)]
    cumulative = list(accumulate(groups))
    drawn = noise.below(cumulative[-1])
    index = bisect_right(cumulative, drawn)
    return index, (drawn - (cumulative[index] - groups[index])) // weights[index]


def truncation_variation(count: int) -> Fraction:
    """Return a bound on the total variation distance that rounding the weights causes in one draw.

    The bound is ``count / 2**192``. Each weight is divided by the largest weight, so the sum of all
    weights is at least 1, and rounding lowers each of them by less than ``2**-192``.

    Args:
        count: the number of alternatives.

    """
    return Fraction(count, 1 << SCALE_BITS)


def _grid_weights(log_weights: NDArray[np.float64]) -> list[int]:
    """Return weights relative to the largest as integers."""
    largest = float(np.max(log_weights)) if log_weights.size else -np.inf
    invariant(bool(np.isfinite(largest)), "a draw needs a finite largest weight")
    return [_on_grid(float(weight)) for weight in np.exp(log_weights - largest)]


def _on_grid(weight: float) -> int:
    """Round a weight in ``[0, 1]`` down to the grid; ``ldexp`` by a power of two is exact."""
    return int(ldexp(weight, SCALE_BITS))
