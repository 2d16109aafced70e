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

    def to_bytes(self) -> bytes:
        """Return the fitted models as private state."""
        ...
