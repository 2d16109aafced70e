"""Iterates of a linear score from noisy mean gradients, and the mean of the later ones.

Nothing here touches a row: gradients come with noise, and all else is public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray


class AveragedDescent:
    """Plain descent from zero, whose result is the mean over the later half of its iterates.

    The mean has less of the noise that every step adds than the last iterate has.
    """

    def __init__(
        self, *, width: int, score_count: int, rate: float, step_count: int, length_max: float
    ) -> None:
        """Start at zero.

        Args:
            width: number of coordinates, p.
            score_count: number of scores, s.
            rate: how far a step goes, times the mean gradient.
            step_count: number of steps, T, positive.
            length_max: no iterate is longer; only very much noise makes one so long.

        """
        invariant(step_count >= 1, "there is a step")
        self._rate = rate
        self._averaged = step_count - step_count // 2
        self._first = step_count - self._averaged
        self._step = 0
        self._length_max = length_max
        self._total = np.zeros((width, score_count))
        self.weights = np.zeros((width, score_count))

    def update(self, gradient: NDArray[np.float64]) -> None:
        """Take a step against a noisy mean gradient at the present iterate, shape ``(p, s)``."""
        moved = self.weights - self._rate * gradient
        found = float(np.sqrt((moved**2).sum()))
        self.weights = moved * min(1.0, self._length_max / max(found, 1.0))
        if self._step >= self._first:
            self._total += self.weights
        self._step += 1

    def mean(self) -> NDArray[np.float64]:
        """Return the mean of the later iterates, shape ``(p, s)``, after the last step."""
        return self._total / self._averaged
