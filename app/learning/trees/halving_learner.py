"""The halving learner: a model of 100 random trees without errors on a chunk, which vote together.

Each tree is drawn uniformly from all trees that label every row of the chunk correctly. Two trees
with different feature tests count as two, even if they give the same labels. The number of these
trees is computed as a product over leaves and a sum over tests: a leaf with rows of one label can
have this label only, an empty leaf can have any label, and a leaf with rows of several labels can
have none.

If no tree labels every row correctly, each tree is drawn with weight ``exp(-2 * errors)``, where
``errors`` is the number of rows that it mislabels. The random numbers come from the chunk's own
seed; no privacy claim depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.learning.trees.tree_search import Chunk, grow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.learner_seeds import LearnerGenerator

TREES_PER_VOTE = 100
ERROR_PENALTY = 2.0


def fit_trees(
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    depth: int,
    class_count: int,
    generator: LearnerGenerator,
) -> NDArray[np.int64]:
    """Return the random trees that together cast the vote of one chunk.

    Args:
        bits: outcomes 0 or 1 of the feature tests, shape ``(rows, tests)``.
        labels: class indices, shape ``(rows,)``.
        depth: the depth of the trees.
        class_count: the number of labels.
        generator: the random generator of the chunk.

    Returns:
        The trees, shape ``(100, 2**(depth + 1) - 1)``: the indices of the tests in heap order
        (level by level from the root), then the labels of the leaves.

    """
    chunk = Chunk.of(bits, labels, class_count)
    try:
        return grow(chunk, depth=depth, tree_count=TREES_PER_VOTE, rule=ZeroErrorRule(generator))
    except NoZeroErrorTreeError:
        return grow(chunk, depth=depth, tree_count=TREES_PER_VOTE, rule=PenaltyRule(generator))


def choose_hypotheses(errors: NDArray[np.int64], generator: LearnerGenerator) -> NDArray[np.int64]:
    """Return the indices of a hundred hypotheses, drawn at random by their numbers of errors.

    Hypotheses without errors are drawn uniformly. If there are none, a hypothesis is drawn with
    weight ``exp(-2 * errors)``.

    Args:
        errors: the number of errors of each hypothesis, shape ``(hypotheses,)``.
        generator: the random generator of the chunk.

    """
    least = int(errors.min())
    weights = np.exp(-ERROR_PENALTY * (errors - least)) if least else (errors == 0) * 1.0
    cumulative = weights.cumsum(dtype=np.float64)
    uniform = generator.random(TREES_PER_VOTE) * cumulative[-1]
    drawn: NDArray[np.int64] = np.searchsorted(cumulative, uniform, side="right")
    # Rounding may carry the uniform onto the total; the last index stands for it.
    kept: NDArray[np.int64] = np.minimum(drawn, len(weights) - 1)
    return kept


class NoZeroErrorTreeError(Exception):
    """No tree labels every row of a chunk correctly, so another rule must draw the trees."""


class ZeroErrorRule:
    """The rule that draws uniformly among the trees that label every row of a chunk correctly.

    Args:
        generator: the random generator of the chunk.

    """

    def __init__(self, generator: LearnerGenerator) -> None:
        """Store the chunk's random generator."""
        self._generator = generator

    def leaf(self, counts: NDArray[np.float32]) -> NDArray[np.floating]:
        """Return the number of labels that make no error in a leaf.

        All labels make no error in an empty leaf, one label in a leaf with rows of one label, and
        no label otherwise.
        """
        weights = np.zeros(len(counts) + 1)
        weights[:2] = len(counts), 1.0
        nonzero: NDArray[np.intp] = np.count_nonzero(counts, axis=0)
        return np.take(weights, nonzero)

    def join(self, left: NDArray[np.floating], right: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the number of error-free trees below a test: the product over both sides."""
        trees: NDArray[np.floating] = np.multiply(left, right)
        return trees

    def total(self, scores: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the number of error-free trees, summed over all feature tests at a node."""
        count: NDArray[np.floating] = scores.sum(axis=-1)
        return count

    def choose(self, scores: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return a random feature test at every node.

        Its probability is in proportion to the number of error-free trees below it.

        Args:
            scores: the number of error-free trees for each test at each node.

        Raises:
            NoZeroErrorTreeError: there is no error-free tree. This can only happen at the root.

        """
        if not bool(scores.sum(axis=-1).all()):
            raise NoZeroErrorTreeError
        return _draw(scores, self._generator)

    def label(
        self, leaf_counts: NDArray[np.float32], parent_counts: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Return, for every leaf, a random one of the labels that make no error in it.

        Raises:
            NoZeroErrorTreeError: the tree has depth 0, and the chunk has rows of several labels.

        """
        del parent_counts
        others = leaf_counts.sum(axis=0) - leaf_counts
        return self.choose(np.moveaxis((others == 0) * 1.0, 0, -1))


class PenaltyRule:
    """The rule that draws each tree with weight ``exp(-2 * errors)``.

    Args:
        generator: the random generator of the chunk.

    """

    def __init__(self, generator: LearnerGenerator) -> None:
        """Store the chunk's random generator."""
        self._generator = generator

    def leaf(self, counts: NDArray[np.float32]) -> NDArray[np.floating]:
        """Return the log of the summed weights of all labels of a leaf."""
        return self.total(np.moveaxis(_label_log_weights(counts), 0, -1))

    def join(self, left: NDArray[np.floating], right: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the log of the summed weights of the trees below a feature test.

        Args:
            left: the log of the summed weights on the false side.
            right: the log of the summed weights on the true side.

        """
        log_weights: NDArray[np.floating] = np.add(left, right)
        return log_weights

    def total(self, scores: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return, for each node, the log of the summed weights of all subtrees with this root.

        Args:
            scores: for each feature test, the log of the summed weights of the subtrees that use
                this test at their root; the last axis counts the tests.

        """
        largest: NDArray[np.floating] = scores.max(axis=-1)
        total: NDArray[np.floating] = np.exp(scores - largest[..., np.newaxis]).sum(axis=-1)
        log_weights: NDArray[np.floating] = largest + np.log(total)
        return log_weights

    def choose(self, scores: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return a random feature test at every node.

        Its probability is in proportion to the summed weights of all trees below it.
        """
        return _draw(np.exp(scores - scores.max(axis=-1, keepdims=True)), self._generator)

    def label(
        self, leaf_counts: NDArray[np.float32], parent_counts: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Return a random label for every leaf, with probability in proportion to its weight."""
        del parent_counts
        return self.choose(np.moveaxis(_label_log_weights(leaf_counts), 0, -1))


def _label_log_weights(counts: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return ``-2 errors`` of each label of a leaf, shape ``(L, ...)``."""
    errors: NDArray[np.float64] = counts.sum(axis=0, dtype=np.float64) - counts
    return np.multiply(errors, -ERROR_PENALTY)


def _draw(weights: NDArray[np.floating], generator: LearnerGenerator) -> NDArray[np.int64]:
    """Draw an index over the last axis in proportion to ``weights``, independently."""
    cumulative = weights.cumsum(axis=-1, dtype=np.float64)
    uniform = generator.random(weights.shape[:-1]) * cumulative[..., -1]
    drawn: NDArray[np.int64] = (cumulative <= uniform[..., np.newaxis]).sum(axis=-1)
    # Rounding may carry the uniform onto the total; the last index stands for it.
    kept: NDArray[np.int64] = np.minimum(drawn, weights.shape[-1] - 1)
    return kept
