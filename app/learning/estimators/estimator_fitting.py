"""Training of scikit-learn classifiers, each on its own chunk of rows.

The only preprocessing of rows is the public encoding of
:mod:`app.learning.encoding.public_columns`; everything else happens within one chunk. If the
learner of a chunk fails, its model gives every query label 0, without any message. An error of the
machine, such as too little memory, ends the training.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.chunks import FALLBACK_LABEL, ChunkNumbers, fitted_or_none
from app.learning.encoding.public_columns import PackedColumns
from app.learning.estimators.estimator_ensemble import model_bytes, read_model_bytes
from app.learning.learner_seeds import chunk_seed, random_state, seed_shared_generator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.estimators.estimator_choice import Classifier
    from app.learning.estimators.estimator_ensemble import Model

# What the ledger takes as one private piece, less room for what is stored beside the
# models.  Each chunk has its part, so that no chunk's rows decide whether all fit.
ENSEMBLE_BYTES_MAX = 850_000_000
_SEED_PARAMETER = "random_state"


def fit_estimators(
    make: Callable[[], Classifier],
    *,
    columns: Sequence[PublicColumn],
    values: EncodedRows,
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    secret: bytes,
    numbers: ChunkNumbers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Model]:
    """Return one trained scikit-learn classifier per chunk of rows.

    Args:
        make: a function that makes an estimator, as
            :func:`~app.learning.estimators.estimator_choice.estimator_factory` returns it.
        columns: the public encoding of the features.
        values: feature values of the permuted rows, encoded by the public schema, shape
            ``(rows, features)``.
        labels: class indices in the same order, shape ``(rows,)``.
        offsets: the index at which each chunk starts, followed by the number of rows, shape
            ``(chunks + 1,)``.
        secret: the release's secret, from which the random seed of each chunk is derived.
        numbers: the position of these chunks among all chunks of the release; None if these are all
            chunks.
        progress: a function that is called with the number of finished chunks and the number of all
            chunks.

    Returns:
        For each chunk a trained estimator, or a label. A label stands for a model that gives every
        query this label, because the chunk has at most one label or its learner failed.

    Raises:
        MachineError: training failed because of the machine, for example by too little memory.

    """
    chunk_count = len(offsets) - 1
    numbers = numbers or ChunkNumbers(first=0, all_count=chunk_count)
    encoder = PackedColumns(columns)
    models: list[Model] = []
    for index in range(chunk_count):
        rows = slice(int(offsets[index]), int(offsets[index + 1]))
        encoded = encoder.encode(values[rows].astype(np.float64, copy=False))
        seed = chunk_seed(secret, numbers.first + index)
        fit = partial(_fitted, make, encoded, labels[rows], seed)
        part = ENSEMBLE_BYTES_MAX // numbers.all_count
        models.append(_fit_chunk(fit, labels[rows], bytes_max=part))
        if progress is not None:
            progress(len(models), chunk_count)
    return models


def fit_student(
    make: Callable[[], Classifier],
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    seed: bytes,
    class_count: int,
) -> Classifier:
    """Return a student classifier: an estimator that is trained on queries and released labels.

    Both are public. The trained estimator is stored as bytes and read back before it is returned.

    Args:
        make: a function that makes an estimator, as
            :func:`~app.learning.estimators.estimator_choice.estimator_factory` returns it.
        rows: the queries as numeric columns, shape ``(queries, columns)``.
        labels: the released class indices, at least two different ones, shape ``(queries,)``.
        seed: the random seed of the estimator.
        class_count: the number of labels.

    Raises:
        Exception: any error of the estimator.
        InvariantError: the estimator predicts something other than class indices, or is too large
            to be stored.

    """
    body = model_bytes(_fitted(make, rows, labels, seed))
    invariant(len(body) <= ENSEMBLE_BYTES_MAX, "a student fits into the ledger")
    model = read_model_bytes(body)
    predicted = np.asarray(model.predict(rows), dtype=np.float64)
    known = predicted.shape == (len(rows),) and np.isin(predicted, np.arange(class_count)).all()
    invariant(bool(known), "a student predicts classes")
    return model


def _fit_chunk(
    fit: Callable[[], Classifier], labels: NDArray[np.int64], *, bytes_max: int
) -> Model:
    """Fit one chunk; a single label, no row, a failure and a model too large give a constant."""
    present = np.unique(labels)
    if len(present) <= 1:
        return int(present[0]) if len(present) else FALLBACK_LABEL
    model = fitted_or_none(partial(_storable, fit, bytes_max=bytes_max))
    return FALLBACK_LABEL if model is None else model


def _storable(fit: Callable[[], Classifier], *, bytes_max: int) -> Classifier:
    """Fit, and refuse what cannot be stored."""
    model = fit()
    invariant(len(model_bytes(model)) <= bytes_max, "a model fits into its part of the ensemble")
    return model


def _fitted(
    make: Callable[[], Classifier],
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    seed: bytes,
) -> Classifier:
    """Seed and fit a fresh estimator."""
    model = make()
    unseeded = {
        name: random_state(seed)
        for name, value in model.get_params(deep=True).items()
        if name.rpartition("__")[2] == _SEED_PARAMETER and value is None
    }
    model.set_params(**unseeded)
    seed_shared_generator(seed)
    model.fit(rows, labels)
    return model
