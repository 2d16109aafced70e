"""A classifier whose time tells how it votes, as somebody else's might."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SlowWhereYes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """A cut of the first column that takes longer over a batch with a row of class 1.

    Args:
        seconds: so much longer.

    """

    def __init__(self, *, seconds: float = 1e-4) -> None:
        """Keep the parameter."""
        self.seconds = seconds

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> SlowWhereYes:
        """Cut between the classes' means."""
        self.cut_ = float(sum(rows[labels == label, 0].mean() for label in (0, 1)) / 2)
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Vote, and then be busy for as long as the votes say."""
        votes = (rows[:, 0] >= self.cut_).astype(np.int64)
        end = time.perf_counter() + self.seconds * bool(votes.any())
        while time.perf_counter() < end:
            pass
        return votes
