"""Decision trees as a list, with one tree for each way in which trees label some points.

The list is made level by level. A tree depends on its subtrees only through the labels that they
give to the points. Therefore, on each level, one subtree for each labelling of the points is
enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import BinaryTest, PackedTests, distinct_cuts, evaluate
from app.learning.encoding.public_columns import EXTRA_CODES
from app.learning.enumerated.hypothesis_list import count_errors, distinct_on
from app.learning.trees.regions import Region

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.enumerated.hypothesis_list import Description, Encoded

BYTE_LABELS = 1 << 8
# Outcomes of tests held at once while dichotomies are enumerated, one byte each.
OUTCOMES_MAX = 1 << 30


class TreeList:
    """A list of complete decision trees of one depth, as a hypothesis class.

    Args:
        tests: the yes-or-no tests of features that the trees use.
        cells: the trees, shape ``(trees, 2**(depth + 1) - 1)``: the indices of the tests in heap
            order (level by level from the root), then the labels of the leaves.
        depth: the depth of the trees.
        class_count: the number of labels.

    """

    def __init__(
        self,
        tests: Sequence[BinaryTest],
        cells: NDArray[np.int64],
        *,
        depth: int,
        class_count: int,
    ) -> None:
        """Store the arrays and the tests for evaluation."""
        self.tests = tuple(tests)
        self.cells = cells
        self.depth = depth
        self.class_count = class_count
        self._packed = PackedTests(self.tests)

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.cells)

    @property
    def public_frequencies(self) -> NDArray[np.float64]:
        """The assumed share of rows that each tree gives label 1, which is one half."""
        return np.full(len(self), 0.5)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the outcome of every feature test on every row, 0 or 1.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            Outcomes, shape ``(rows, tests)``.

        """
        return self._packed.evaluate(values)

    def predict(self, encoded: Encoded) -> NDArray[np.unsignedinteger]:
        """Return the label that every tree gives to every row, shape ``(trees, rows)``.

        Args:
            encoded: outcomes of the feature tests, shape ``(rows, tests)``.

        """
        outcomes = encoded.astype(np.uint8, copy=False).T
        trees, rows = np.arange(len(self))[:, np.newaxis], np.arange(len(encoded))
        nodes = np.zeros((len(self), len(encoded)), dtype=np.int64)
        for _ in range(self.depth):
            nodes = 2 * nodes + 1 + outcomes[self.cells[trees, nodes], rows]
        label_type = np.uint8 if self.class_count <= BYTE_LABELS else np.uint16
        labels: NDArray[np.unsignedinteger] = self.cells[trees, nodes].astype(label_type)
        return labels

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of errors of every tree on the rows, shape ``(trees,)``.

        Args:
            encoded: outcomes of the feature tests, shape ``(rows, tests)``.
            labels: class indices, shape ``(rows,)``.

        """
        if self.depth != 1:
            return count_errors(self, encoded, labels)
        region = Region.packed(encoded.astype(np.uint8, copy=False), labels, self.class_count)
        above = region.single_counts()
        below = region.counts[:, np.newaxis] - above
        test, false_label, true_label = self.cells.T
        right: NDArray[np.int64] = below[false_label, test] + above[true_label, test]
        return len(labels) - right

    def take(self, indices: NDArray[np.int64]) -> Self:
        """Return the trees at ``indices``, in that order."""
        cells = self.cells[indices]
        return type(self)(self.tests, cells, depth=self.depth, class_count=self.class_count)

    def describe(self, index: int) -> Description:
        """Return a tree's feature tests, level by level, and the labels of its leaves."""
        node_count = (1 << self.depth) - 1
        cells = self.cells[index].tolist()
        return {
            "kind": "tree",
            "tests": [_describe(self.tests[test]) for test in cells[:node_count]],
            "leaf_labels": cells[node_count:],
        }


def tree_dichotomies(
    values: NDArray[np.float64],
    features: Mapping[int, PublicColumn],
    *,
    depth: int,
    class_count: int,
) -> TreeList:
    """Return one tree for every way in which trees with any cuts (thresholds) can label points.

    Cuts at the values of the points are enough. Tests with the same outcome on all points are left
    out, because they give no further labelling.

    Args:
        values: feature values of the points, encoded by the public schema, shape
            ``(points, features)``.
        features: the public encoding of the features in use, by feature index.
        depth: the depth of the trees.
        class_count: the number of labels.

    """
    tests = _parting_tests(values, features)
    levels = depth if tests else 0
    cells = _all_cells(len(tests), depth=levels, class_count=class_count)
    trees = TreeList(tests, cells, depth=levels, class_count=class_count)
    if levels <= 1:
        return trees.take(_distinct_stumps(trees))
    return trees.take(distinct_on(trees, trees.encode(values)))


def tree_count_bound(
    row_count: int, features: Mapping[int, PublicColumn], *, depth: int, class_count: int
) -> int:
    """Return an upper bound on the number of trees that :func:`tree_dichotomies` examines.

    Args:
        row_count: the number of points.
        features: the public encoding of the features in use, by feature index.
        depth: the depth of the trees.
        class_count: the number of labels.

    Raises:
        ConfigurationError: the outcomes of all feature tests on all points may not fit into memory.

    """
    test_count = _test_count_bound(row_count, features)
    _refuse_outcomes(row_count, test_count)
    node_count = (1 << depth) - 1
    return int(test_count**node_count * class_count ** (node_count + 1))


