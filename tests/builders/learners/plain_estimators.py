"""A classifier that imports no library, and one that the machine refuses something."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RAISES_ABOVE = 0.85


class Plain:
    """Scores by the distance of the first column from the mean of its rows of class 1.

    Args:
        way: what it does besides: ``keeps`` quiet, ``raises`` for some queries, or ``draws`` its
            vote from numpy's global generator.

    """

    def __init__(self, way: str = "keeps") -> None:
        """Keep the parameter."""
        self.way = way

    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: FBT001, FBT002 -- as there
        """Return the parameter."""
        del deep
        return {"way": self.way}

    def set_params(self, **params: str) -> Plain:
        """Set the parameter."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> object:
        tags = import_module("sklearn.utils")
        return tags.Tags(estimator_type="classifier", target_tags=tags.TargetTags(required=True))

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> Plain:
        """Learn the mean, and draw once."""
        self.classes_ = np.unique(labels)
        self.mean_ = float(rows[labels == 1, 0].mean())
        self.drawn_ = float(np.random.random())  # noqa: NPY002 -- the point
        self._misbehave(rows)
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Answer whether a query is near; where it draws, what it drew then and draws now."""
        self._misbehave(rows)
        if self.way == "draws":
            drawn = np.random.random()  # noqa: NPY002 -- the point
            return np.full(len(rows), int((self.drawn_ + drawn) % 1 < 0.5))
        return (np.abs(rows[:, 0] - self.mean_) < 0.25).astype(np.int64)

    def predict_proba(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how near queries are."""
        near = 1 / (1 + np.abs(rows[:, 0] - self.mean_))
        return np.stack([1 - near, near], axis=1)

    def _misbehave(self, rows: NDArray[np.float64]) -> None:
        if self.way == "raises" and rows[:, 0].max() > RAISES_ABOVE:
            message = f"private {rows}"
            raise ArithmeticError(message)


class Starved(Plain):
    """Is refused something by the machine where the largest value is above a bound.

    Args:
        at: ``fit`` or ``predict``.
        wants: ``memory``, a ``file`` or a ``thread``; ``wrapped`` says that it was another error.

    """

    def __init__(self, at: str = "fit", wants: str = "memory") -> None:
        """Keep the parameters."""
        super().__init__()
        self.at, self.wants = at, wants

    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: FBT001, FBT002 -- as there
        """Return the parameters."""
        del deep
        return {"at": self.at, "wants": self.wants}

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> Starved:
        """Learn, or be refused."""
        super().fit(rows, labels)
        if self.at == "fit" and rows[:, 0].max() > RAISES_ABOVE:
            _be_refused(self.wants)
        return self

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Answer, or be refused."""
        if self.at == "predict" and rows[:, 0].max() > RAISES_ABOVE:
            _be_refused(self.wants)
        return super().predict(rows)

    def predict_proba(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score, or be refused."""
        self.predict(rows)
        return super().predict_proba(rows)


def _be_refused(wants: str) -> None:
    """Ask for something that no machine gives."""
    if wants == "memory":
        np.empty(1 << 56)
    if wants == "file":
        os.stat("no such file")  # noqa: PTH116 -- no library more
    if wants == "thread":
        message = "can't start new thread"
        raise RuntimeError(message)
    try:
        np.empty(1 << 56)
    except MemoryError:
        message = "the fit failed"
        raise ValueError(message) from None
