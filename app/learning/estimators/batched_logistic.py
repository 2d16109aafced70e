"""L2-regularised logistic regressions, one per chunk, trained together.

A model has one score for each label, which is a weighted sum of a row's columns plus an intercept;
the label with the largest score is predicted. The minimised function is the one of scikit-learn:
the sum of the logistic losses, plus the squared length of the weights divided by ``2 C``;
intercepts are not penalised. The minimum is unique, so votes differ from those of scikit-learn's
model only if scikit-learn's solver stops before the minimum. Chunks are computed together if they
have the same number of rows, of labels, and of columns that are not zero in all rows of the chunk.

The module also minimises many smooth convex functions together, by damped Newton steps. The result
of each function depends on this function only, not on the others: matrix products and linear
equations are computed separately for each function, a function that has reached its minimum is left
unchanged, and the number and size of the steps are chosen for each function.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, Self

import numpy as np

from app.errors import invariant
from app.learning.chunks import FALLBACK_LABEL, fitted_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

STEPS_MAX: Final = 100
HALVINGS_MAX: Final = 40
# A step is taken where it keeps this share of the decrease that the slope promises.
SUFFICIENT_SHARE: Final = 1e-4
# Decreases below this share of a value are rounding.
ROUNDING_SHARE: Final = 1e-14


class Functions(Protocol):
    """The interface of several convex functions that are minimised together."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of functions, and the number of variables, which is the same for all."""
        ...

    @property
    def slope_max(self) -> float:
        """The bound on the gradient's components at which a function counts as minimised."""
        ...

    def values(self, which: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of some of the functions, at one point each, shape ``(functions,)``.

        Args:
            which: the indices of the functions.
            points: one point for each of these functions, shape ``(functions, variables)``.

        """
        ...

    def derivatives(
        self, which: NDArray[np.intp], points: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradients and positive definite second derivatives of some of the functions.

        Args:
            which: the indices of the functions.
            points: one point for each of these functions, shape ``(functions, variables)``.

        Returns:
            The gradients, shape ``(functions, variables)``, and the matrices of second derivatives,
            shape ``(functions, variables, variables)``.

        """
        ...


def minimise(functions: Functions) -> NDArray[np.float64]:
    """Return the minimum point of each function, shape ``(functions, variables)``.

    Args:
        functions: convex functions; the search starts at zero.

    Raises:
        LinAlgError: a matrix of second derivatives is exactly singular.

    """
    count, _ = functions.shape
    points = np.zeros(functions.shape)
    moving = np.arange(count)
    for _ in range(STEPS_MAX):
        slopes, curvatures = functions.derivatives(moving, points[moving])
        on_their_way = np.abs(slopes).max(axis=1) > functions.slope_max
        moving, slopes = moving[on_their_way], slopes[on_their_way]
        if not len(moving):
            break
        steps = np.linalg.solve(curvatures[on_their_way], slopes[:, :, np.newaxis])[:, :, 0]
        moved = _descend(functions, moving, points, slopes, steps)
        moving = moving[moved]
    return points


def _descend(
    functions: Functions,
    moving: NDArray[np.intp],
    points: NDArray[np.float64],
    slopes: NDArray[np.float64],
    steps: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Move each point against its step, halved until its value falls; tell which have moved."""
    before = functions.values(moving, points[moving])
    promised = SUFFICIENT_SHARE * (slopes * steps).sum(axis=1)
    rounding = ROUNDING_SHARE * np.abs(before)
    length = 1.0
    left = np.arange(len(moving))
    for _ in range(HALVINGS_MAX):
        tried = points[moving[left]] - length * steps[left]
        falls = functions.values(moving[left], tried) <= (
            before[left] - length * promised[left] + rounding[left]
        )
        points[moving[left[falls]]] = tried[falls]
        left = left[~falls]
        if not len(left):
            break
        length /= 2.0
    moved = np.ones(len(moving), dtype=np.bool_)
    moved[left] = False
    return moved


BINARY: Final = 2
# Of the gradient, a row: Newton's last step leaves far less.
SLOPE_MAX_A_ROW: Final = 1e-11
# Curvature of a row whose probability rounds to 0 or 1; it moves no optimum.
CURVATURE_MIN: Final = 1e-12


def fit_logistic(
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    class_count: int,
    inverse_strength: float,
    has_intercept: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights and intercepts of one logistic regression per chunk.

    Args:
        rows: the permuted rows as numeric columns, shape ``(rows, columns)``.
        labels: class indices in the same order, shape ``(rows,)``.
        offsets: the index at which each chunk starts, followed by the number of rows, shape
            ``(chunks + 1,)``.
        class_count: the number of labels.
        inverse_strength: the parameter C, the inverse of the strength of regularisation.
        has_intercept: whether scores have an intercept; else it is 0.

    Returns:
        The weights, shape ``(chunks, labels, columns)``, and the intercepts, shape
        ``(chunks, labels)``, of one score per label. The intercept of a label that no row of the
        chunk has is minus infinity. If a chunk has two labels, the score of the first is zero. For
        a chunk without rows, or if training fails, the intercepts of all labels but label 0 are
        minus infinity.

    """
    chunk_count = len(offsets) - 1
    weights = np.zeros((chunk_count, class_count, rows.shape[1]))
    intercepts = np.full((chunk_count, class_count), -np.inf)
    chunks = [_Chunk.of(rows, labels, offsets, index) for index in range(chunk_count)]
    fit = partial(_fit_group, inverse_strength=inverse_strength, has_intercept=has_intercept)
    for group in _groups(chunks):
        for chunk, found in zip(group, _each(fit, group), strict=True):
            if found is None:
                intercepts[chunk.index, FALLBACK_LABEL] = 0.0
                continue
            weights[chunk.index][np.ix_(chunk.classes, chunk.columns)] = found[:, :-1]
            intercepts[chunk.index, chunk.classes] = found[:, -1]
    return weights, intercepts


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The rows of one chunk.

    Attributes:
        index: which chunk.
        classes: the labels that it has rows of, in their order, shape ``(q,)``.
        columns: those that are not zero in all rows, shape ``(p,)``.
        design: these columns of its rows, and one of ones, shape ``(m, p + 1)``.
        targets: places of its labels among the classes, shape ``(m,)``.

    """

    index: int
    classes: NDArray[np.int64]
    columns: NDArray[np.intp]
    design: NDArray[np.float64]
    targets: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        rows: NDArray[np.float64],
        labels: NDArray[np.int64],
        offsets: NDArray[np.int64],
        index: int,
    ) -> Self:
        """Return the rows of one chunk, cut out of all permuted rows."""
        own = slice(int(offsets[index]), int(offsets[index + 1]))
        classes, targets = np.unique(labels[own], return_inverse=True)
        columns = np.flatnonzero(rows[own].any(axis=0))
        ones = np.ones((len(targets), 1))
        return cls(index, classes, columns, np.append(rows[own][:, columns], ones, axis=1), targets)

    @property
    def kind(self) -> tuple[int, int, int]:
        """The shape and classes that chunks must share to be fitted together."""
        return len(self.targets), len(self.classes), len(self.columns)


def _groups(chunks: Sequence[_Chunk]) -> Iterable[list[_Chunk]]:
    """Return the chunks of each kind, in their order."""
    groups: dict[tuple[int, int, int], list[_Chunk]] = {}
    for chunk in chunks:
        groups.setdefault(chunk.kind, []).append(chunk)
    return groups.values()


def _each(
    fit: Callable[[list[_Chunk]], list[NDArray[np.float64]]], group: list[_Chunk]
) -> list[NDArray[np.float64] | None]:
    """Fit a group together, or where one of it fails each alone; None for one that does."""
    together = fitted_or_none(partial(fit, group))
    if together is not None:
        return list(together)
    alone = [fitted_or_none(partial(fit, [chunk])) for chunk in group]
    return [None if found is None else found[0] for found in alone]


def _fit_group(
    group: list[_Chunk], *, inverse_strength: float, has_intercept: bool
) -> list[NDArray[np.float64]]:
    """Fit chunks of one kind; a score of each class of theirs, shape ``(q, p + 1)`` each."""
    design = np.stack([chunk.design for chunk in group])
    targets = np.stack([chunk.targets for chunk in group])
    class_count = len(group[0].classes)
    if class_count < BINARY:
        invariant(class_count == 1, "a chunk without rows has nothing to fit")
        return [np.zeros((1, design.shape[2]))] * len(group)
    penalty = np.full(design.shape[2], 1.0 / inverse_strength)
    penalty[-1] = 0.0 if has_intercept else 1.0
    if not has_intercept:
        design[:, :, -1] = 0.0
    functions = (
        _TwoClasses(design, targets, penalty)
        if class_count == BINARY
        else _Classes(design, targets, penalty, class_count)
    )
    found = minimise(functions)
    invariant(bool(np.isfinite(found).all()), "an optimum is finite")
    if class_count == BINARY:
        return [np.stack([np.zeros_like(score), score]) for score in found]
    return list(found.reshape(len(group), class_count, -1))


class _TwoClasses:
    """Losses of a score of the second class: its sign says the class."""

    def __init__(
        self, design: NDArray[np.float64], targets: NDArray[np.intp], penalty: NDArray[np.float64]
    ) -> None:
        self._design = design
        self._across = np.ascontiguousarray(design.transpose(0, 2, 1))
        self._targets = targets.astype(np.float64)
        self._penalty = penalty
        self.shape = (len(design), design.shape[2])
        self.slope_max = SLOPE_MAX_A_ROW * design.shape[1]

    def values(self, which: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return losses and penalties, shape ``(K',)``."""
        scores = _products(self._design[which], points)
        losses = np.logaddexp(0.0, scores) - self._targets[which] * scores
        values: NDArray[np.float64] = losses.sum(axis=1) + _penalties(points, self._penalty)
        return values

    def derivatives(
        self, which: NDArray[np.intp], points: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradients and curvatures."""
        design, across = self._design[which], self._across[which]
        chances = _chances(_products(design, points))
        slopes = _products(across, chances - self._targets[which]) + self._penalty * points
        spread = np.maximum(chances * (1.0 - chances), CURVATURE_MIN)
        curvatures = np.matmul(across * spread[:, np.newaxis], design)
        return slopes, curvatures + np.diag(self._penalty)


class _Classes:
    """Losses of a score of every class: the largest says the class."""

    def __init__(
        self,
        design: NDArray[np.float64],
        targets: NDArray[np.intp],
        penalty: NDArray[np.float64],
        class_count: int,
    ) -> None:
        self._design = design
        self._across = np.ascontiguousarray(design.transpose(0, 2, 1))
        self._hits = np.equal(targets[:, np.newaxis], np.arange(class_count)[:, np.newaxis]) * 1.0
        self._penalty = np.tile(penalty, class_count)
        self._class_count = class_count
        self.shape = (len(design), class_count * design.shape[2])
        self.slope_max = SLOPE_MAX_A_ROW * design.shape[1]

    def values(self, which: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return losses and penalties, shape ``(K',)``."""
        scores = self._scores(which, points)
        top = scores.max(axis=1, keepdims=True)
        whole = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        losses = whole - (self._hits[which] * scores).sum(axis=1)
        values: NDArray[np.float64] = losses.sum(axis=1) + _penalties(points, self._penalty)
        return values

    def derivatives(
        self, which: NDArray[np.intp], points: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradients and curvatures."""
        design, across = self._design[which], self._across[which]
        scores = self._scores(which, points)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances = shares / shares.sum(axis=1, keepdims=True)
        errors = np.matmul(chances - self._hits[which], design)
        slopes = errors.reshape(len(which), self.shape[1]) + self._penalty * points
        size = design.shape[2]
        curvatures = np.empty((len(which), self.shape[1], self.shape[1]))
        for first, second in np.ndindex(self._class_count, self._class_count):
            same = float(first == second)
            spread = chances[:, first] * (same - chances[:, second])
            spread = np.maximum(spread, CURVATURE_MIN) if same else spread
            block = np.matmul(across * spread[:, np.newaxis], design)
            # Adding one number to all intercepts changes nothing, so that it may be curved.
            block[:, -1, -1] += 1.0
            rows, columns = (slice(place * size, (place + 1) * size) for place in (first, second))
            curvatures[:, rows, columns] = block
        return slopes, curvatures + np.diag(self._penalty)

    def _scores(self, which: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of every class on every row, shape ``(K', q, m)``."""
        weights = points.reshape(len(which), self._class_count, self._design.shape[2])
        scores: NDArray[np.float64] = np.matmul(weights, self._across[which])
        return scores


def _products(matrices: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply each matrix by its own vector."""
    products: NDArray[np.float64] = np.matmul(matrices, vectors[:, :, np.newaxis])[:, :, 0]
    return products


def _chances(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logistic function, which overflows nowhere."""
    chances: NDArray[np.float64] = np.exp(-np.logaddexp(0.0, -scores))
    return chances


def _penalties(points: NDArray[np.float64], penalty: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the squared numbers, weighted, shape ``(K',)``."""
    total: NDArray[np.float64] = (points * points * penalty).sum(axis=1) / 2.0
    return total
