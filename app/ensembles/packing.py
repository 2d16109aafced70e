"""Which estimators vote together, and how their fitted forms are laid out for it.

Whether an ensemble is packed is a function of the public choice of estimator alone,
as the time of an evaluation tells it.  A packed form holds no more than the fitted
estimators do, and is made of them whenever an ensemble is fitted or read back; what
the ledger stores stays the estimators themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from app.ensembles.packed_linear import BINARY, PackedLinear
from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

# Estimators of scikit-learn that predict by `coef_` and `intercept_` and nothing else.
LINEAR_ESTIMATORS = frozenset(
    {
        "LinearDiscriminantAnalysis",
        "LinearSVC",
        "LogisticRegression",
        "LogisticRegressionCV",
        "PassiveAggressiveClassifier",
        "Perceptron",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    }
)
_LIBRARY = "sklearn."


class PackedVotes(Protocol):
    """All votes of an ensemble of estimators at once."""

    def vote_counts(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return ``private_vote_count`` of encoded columns ``(B, c)``, shape ``(B, L)``."""
        ...


class Packing(Protocol):
    """Lays the models of one kind of estimator out."""

    def __call__(
        self, models: Sequence[object], *, column_count: int, class_count: int, fallback: int
    ) -> PackedVotes:
        """Pack fitted estimators, and labels of constant ones, in their order."""
        ...


class _Linear(Protocol):
    """The fitted form of a linear estimator."""

    classes_: NDArray[np.int64]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64] | float


def packing_of(path: str, params: Mapping[str, object]) -> Packing | None:
    """Return how ensembles of an estimator are packed, None where they are not.

    Args:
        path: import path of the estimator.
        params: its keyword arguments.

    """
    del params
    module_and_name = path.replace(":", ".")
    if not module_and_name.startswith(_LIBRARY):
        return None
    name = module_and_name.rpartition(".")[2]
    return pack_linear if name in LINEAR_ESTIMATORS else None


def pack_linear(
    models: Sequence[object], *, column_count: int, class_count: int, fallback: int
) -> PackedLinear:
    """Lay linear estimators out for one product.

    Args:
        models: fitted, or the label of a constant.
        column_count: columns of a query, c.
        class_count: number of labels, L.
        fallback: the vote of a model whose numbers are not finite.

    """
    weights = np.zeros((len(models), class_count, column_count))
    intercepts = np.full((len(models), class_count), -np.inf)
    for index, model in enumerate(models):
        if isinstance(model, int):
            intercepts[index, model] = 0.0
            continue
        fitted = cast("_Linear", model)
        coefficients, offsets = _scores_by_class(fitted)
        if not _is_finite(coefficients, offsets):
            intercepts[index, fallback] = 0.0
            continue
        weights[index, fitted.classes_] = coefficients
        intercepts[index, fitted.classes_] = offsets
    if class_count == BINARY:
        return PackedLinear(
            (weights[:, 1:] - weights[:, :1]), _differences(intercepts), class_count=class_count
        )
    return PackedLinear(weights, intercepts, class_count=class_count)


def _scores_by_class(
    fitted: _Linear,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a score for each class that the model knows; of two, the first scores zero."""
    coefficients = np.atleast_2d(np.asarray(fitted.coef_, dtype=np.float64))
    offsets = np.broadcast_to(np.asarray(fitted.intercept_, dtype=np.float64), len(coefficients))
    known = len(fitted.classes_)
    if known == BINARY:
        invariant(len(coefficients) == 1, "two classes have one score")
        zero = np.zeros_like(coefficients)
        return np.concatenate([zero, coefficients]), np.append(0.0, offsets)
    invariant(len(coefficients) == known, "every class has its score")
    return coefficients, offsets


def _is_finite(coefficients: NDArray[np.float64], offsets: NDArray[np.float64]) -> bool:
    """Return whether every score of a query in [0, 1] is a number."""
    with np.errstate(over="ignore"):
        largest = np.abs(coefficients).sum(axis=1) + np.abs(offsets)
    return bool(np.isfinite(largest).all())


def _differences(intercepts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the second class's intercept less the first's; a constant's is one or minus one."""
    first, second = np.isfinite(intercepts).T
    constant = np.where(second, 1.0, -1.0)
    both = first & second
    known = np.where(both[:, np.newaxis], intercepts, 0.0)
    return np.where(both, known[:, 1] - known[:, 0], constant)[:, np.newaxis]