def _test_count_bound(row_count: int, features: Mapping[int, PublicColumn]) -> int:
    """Bound the tests that part some rows; one more keeps the constants."""
    counts = (
        row_count - 1 if column.bounds is not None else (column.category_count or 0) + EXTRA_CODES
        for column in features.values()
    )
    return max(1, sum(counts))


def _refuse_outcomes(row_count: int, test_count: int) -> None:
    """Refuse more outcomes of tests than are held at once."""
    if row_count * test_count > OUTCOMES_MAX:
        problem = (
            f"trees over the cuts of {row_count} rows ask up to {test_count} tests, which is "
            "too many to list; use thresholds or a public grid"
        )
        raise ConfigurationError("hypotheses", problem)


def _parting_tests(
    values: NDArray[np.float64], features: Mapping[int, PublicColumn]
) -> list[BinaryTest]:
    """Return one test for every way in which a single test parts the points in two."""
    tests = [
        test
        for index, column in features.items()
        for test in _tests_of(index, column, values[:, index])
    ]
    bits = PackedTests(tests).evaluate(values)
    parting = np.flatnonzero(bits.min(axis=0, initial=1) != bits.max(axis=0, initial=0))
    kept = distinct_cuts(np.ascontiguousarray(bits[:, parting]), complements=True)
    return [tests[parting[index]] for index in kept]


def _tests_of(
    index: int, column: PublicColumn, values: NDArray[np.float64]
) -> Iterator[BinaryTest]:
    """Yield the tests of one feature that can part the points."""
    found = np.unique(values[~np.isnan(values)]).tolist()
    for value in found:
        is_number = column.bounds is not None
        yield BinaryTest(
            feature_index=index,
            cut=value if is_number else None,
            category_code=None if is_number else int(value),
            public_frequency=0.5,
        )


def _all_cells(test_count: int, *, depth: int, class_count: int) -> NDArray[np.int64]:
    """Return every choice of a test a node and a label a leaf, shape ``(N, nodes)``."""
    node_count = (1 << depth) - 1
    shape = (test_count,) * node_count + (class_count,) * (node_count + 1)
    return np.indices(shape).reshape(len(shape), -1).T.astype(np.int64)


def _distinct_stumps(trees: TreeList) -> NDArray[np.int64]:
    """Return the stumps that differ: two labels a test, and each constant once.

    Tests part the points and do so each in a way of its own, so that no two of
    these agree on all points.
    """
    if trees.depth == 0:
        return np.arange(len(trees))
    test, false_label, true_label = trees.cells.T
    return np.flatnonzero((false_label != true_label) | (test == 0))


def _describe(test: BinaryTest) -> dict[str, object]:
    """Return a test in plain values."""
    return {
        "feature": test.feature_index,
        "at_least": test.cut,
        "category_code": test.category_code,
    }


LABEL_COUNT = 2


def covering_trees(
    tests: Sequence[BinaryTest], public_values: NDArray[np.float64], *, depth: int
) -> TreeList:
    """Return one two-label tree for each way in which trees can label public points.

    Args:
        tests: the public feature tests that trees may use. Without tests, the only two trees give
            every row the same label.
        public_values: feature values of the points, encoded by the public schema, shape
            ``(points, features)``, at least one point.
        depth: the depth of the trees.

    """
    bits = np.unique(evaluate(tests, public_values), axis=0)
    outcomes = np.packbits(bits.T, axis=1)
    everywhere = np.packbits(np.ones(len(bits), dtype=np.uint8))
    labels = np.stack([np.zeros_like(everywhere), everywhere])
    cells = np.arange(LABEL_COUNT, dtype=np.int64)[:, np.newaxis]
    levels = depth if len(tests) else 0
    for level in range(levels):
        labels, cells = _one_level_up(outcomes, labels, cells, level)
    return TreeList(tests, cells, depth=levels, class_count=LABEL_COUNT)


def tree_candidate_count(test_count: int, *, depth: int) -> int:
    """Return an upper bound on the number of trees that :func:`covering_trees` examines."""
    if test_count == 0:
        return LABEL_COUNT
    count = LABEL_COUNT
    for level in range(depth):
        # One level has two labels a test, and the constants.
        below = count if level != 1 else LABEL_COUNT * test_count + LABEL_COUNT
        count = test_count * below * below
    return count


def _one_level_up(
    outcomes: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    cells: NDArray[np.int64],
    level: int,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return trees one level deeper, one for each dichotomy, and their labels as bits."""
    size = len(labels)
    above, below = np.divmod(np.arange(size * size), size)
    found = np.concatenate(
        [(outcome & labels[above]) | (~outcome & labels[below]) for outcome in outcomes]
    )
    keys = np.ascontiguousarray(found).view(np.dtype((np.void, found.shape[1])))[:, 0]
    _, first = np.unique(keys, return_index=True)
    kept = np.sort(first)
    test, pair = np.divmod(kept, size * size)
    joined = _join(test, cells[below[pair]], cells[above[pair]], level)
    return found[kept], joined


def _join(
    test: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64], level: int
) -> NDArray[np.int64]:
    """Put a test above two subtrees each, in heap order, level after level."""
    parts = [test[:, np.newaxis]]
    start = 0
    for depth in range(level + 1):
        row = slice(start, start + (1 << depth))
        parts += [left[:, row], right[:, row]]
        start += 1 << depth
    return np.concatenate(parts, axis=1)
