"""Trained estimators of some kinds copied into shared arrays, so that their votes are fast.

Whether this is done depends on the public choice of the estimator only, because the time of a reply
reveals it. The arrays contain the parameters of the trained estimators, and are made when an
ensemble is trained or read. The ledger stores the estimators themselves.

Linear models and decision trees are copied. The score of a linear model for a class is a weighted
sum of a query's columns plus an intercept; the class with the largest score gets the vote.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from app.errors import invariant
from app.learning.estimators.linear_votes import BINARY, PackedLinear
from app.learning.estimators.tree_votes import PackedCuts

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
# Estimators of scikit-learn that are one tree of cuts.
TREE_ESTIMATORS = frozenset({"DecisionTreeClassifier", "ExtraTreeClassifier"})
# A tree of a greater depth would be padded to more than a thousand nodes.
PACKED_DEPTH_MAX = 10
_LIBRARY = "sklearn."


class PackedVotes(Protocol):
    """The interface of the votes of all models of an ensemble, computed together."""

    def vote_counts(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query; secret.

        Args:
            rows: the queries as numeric columns, shape ``(queries, columns)``.

        Returns:
            Vote counts, shape ``(queries, labels)``.

        """
        ...


class Packing(Protocol):
    """The interface of a function that copies all models of an ensemble into shared arrays."""

    def __call__(
        self, models: Sequence[object], *, column_count: int, class_count: int, fallback: int
    ) -> PackedVotes:
        """Return the models of an ensemble, in their order, in a form in which they vote together.

        Args:
            models: for each chunk a trained estimator, or the label that its model gives every
                query.
            column_count: the number of columns of a query.
            class_count: the number of labels.
            fallback: the vote of a model that fails.

        """
        ...


class _Linear(Protocol):
    """The fitted form of a linear estimator."""

    classes_: NDArray[np.int64]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64] | float


class _Nodes(Protocol):
    """The nodes of a fitted tree, by number; a leaf has no children."""

    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    value: NDArray[np.float64]


class _Tree(Protocol):
    """The fitted form of a tree."""

    classes_: NDArray[np.int64]
    tree_: _Nodes


def packing_of(path: str, params: Mapping[str, object]) -> Packing | None:
    """Return the function that copies estimators of one kind into shared arrays; None if none can.

    Args:
        path: the import path of the estimator.
        params: the keyword arguments of the estimator.

    """
    name = scikit_learn_name(path)
    if name in LINEAR_ESTIMATORS:
        return pack_linear
    depth = packable_depth(params)
    if name in TREE_ESTIMATORS and depth is not None:
        return partial(pack_trees, depth=depth)
    return None


def scikit_learn_name(path: str) -> str | None:
    """Return the name of a scikit-learn class, given its import path; None for any other class."""
    dotted = path.replace(":", ".")
    return dotted.rpartition(".")[2] if dotted.startswith(_LIBRARY) else None


def packable_depth(params: Mapping[str, object]) -> int | None:
    """Return the configured depth of trees if trees of this depth can be copied, else None."""
    depth = params.get("max_depth")
    is_low = isinstance(depth, int) and 1 <= depth <= PACKED_DEPTH_MAX
    return depth if is_low and isinstance(depth, int) else None


def pack_linear(
    models: Sequence[object], *, column_count: int, class_count: int, fallback: int
) -> PackedLinear:
    """Return linear estimators as matrices, so that they vote together.

    Args:
        models: for each chunk a trained estimator, or the label that its model gives every query.
        column_count: the number of columns of a query.
        class_count: the number of labels.
        fallback: the vote of a model whose weights or intercepts are not all finite.

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
    return linear_votes(weights, intercepts, class_count=class_count)


def linear_votes(
    weights: NDArray[np.float64], intercepts: NDArray[np.float64], *, class_count: int
) -> PackedLinear:
    """Return linear models that vote together, from one score per class.

    With two classes, the difference of the two scores is used.

    Args:
        weights: the weight of each column in each score, shape ``(models, labels, columns)``.
        intercepts: the intercept of each score, shape ``(models, labels)``; minus infinity for a
            label that no row of the model's chunk has.
        class_count: the number of labels.

    """
    if class_count == BINARY:
        weights, intercepts = weights[:, 1:] - weights[:, :1], _differences(intercepts)
    return PackedLinear(weights, intercepts, class_count=class_count)


def pack_trees(
    models: Sequence[object], *, column_count: int, class_count: int, fallback: int, depth: int
) -> PackedCuts:
    """Return decision trees that vote together, padded to complete trees of one depth.

    Args:
        models: for each chunk a trained estimator, or the label that its model gives every query.
        column_count: the number of columns of a query.
        class_count: the number of labels.
        fallback: not used, since a tree never fails.
        depth: a public upper bound on the depth of every tree.

    """
    del fallback
    node_count = (1 << depth) - 1
    columns = np.zeros((len(models), node_count), dtype=np.int64)
    cuts = np.full(columns.shape, np.inf)
    leaves = np.zeros((len(models), node_count + 1), dtype=np.int64)
    for index, model in enumerate(models):
        if isinstance(model, int):
            leaves[index] = model
        else:
            _complete(cast("_Tree", model), columns[index], cuts[index], leaves[index])
    return PackedCuts(columns, cuts, leaves, class_count=class_count, column_count=column_count)


def _complete(
    fitted: _Tree,
    columns: NDArray[np.int64],
    cuts: NDArray[np.float64],
    leaves: NDArray[np.int64],
) -> None:
    """Write a tree's nodes in heap order; below a leaf every path ends in its label."""
    nodes = fitted.tree_
    labels = fitted.classes_[np.argmax(nodes.value[:, 0], axis=1)]
    level = np.zeros(1, dtype=np.int64)
    while len(level) < len(leaves):
        start = len(level) - 1
        is_split = nodes.children_left[level] >= 0
        heap = slice(start, start + len(level))
        columns[heap] = np.where(is_split, nodes.feature[level], 0)
        cuts[heap] = np.where(is_split, nodes.threshold[level], np.inf)
        sides = [
            np.where(is_split, children[level], level)
            for children in (nodes.children_left, nodes.children_right)
        ]
        level = np.stack(sides, axis=1).ravel()
    invariant(bool(np.all(nodes.children_left[level] < 0)), "a tree is as deep as it may be")
    leaves[:] = labels[level]


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
