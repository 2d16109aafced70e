"""An ensemble of estimators that were trained together, stored as numeric arrays.

The estimators are decision trees or linear models. The score of a linear model for a class is a
weighted sum of a query's columns plus an intercept.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import numpy as np

from app.errors import InvariantError, LedgerCorruptError, invariant
from app.learning.encoding.public_columns import PackedColumns
from app.learning.estimators.batched_cart import CompleteTrees
from app.learning.estimators.linear_votes import PackedLinear
from app.learning.estimators.packing import linear_votes
from app.learning.estimators.tree_votes import PackedCuts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.estimators.packing import PackedVotes

MAGIC: Final = b"CPE1"
# Kind, labels, depth, models and numbers of each.
_HEADER: Final = struct.Struct("<4sBHBII")
_NUMBER: Final = np.dtype("<f8")
_LINEAR: Final = 0
_TREES: Final = 1
_DEPTH_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Linear models with one score per class; the class with the largest score gets the vote.

    Of classes with equal scores, the first one gets it.

    Attributes:
        weights: the weight of each column in each score, shape ``(models, labels, columns)``.
        intercepts: the intercept of each score, shape ``(models, labels)``; minus infinity for a
            label that no row of the model's chunk has.

    """

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]


Form: TypeAlias = LinearForm | CompleteTrees


