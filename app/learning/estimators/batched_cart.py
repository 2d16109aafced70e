"""Decision trees (CART) for all chunks, grown together level by level, each from its own chunk.

Every node takes the cut (threshold) with the smallest Gini impurity of the two sides, weighted by
their numbers of rows. A cut is half-way between neighbouring values in single precision, as in
scikit-learn. Of equally good cuts scikit-learn takes a random one. Here it is the one with the
fewest rows whose value is at most the cut (the false side of the node), and then the one of the
first column. A node is split as long as a cut divides its rows. If all rows of a node have the same
label, all leaves below the node have this label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NumberT = TypeVar("NumberT", np.int64, np.float64)

# Values closer than this are one value, as in scikit-learn.
DISTINCT: Final = np.float32(1e-7)
_NO_CUT: Final = -1.0


@dataclass(frozen=True, slots=True)
class CompleteTrees:
    """Complete decision trees of the same depth, one per chunk.

    Attributes:
        columns: the index of the column that each inner node compares, in heap order (level by
            level from the root), shape ``(trees, 2**depth - 1)``.
        cuts: the number to which each inner node compares its column, in the same shape. A row goes
            to the false side if its value is at most the cut; the cut of a node without a split is
            infinite.
        leaves: the labels of the leaves from left to right, shape ``(trees, 2**depth)``.

    """

    columns: NDArray[np.int64]
    cuts: NDArray[np.float64]
    leaves: NDArray[np.int64]


def fit_cart(
    rows: NDArray[np.float64], labels: NDArray[np.int64], *, depth: int, class_count: int
) -> CompleteTrees:
    """Return one decision tree (CART) per chunk, trained on chunks of equal size.

    Args:
        rows: the rows as numeric columns, shape ``(chunks, rows per chunk, columns)``, at least one
            row per chunk.
        labels: class indices, shape ``(chunks, rows per chunk)``.
        depth: the depth of the trees.
        class_count: the number of labels.

    """
    chunk_count, row_count, _ = rows.shape
    node_count = (1 << depth) - 1
    columns = np.zeros((chunk_count, node_count), dtype=np.int64)
    cuts = np.full((chunk_count, node_count), np.inf)
    by_column = np.ascontiguousarray(rows.astype(np.float32).transpose(2, 0, 1))
    by_column = by_column.reshape(len(by_column), -1)
    used = np.flatnonzero(by_column.min(axis=1) < by_column.max(axis=1))
    orders = _orders(by_column[used].reshape(len(used), chunk_count, row_count))
    places = np.zeros((chunk_count, row_count), dtype=np.uint16)
    for level in range(depth):
        if level:
            orders = _grouped(orders, places)
        nodes = _Nodes(places, labels, count=1 << level, class_count=class_count)
        for index, order in zip(used.tolist(), orders, strict=True):
            nodes.consider(index, by_column[index].take(order), labels.take(order))
        heap = slice((1 << level) - 1, (2 << level) - 1)
        columns[:, heap], cuts[:, heap] = nodes.chosen()
        places = _descend(places, by_column, columns[:, heap], cuts[:, heap])
    counts = _label_counts(places, labels, count=1 << depth, class_count=class_count)
    return CompleteTrees(columns, cuts, counts.argmax(axis=2))


class _Nodes:
    """The best cut so far of every node of a level.

    Rows are in the order of their nodes, so that a place in that order is a cut: it
    sends the rows of its node up to there to the false side.
    """

    def __init__(
        self,
        places: NDArray[np.uint16],
        labels: NDArray[np.int64],
        *,
        count: int,
        class_count: int,
    ) -> None:
        self._labels = labels
        self._shape = (len(places), count)
        self._row_count = len(labels[0])
        self._counts = _label_counts(places, labels, count=count, class_count=class_count)
        sizes: NDArray[np.int64] = self._counts.sum(axis=2)
        ends: NDArray[np.int64] = sizes.cumsum(axis=1)
        self._node = np.sort(places, axis=1).astype(np.intp)
        position = np.arange(1, places.shape[1] + 1)
        self._false = position - self._of_node(ends - sizes)
        self._true = self._of_node(sizes) - self._false
        self._is_last = self._true == 0
        self._true_or_one = np.maximum(self._true, 1)
        before = np.cumsum(self._counts, axis=1) - self._counts
        # The rows of the last label are those that are left.
        self._before = [self._of_node(before[:, :, label]) for label in range(class_count - 1)]
        self._whole = [self._of_node(self._counts[:, :, label]) for label in range(class_count)]
        self._best = np.full(places.shape, _NO_CUT)
        self._column = np.zeros(places.shape, dtype=np.int64)
        self._cut = np.full(places.shape, np.inf)

    def consider(self, column: int, values: NDArray[np.float32], labels: NDArray[np.int64]) -> None:
        """Use a column's best cut at every node where it is better than the best cut so far.

        Args:
            column: its number.
            values: of every row, by node and then by themselves, shape ``(K, m)``.
            labels: of the same rows, shape ``(K, m)``.

        """
        following = np.append(values[:, 1:], values[:, -1:], axis=1)
        score = self._purity(labels)
        score[self._is_last | (following <= values + DISTINCT)] = _NO_CUT
        better = score > self._best
        self._best[better] = score[better]
        self._column[better] = column
        self._cut[better] = _half_way(values[better], following[better])

    def chosen(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the chosen column and cut of every node, shape ``(K, nodes)`` each."""
        columns = np.zeros(self._shape, dtype=np.int64)
        cuts = np.full(self._shape, np.inf)
        best = np.full(self._shape, _NO_CUT)
        chunk = np.arange(self._shape[0])[:, np.newaxis]
        np.maximum.at(best, (chunk, self._node), self._best)
        first = np.full(self._shape, self._row_count)
        is_best = (self._best > _NO_CUT) & (self._best == self._of_node(best))
        position = np.where(is_best, np.arange(self._row_count), self._row_count)
        np.minimum.at(first, (chunk, self._node), position)
        splits = first < self._row_count
        of_chunk = np.broadcast_to(chunk, self._shape)[splits]
        columns[splits] = self._column[of_chunk, first[splits]]
        cuts[splits] = self._cut[of_chunk, first[splits]]
        return columns, cuts

    def _purity(self, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sum the squared label counts of both sides over their rows; largest where purest."""
        inside = [
            (labels == label).cumsum(axis=1) - before for label, before in enumerate(self._before)
        ]
        inside.append(self._false - sum(inside))
        false, true = np.zeros(labels.shape), np.zeros(labels.shape)
        for part, whole in zip(inside, self._whole, strict=True):
            false += part * part
            true += np.square(whole - part)
        purity: NDArray[np.float64] = false / self._false + true / self._true_or_one
        return purity

    def _of_node(self, by_node: NDArray[NumberT]) -> NDArray[NumberT]:
        """Return a number of each node at all its places, shape ``(K, m)``."""
        return by_node[np.arange(len(by_node))[:, np.newaxis], self._node]


def _orders(by_column: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return all rows of every chunk by value, counted through, shape ``(u, K, m)``."""
    _, chunk_count, row_count = by_column.shape
    starts = np.arange(chunk_count)[:, np.newaxis] * row_count
    orders: NDArray[np.intp] = np.argsort(by_column, axis=2, kind="stable") + starts
    return orders


def _grouped(orders: NDArray[np.intp], places: NDArray[np.uint16]) -> NDArray[np.intp]:
    """Bring rows into the order of their nodes, and within a node leave them as they are."""
    by_node = np.argsort(places.take(orders), axis=2, kind="stable")
    return np.take_along_axis(orders, by_node, axis=2)


def _half_way(low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the middle of two values, or the lower one where it rounds to the upper."""
    middle = low.astype(np.float64) / 2.0 + high.astype(np.float64) / 2.0
    return np.where(middle == high, low, middle)


def _descend(
    places: NDArray[np.uint16],
    by_column: NDArray[np.float32],
    columns: NDArray[np.int64],
    cuts: NDArray[np.float64],
) -> NDArray[np.uint16]:
    """Send every row to a side of its node."""
    asked = np.take_along_axis(columns, places.astype(np.intp), axis=1)
    values = by_column[asked, np.arange(places.size).reshape(places.shape)]
    is_true = values > np.take_along_axis(cuts, places.astype(np.intp), axis=1)
    return (2 * places + is_true).astype(np.uint16)


def _label_counts(
    places: NDArray[np.uint16], labels: NDArray[np.int64], *, count: int, class_count: int
) -> NDArray[np.int64]:
    """Count the rows of each label at each node, shape ``(K, nodes, L)``."""
    chunk = np.arange(len(places))[:, np.newaxis]
    cells = (chunk * count + places) * class_count + labels
    counts = np.bincount(cells.ravel(), minlength=len(places) * count * class_count)
    return counts.reshape(len(places), count, class_count)
