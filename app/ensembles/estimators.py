"""Any scikit-learn classifier, by import path, one fitted on each chunk.

The public encoding of :mod:`app.hypotheses.public_columns` is all the
preprocessing there is outside a chunk.  Labels are mapped by value; whatever
fails, in fitting or in predicting, votes class 0 in silence.  scikit-learn is
imported here, and only when an estimator is asked for.
"""

from __future__ import annotations

import importlib
import pickle  # noqa: TID251 -- an estimator has no plainer form; its digest is checked before
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self, cast

import numpy as np

from app.ensembles.learner_seeds import chunk_seed, random_state, seed_shared_generator
from app.errors import ConfigurationError, LedgerCorruptError, invariant
from app.hypotheses.containment import fitted_or_none, silence
from app.hypotheses.public_columns import encode_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from app.hypotheses.public_columns import PublicColumn

FALLBACK_LABEL = 0
_SECOND_CLASS = 1
# What the ledger takes as one private piece, less room for what is stored beside the
# models.  Each chunk has its part, so that no chunk's rows decide whether all fit.
ENSEMBLE_BYTES_MAX = 850_000_000
_SEED_PARAMETER = "random_state"
# Public: every model predicts from the same start, whatever the one before it drew.
_PREDICTION_SEED = b"conclave prediction"
_PRINTING_PARAMETERS = ("verbose", "verbosity")


class Classifier(Protocol):
    """The part of scikit-learn's interface that is used."""

    def fit(self, rows: NDArray[np.float64], labels: NDArray[np.int64], /) -> object:
        """Fit the estimator on one chunk."""
        ...

    def predict(self, rows: NDArray[np.float64], /) -> NDArray[np.generic]:
        """Return one label a row."""
        ...

    def get_params(self, deep: bool = ...) -> dict[str, object]:  # noqa: FBT001 -- as there
        """Return parameters by name, nested ones joined by two underscores."""
        ...

    def set_params(self, **params: object) -> object:
        """Set parameters by name."""
        ...


# A fitted estimator, or the label of a constant one.
Model = Classifier | int


class EstimatorEnsemble:
    """An :class:`~app.ensembles.ensemble.Ensemble` of scikit-learn classifiers.

    Args:
        columns: the public encoding.
        models: one a chunk: fitted, or the label that it always votes.
        class_count: number of labels, L.
        fallback: the vote of a model that fails on a query.

    """

    def __init__(
        self,
        columns: Sequence[PublicColumn],
        models: Sequence[Model],
        *,
        class_count: int,
        fallback: int = FALLBACK_LABEL,
    ) -> None:
        """Keep the models in the order of their chunks."""
        self._columns = tuple(columns)
        self._models = tuple(models)
        self._class_count = class_count
        self._fallback = fallback

    @property
    def size(self) -> int:
        """Number of votes, k."""
        return len(self._models)

    @property
    def class_count(self) -> int:
        """Number of labels, L."""
        return self._class_count

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return ``private_vote_count`` of encoded queries ``(B, d)``, shape ``(B, L)``."""
        rows = encode_columns(self._columns, values)
        counts = np.zeros((len(rows), self._class_count), dtype=np.int64)
        positions = np.arange(len(rows))
        for model in self._models:
            counts[positions, _votes(model, rows, self._class_count, self._fallback)] += 1
        return counts

    @property
    def is_scored(self) -> bool:
        """Whether every vote has a score too: estimators are asked for probabilities."""
        return self._class_count == len(("no", "yes"))

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``private_scores`` of encoded queries ``(B, d)``, shape ``(B, k)``.

        The last bits of what an estimator computes may depend on the batch, as its votes
        may; the batch is made of queries, and a row still moves one model's scores only.
        """
        rows = encode_columns(self._columns, values)
        return np.stack([_scores(model, rows) for model in self._models], axis=1)

    def to_bytes(self) -> bytes:
        """Return the fitted models as private state, each on its own."""
        stored = tuple(
            model if isinstance(model, int) else _model_bytes(model) for model in self._models
        )
        return pickle.dumps((self._class_count, stored), protocol=5)

    @classmethod
    def from_bytes(
        cls, columns: Sequence[PublicColumn], body: bytes, *, fallback: int = FALLBACK_LABEL
    ) -> Self:
        """Rebuild the ensemble; the caller has checked the body's digest.

        Raises:
            LedgerCorruptError: the body is not what :meth:`to_bytes` returns.

        """
        stored = pickle.loads(body)  # noqa: S301 -- its digest in the chained ledger was checked
        if not (isinstance(stored, tuple) and len(stored) == len(("class_count", "models"))):
            raise LedgerCorruptError("stored estimators are not what was written")
        class_count, pieces = stored
        with silence():
            models = [
                piece if isinstance(piece, int) else pickle.loads(piece)  # noqa: S301 -- as above
                for piece in pieces
            ]
        return cls(columns, models, class_count=class_count, fallback=fallback)


