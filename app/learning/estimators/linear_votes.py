"""Votes of all linear models by one matrix product, whose rounding changes no vote.

The score of a linear model for a class is a weighted sum of a query's columns plus an intercept;
the class with the largest score gets the vote. With two classes, the difference of their scores is
enough. The rounding of a matrix product depends on the batch, the number of threads and the
processor. A vote must not depend on these. Therefore a score is defined as a sum that is added
column by column in double precision. The matrix product only finds the votes that no order of
addition can change. These are all votes, except where scores differ by a few units of rounding;
these scores are added again column by column.

Two scores that are equal in exact arithmetic may differ after rounding, in scikit-learn too. Here
they count as equal, and the first class gets the vote, as in scikit-learn: the score of each class
is lowered a little more than the score of the class before it, by more than the rounding error.
Therefore the matrix product decides equal scores too, and the time of a batch does not reveal them.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import invariant
from app.learning.vote_counting import count_votes, padded_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINARY = 2
# Scores held at once, eight bytes each: with the weights they stay in a second cache of 1 MB.
SCORES_PER_BLOCK = 1 << 16
# From here on, leaving out columns that are zero in the whole batch pays.
SPARSE_BATCH = 64
_UNIT_ROUNDOFF = 2.0**-53
# Below every score of a class that the model knows.
_ABSENT = -8.0


@dataclass(frozen=True, slots=True)
class _Room:
    """What the blocks of a batch use one after the other.

    Attributes:
        scores: of queries by models.
        certain: whether a score is above zero however it is rounded; models that are
            none, up to a multiple of eight, are False.
        possible: whether it may be, likewise.

    """

    scores: NDArray[np.float64]
    certain: NDArray[np.bool_]
    possible: NDArray[np.bool_]

    @classmethod
    def of(cls, query_count: int, size: int) -> Self:
        """Return empty arrays to hold a block of models."""
        flags = np.zeros((2, query_count, padded_size(size)), dtype=np.bool_)
        return cls(np.empty((query_count, size)), flags[0], flags[1])


class PackedLinear:
    """Linear models over the same numeric columns, each with one vote.

    Args:
        weights: the weight of each column in each score, shape ``(models, scores, columns)``. With
            two classes there is one score, and a score above zero is a vote for the second class.
            With more there is one score per class, and the largest score gets the vote, of equal
            ones the first.
        intercepts: the intercept of each score, shape ``(models, scores)``; minus infinity for a
            label that no row of the model's chunk has.
        class_count: the number of labels.

    """

    def __init__(
        self,
        weights: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        *,
        class_count: int,
    ) -> None:
        """Scale every model by a power of two, and lower later classes so that ties go first."""
        size, score_count, column_count = weights.shape
        invariant(score_count == (1 if class_count == BINARY else class_count), "scores of classes")
        self.size = size
        self.class_count = class_count
        known = np.isfinite(intercepts)
        norms = np.abs(weights).sum(axis=2) + np.where(known, np.abs(intercepts), 0.0)
        _, exponents = np.frexp(norms.max(axis=1, initial=0.0))
        scaled = np.ldexp(weights, -exponents[:, np.newaxis, np.newaxis])
        offsets = np.ldexp(np.where(known, intercepts, 0.0), -exponents[:, np.newaxis])
        # A scaled model's numbers sum to at most one, and a sum of c + 1 products in any
        # order, fused or not, is off by at most (c + 2) roundings of that; twice is ample.
        error = 2.0 * (column_count + 2) * _UNIT_ROUNDOFF
        self._step = 4.0 * error
        # NumPy compares an array with its own scalars in half the time of Python's.
        self._error, self._below_zero = np.float64(error), np.float64(-error)
        places = np.arange(1, 2) if class_count == BINARY else np.arange(class_count)
        lowered = np.where(known, offsets - self._step * places, _ABSENT)
        together = np.concatenate([scaled, lowered[:, :, np.newaxis]], axis=2)
        # One matrix a score: columns of queries, the intercept last, by models.
        self._weights = np.ascontiguousarray(together.transpose(1, 2, 0))

    def without(self, columns: NDArray[np.intp]) -> Self:
        """Return the same models for queries whose values in some columns are zero.

        Args:
            columns: the indices of these columns, which the queries then leave out. No vote
                changes, since each sum only loses zeros.

        """
        smaller = copy(self)
        weights = np.delete(self._weights, columns, axis=1)
        smaller._weights = np.ascontiguousarray(weights)  # noqa: SLF001 -- its own class's
        return smaller

    def vote_counts(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query of a batch.

        Args:
            rows: the queries as numeric columns in [0, 1], shape ``(queries, columns)``.

        Returns:
            Private vote counts, shape ``(queries, labels)``; the counts of one query add up to the
            number of models.

        """
        queries = np.empty((len(rows), rows.shape[1] + 1))
        queries[:, :-1], queries[:, -1] = rows, 1.0
        if len(rows) == 1 and self.class_count == BINARY:
            return self._count_alone(queries)
        weights = self._weights
        if len(rows) >= SPARSE_BATCH:
            used = queries.any(axis=0)
            queries, weights = queries[:, used], weights[:, used]
        step = min(len(rows), max(1, SCORES_PER_BLOCK // max(self.size, 1)))
        count = self._count_binary if self.class_count == BINARY else self._count_classes
        room = _Room.of(step, self.size)
        counts = np.empty((len(rows), self.class_count), dtype=np.int64)
        for start in range(0, len(rows), max(1, step)):
            block = queries[start : start + step]
            counts[start : start + step] = count(block, weights, room)
        return counts

    def _count_alone(self, query: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the votes of one query ``(1, c + 1)`` on two classes, shape ``(1, 2)``."""
        weights = self._weights[0]
        scores = (query @ weights)[0]
        certain = scores > self._error
        possible = scores > self._below_zero
        second = np.count_nonzero(certain)
        if second != np.count_nonzero(possible):  # what is certain is possible
            (model,) = np.nonzero(certain != possible)
            second += np.count_nonzero(_in_order(query, weights[:, model].T) > 0.0)
        return np.array([[self.size - second, second]], dtype=np.int64)

    def _count_binary(
        self, queries: NDArray[np.float64], weights: NDArray[np.float64], room: _Room
    ) -> NDArray[np.int64]:
        """Count the votes of one block on two classes, shape ``(B, 2)``."""
        scores = np.matmul(queries, weights[0], out=room.scores[: len(queries)])
        certain, possible = room.certain[: len(queries)], room.possible[: len(queries)]
        np.greater(scores, self._error, out=certain[:, : self.size])
        np.greater(scores, self._below_zero, out=possible[:, : self.size])
        votes = count_votes(certain)
        if votes.sum() != np.count_nonzero(possible):  # what is certain is possible
            query, model = np.nonzero(certain != possible)
            certain[query, model] = _in_order(queries[query], weights[0][:, model].T) > 0.0
            votes = count_votes(certain)
        counts = np.empty((len(queries), BINARY), dtype=np.int64)
        counts[:, 1] = votes
        np.subtract(self.size, counts[:, 1], out=counts[:, 0])
        return counts

    def _count_classes(
        self, queries: NDArray[np.float64], weights: NDArray[np.float64], room: _Room
    ) -> NDArray[np.int64]:
        """Count the votes of one block on any number of classes, shape ``(B, L)``."""
        best = np.matmul(queries, weights[0], out=room.scores[: len(queries)])
        second = np.full_like(best, -np.inf)
        labels = np.zeros(best.shape, dtype=np.intp)
        for label in range(1, self.class_count):
            scores = queries @ weights[label]
            second = np.maximum(second, np.minimum(best, scores))
            labels[scores > best] = label
            best = np.maximum(best, scores)
        query, model = np.nonzero(best - second <= BINARY * self._error)
        if len(query):
            exact = [_in_order(queries[query], part[:, model].T) for part in weights]
            labels[query, model] = np.argmax(exact, axis=0)
        return np.stack(
            [(labels == label).sum(axis=1) for label in range(self.class_count)], axis=1
        )


def _in_order(queries: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the products of each row of both, column by column; shape ``(P,)``."""
    products = queries * weights
    total = np.zeros(len(products))
    for column in range(products.shape[1]):
        total = total + products[:, column]
    return total
