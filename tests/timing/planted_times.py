"""Faults that tell by their time what an answer must not: doubles of a few lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from app.learning.trees.packed_trees import PackedTrees
from app.privacy.voting import query_decision
from app.privacy.voting.votes import Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.learning.trees.packed_trees import TreeEnsemble
    from app.noise.source import NoiseSource
    from app.privacy.soft_labels.mechanism import PrivateBins
    from app.privacy.voting.query_decision import Outcome, Parameters, State

TRUE_STEP = query_decision.step


def spin(seconds: float) -> None:
    """Be busy for that long."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def slow_step(seconds: Callable[[Tally, Outcome], float]) -> Callable[..., tuple[State, Outcome]]:
    """Return a step that takes longer by what the votes and the outcome are."""

    def step(
        parameters: Parameters,
        state: State,
        private_value: Tally | PrivateBins,
        noise: NoiseSource,
    ) -> tuple[State, Outcome]:
        following, outcome = TRUE_STEP(parameters, state, private_value, noise)
        if isinstance(private_value, Tally):
            spin(seconds(private_value, outcome))
        return following, outcome

    return step


class StopsAtAMajority:
    """Evaluates the trees of an ensemble one by one, until no other label can win."""

    class_count = 2
    is_scored = False

    def __init__(self, whole: TreeEnsemble) -> None:
        """Take the trees of a fitted ensemble."""
        self._tests = whole._tests
        self._trees = [
            PackedTrees(cells[np.newaxis], depth=whole._packed.depth, class_count=2)
            for cells in whole._packed._cells
        ]

    @property
    def size(self) -> int:
        """Number of votes, k."""
        return len(self._trees)

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return votes as if all that are left agreed with the majority, shape (1, 2)."""
        bits = self._tests.evaluate(values)
        counts = np.zeros((1, 2), dtype=np.int64)
        for left, tree in zip(reversed(range(self.size)), self._trees, strict=True):
            counts += tree.vote_counts(bits)
            if abs(int(counts[0, 0] - counts[0, 1])) > left:
                counts[0, counts.argmax()] += left
                break
        return counts

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Have none."""
        raise NotImplementedError

    def to_bytes(self) -> bytes:
        """Return nothing: it is not persisted."""
        return b""
