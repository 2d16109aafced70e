"""All chunks' trees at once, each CART's own and of its own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from app.learning.estimators.batched_cart import fit_cart
from app.learning.estimators.tree_votes import PackedCuts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.estimators.batched_cart import CompleteTrees

COLUMNS = 3


def _plain(
    rows: NDArray[np.float32], labels: NDArray[np.int64], depth: int, class_count: int
) -> tuple[list[int], list[float], list[int]]:
    """Return columns, cuts and leaves of one tree, level by level, by trying every cut."""
    nodes, columns, cuts = [np.arange(len(rows))], [], []
    for _ in range(depth):
        below = []
        for node in nodes:
            column, cut = _best_cut(rows[node], labels[node], class_count)
            columns.append(column)
            cuts.append(cut)
            is_true = rows[node, column] > cut
            below += [node[~is_true], node[is_true]]
        nodes = below
    leaves = [int(np.bincount(labels[node], minlength=class_count).argmax()) for node in nodes]
    return columns, cuts, leaves


def _best_cut(
    rows: NDArray[np.float32], labels: NDArray[np.int64], class_count: int
) -> tuple[int, float]:
    """Return the purest cut, then the one with the fewest rows at most it, then the first."""
    found = [(-1.0, 0, 0, np.inf)]
    for column in range(rows.shape[1]):
        values = np.unique(rows[:, column]).astype(np.float64)
        for cut in (values[:-1] + values[1:]) / 2.0:
            is_true = rows[:, column] > cut
            counts = [
                np.bincount(labels[side], minlength=class_count) for side in (~is_true, is_true)
            ]
            purity = sum(float(np.square(side).sum()) / side.sum() for side in counts)
            found.append((purity, -int((~is_true).sum()), -column, cut))
    _, _, column, cut = max(found, key=lambda each: each[:3])
    return -column, cut


def _chunks(
    count: int, row_count: int, class_count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return chunks of few values, many of them equal, with one constant column."""
    generator = np.random.default_rng(3)
    rows = generator.integers(0, 6, (count, row_count, COLUMNS)) / 5.0
    rows[..., 1] = 0.25
    noise = generator.normal(size=(count, row_count))
    labels = np.clip(((rows[..., 0] + 0.4 * noise) * class_count).astype(int), 0, class_count - 1)
    return rows, labels


@pytest.mark.parametrize("class_count", [2, 3])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_every_chunk_has_the_tree_of_all_cuts(depth: int, class_count: int) -> None:
    """Greedy search over every cut of every column gives the same nodes and leaves."""
    rows, labels = _chunks(12, 25, class_count)
    found = fit_cart(rows, labels, depth=depth, class_count=class_count)
    for index in range(len(rows)):
        columns, cuts, leaves = _plain(
            rows[index].astype(np.float32), labels[index], depth, class_count
        )
        assert found.columns[index].tolist() == columns
        assert found.cuts[index].tolist() == cuts
        assert found.leaves[index].tolist() == leaves


def test_scikit_learn_finds_trees_of_the_same_purity() -> None:
    """Where no two cuts are equally good, its trees predict alike to the last query."""
    generator = np.random.default_rng(11)
    rows = generator.random((20, 60, 2))
    labels = (rows.sum(axis=2) + 0.2 * generator.normal(size=(20, 60)) > 1.0).astype(np.int64)
    found = fit_cart(rows, labels, depth=1, class_count=2)
    queries = generator.random((500, 2))
    for index in range(20):
        peer = DecisionTreeClassifier(max_depth=1, random_state=0).fit(rows[index], labels[index])
        one = _votes(found, index, 2, queries)
        assert np.array_equal(one, peer.predict(queries))


def _votes(
    trees: CompleteTrees, index: int, column_count: int, queries: NDArray[np.float64]
) -> NDArray[np.int64]:
    alone = slice(index, index + 1)
    packed = PackedCuts(
        trees.columns[alone],
        trees.cuts[alone],
        trees.leaves[alone],
        class_count=2,
        column_count=column_count,
    )
    return packed.vote_counts(queries)[:, 1]


def test_a_chunk_is_fitted_alike_in_any_company() -> None:
    """Alone, and beside chunks that are changed, its nodes are the same."""
    rows, labels = _chunks(9, 30, 3)
    together = fit_cart(rows, labels, depth=3, class_count=3)
    alone = fit_cart(rows[4:5], labels[4:5], depth=3, class_count=3)
    changed_rows, changed_labels = rows.copy(), labels.copy()
    changed_rows[4, :, 1] = np.arange(30)
    changed_labels[4] = 0
    changed = fit_cart(changed_rows, changed_labels, depth=3, class_count=3)
    others = np.arange(9) != 4
    for name in ("columns", "cuts", "leaves"):
        whole = getattr(together, name)
        assert np.array_equal(getattr(alone, name)[0], whole[4])
        assert np.array_equal(getattr(changed, name)[others], whole[others])


def test_rows_that_no_cut_divides_are_a_leaf() -> None:
    """Equal rows say their majority, the smallest label of a tie, below nodes without a cut."""
    found = fit_cart(np.full((1, 4, 2), 0.5), np.array([[1, 1, 0, 0]]), depth=2, class_count=2)
    assert np.isinf(found.cuts).all()
    assert found.leaves[0, 0] == 0
