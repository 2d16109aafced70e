"""An exact random choice among finitely many alternatives with given log weights.

The weights become integers on a grid of ``2**-192`` of the largest, and a
uniform integer below their exact total picks one: no cumulative sum of
doubles, no uniform double.
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
        log_weights: natural logs, shape ``(N,)``, finite or minus infinity
            (never drawn); at least one is finite.  Secret.
        noise: where the uniform integer comes from.

    Returns:
        An index in ``[0, N)``.  Its distribution is within
        :func:`truncation_variation` of the one of the doubles
        ``exp(log_weights - max)``.

    Raises:
        InvariantError: no finite weight, or a NaN.

    """
    cumulative = list(accumulate(_grid_weights(log_weights)))
    return bisect_right(cumulative, noise.below(cumulative[-1]))


def draw_repeated(
    log_weights: NDArray[np.float64], counts: Sequence[int], noise: NoiseSource
) -> tuple[int, int]:
    """Return a random alternative by weight, if many alternatives have the same weight.

    The law is that of :func:`draw_index` over all alternatives one by one.

    Args:
        log_weights: natural log of each distinct weight, shape ``(W,)``, as in
            :func:`draw_index`.  Secret.
        counts: how many alternatives have each weight, at least 1.  Secret.
        noise: where the uniform integer comes from.

    Returns:
        The index of a weight, and a place below its count.

    Raises:
        InvariantError: no finite weight, or a NaN.

    """
    weights = _grid_weights(log_weights)
    groups = [weight * count for weight, count in zip(weights, counts, strict=True)]
    cumulative = list(accumulate(groups))
    drawn = noise.below(cumulative[-1])
    index = bisect_right(cumulative, drawn)
    return index, (drawn - (cumulative[index] - groups[index])) // weights[index]


def truncation_variation(count: int) -> Fraction:
    """Return a bound on the total variation distance that rounding weights causes in a draw.

    Each weight loses less than one grid step and the total is at least
    ``2**192`` steps, since the largest weight alone is.
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