class PackedEnsemble:
    """An ensemble of models that were trained together, one per chunk.

    Args:
        columns: the public encoding of the features.
        form: the trained models as arrays.
        class_count: the number of labels.

    """

    is_scored = False

    def __init__(self, columns: Sequence[PublicColumn], form: Form, *, class_count: int) -> None:
        """Store the models in a form for repeated evaluation."""
        self.columns = tuple(columns)
        self.form = form
        self.class_count = class_count
        self._encoder = PackedColumns(columns)
        self._packed = _votes(form, class_count=class_count, column_count=self._encoder.width)
        # For queries of numbers of which none is missing: half the columns, and half the time.
        self._packed_complete: PackedLinear | None = None
        indicators = self._encoder.indicators
        if isinstance(self._packed, PackedLinear) and len(indicators) and _is_finite(form):
            self._packed_complete = self._packed.without(indicators)

    @property
    def size(self) -> int:
        """The number of models, and so of votes on each query."""
        return len(self.form.weights if isinstance(self.form, LinearForm) else self.form.leaves)

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query; secret.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Vote counts, shape ``(queries, labels)``.

        """
        if self._packed_complete is not None:
            scaled = self._encoder.scaled(values)
            if scaled is not None:
                return self._packed_complete.vote_counts(scaled)
        return self._packed.vote_counts(self._encoder.encode(values))

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raise an error, since models that give scores are never trained together.

        Raises:
            InvariantError: always.

        """
        del values
        raise InvariantError("these estimators were fitted for votes only")

    def repeated(self, times: int) -> Self:
        """Return an ensemble with ``times`` copies of each model, to time a larger ensemble."""
        form = joined([self.form] * times)
        return type(self)(self.columns, form, class_count=self.class_count)

    @classmethod
    def together(cls, ensembles: Sequence[Self]) -> Self:
        """Return one ensemble from several ensembles, whose chunks are consecutive."""
        first = ensembles[0]
        form = joined([each.form for each in ensembles])
        return cls(first.columns, form, class_count=first.class_count)

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with some chunks' models replaced by the models of another ensemble.

        Args:
            chunks: the indices of the chunks whose models are replaced, shape ``(chunks,)``.
            others: an ensemble of the same kind, with as many chunks as this one.

        """
        both = joined([self.form, others.form])
        order = np.arange(self.size)
        order[chunks] += self.size
        return type(self)(self.columns, picked(both, order), class_count=self.class_count)

    def to_bytes(self) -> bytes:
        """Return a header and all parameters as little-endian bytes, for private storage."""
        kind, depth, numbers = _numbers(self.form)
        header = _HEADER.pack(MAGIC, kind, self.class_count, depth, *numbers.shape)
        return header + numbers.astype(_NUMBER).tobytes()

    @classmethod
    def from_bytes(cls, columns: Sequence[PublicColumn], body: bytes) -> Self:
        """Return the ensemble that :meth:`to_bytes` wrote, given the same public encoding.

        Raises:
            LedgerCorruptError: the bytes do not encode an ensemble over these columns.

        """
        if len(body) < _HEADER.size or not body.startswith(MAGIC):
            raise LedgerCorruptError("stored models do not start as stored models do")
        _, kind, class_count, depth, size, width = _HEADER.unpack_from(body)
        if len(body) != _HEADER.size + size * width * _NUMBER.itemsize:
            raise LedgerCorruptError("stored models have another length than they say")
        numbers = np.frombuffer(body, dtype=_NUMBER, offset=_HEADER.size).reshape(size, width)
        column_count = PackedColumns(columns).width
        if kind == _LINEAR and width == class_count * (column_count + 1):
            scores = numbers.reshape(size, class_count, -1)
            form: Form = LinearForm(scores[:, :, :-1], scores[:, :, -1])
        elif kind == _TREES and depth <= _DEPTH_MAX and width == 3 * (1 << depth) - 2:
            form = _trees(numbers, depth, class_count=class_count, column_count=column_count)
        else:
            raise LedgerCorruptError("stored models are over other columns")
        return cls(columns, form, class_count=class_count)


def joined(forms: Sequence[Form]) -> Form:
    """Return the models of several blocks of chunks as one set of arrays."""
    linear = [form for form in forms if isinstance(form, LinearForm)]
    trees = [form for form in forms if isinstance(form, CompleteTrees)]
    invariant(not (linear and trees), "the models of an ensemble are of one kind")
    if linear:
        return LinearForm(
            np.concatenate([form.weights for form in linear]),
            np.concatenate([form.intercepts for form in linear]),
        )
    return CompleteTrees(
        np.concatenate([form.columns for form in trees]),
        np.concatenate([form.cuts for form in trees]),
        np.concatenate([form.leaves for form in trees]),
    )


def picked(form: Form, order: NDArray[np.int64]) -> Form:
    """Return the models at the indices ``order``, in that order."""
    if isinstance(form, LinearForm):
        return LinearForm(form.weights[order], form.intercepts[order])
    return CompleteTrees(form.columns[order], form.cuts[order], form.leaves[order])


def _is_finite(form: Form) -> bool:
    """Return whether no weight of linear models would make more of a zero than a zero."""
    return isinstance(form, LinearForm) and bool(np.isfinite(form.weights).all())


def _votes(form: Form, *, class_count: int, column_count: int) -> PackedVotes:
    if isinstance(form, LinearForm):
        return linear_votes(form.weights, form.intercepts, class_count=class_count)
    return PackedCuts(
        form.columns, form.cuts, form.leaves, class_count=class_count, column_count=column_count
    )


def _numbers(form: Form) -> tuple[int, int, NDArray[np.float64]]:
    """Return the kind, the depth of trees, and the numbers of every model, shape ``(k, w)``."""
    if isinstance(form, LinearForm):
        scores = np.append(form.weights, form.intercepts[:, :, np.newaxis], axis=2)
        return _LINEAR, 0, scores.reshape(len(scores), scores.shape[1] * scores.shape[2])
    depth = form.leaves.shape[1].bit_length() - 1
    return _TREES, depth, np.concatenate([form.columns, form.cuts, form.leaves], axis=1)


def _trees(
    numbers: NDArray[np.float64], depth: int, *, class_count: int, column_count: int
) -> CompleteTrees:
    """Read complete trees, whose columns and labels exist."""
    node_count = (1 << depth) - 1
    columns, cuts, leaves = np.split(numbers, [node_count, 2 * node_count], axis=1)
    known = (
        np.isin(columns, np.arange(column_count)).all()
        and np.isin(leaves, np.arange(class_count)).all()
    )
    if not known:
        raise LedgerCorruptError("stored trees ask for columns or labels that do not exist")
    return CompleteTrees(columns.astype(np.int64), cuts, leaves.astype(np.int64))
