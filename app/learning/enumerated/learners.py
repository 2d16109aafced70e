"""Training of models that are searched in a list of hypotheses, chunk by chunk.

The rule ``canonical`` takes the hypothesis with the fewest errors on a chunk as its model. The rule
``halving`` takes a hundred random hypotheses with few or no errors, which vote together.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from app.learning.chunks import (
    DEFAULT_RULE,
    FALLBACK_LABEL,
    check_rule,
    fitted_or_none,
    label_without_learning,
)
from app.learning.enumerated.enumerated_class import EnumeratedHypothesis
from app.learning.enumerated.enumerated_ensemble import EnumeratedEnsemble
from app.learning.learner_seeds import chunk_seed, generator
from app.learning.trees import canonical_learner, halving_learner

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.enumerated.enumerated_class import EnumeratedClass
    from app.learning.enumerated.hypothesis_list import Encoded, HypothesisList


def fit_enumerated(  # noqa: PLR0913 -- as the row of a class is given
    rule: str,
    *,
    encoded: EncodedRows,
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    hypothesis_class: EnumeratedClass,
    secret: bytes,
    scored: bool = False,
    first_chunk: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> EnumeratedEnsemble:
    """Return an ensemble of one trained model per chunk of rows.

    If all rows of a chunk have the same label, its model gives every query this label. The model of
    an empty chunk, or of a chunk whose learner fails, gives every query label 0.

    Args:
        rule: the built-in learner, ``canonical`` or ``halving``.
        encoded: the permuted rows, in the encoding of the class.
        labels: class indices for training, in the same order, shape ``(rows,)``.
        offsets: the index at which each chunk starts, followed by the number of rows, shape
            ``(chunks + 1,)``.
        hypothesis_class: the public class that every learner searches.
        secret: the release's secret, from which the random seed of each chunk is derived.
        scored: whether models also give scores (probabilities of the second class), computed from
            the rows of their own chunk. A model that gives every query the same label has this
            label as its score.
        first_chunk: the index of the first of these chunks among all chunks of the release.
        progress: a function that is called with the number of finished chunks and the number of all
            chunks.

    Returns:
        The ensemble, which must not leave the server.

    """
    chooser = _Chooser(rule, hypothesis_class.hypotheses)
    chunk_count = len(offsets) - 1
    places = np.empty((chunk_count, chooser.vote_width), dtype=np.int64)
    scores = np.zeros((chunk_count, chooser.vote_width, 2)) if scored else None
    for index in range(chunk_count):
        rows = slice(int(offsets[index]), int(offsets[index + 1]))
        chunk, seed = encoded[rows], chunk_seed(secret, first_chunk + index)
        places[index] = _fit_or_constant(chooser, chunk, labels[rows], seed)
        if scores is not None:
            scores[index] = side_scores(
                hypothesis_class.hypotheses, places[index], chunk, labels[rows]
            )
        if progress is not None:
            progress(index + 1, chunk_count)
    return EnumeratedEnsemble(hypothesis_class.hypotheses, places, private_side_scores=scores)


def side_scores(
    hypotheses: HypothesisList,
    places: NDArray[np.int64],
    encoded: Encoded,
    labels: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the share of class 1 among the rows to which a hypothesis gives each label.

    Args:
        hypotheses: the public list, for two classes.
        places: the indices in the list of one model's hypotheses, shape ``(hypotheses,)``. If the
            model gives every row the same label, every entry is the length of the list plus this
            label.
        encoded: the rows of one chunk, in the encoding of the list.
        labels: class indices 0 or 1 of these rows, shape ``(rows,)``.

    Returns:
        Shares, shape ``(hypotheses, 2)``: the first is for the rows to which the hypothesis gives
        label 0, the second for label 1. The first share is 0, and the second is 1, if there are
        no rows for it. A model that gives every row the same label has the shares 0 and 1.

    """
    scores = np.tile([0.0, 1.0], (len(places), 1))
    if places[0] >= len(hypotheses):
        return scores
    predicted = hypotheses.take(places).predict(encoded)
    for side in (0, 1):
        rows = np.count_nonzero(predicted == side, axis=1)
        ones = np.count_nonzero((predicted == side) & (labels == 1), axis=1)
        scores[:, side] = np.where(rows > 0, ones / np.maximum(rows, 1), side)
    return scores


def fit_hypothesis(
    hypothesis_class: EnumeratedClass, encoded: Encoded, labels: NDArray[np.int64]
) -> EnumeratedHypothesis:
    """Return the hypothesis with the fewest errors; a fixed public order breaks ties.

    Args:
        hypothesis_class: the public class that is searched.
        encoded: the rows, in the encoding of the class.
        labels: class indices, shape ``(rows,)``.

    """
    listed = hypothesis_class.hypotheses
    place = _Chooser(DEFAULT_RULE, listed).choose(encoded, labels, b"")
    return EnumeratedHypothesis(listed.take(place), int(place[0]))


def _fit_or_constant(
    chooser: _Chooser, encoded: Encoded, labels: NDArray[np.int64], seed: bytes
) -> NDArray[np.int64] | int:
    """Choose for one chunk; a single label, no row and a failure give a constant."""
    label = label_without_learning(labels)
    if label is not None:
        return chooser.constant(label)
    chosen = fitted_or_none(partial(chooser.choose, encoded, labels, seed))
    return chooser.constant(FALLBACK_LABEL) if chosen is None else chosen


class _Chooser:
    """Either rule over a public list."""

    def __init__(self, rule: str, hypotheses: HypothesisList) -> None:
        check_rule(rule)
        self._is_canonical = rule == "canonical"
        self._order = (
            canonical_learner.order_by_spread(hypotheses.public_frequencies)
            if self._is_canonical
            else None
        )
        self._hypotheses = hypotheses if self._order is None else hypotheses.take(self._order)

    @property
    def vote_width(self) -> int:
        """The number of hypotheses that together cast one vote, by plurality."""
        return 1 if self._order is not None else halving_learner.TREES_PER_VOTE

    def constant(self, label: int) -> int:
        """Return the index that stands for the hypothesis that gives every row one label."""
        return len(self._hypotheses) + label

    def choose(self, encoded: Encoded, labels: NDArray[np.int64], seed: bytes) -> NDArray[np.int64]:
        """Return the chosen hypotheses, given the errors of every hypothesis."""
        errors = self._hypotheses.error_counts(encoded, labels)
        if self._order is not None:
            return self._order[[int(errors.argmin())]]
        return halving_learner.choose_hypotheses(errors, generator(seed))
