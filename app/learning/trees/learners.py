"""Training of the built-in tree learners, chunk by chunk; the results are arrays of trees.

The rule ``canonical`` takes the tree with the fewest errors on a chunk as its model. The rule
``halving`` takes a hundred random trees with few or no errors, which vote together.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from app.learning.chunks import (
    DEFAULT_RULE,
    FALLBACK_LABEL,
    check_rule,
    fitted_or_none,
    label_without_learning,
)
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.learner_seeds import chunk_seed, generator
from app.learning.trees import canonical_learner, halving_learner
from app.learning.trees.packed_trees import PackedTrees, leaf_scores
from app.learning.trees.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.trees.tree_class import TreeClass


class ChunkFit(Protocol):
    """A function that returns one chunk's trees, from outcomes of feature tests and labels."""

    def __call__(
        self, bits: NDArray[np.uint8], labels: NDArray[np.int64], seed: bytes
    ) -> NDArray[np.int64]:
        """Return the trees of one chunk.

        Args:
            bits: outcomes of the feature tests, shape ``(rows, tests)``.
            labels: class indices, shape ``(rows,)``.
            seed: the random seed of the chunk.

        Returns:
            The trees, shape ``(trees, nodes)``: the indices of the tests in heap order (level by
            level from the root), then the labels of the leaves.

        """
        ...


