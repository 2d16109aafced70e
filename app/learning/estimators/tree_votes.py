"""All decision trees of an ensemble as flat arrays; each tree has its own columns and cuts.

Every tree is complete and has the depth that the configuration fixes: a leaf above this depth is
replaced by a subtree whose leaves all have its label. Comparisons are those of scikit-learn: a
column in single precision is compared with a cut in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.learning.trees.packed_trees import WORD_QUERIES, LeafSelection, selection_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class PackedCuts:
    """Complete decision trees of one depth over numeric columns, one per model.

    Args:
        columns: the index of the column that each inner node compares, in heap order (level by
            level from the root), shape ``(models, 2**depth - 1)``.
        cuts: the number to which each inner node compares its column, in the same shape. A query
            goes to the false side if its value is at most the cut.
        leaves: the labels of the leaves from left to right, shape ``(models, 2**depth)``.
        class_count: the number of labels.
        column_count: the number of columns of a query.

    """

    def __init__(
        self,
        columns: NDArray[np.integer],
        cuts: NDArray[np.float64],
        leaves: NDArray[np.integer],
        *,
        class_count: int,
        column_count: int,
    ) -> None:
        """Store the nodes in two orders: one array per node, and sorted by column and cut."""
        order = selection_order(leaves.shape[1].bit_length() - 1)
        self._selection = LeafSelection(leaves, class_count=class_count)
        self._columns = np.ascontiguousarray(columns[:, order].T, dtype=np.intp)
        self._cuts = np.ascontiguousarray(single_precision(cuts)[:, order].T)
        flat, cut = self._columns.ravel(), self._cuts.ravel()
        in_order = np.lexsort((cut, flat))
        self._places = np.argsort(in_order).reshape(self._columns.shape)
        self._starts = np.searchsorted(flat[in_order], np.arange(column_count))
        self._sorted_cuts = np.split(cut[in_order], self._starts[1:])

    @property
    def size(self) -> int:
        """The number of models, and so of votes on each query."""
        count: int = self._selection.tree_count
        return count

    def vote_counts(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query of a batch.

        Args:
            rows: the queries as numeric columns, shape ``(queries, columns)``.

        Returns:
            Private vote counts, shape ``(queries, labels)``; the counts of one query add up to the
            number of models.

        """
        values = rows.astype(np.float32)
        words = self._words(values) if len(rows) > 1 else []

        def outcomes(queries: slice, trees: slice) -> NDArray[np.signedinteger]:
            if len(rows) == 1:
                return self._of_one(values[0], trees)
            block = words[queries.start // WORD_QUERIES]
            taken: NDArray[np.signedinteger] = block.take(self._places[:, trees])
            return taken

        return self._selection.vote_counts(len(rows), outcomes)

    def _of_one(self, values: NDArray[np.float32], trees: slice) -> NDArray[np.int8]:
        """Return 1 where a node of some trees is true for a query, shape ``(nodes, trees)``."""
        above: NDArray[np.bool_] = values.take(self._columns[:, trees]) > self._cuts[:, trees]
        return above.view(np.int8)

    def _words(self, values: NDArray[np.float32]) -> list[NDArray[np.int64]]:
        """Return every node's outcomes, 64 queries a word, by column and cut, shape ``(M,)`` each.

        A query is true at the first nodes of its column, as many as have cuts below its
        value: its bit is added at the start of the column and taken off where it ends.
        """
        places = [np.searchsorted(cuts, value) for cuts, value in self._columns_of(values)]
        ends = self._starts[:, np.newaxis] + np.array(places).reshape(len(self._starts), -1)
        bits = np.int64(1) << np.arange(WORD_QUERIES)
        words = []
        for start in range(0, len(values), WORD_QUERIES):
            block = ends[:, start : start + WORD_QUERIES]
            changes = np.zeros(self._places.size + 1, dtype=np.int64)
            shared = bits[: block.shape[1]]
            np.add.at(changes, self._starts, shared.sum())
            np.subtract.at(changes, block.ravel(), np.tile(shared, len(block)))
            words.append(changes.cumsum()[:-1])
        return words

    def _columns_of(
        self, values: NDArray[np.float32]
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Pair the cuts of each column with the queries' values there."""
        return zip(self._sorted_cuts, np.ascontiguousarray(values.T), strict=True)


def single_precision(cuts: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return each cut rounded down to single precision.

    A number in single precision is at most the cut if and only if it is at most the rounded cut.
    """
    with np.errstate(over="ignore"):
        nearest = cuts.astype(np.float32)
    return np.where(nearest > cuts, np.nextafter(nearest, np.float32(-np.inf)), nearest)
