"""Training and reading of ensembles: the same functions for every kind of learner.

An ensemble has one model per chunk of permuted rows. The functions train these models, and read
them from bytes after a restart.

A built-in rule is a training method that searches a hypothesis class. The rule ``canonical`` takes
the hypothesis with the fewest errors on a chunk as the chunk's model. The rule ``halving`` takes a
hundred random hypotheses with few or no errors, which vote together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from app.errors import InvariantError, LedgerCorruptError, invariant
from app.learning.chunks import DEFAULT_RULE
from app.learning.encoding.encoded_rows import RowsByPart, RowsInTurn
from app.learning.estimators.estimator_choice import estimator_factory
from app.learning.estimators.estimator_ensemble import (
    EstimatorEnsemble,
    exchanged_bytes,
    joined_bytes,
)
from app.learning.estimators.estimator_fitting import fit_estimators
from app.learning.estimators.packed_ensemble import MAGIC as PACKED_MAGIC
from app.learning.estimators.packed_ensemble import PackedEnsemble
from app.learning.estimators.packed_fit import block_fit_of, fit_together
from app.learning.estimators.packing import packing_of
from app.learning.hypothesis import ChunkwiseEnsemble
from app.learning.registry import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellSplits
    from app.learning.chunks import ChunkNumbers
    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.hypothesis import Ensemble, FittedEnsemble, HypothesisClass
    from app.learning.trees.counted_fit import CountedTrees


@dataclass(frozen=True, kw_only=True, slots=True)
class Learner:
    """The public choice of a learner: a built-in rule or a scikit-learn estimator.

    Attributes:
        hypothesis_class: the public set of classifiers that a built-in rule searches; of a learner
            that is an estimator, only the number of labels is used.
        rule: the built-in rule, ``canonical`` or ``halving``; unused if an estimator is given.
        estimator: the import path of a scikit-learn classifier, or None.
        params: the keyword arguments of the estimator.
        packed: whether the estimator is trained on all chunks in one computation, if such a
            computation exists for it.
        columns: the public encoding of the features for the estimator.
        rows_max: the largest number of rows (or persons) of a chunk on which a model is trained;
            None for all rows of the chunk.
        scored: whether every model gives a score (a probability of the second of two classes) in
            addition to its vote.

    """

    hypothesis_class: HypothesisClass
    rule: str = DEFAULT_RULE
    estimator: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    packed: bool = True
    columns: Sequence[PublicColumn] = ()
    rows_max: int | None = None
    scored: bool = False

    def chunk_rows(self, row_count: int) -> int:
        """Return the number of rows on which the model of a chunk is trained.

        Args:
            row_count: the number of rows (or persons) in the chunk.

        """
        return row_count if self.rows_max is None else min(row_count, self.rows_max)


def fit_ensemble(
    learner: Learner,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    permutation: NDArray[np.int64],
    offsets: NDArray[np.int64],
    secret: bytes,
    progress: Callable[[int, int], None] | None = None,
) -> FittedEnsemble:
    """Return an ensemble of one trained model per chunk of rows.

    Args:
        learner: the public choice of the learner.
        values: feature values of the private rows in their original order, encoded as numbers by
            the public schema, shape ``(rows, features)``.
        labels: class indices for training, in the same order, shape ``(rows,)``.
        permutation: secret row indices in uniformly random order; the rows of chunk i are
            ``permutation[offsets[i] : offsets[i + 1]]``. Rows that are not in the permutation are
            not used.
        offsets: the index in the permutation at which each chunk starts, followed by the length of
            the permutation, shape ``(chunks + 1,)``.
        secret: the release's secret, from which the random seed of each chunk is derived.
        progress: a function that is called with the number of finished chunks and the number of all
            chunks.

    Returns:
        The trained ensemble, which must not leave the server.

    Raises:
        ConfigurationError: the rule or the estimator does not exist or cannot be used. This depends
            on public choices only.

    """
    invariant(len(values) == len(labels), "every row has one label")
    invariant(len(permutation) == int(offsets[-1]), "chunks hold every position once")
    if learner.estimator is None:
        counted = counted_learner(learner, row_count=len(permutation), size=len(offsets) - 1)
        if counted is not None:
            rows = RowsByPart(_as_they_are, values, permutation)
            trees = counted.fit(rows, labels[permutation], offsets=offsets, progress=progress)
            return counted_ensemble(learner, trees)
        return _fit_rule(
            learner,
            RowsInTurn(RowsByPart(learner.hypothesis_class.encode, values, permutation)),
            labels[permutation],
            offsets=offsets,
            secret=secret,
            progress=progress,
        )
    return _fit_estimators(
        learner,
        RowsByPart(_as_they_are, values, permutation),
        labels[permutation],
        offsets=offsets,
        secret=secret,
        progress=progress,
    )


def fit_encoded(
    learner: Learner,
    encoded: EncodedRows,
    labels: NDArray[np.int64],
    *,
    offsets: NDArray[np.int64],
    secret: bytes,
    first_chunk: int,
) -> FittedEnsemble:
    """Return an ensemble of some of the release's chunks, trained by a built-in rule.

    Args:
        learner: the public choice of the learner.
        encoded: the rows of these chunks, encoded by the hypothesis class, chunk after chunk.
        labels: class indices for training, in the same order, shape ``(rows,)``.
        offsets: the index in ``labels`` at which each of these chunks starts, followed by the
            number of rows, shape ``(chunks + 1,)``.
        secret: the release's secret, from which the random seed of each chunk is derived.
        first_chunk: the index of the first of these chunks among all chunks of the release.

    """
    return _fit_rule(
        learner,
        RowsInTurn(encoded),
        labels,
        offsets=offsets,
        secret=secret,
        first_chunk=first_chunk,
        progress=None,
    )


def fit_chunks(
    learner: Learner,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    offsets: NDArray[np.int64],
    secret: bytes,
    numbers: ChunkNumbers,
) -> FittedEnsemble:
    """Return an ensemble of some consecutive chunks of a release, one trained model per chunk.

    The models are the same as if all chunks of the release were trained at once.

    Args:
        learner: the public choice of the learner.
        values: feature values of the private rows of these chunks, encoded by the public schema,
            chunk after chunk, shape ``(rows, features)``.
        labels: class indices for training, in the same order, shape ``(rows,)``.
        offsets: the index at which each of these chunks starts, followed by the number of rows,
            shape ``(chunks + 1,)``.
        secret: the release's secret, from which the random seed of each chunk is derived.
        numbers: the position of these chunks among all chunks of the release.

    """
    if learner.estimator is not None:
        return _fit_estimators(
            learner,
            values,
            labels,
            offsets=offsets,
            secret=secret,
            numbers=numbers,
            progress=None,
        )
    return fit_encoded(
        learner,
        RowsByPart(learner.hypothesis_class.encode, values),
        labels,
        offsets=offsets,
        secret=secret,
        first_chunk=numbers.first,
    )


def joined_bodies(learner: Learner, bodies: Sequence[bytes]) -> bytes:
    """Return one ensemble, as bytes, with the models of several ensembles, in the same order.

    The bytes are the same as if the chunks of all ensembles had been trained together.

    Args:
        learner: the public choice of the learner.
        bodies: the bytes of ensembles that :func:`fit_chunks` returned, at least one; the chunks of
            each ensemble follow those of the ensemble before it.

    """
    if learner.estimator is None:
        searched = learner.hypothesis_class
        row = row_of(searched)
        return row.joined(searched, [row.read(searched, body) for body in bodies]).to_bytes()
    if bodies[0].startswith(PACKED_MAGIC):
        read = [PackedEnsemble.from_bytes(learner.columns, body) for body in bodies]
        return PackedEnsemble.together(read).to_bytes()
    return joined_bytes(bodies)


def joined_ensemble(learner: Learner, fitted: Sequence[FittedEnsemble]) -> FittedEnsemble:
    """Return one ensemble with the models of several ensembles, whose chunks are consecutive."""
    searched = learner.hypothesis_class
    return row_of(searched).joined(searched, fitted)


def fit_chunks_anew(
    learner: Learner,
    body: bytes,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    permutation: NDArray[np.int64],
    offsets: NDArray[np.int64],
    chunks: NDArray[np.int64],
    secret: bytes,
) -> bytes:
    """Return an ensemble, as bytes, in which the models of some chunks are trained again.

    The models of the other chunks stay as stored. If the rows of the other chunks are unchanged,
    the result is the same as training all chunks by :func:`fit_ensemble`, because a model depends
    only on the rows and the seed of its chunk. An ensemble that is stored as sums of votes, and not
    as separate models, is trained again completely.

    Args:
        learner: the public choice of the learner.
        body: the stored ensemble.
        values: feature values of all private rows in their original order, encoded as numbers by
            the public schema, shape ``(rows, features)``.
        labels: class indices for training, in the same order, shape ``(rows,)``.
        permutation: secret row indices in uniformly random order; the rows of chunk i are
            ``permutation[offsets[i] : offsets[i + 1]]``.
        offsets: the index in the permutation at which each chunk starts, followed by the length of
            the permutation, shape ``(all chunks + 1,)``.
        chunks: the indices of the chunks to train again, ascending, shape ``(chunks,)``.
        secret: the release's secret, from which the random seed of each chunk is derived.

    Raises:
        LedgerCorruptError: the bytes do not encode an ensemble of this learner.

    """
    lengths = np.zeros(len(offsets) - 1, dtype=np.int64)
    before: object = read_ensemble_bytes(learner, body)
    if not isinstance(before, ChunkwiseEnsemble | EstimatorEnsemble):
        chunks = np.arange(len(lengths))
    lengths[chunks] = np.diff(offsets)[chunks]
    rows = [np.arange(offsets[chunk], offsets[chunk + 1]) for chunk in chunks.tolist()]
    fitted = fit_ensemble(
        learner,
        values,
        labels,
        permutation=permutation[np.concatenate([np.zeros(0, np.int64), *rows])],
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
        secret=secret,
    )
    if isinstance(before, EstimatorEnsemble):
        return exchanged_bytes(body, fitted.to_bytes(), chunks)
    if isinstance(before, ChunkwiseEnsemble):
        return before.exchanged(chunks, cast("ChunkwiseEnsemble", fitted)).to_bytes()
    return fitted.to_bytes()


def counted_learner(learner: Learner, *, row_count: int, size: int) -> CountedTrees | None:
    """Return the method that trains trees from counts of rows, or None.

    The result is None if the method does not support the learner, or if it is faster to search the
    trees for each chunk separately.

    Args:
        learner: the public choice of the learner.
        row_count: the number of rows in all chunks together.
        size: the number of chunks.

    """
    if learner.estimator is not None:
        return None
    searched = learner.hypothesis_class
    counted = row_of(searched).counted(learner.rule, searched, learner.scored)
    is_quicker = counted is not None and counted.is_quicker(row_count=row_count, chunk_count=size)
    return counted if is_quicker else None


def counted_ensemble(learner: Learner, trees: NDArray[np.int64]) -> FittedEnsemble:
    """Return an ensemble from trees that were trained from counts of rows, one tree per chunk."""
    packed = row_of(learner.hypothesis_class).packed
    if packed is None:
        raise InvariantError("learners of this class are not fitted from counts")
    return packed(learner.hypothesis_class, trees)


def read_ensemble_bytes(learner: Learner, body: bytes) -> Ensemble:
    """Return the ensemble that bytes encode; the caller has already checked their digest.

    Raises:
        LedgerCorruptError: the bytes do not encode an ensemble of this learner.

    """
    found = _read(learner, body)
    if learner.scored and not found.is_scored:
        raise LedgerCorruptError("the stored ensemble has no scores")
    return found


def _read(learner: Learner, body: bytes) -> Ensemble:
    if learner.estimator is None:
        return row_of(learner.hypothesis_class).read(learner.hypothesis_class, body)
    if body.startswith(PACKED_MAGIC):
        return PackedEnsemble.from_bytes(learner.columns, body)
    packing = packing_of(learner.estimator, learner.params)
    return EstimatorEnsemble.from_bytes(learner.columns, body, packing=packing)


def check_learner(learner: Learner, *, section: str = "learner") -> None:
    """Refuse a learner that cannot be trained or stored, before private rows are read.

    Args:
        learner: the public choice of the learner.
        section: the section of the configuration that names the estimator.

    Raises:
        ConfigurationError: the learner is refused. The error names the setting: ``hypotheses``,
            ``estimator``, ``rule`` or ``params`` in the given section, or ``answers.output``.

    """
    if learner.estimator is None:
        searched = learner.hypothesis_class
        row_of(searched).check(searched, learner.rule, learner.scored)
    else:
        estimator_factory(learner.estimator, learner.params, section=section)


def votes_by_cell(searched: HypothesisClass, estimator: str | None) -> bool:
    """Return whether models vote by public cells; if so, chunks of one row are large enough.

    A cell is a part of a public division of the feature space. A model that votes by cells gives
    the same label to all queries of one cell.

    Args:
        searched: the hypothesis class that a built-in learner searches.
        estimator: the import path of a scikit-learn classifier, or None for a built-in learner.

    """
    return estimator is None and row_of(searched).splits is not None


def cells_of(searched: HypothesisClass) -> CellSplits:
    """Return the public cells (parts of the feature space) by which the models of a class vote.

    Raises:
        InvariantError: the models of this class do not vote by public cells.

    """
    splits = row_of(searched).splits
    if splits is None:
        raise InvariantError("these learners vote by no public cells")
    return splits(searched)


def _as_they_are(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows of an estimator, which encodes those of a chunk itself."""
    return values


