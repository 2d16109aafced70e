"""The kinds of scikit-learn estimator that can be trained on all chunks in one computation.

Whether an estimator is of one of these kinds depends on public choices only. The model of a chunk
depends only on the rows of this chunk, to the last bit, although several chunks are computed
together.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from app.learning.encoding.public_columns import PackedColumns
from app.learning.estimators.batched_cart import CompleteTrees, fit_cart
from app.learning.estimators.batched_logistic import fit_logistic
from app.learning.estimators.packed_ensemble import LinearForm, PackedEnsemble, joined
from app.learning.estimators.packing import packable_depth, scikit_learn_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.estimators.packed_ensemble import Form

# Encoded numbers of a block of chunks, eight bytes each; one chunk at least is a block.
NUMBERS_PER_BLOCK: Final = 1 << 18
_LOGISTIC_PARAMS: Final = frozenset(
    {"C", "fit_intercept", "max_iter", "random_state", "solver", "tol"}
)
# Solvers that stop near the minimum of the same function.
_SOLVERS: Final = frozenset({"lbfgs", "newton-cg", "newton-cholesky"})
_TREE_PARAMS: Final = frozenset({"criterion", "max_depth", "random_state", "splitter"})


class BlockFit(Protocol):
    """The interface of a function that trains one estimator on each of many chunks."""

    def __call__(
        self,
        rows: NDArray[np.float64],
        labels: NDArray[np.int64],
        offsets: NDArray[np.int64],
        *,
        class_count: int,
    ) -> Form:
        """Return the models of consecutive chunks.

        Args:
            rows: the rows as numeric columns, shape ``(rows, columns)``.
            labels: class indices, shape ``(rows,)``.
            offsets: the index at which each chunk starts, followed by the number of rows, shape
                ``(chunks + 1,)``.
            class_count: the number of labels.

        """
        ...


def block_fit_of(path: str, params: Mapping[str, object]) -> BlockFit | None:
    """Return the function that trains an estimator on many chunks at once; None if none can.

    Args:
        path: the import path of the estimator.
        params: the keyword arguments of the estimator, which are already checked.

    """
    name = scikit_learn_name(path)
    if name == "LogisticRegression" and params.keys() <= _LOGISTIC_PARAMS:
        strength = params.get("C", 1.0)
        if isinstance(strength, int | float) and params.get("solver", "lbfgs") in _SOLVERS:
            free = bool(params.get("fit_intercept", True))
            return partial(_fit_logistic, inverse_strength=float(strength), has_intercept=free)
    if name == "DecisionTreeClassifier" and params.keys() <= _TREE_PARAMS:
        depth = packable_depth(params)
        given = (params.get("criterion", "gini"), params.get("splitter", "best"))
        if depth is not None and given == ("gini", "best"):
            return partial(_fit_trees, depth=depth)
    return None


def fit_together(
    fit: BlockFit,
    *,
    columns: Sequence[PublicColumn],
    values: EncodedRows,
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    class_count: int,
    progress: Callable[[int, int], None] | None = None,
) -> PackedEnsemble:
    """Return an ensemble of one estimator per chunk, all trained together.

    Args:
        fit: the function that trains on many chunks, as :func:`block_fit_of` returns it.
        columns: the public encoding of the features.
        values: feature values of the permuted rows, encoded by the public schema, shape
            ``(rows, features)``.
        labels: class indices in the same order, shape ``(rows,)``.
        offsets: the index at which each chunk starts, followed by the number of rows, shape
            ``(chunks + 1,)``.
        class_count: the number of labels.
        progress: a function that is called with the number of finished chunks and the number of all
            chunks.

    """
    encoder = PackedColumns(columns)
    chunk_count = len(offsets) - 1
    numbers = int(np.diff(offsets).max(initial=1)) * max(1, encoder.width)
    step = max(1, NUMBERS_PER_BLOCK // max(1, numbers))
    forms = []
    for first in range(0, chunk_count, step):
        block = offsets[first : first + step + 1]
        own = slice(int(block[0]), int(block[-1]))
        rows = encoder.encode(values[own].astype(np.float64, copy=False))
        forms.append(fit(rows, labels[own], block - block[0], class_count=class_count))
        if progress is not None:
            progress(first + len(block) - 1, chunk_count)
    return PackedEnsemble(columns, joined(forms), class_count=class_count)


def _fit_logistic(
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    class_count: int,
    inverse_strength: float,
    has_intercept: bool,
) -> LinearForm:
    weights, intercepts = fit_logistic(
        rows,
        labels,
        offsets,
        class_count=class_count,
        inverse_strength=inverse_strength,
        has_intercept=has_intercept,
    )
    return LinearForm(weights, intercepts)


def _fit_trees(
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    class_count: int,
    depth: int,
) -> CompleteTrees:
    """Fit the chunks of each size together; one without rows says class 0."""
    sizes = np.diff(offsets)
    shape = (len(sizes), (1 << depth) - 1)
    found = CompleteTrees(
        np.zeros(shape, dtype=np.int64),
        np.full(shape, np.inf),
        np.zeros((len(sizes), 1 << depth), dtype=np.int64),
    )
    for size in np.unique(sizes[sizes > 0]):
        group = np.flatnonzero(sizes == size)
        own = offsets[group][:, np.newaxis] + np.arange(size)
        trees = fit_cart(rows[own], labels[own], depth=depth, class_count=class_count)
        found.columns[group] = trees.columns
        found.cuts[group] = trees.cuts
        found.leaves[group] = trees.leaves
    return found