def estimator_factory(
    path: str, params: Mapping[str, object], *, section: str = "learner"
) -> Callable[[], Classifier]:
    """Return what makes a fresh estimator, once the public choice is known to be sound.

    Args:
        path: ``package.module.Class`` or ``package.module:Class``.
        params: keyword arguments of the class.
        section: where both are in the configuration.

    Raises:
        ConfigurationError: nothing there to import, no classifier, or
            parameters that it does not take.

    """
    module_name, _, class_name = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except Exception as error:
        raise ConfigurationError(f"{section}.estimator", f"{path} cannot be imported") from error
    if not (isinstance(found, type) and _is_classifier_type(found)):
        raise ConfigurationError(f"{section}.estimator", f"{path} is no scikit-learn classifier")

    def make() -> Classifier:
        # Copied, so that an estimator that changes a list of its own changes no other's.
        return cast("Classifier", found(**deepcopy(dict(params))))

    _check_parameters(make, path, section)
    return make


def fit_estimators(
    make: Callable[[], Classifier],
    *,
    columns: Sequence[PublicColumn],
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    class_count: int,
    secret: bytes,
    progress: Callable[[int, int], None] | None = None,
) -> EstimatorEnsemble:
    """Fit one estimator per chunk.

    Args:
        make: from :func:`estimator_factory`.
        columns: the public encoding.
        values: permuted encoded rows, shape ``(n, d)``.
        labels: class indices in the same order, shape ``(n,)``.
        offsets: where each chunk starts, shape ``(k + 1,)``.
        class_count: number of labels, L.
        secret: the release's secret, from which chunk seeds derive.
        progress: told the chunks done and their number.

    """
    chunk_count = len(offsets) - 1
    models: list[Model] = []
    for index in range(chunk_count):
        rows = slice(int(offsets[index]), int(offsets[index + 1]))
        encoded = encode_columns(columns, values[rows])
        fit = partial(_fitted, make, encoded, labels[rows], chunk_seed(secret, index))
        models.append(_fit_chunk(fit, labels[rows], bytes_max=ENSEMBLE_BYTES_MAX // chunk_count))
        if progress is not None:
            progress(index + 1, chunk_count)
    return EstimatorEnsemble(columns, models, class_count=class_count)


def fit_student(
    make: Callable[[], Classifier],
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    seed: bytes,
    class_count: int,
) -> Classifier:
    """Fit one estimator on public rows, and return it as it comes back from storage.

    Args:
        make: from :func:`estimator_factory`.
        rows: encoded columns, shape ``(m, c)``.
        labels: class indices, two of them or more, shape ``(m,)``.
        seed: for what the estimator draws.
        class_count: number of labels, L.

    Raises:
        Exception: whatever the estimator raises; InvariantError where it predicts
            something else than class indices, or is too large to be stored.

    """
    body = _model_bytes(_fitted(make, rows, labels, seed))
    invariant(len(body) <= ENSEMBLE_BYTES_MAX, "a student fits into the ledger")
    model = cast("Classifier", pickle.loads(body))  # noqa: S301 -- written in the line above
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
    invariant(len(_model_bytes(model)) <= bytes_max, "a model fits into its part of the ensemble")
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


def _model_bytes(model: Classifier) -> bytes:
    return pickle.dumps(model, protocol=5)


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


def _is_classifier_type(found: type) -> bool:
    """Tell whether instances offer fit, predict and parameters, and say they classify."""
    names = ("fit", "predict", "get_params", "set_params")
    return all(callable(getattr(found, name, None)) for name in names)


def _check_parameters(make: Callable[[], Classifier], path: str, section: str) -> None:
    """Construct one, and let scikit-learn check public parameters before any row is read."""
    base = importlib.import_module("sklearn.base")
    try:
        # In silence like every fit: the same words come again with each of them.
        with silence():
            model = make()
            if hasattr(model, "_parameter_constraints"):
                model._validate_params()  # type: ignore[attr-defined]  # noqa: SLF001 -- no public name
    except Exception as error:
        said = " ".join(str(error).split())
        raise ConfigurationError(f"{section}.params", f"{path}: {said}") from error
    _refuse_printing(model, section)
    if not base.is_classifier(model):
        raise ConfigurationError(f"{section}.estimator", f"{path} is no scikit-learn classifier")


def _refuse_printing(model: Classifier, section: str) -> None:
    """Refuse an estimator that is asked to tell how its fit goes, be the rows private or not."""
    for name, value in model.get_params(deep=True).items():
        is_loud = isinstance(value, int | float) and value > 0
        if name.rpartition("__")[2] in _PRINTING_PARAMETERS and is_loud:
            problem = f"{name} would print what private rows give; leave it out"
            if section != "learner":
                problem = f"{name} would print what the queries give; leave it out"
            raise ConfigurationError(f"{section}.params", problem)
