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


class SharesWhatItCan(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Draws from numpy's global generator as often as it has rows of class 1, and keeps a list.

    Args:
        steps: changed by every fit.

    """

    def __init__(self, steps: list[int] | None = None) -> None:
        """Keep the list itself, as scikit-learn asks for."""
        self.steps = steps

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> SharesWhatItCan:
        """Leave traces in whatever another fit could find."""
        del rows
        self.drawn_ = np.random.random(int(labels.sum())).tolist()  # noqa: NPY002 -- the point
        if self.steps is not None:
            self.steps.append(len(labels))
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Answer class 1."""
        return np.ones(len(rows), dtype=np.int64)


class Talks(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Prints and warns whenever it runs, and when it is read back."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> Talks:
        """Say the rows."""
        self._say(rows, labels)
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Say the queries."""
        self._say(rows)
        return np.ones(len(rows), dtype=np.int64)

    def __setstate__(self, state: dict[str, object]) -> None:
        """Say what was stored."""
        self._say(state)
        super().__setstate__(state)

    def _say(self, *private: object) -> None:
        print("private", *private)  # noqa: T201 -- what it is for
        warnings.warn(f"private {private}", stacklevel=2)


class KeepsItsRows(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Is as large as the number of its rows of class 1."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> KeepsItsRows:
        """Keep a kilobyte a row."""
        del rows
        self.kept_ = bytes(1000 * int(labels.sum()))
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Answer class 1."""
        return np.ones(len(rows), dtype=np.int64)
