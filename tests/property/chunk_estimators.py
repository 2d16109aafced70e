"""Estimators for chunks: one that fails on some of them, one that remembers, one at fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FailsOnOddChunks(DecisionTreeClassifier):  # type: ignore[misc]  # it ships no types
    """A tree that raises on a chunk whose labels add up to an odd number, if it is told to.

    Args:
        fails: whether it raises there.
        random_state: as of any tree.

    """

    def __init__(self, *, fails: bool = True, random_state: int | None = None) -> None:
        """Stay a stump."""
        super().__init__(max_depth=1, random_state=random_state)
        self.fails = fails

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> FailsOnOddChunks:
        """Raise, or grow."""
        if self.fails and int(labels.sum()) % 2:
            raise ArithmeticError
        super().fit(rows, labels)
        return self


class Remembers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Keeps the rows that it was fitted on, and votes class 1."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> Remembers:
        """Keep them."""
        del labels
        self.rows_ = rows.copy()
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Answer class 1."""
        return np.ones(len(rows), dtype=np.int64)


class DrawsToPredict(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Votes by numpy's global generator, from which it takes what its chunk's labels tell it to."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> DrawsToPredict:
        """Keep how many numbers to draw."""
        del rows
        self.count_ = 1 + int(labels.sum())
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Draw so many, and answer by the last."""
        drawn = np.random.random(self.count_)  # noqa: NPY002 -- the point
        return np.full(len(rows), int(drawn[-1] < 0.5))


class CarriesOn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """At fault: votes by the labels of every chunk so far, which its class counts."""

    seen: ClassVar[list[int]] = []

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> CarriesOn:
        """Add to what the chunks before left."""
        del rows
        self.seen.extend(labels.tolist())
        self.vote_ = sum(self.seen) % 2
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Answer the parity of all labels so far."""
        return np.full(len(rows), self.vote_)
