"""Training of scikit-learn classifiers, each on its own chunk of rows.

The public encoding of :mod:`app.learning.encoding.public_columns` is all the
preprocessing there is outside a chunk.  Labels are mapped by value; a learner that
fails votes class 0 in silence, and a machine that fails ends the fit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.chunks import FALLBACK_LABEL, ChunkNumbers, fitted_or_none
from app.learning.encoding.public_columns import PackedColumns
from app.learning.estimators.estimators import model_bytes, read_model_bytes
from app.learning.learner_seeds import chunk_seed, random_state, seed_shared_generator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.estimators.estimator_choice import Classifier
    from app.learning.estimators.estimators import Model

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
    """Return one trained scikit-learn estimator per chunk of rows.

    Args:
        make: from :func:`~app.learning.estimators.estimator_choice.estimator_factory`.
        columns: the public encoding.
        values: permuted encoded rows, whole or part by part, shape ``(n, d)``.
        labels: class indices in the same order, shape ``(n,)``.
        offsets: where each chunk starts, shape ``(k + 1,)``.
        secret: the release's secret, from which chunk seeds derive.
        numbers: of these chunks; None where they are all.
        progress: told the chunks done and their number.

    Returns:
        One a chunk: fitted, or the label that it always votes.

    Raises:
        MachineError: the machine failed in a fit, and not the learner.

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
    """Return an estimator trained on public rows, as read back from its stored bytes.

    Args:
        make: from :func:`~app.learning.estimators.estimator_choice.estimator_factory`.
        rows: encoded columns, shape ``(m, c)``.
        labels: class indices, two of them or more, shape ``(m,)``.
        seed: for what the estimator draws.
        class_count: number of labels, L.

    Raises:
        Exception: whatever the estimator raises; InvariantError where it predicts
            something else than class indices, or is too large to be stored.

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