def _fit_estimators(
    learner: Learner,
    values: EncodedRows,
    labels: NDArray[np.int64],
    *,
    offsets: NDArray[np.int64],
    secret: bytes,
    numbers: ChunkNumbers | None = None,
    progress: Callable[[int, int], None] | None,
) -> FittedEnsemble:
    """Fit an estimator on permuted rows: on all chunks at once, or on one by one."""
    path, class_count = learner.estimator or "", learner.hypothesis_class.class_count
    make = estimator_factory(path, learner.params)
    block_fit = block_fit_of(path, learner.params)
    if block_fit is not None and learner.packed and not learner.scored:
        return fit_together(
            block_fit,
            columns=learner.columns,
            values=values,
            labels=labels,
            offsets=offsets,
            class_count=class_count,
            progress=progress,
        )
    models = fit_estimators(
        make,
        columns=learner.columns,
        values=values,
        labels=labels,
        offsets=offsets,
        secret=secret,
        numbers=numbers,
        progress=progress,
    )
    packing = packing_of(path, learner.params)
    return EstimatorEnsemble(learner.columns, models, class_count=class_count, packing=packing)


def _fit_rule(
    learner: Learner,
    encoded: EncodedRows,
    labels: NDArray[np.int64],
    *,
    offsets: NDArray[np.int64],
    secret: bytes,
    first_chunk: int = 0,
    progress: Callable[[int, int], None] | None,
) -> FittedEnsemble:
    """Fit a built-in rule on permuted rows, as the class encodes them."""
    searched = learner.hypothesis_class
    return row_of(searched).fit(
        learner.rule,
        hypothesis_class=searched,
        encoded=encoded,
        labels=labels,
        offsets=offsets,
        secret=secret,
        scored=learner.scored,
        first_chunk=first_chunk,
        progress=progress,
    )
