"""Classifiers that misbehave, by import path."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FailsToFit(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Raises whatever the rows."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> FailsToFit:
        """Warn, then raise."""
        warnings.warn("private", stacklevel=1)
        message = f"{len(rows)} private rows, {labels.sum()}"
        raise ValueError(message)

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Never come to this."""
        return np.ones(len(rows), dtype=np.int64)


class PredictsOddly(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Answers by the first column: NaN, a label outside, an exception, or class 1."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> PredictsOddly:
        """Learn nothing."""
        del rows, labels
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Misbehave by row."""
        first = rows[:, 0]
        if np.any(first == 0.75):
            message = "private"
            raise ArithmeticError(message)
        return np.select([first == 0.25, first == 0.5], [np.nan, 7.0], 1.0)


class CannotBeStored(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Keeps what no bytes can hold."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> CannotBeStored:
        """Keep a function that has no name."""
        self.kept_ = lambda: (rows, labels)
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Answer class 1."""
        return np.ones(len(rows), dtype=np.int64)
