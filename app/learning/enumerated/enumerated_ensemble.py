"""An ensemble over a list of hypotheses: each model is stored as indices into the public list.

The indices are private; the list is not stored. The time of a query does not depend on the indices.
If the list is shorter than the sequence of all models' indices, every listed hypothesis is
evaluated; otherwise the hypothesis at every index is evaluated, repeats included.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import InvariantError, LedgerCorruptError, invariant
from app.learning.trees.packed_trees import vote_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.enumerated.hypothesis_list import Encoded, HypothesisList

_MAGIC = b"CEL1"
# Scores of both sides follow the places.
_MAGIC_SCORED = b"CEL2"
_HEADER = struct.Struct("<4sHHII")
_CELL = np.dtype("<u4")
_SCORE = np.dtype("<f8")
_SIDES = 2
# Labels of models held at once, one or two bytes each.
LABELS_PER_BLOCK = 1 << 22


class EnumeratedEnsemble:
    """An ensemble whose models are one or several listed hypotheses each.

    Args:
        hypotheses: the public list.
        places: for each model the indices of its hypotheses in the list, shape
            ``(models, hypotheses per model)``; the model's vote is their most frequent label. The
            index ``len(hypotheses) + c`` stands for the hypothesis that gives every row label c.
        private_side_scores: for each hypothesis of each model, a score (a probability of the second
            class) for rows to which the hypothesis gives label 0, and one for rows to which it
            gives label 1, shape ``(models, hypotheses per model, 2)``. None if the models give
            votes only.

    """

    def __init__(
        self,
        hypotheses: HypothesisList,
        places: NDArray[np.integer],
        *,
        private_side_scores: NDArray[np.float64] | None = None,
    ) -> None:
        """Store the hypotheses that are used, or the whole list if that is shorter."""
        self._side_scores = private_side_scores
        invariant(
            private_side_scores is None or private_side_scores.shape == (*places.shape, _SIDES),
            "every hypothesis of a vote has a score on either side",
        )
        self._class_count = hypotheses.class_count
        bound = len(hypotheses) + self._class_count
        invariant(bool(np.all((places >= 0) & (places < bound))), "a place lies in the list")
        self._places = np.ascontiguousarray(places, dtype=_CELL)
        self._list_size = len(hypotheses)
        self._list = hypotheses
        flat = self._places.ravel().astype(np.int64)
        if self._list_size <= len(flat):
            self._evaluated, self._rows = hypotheses, flat
        else:
            self._evaluated = hypotheses.take(np.minimum(flat, self._list_size - 1))
            constant = flat - self._list_size + len(flat)
            self._rows = np.where(flat < self._list_size, np.arange(len(flat)), constant)

    @classmethod
    def joined(cls, hypotheses: HypothesisList, fitted: Sequence[Self]) -> Self:
        """Return one ensemble with the models of several ensembles over the same list, in order."""
        scores = [each._side_scores for each in fitted if each._side_scores is not None]  # noqa: SLF001 -- its own
        return cls(
            hypotheses,
            np.concatenate([each._places for each in fitted]),  # noqa: SLF001 -- its own
            private_side_scores=np.concatenate(scores) if scores else None,
        )

    @property
    def size(self) -> int:
        """The number of models, and so of votes on each query."""
        return len(self._places)

    @property
    def class_count(self) -> int:
        """The number of labels."""
        return self._class_count

    @property
    def is_scored(self) -> bool:
        """Whether every vote comes with a score: the model's probability of the second class."""
        return self._side_scores is not None

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every model's score for every query: its probability of the second class; secret.

        The score of a model with several hypotheses is the mean of their scores.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Scores, shape ``(queries, models)``.

        Raises:
            InvariantError: the models give votes only.

        """
        if self._side_scores is None:
            raise InvariantError("these hypotheses were chosen for votes only")
        encoded = self._list.encode(values)
        scores = np.empty((len(values), self.size))
        step = max(1, LABELS_PER_BLOCK // (len(self._evaluated) + len(self._rows)))
        sides = self._side_scores.reshape(-1, _SIDES)
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            each = np.take_along_axis(sides, self._labels(encoded[block]).astype(np.intp), axis=1)
            scores[block] = vote_means(each.reshape(*self._places.shape, -1))
        return scores

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query; secret.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Vote counts, shape ``(queries, labels)``.

        """
        encoded = self._list.encode(values)
        counts = np.empty((len(values), self._class_count), dtype=np.int64)
        step = max(1, LABELS_PER_BLOCK // (len(self._evaluated) + len(self._rows)))
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            votes = self._votes(encoded[block])
            for label in range(self._class_count):
                counts[block, label] = np.count_nonzero(votes == label, axis=0)
        return counts

    def repeated(self, times: int) -> Self:
        """Return an ensemble with ``times`` copies of each model, to time a larger ensemble."""
        scores = self._side_scores
        return type(self)(
            self._list,
            np.tile(self._places, (times, 1)),
            private_side_scores=None if scores is None else np.tile(scores, (times, 1, 1)),
        )

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with some chunks' models replaced by the models of another ensemble.

        Args:
            chunks: the indices of the chunks whose models are replaced, shape ``(chunks,)``.
            others: an ensemble over the same list, with as many chunks as this one.

        Raises:
            InvariantError: the models give scores.

        """
        invariant(not self.is_scored, "votes are exchanged without scores")
        places = self._places.copy()
        places[chunks] = others._places[chunks]
        return type(self)(self._list, places)

    def to_bytes(self) -> bytes:
        """Return the indices and any scores as little-endian bytes, for private storage."""
        scores = b"" if self._side_scores is None else self._side_scores.astype(_SCORE).tobytes()
        magic = _MAGIC_SCORED if self.is_scored else _MAGIC
        header = _HEADER.pack(
            magic, self._class_count, self._places.shape[1], self.size, self._list_size
        )
        return header + self._places.tobytes() + scores

    @classmethod
    def from_bytes(cls, hypotheses: HypothesisList, body: bytes) -> Self:
        """Return the ensemble that :meth:`to_bytes` wrote, given the same public list.

        Raises:
            LedgerCorruptError: the bytes do not encode an ensemble over this list.

        """
        if len(body) < _HEADER.size or not body.startswith((_MAGIC, _MAGIC_SCORED)):
            raise LedgerCorruptError("stored places do not start as stored places do")
        magic, class_count, width, size, list_size = _HEADER.unpack_from(body)
        if (class_count, list_size) != (hypotheses.class_count, len(hypotheses)):
            raise LedgerCorruptError("stored places are those of another list")
        scores_at = _HEADER.size + size * width * _CELL.itemsize
        score_count = size * width * _SIDES if magic == _MAGIC_SCORED else 0
        if len(body) != scores_at + score_count * _SCORE.itemsize or width == 0:
            raise LedgerCorruptError("stored places have another length than they say")
        places = np.frombuffer(body[_HEADER.size : scores_at], dtype=_CELL).reshape(size, width)
        scores = np.frombuffer(body, dtype=_SCORE, offset=scores_at).astype(np.float64)
        if places.size and int(places.max()) >= list_size + class_count:
            raise LedgerCorruptError("stored places lie outside the list")
        side_scores = scores.reshape(size, width, _SIDES) if score_count else None
        return cls(hypotheses, places, private_side_scores=side_scores)

    def _labels(self, encoded: Encoded) -> NDArray[np.integer]:
        """Return each place's label on each query, shape ``(k * g, B)``."""
        listed = self._evaluated.predict(encoded)
        constants = np.repeat(
            np.arange(self._class_count, dtype=listed.dtype)[:, np.newaxis], len(encoded), axis=1
        )
        labels: NDArray[np.integer] = np.concatenate([listed, constants])[self._rows]
        return labels

    def _votes(self, encoded: Encoded) -> NDArray[np.integer]:
        """Return each vote's label on each query, ties to the smallest, shape ``(k, B)``."""
        labels = self._labels(encoded)
        vote_width = self._places.shape[1]
        if vote_width == 1:
            return labels
        grouped = labels.reshape(-1, vote_width, len(encoded))
        counts = [np.count_nonzero(grouped == label, axis=1) for label in range(self._class_count)]
        most: NDArray[np.intp] = np.stack(counts).argmax(axis=0)
        return most