def fit_trees(  # noqa: PLR0913 -- as the row of a class is given
    rule: str,
    *,
    bits: EncodedRows,
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    hypothesis_class: TreeClass | ThresholdClass,
    secret: bytes,
    scored: bool = False,
    first_chunk: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> PackedTrees:
    """Return an ensemble of one trained model per chunk of rows.

    If all rows of a chunk have the same label, its model gives every query this label. The model of
    an empty chunk, or of a chunk whose learner fails, gives every query label 0.

    Args:
        rule: the built-in learner, ``canonical`` or ``halving``.
        bits: outcomes of the class's feature tests on the permuted rows, shape ``(rows, tests)``.
        labels: class indices for training, in the same order, shape ``(rows,)``.
        offsets: the index at which each chunk starts, followed by the number of rows, shape
            ``(chunks + 1,)``.
        hypothesis_class: the public class that every learner searches.
        secret: the release's secret, from which the random seed of each chunk is derived.
        scored: whether leaves get scores (probabilities of the second class), computed from the
            rows of their own chunk. If the learner of a chunk fails, the scores are 0.
        first_chunk: the index of the first of these chunks among all chunks of the release.
        progress: a function that is called with the number of finished chunks and the number of all
            chunks.

    Returns:
        The ensemble, which must not leave the server.

    Raises:
        ConfigurationError: the rule is unknown.

    """
    fit_chunk = _chunk_fit(rule, hypothesis_class)
    depth, chunk_count = hypothesis_class.depth, len(offsets) - 1
    trees_per_vote = halving_learner.TREES_PER_VOTE if rule == "halving" else 1
    trees = np.empty((chunk_count, trees_per_vote, (2 << depth) - 1), dtype=np.int64)
    scores = np.zeros((chunk_count, trees_per_vote, 1 << depth)) if scored else None
    for index in range(chunk_count):
        rows = slice(int(offsets[index]), int(offsets[index + 1]))
        chunk = bits[rows].astype(np.uint8, copy=False)
        trees[index], fitted = _fit_or_constant(
            fit_chunk, chunk, labels[rows], chunk_seed(secret, first_chunk + index), depth
        )
        if scores is not None and fitted:
            scores[index] = leaf_scores(trees[index], chunk, labels[rows], depth=depth)
        if progress is not None:
            progress(index + 1, chunk_count)
    return PackedTrees(
        trees.reshape(-1, trees.shape[2]),
        depth=depth,
        class_count=hypothesis_class.class_count,
        trees_per_vote=trees_per_vote,
        private_leaf_scores=None if scores is None else scores.reshape(-1, 1 << depth),
    )


def fit_tree(
    hypothesis_class: TreeClass | ThresholdClass,
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
) -> Tree:
    """Return the tree with the fewest errors; a fixed public order breaks ties.

    Args:
        hypothesis_class: the public class that is searched.
        bits: outcomes of the class's feature tests, shape ``(rows, tests)``.
        labels: class indices, shape ``(rows,)``.

    """
    cells = _chunk_fit(DEFAULT_RULE, hypothesis_class)(bits, labels, b"")[0].tolist()
    node_count = len(cells) // 2
    return Tree(test_indices=tuple(cells[:node_count]), leaf_labels=tuple(cells[node_count:]))


def _fit_or_constant(
    fit_chunk: ChunkFit,
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    seed: bytes,
    depth: int,
) -> tuple[NDArray[np.int64], bool]:
    """Fit one chunk; a single label, no row and a failure, the one False, give constant trees."""
    label = label_without_learning(labels)
    if label is not None:
        return _constant(label, depth), True
    trees = fitted_or_none(partial(fit_chunk, bits, labels, seed))
    return (_constant(FALLBACK_LABEL, depth), False) if trees is None else (trees, True)


def _constant(label: int, depth: int) -> NDArray[np.int64]:
    """Return one tree with ``label`` in every leaf, shape ``(1, nodes)``."""
    tree = np.full((1, (2 << depth) - 1), label, dtype=np.int64)
    tree[0, : (1 << depth) - 1] = 0
    return tree


def _chunk_fit(rule: str, hypothesis_class: TreeClass | ThresholdClass) -> ChunkFit:
    """Return the function that fits one chunk."""
    check_rule(rule)
    if isinstance(hypothesis_class, ThresholdClass):
        return _Enumerated(rule, hypothesis_class)
    if rule == "canonical":
        return _CanonicalTrees(hypothesis_class)
    return _HalvingTrees(hypothesis_class)


class _CanonicalTrees:
    """Exact ERM over trees, in canonical order."""

    def __init__(self, hypothesis_class: TreeClass) -> None:
        self._class = hypothesis_class
        self._order = canonical_learner.canonical_order(hypothesis_class.tests)

    def __call__(
        self, bits: NDArray[np.uint8], labels: NDArray[np.int64], seed: bytes
    ) -> NDArray[np.int64]:
        """Search in canonical order, then name the tests by their own index."""
        del seed
        depth = self._class.depth
        trees = canonical_learner.fit_tree(
            bits[:, self._order], labels, depth=depth, class_count=self._class.class_count
        )
        node_count = (1 << depth) - 1
        trees[:, :node_count] = self._order[trees[:, :node_count]]
        return trees


class _HalvingTrees:
    """Random trees without error."""

    def __init__(self, hypothesis_class: TreeClass) -> None:
        self._class = hypothesis_class

    def __call__(
        self, bits: NDArray[np.uint8], labels: NDArray[np.int64], seed: bytes
    ) -> NDArray[np.int64]:
        """Draw from the chunk's own generator."""
        return halving_learner.fit_trees(
            bits,
            labels,
            depth=self._class.depth,
            class_count=self._class.class_count,
            generator=generator(seed),
        )


class _Enumerated:
    """Either rule over a class that is small enough to list."""

    def __init__(self, rule: str, hypothesis_class: ThresholdClass) -> None:
        self._rule = rule
        self._class = hypothesis_class
        self._trees = np.array(
            [tree.test_indices + tree.leaf_labels for tree in hypothesis_class.hypotheses],
            dtype=np.int64,
        )
        cuts = canonical_learner.canonical_order(hypothesis_class.tests)
        self._order = np.append(cuts, np.arange(len(cuts), len(self._trees)))

    def __call__(
        self, bits: NDArray[np.uint8], labels: NDArray[np.int64], seed: bytes
    ) -> NDArray[np.int64]:
        """Choose by the errors of every hypothesis; the constants come last."""
        errors = self._class.error_counts(bits, labels)
        if self._rule == "canonical":
            return self._trees[[canonical_learner.choose_hypothesis(errors, self._order)]]
        return self._trees[halving_learner.choose_hypotheses(errors, generator(seed))]
