"""The student classifier: a model that is trained on queries and their released labels.

The training data are public, so a failure of the learner may be shown. A student whose learner
failed gives every query the most frequent label. If training fails because of the machine, for
example by too little memory, there is no student yet, and an error is raised: free memory depends
on the ensemble, which is private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from app.learning.chunks import FALLBACK_LABEL, raise_if_machine_failed, silence
from app.learning.encoding.public_columns import encode_columns
from app.learning.ensemble import check_learner
from app.learning.estimators.estimator_choice import estimator_factory
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.estimators.estimator_fitting import fit_student as fit_estimator
from app.learning.registry import row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import Hypothesis

SECTION = "student"


@dataclass(frozen=True, slots=True)
class ConstantStudent:
    """A student classifier that gives every query the same label, because nothing else was learned.

    Attributes:
        label: the label.
        failure: the class name of the error that ended the training; None if the queries have at
            most one label, so that there is nothing to learn.

    """

    label: int
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class EstimatorStudent:
    """A student classifier that is a trained scikit-learn classifier.

    Attributes:
        ensemble: an ensemble with this classifier as its only model.
        fallback: the label of a query on which the classifier fails.

    """

    ensemble: EstimatorEnsemble
    fallback: int

    def predict(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the class index of each query, shape ``(queries,)``.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        """
        predicted: NDArray[np.int64] = self.ensemble.vote_counts(values).argmax(axis=1)
        return predicted

    def to_bytes(self) -> bytes:
        """Return the trained scikit-learn classifier as bytes."""
        return self.ensemble.to_bytes()

    @classmethod
    def from_bytes(cls, columns: Sequence[PublicColumn], body: bytes, *, fallback: int) -> Self:
        """Return the student classifier that :meth:`to_bytes` wrote; the digest is already checked.

        Args:
            columns: the public encoding of the features.
            body: the bytes.
            fallback: the label of a query on which the classifier fails.

        Raises:
            LedgerCorruptError: the bytes do not encode a classifier.

        """
        # Imported only here: scikit-learn doubles the time to start.
        return cls(EstimatorEnsemble.from_bytes(columns, body, fallback=fallback), fallback)


Student: TypeAlias = "Hypothesis | EstimatorStudent | ConstantStudent"


def check_student(learner: Learner) -> None:
    """Refuse a learner for the student classifier that would fail whatever the queries are.

    Raises:
        ConfigurationError: the learner is refused. The error names the setting: ``hypotheses``,
            ``student.estimator`` or ``student.params``.

    """
    check_learner(learner, section=SECTION)


def fit_student(
    learner: Learner, values: NDArray[np.float64], labels: NDArray[np.int64], *, seed: bytes
) -> Student:
    """Return the trained student classifier, a deterministic function of public values.

    Args:
        learner: the public choice of the learner: a scikit-learn estimator, or the built-in rule
            ``canonical``, which takes the hypothesis with the fewest errors.
        values: queries, encoded as numbers by the public schema, shape ``(queries, features)``;
            there may be none.
        labels: the class indices that were released for the queries, shape ``(queries,)``.
        seed: the public random seed of the estimator.

    Raises:
        MachineError: training failed because of the machine, and not because of the learner.

    """
    counts = np.bincount(labels, minlength=learner.hypothesis_class.class_count)
    most_frequent = int(counts.argmax()) if len(labels) else FALLBACK_LABEL
    if np.count_nonzero(counts) <= 1:
        return ConstantStudent(most_frequent)
    try:
        with silence():
            return _fit(learner, values, labels, seed=seed, fallback=most_frequent)
    except Exception as error:  # noqa: BLE001 -- whatever a learner raises, the release goes on
        failed, failure = [error], type(error).__name__
    raise_if_machine_failed(failed)
    return ConstantStudent(most_frequent, failure=failure)


def _fit(
    learner: Learner,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    seed: bytes,
    fallback: int,
) -> Student:
    """Fit on queries of two labels or more."""
    searched = learner.hypothesis_class
    if learner.estimator is not None:
        return _fit_estimator(learner, values, labels, seed=seed, fallback=fallback)
    return row_of(searched).best(searched, searched.encode(values), labels)


def _fit_estimator(
    learner: Learner,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    seed: bytes,
    fallback: int,
) -> EstimatorStudent:
    """Fit an estimator on the columns that an ensemble's would see."""
    class_count = learner.hypothesis_class.class_count
    model = fit_estimator(
        estimator_factory(learner.estimator or "", learner.params, section=SECTION),
        encode_columns(learner.columns, values),
        labels,
        seed=seed,
        class_count=class_count,
    )
    ensemble = EstimatorEnsemble(
        learner.columns, [model], class_count=class_count, fallback=fallback
    )
    return EstimatorStudent(ensemble, fallback)
