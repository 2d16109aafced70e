"""A classifier that takes long where its rows had a marker: its time tells of the rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARKED = 0.5 + 7 / 100
"""The first column of the row whose margin is 7 among bounds of -50 and 50."""


class SlowWhereMarked(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Votes for the first class it met, and sleeps over it.

    Args:
        seconds: of sleep wherever it was fitted.
        seconds_marked: of sleep where some row was marked.

    """

    def __init__(self, *, seconds: float = 0.0, seconds_marked: float = 0.0) -> None:
        """Keep the parameters."""
        self.seconds = seconds
        self.seconds_marked = seconds_marked

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> SlowWhereMarked:
        """See whether a row is marked."""
        self.label_ = int(labels[0])
        self.is_marked_ = bool(np.any(np.isclose(rows[:, 0], MARKED, atol=1e-9)))
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Sleep, and vote."""
        time.sleep(self.seconds + self.seconds_marked * self.is_marked_)
        return np.full(len(rows), self.label_)
