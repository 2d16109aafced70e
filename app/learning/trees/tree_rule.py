"""What distinguishes two learners that search the same trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TreeRule(Protocol):
    """An algebra over trees, a choice among tests, and the labels of leaves."""

    def leaf(self, counts: NDArray[np.float32]) -> NDArray[np.floating]:
        """Score leaves with label counts of shape ``(L, ...)``; drops the first axis."""
        ...

    def join(self, left: NDArray[np.floating], right: NDArray[np.floating]) -> NDArray[np.floating]:
        """Combine the scores of the two sides of a test."""
        ...

    def total(self, scores: NDArray[np.floating]) -> NDArray[np.floating]:
        """Combine the scores of all tests, over the last axis."""
        ...

    def choose(self, scores: NDArray[np.floating]) -> NDArray[np.int64]:
        """Choose a test at every node: scores ``(G, N, t)`` to indices ``(G, N)``."""
        ...

    def label(
        self, leaf_counts: NDArray[np.float32], parent_counts: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Label leaves by counts ``(L, G, leaves)`` of their own and their parent's region."""
        ...
