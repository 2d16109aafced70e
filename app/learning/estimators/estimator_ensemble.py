"""The votes of trained scikit-learn classifiers.

A model that fails on a query votes for class 0, without any message. An error of the machine, such
as too little memory, is raised instead. Estimators that can be copied into shared arrays vote
together (:mod:`app.learning.estimators.packing`); the others predict one after another.
"""

from __future__ import annotations

import pickle  # noqa: TID251 -- an estimator has no plainer form; its digest is checked before
from functools import partial
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from app.errors import LedgerCorruptError, invariant
from app.learning.chunks import FALLBACK_LABEL, fitted_or_none, silence
from app.learning.encoding.public_columns import PackedColumns
from app.learning.estimators.estimator_choice import Classifier
from app.learning.learner_seeds import seed_shared_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.estimators.packing import PackedVotes, Packing

_SECOND_CLASS = 1
# Public: every model predicts from the same start, whatever the one before it drew.
_PREDICTION_SEED = b"conclave prediction"

# A fitted estimator, or the label of a constant one.
Model: TypeAlias = Classifier | int


class EstimatorEnsemble:
    """An ensemble of trained scikit-learn classifiers, one per chunk of rows.

    Args:
        columns: the public encoding of the features.
        models: for each chunk a trained estimator, or the label that its model gives every query.
        class_count: the number of labels.
        fallback: the vote of a model that fails on a query.
        packing: a function that copies the models into shared arrays, so that they vote together;
            None if they predict one after another.

    """

    def __init__(
        self,
        columns: Sequence[PublicColumn],
        models: Sequence[Model],
        *,
        class_count: int,
        fallback: int = FALLBACK_LABEL,
        packing: Packing | None = None,
    ) -> None:
        """Store the fitted models in the order of their chunks."""
        self._columns = tuple(columns)
        self._encoder = PackedColumns(columns)
        self._models = tuple(models)
        self._class_count = class_count
        self._fallback = fallback
        self._packing = packing
        self._packed: PackedVotes | None = None
        if packing is not None:
            self._packed = packing(
                self._models,
                column_count=self._encoder.width,
                class_count=class_count,
                fallback=fallback,
            )

    @property
    def size(self) -> int:
        """The number of models, and so of votes on each query."""
        return len(self._models)

    @property
    def class_count(self) -> int:
        """The number of labels."""
        return self._class_count

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query; secret.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Vote counts, shape ``(queries, labels)``.

        """
        rows = self._encoder.encode(values)
        if self._packed is not None:
            return self._packed.vote_counts(rows)
        counts = np.zeros((len(rows), self._class_count), dtype=np.int64)
        positions = np.arange(len(rows))
        for model in self._models:
            counts[positions, _votes(model, rows, self._class_count, self._fallback)] += 1
        return counts

    @property
    def is_scored(self) -> bool:
        """Whether every vote comes with a score, the estimator's probability of the second class.

        It does if there are two classes.
        """
        return self._class_count == len(("no", "yes"))

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every model's score for every query: its probability of the second class; secret.

        The last bits of a score may depend on the other queries of the batch. A private row still
        affects the scores of one model only.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Scores, shape ``(queries, models)``.

        """
        rows = self._encoder.encode(values)
        return np.stack([_scores(model, rows) for model in self._models], axis=1)

    def repeated(self, times: int) -> Self:
        """Return an ensemble with ``times`` copies of each model, to time a larger ensemble."""
        return type(self)(
            self._columns,
            self._models * times,
            class_count=self._class_count,
            fallback=self._fallback,
            packing=self._packing,
        )

    def to_bytes(self) -> bytes:
        """Return the trained models as bytes, each model separately, for private storage."""
        stored = tuple(
            model if isinstance(model, int) else model_bytes(model) for model in self._models
        )
        return pickle.dumps((self._class_count, stored), protocol=5)

    @classmethod
    def from_bytes(
        cls,
        columns: Sequence[PublicColumn],
        body: bytes,
        *,
        fallback: int = FALLBACK_LABEL,
        packing: Packing | None = None,
    ) -> Self:
        """Return the ensemble that bytes encode; the caller has already checked their digest.

        Args:
            columns: the public encoding of the features.
            body: the bytes.
            fallback: the vote of a model that fails on a query.
            packing: a function that copies the models into shared arrays, so that they vote
                together; None if they predict one after another.

        Raises:
            LedgerCorruptError: the bytes do not encode an ensemble.

        """
        stored = pickle.loads(body)  # noqa: S301 -- its digest in the chained ledger was checked
        if not (isinstance(stored, tuple) and len(stored) == len(("class_count", "models"))):
            raise LedgerCorruptError("stored estimators are not what was written")
        class_count, pieces = stored
        with silence():
            models = [
                piece if isinstance(piece, int) else read_model_bytes(piece) for piece in pieces
            ]
        return cls(columns, models, class_count=class_count, fallback=fallback, packing=packing)


