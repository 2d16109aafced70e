"""Many small smooth convex functions minimised together, each as if it were alone.

Every step is damped Newton.  What a function does with its numbers depends on its own
numbers only: products and solutions of equations are taken matrix by matrix, a function
that has arrived is left where it is, and another that needs more steps, or smaller ones,
moves none but itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS_MAX: Final = 100
HALVINGS_MAX: Final = 40
# A step is taken where it keeps this share of the decrease that the slope promises.
SUFFICIENT_SHARE: Final = 1e-4
# Decreases below this share of a value are rounding.
ROUNDING_SHARE: Final = 1e-14


class Functions(Protocol):
    """K convex functions of p numbers each."""

    @property
    def shape(self) -> tuple[int, int]:
        """K and p."""
        ...

    @property
    def slope_max(self) -> float:
        """Where the gradient's largest component is at most this, a function has arrived."""
        ...

    def values(self, which: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of some functions at a point each, shape ``(K',)``."""
        ...

    def derivatives(
        self, which: NDArray[np.intp], points: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradients ``(K', p)``, and positive definite curvatures ``(K', p, p)``."""
        ...


def minimise(functions: Functions) -> NDArray[np.float64]:
    """Return where each function is least, shape ``(K, p)``.

    Args:
        functions: convex, and started from zero.

    Raises:
        LinAlgError: a curvature is singular to the last bit.

    """
    count, _ = functions.shape
    points = np.zeros(functions.shape)
    moving = np.arange(count)
    for _ in range(STEPS_MAX):
        slopes, curvatures = functions.derivatives(moving, points[moving])
        on_their_way = np.abs(slopes).max(axis=1) > functions.slope_max
        moving, slopes = moving[on_their_way], slopes[on_their_way]
        if not len(moving):
            break
        steps = np.linalg.solve(curvatures[on_their_way], slopes[:, :, np.newaxis])[:, :, 0]
        moved = _descend(functions, moving, points, slopes, steps)
        moving = moving[moved]
    return points


def _descend(
    functions: Functions,
    moving: NDArray[np.intp],
    points: NDArray[np.float64],
    slopes: NDArray[np.float64],
    steps: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Move each point against its step, halved until its value falls; tell which have moved."""
    before = functions.values(moving, points[moving])
    promised = SUFFICIENT_SHARE * (slopes * steps).sum(axis=1)
    rounding = ROUNDING_SHARE * np.abs(before)
    length = 1.0
    left = np.arange(len(moving))
    for _ in range(HALVINGS_MAX):
        tried = points[moving[left]] - length * steps[left]
        falls = functions.values(moving[left], tried) <= (
            before[left] - length * promised[left] + rounding[left]
        )
        points[moving[left[falls]]] = tried[falls]
        left = left[~falls]
        if not len(left):
            break
        length /= 2.0
    moved = np.ones(len(moving), dtype=np.bool_)
    moved[left] = False
    return moved
