"""What the service asks of k fitted learners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Ensemble(Protocol):
    """k fitted learners, each with one vote on every query.  Private state."""

    @property
    def size(self) -> int:
        """Number of votes, k."""
        ...

    @property
    def class_count(self) -> int:
        """Number of labels, L."""
        ...

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Evaluate every model on every query of a batch.

        Args:
            values: encoded queries, shape ``(B, d)``.

        Returns:
            ``private_vote_count`` of shape ``(B, L)``; every row sums to k.
            A row depends on its own query only, never on the rest of the batch.

        """
        ...

    @property
    def is_scored(self) -> bool:
        """Whether every vote has a score too."""
        ...

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every model's score of every query: its share of the second class.

        Args:
            values: encoded queries, shape ``(B, d)``.

        Returns:
            ``private_scores`` of shape ``(B, k)``; what is not in [0, 1], a NaN
            too, stands for 0.  A function of the models and of the queries.

        Raises:
            InvariantError: the ensemble was fitted for votes only.

        """
        ...

    def to_bytes(self) -> bytes:
        """Return the fitted models as private state."""
        ...


class FittedEnsemble(Ensemble, Protocol):
    """An ensemble fresh from its fit."""

    def repeated(self, times: int) -> Ensemble:
        """Return an ensemble with every model so many times, to measure the work of more."""
        ...