def exchanged_bytes(body: bytes, others: bytes, chunks: NDArray[np.int64]) -> bytes:
    """Return a stored ensemble in which some chunks' models are replaced by other stored models.

    The bytes of the models that are not replaced stay unchanged.

    Args:
        body: the stored ensemble; the caller has checked its digest.
        others: the ensemble with the new models, with as many chunks as the stored one; this
            process made its bytes.
        chunks: the indices of the chunks whose models are replaced, shape ``(chunks,)``.

    """
    class_count, stored = pickle.loads(body)  # noqa: S301 -- its digest was checked
    _, fitted = pickle.loads(others)  # noqa: S301 -- made in this process
    pieces = list(stored)
    for chunk in chunks.tolist():
        pieces[chunk] = fitted[chunk]
    return pickle.dumps((class_count, tuple(pieces)), protocol=5)


def joined_bytes(bodies: Sequence[bytes]) -> bytes:
    """Return one stored ensemble from several stored ensembles, whose chunks are consecutive.

    The bytes of each model stay unchanged.

    Args:
        bodies: the stored ensembles, which :meth:`EstimatorEnsemble.to_bytes` wrote in this process
            or in a process that this one trusts.

    """
    read = [pickle.loads(body) for body in bodies]  # noqa: S301 -- made by trusted processes
    pieces = tuple(piece for _, stored in read for piece in stored)
    return pickle.dumps((read[0][0], pieces), protocol=5)


def model_bytes(model: Classifier) -> bytes:
    """Return a trained estimator as bytes, for private storage."""
    return pickle.dumps(model, protocol=5)


def read_model_bytes(body: bytes) -> Classifier:
    """Return the estimator that :func:`model_bytes` wrote; the bytes' digest is already checked."""
    model: Classifier = pickle.loads(body)  # noqa: S301 -- as above
    return model


def _votes(
    model: Model, rows: NDArray[np.float64], class_count: int, fallback: int
) -> NDArray[np.int64]:
    """Return one model's votes, shape ``(B,)``; a failure moves its own query only."""
    if isinstance(model, int):
        return np.full(len(rows), model, dtype=np.int64)
    seed_shared_generator(_PREDICTION_SEED)
    together = fitted_or_none(partial(_predicted, model, rows, class_count, fallback))
    if together is not None:
        return together
    alone = [
        fitted_or_none(partial(_predicted, model, rows[index : index + 1], class_count, fallback))
        for index in range(len(rows))
    ]
    return np.array([fallback if vote is None else int(vote[0]) for vote in alone])


def _predicted(
    model: Classifier, rows: NDArray[np.float64], class_count: int, fallback: int
) -> NDArray[np.int64]:
    """Predict, and put the fallback where the label is none of the classes."""
    predicted = np.asarray(model.predict(rows), dtype=np.float64)
    invariant(predicted.shape == (len(rows),), "a classifier gives one label a row")
    known = np.isin(predicted, np.arange(class_count))
    return np.where(known, predicted, fallback).astype(np.int64)


def _scores(model: Model, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one model's scores, shape ``(B,)``; a failure moves its own query only."""
    if isinstance(model, int):
        return np.full(len(rows), float(model == _SECOND_CLASS))
    seed_shared_generator(_PREDICTION_SEED)
    together = fitted_or_none(partial(_probabilities, model, rows))
    if together is not None:
        return together
    alone = [
        fitted_or_none(partial(_probabilities, model, rows[index : index + 1]))
        for index in range(len(rows))
    ]
    return np.array([0.0 if score is None else float(score[0]) for score in alone])


def _probabilities(model: Classifier, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a classifier gives the second class, by its value; 0 where it knows none.

    One without probabilities scores 1 where it predicts the second class, and 0 elsewhere.
    """
    predict_proba = getattr(model, "predict_proba", None)
    if predict_proba is None:
        chosen: NDArray[np.float64] = np.equal(model.predict(rows), _SECOND_CLASS) * 1.0
        return chosen
    given = np.asarray(predict_proba(rows), dtype=np.float64)
    known = np.asarray(getattr(model, "classes_", ()))
    invariant(given.shape == (len(rows), len(known)), "a classifier gives a row of its classes")
    column = np.flatnonzero(known == _SECOND_CLASS)
    probabilities: NDArray[np.float64] = given[:, column].sum(axis=1)
    return probabilities
