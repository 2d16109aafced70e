"""The canonical learner equals a naive search, tie by tie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.chunks import chunk_offsets
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.trees import tree_search
from app.learning.trees.canonical_learner import canonical_order
from app.learning.trees.learners import fit_trees
from app.learning.trees.tree_class import TreeClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rows = list[tuple[tuple[int, ...], int]]
SECRET = b"s" * 32


def _tests(frequencies: list[float]) -> tuple[BinaryTest, ...]:
    return tuple(
        BinaryTest(feature_index=index, cut=0.5, category_code=None, public_frequency=frequency)
        for index, frequency in enumerate(frequencies)
    )


def _least_errors(rows: Rows, depth: int, test_count: int) -> int:
    """Count the errors of the best tree, by plain recursion."""
    if depth == 0:
        labels = [label for _, label in rows]
        return len(labels) - max((labels.count(label) for label in labels), default=0)
    return min(_split_errors(rows, test, depth, test_count) for test in range(test_count))


def _split_errors(rows: Rows, test: int, depth: int, test_count: int) -> int:
    return sum(
        _least_errors([row for row in rows if row[0][test] == side], depth - 1, test_count)
        for side in (0, 1)
    )


def _naive_tree(rows: Rows, order: list[int], depth: int, class_count: int) -> list[int]:
    """Build the canonical tree level by level, as the rule is written."""
    tests, level = [], [rows]
    for levels_left in range(depth, 0, -1):
        below = []
        for region in level:
            least = _least_errors(region, levels_left, len(order))
            chosen = next(
                test
                for test in order
                if _split_errors(region, test, levels_left, len(order)) == least
            )
            tests.append(chosen)
            below += [[row for row in region if row[0][chosen] == side] for side in (0, 1)]
        parents, level = level, below
    leaves = []
    for index, leaf in enumerate(level):
        parent = parents[index // 2] if depth else leaf
        counts = [sum(label == c for _, label in leaf) for c in range(class_count)]
        tied = [c for c in range(class_count) if counts[c] == max(counts)]
        leaves.append(max(tied, key=lambda c: (sum(label == c for _, label in parent), -c)))
    return tests + leaves


def _fit(
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    hypotheses: TreeClass,
) -> NDArray[np.int64]:
    packed = fit_trees(
        "canonical",
        bits=bits,
        labels=labels,
        offsets=offsets,
        hypothesis_class=hypotheses,
        secret=SECRET,
    )
    return packed._cells.astype(np.int64)


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("class_count", [2, 3])
@pytest.mark.parametrize("narrow_blocks", [False, True])
def test_every_chunk_gets_the_naive_tree(
    depth: int, class_count: int, *, narrow_blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of 0 to 9 rows with many ties, forty of them: same tests, same leaves."""
    if narrow_blocks:
        monkeypatch.setattr(tree_search, "BLOCK_NUMBERS_MAX", 40)
    generator = np.random.default_rng(10 * depth + class_count)
    # The naive search of five levels takes a tenth of a second for each chunk.
    sizes = np.append(np.arange(0, 10, 3 if depth > 4 else 1), generator.integers(1, 10, 30))
    sizes = sizes[: 5 if depth > 4 else None]
    offsets = np.append(0, np.cumsum(sizes))
    test_count = 4
    bits = generator.integers(0, 2, (offsets[-1], test_count), dtype=np.uint8)
    bits[:, 3] = bits[:, 0] if class_count == 2 else 1
    labels = np.minimum(generator.integers(0, class_count, offsets[-1]), bits[:, 1] + 1)
    frequencies = [0.9, 0.5, 0.1, 0.3]
    hypotheses = TreeClass(tests=_tests(frequencies), depth=depth, class_count=class_count)
    fitted = _fit(bits, labels, offsets, hypotheses)
    order = [1, 3, 0, 2]
    for index, tree in enumerate(fitted):
        rows = slice(offsets[index], offsets[index + 1])
        chunk = [(tuple(row), label) for row, label in zip(bits[rows], labels[rows], strict=True)]
        present = {int(label) for _, label in chunk}
        if len(present) <= 1:
            constant = next(iter(present), 0)
            assert set(tree[(1 << depth) - 1 :]) == {constant}
        else:
            assert tree.tolist() == _naive_tree(chunk, order, depth, class_count)


def test_tests_are_ordered_by_spread_then_index() -> None:
    """Shares .2 and .8 tie in truth, though not in doubles; a half comes first."""
    assert canonical_order(_tests([0.8, 0.2, 0.5, 0.0, 0.2])).tolist() == [2, 0, 1, 4, 3]


def test_a_tied_leaf_takes_its_parents_majority() -> None:
    """Rows 0 and 1 tie in the leaf; the parent region holds more of class 1."""
    bits = np.array([[1], [1], [0], [0]], dtype=np.uint8)
    labels = np.array([0, 1, 1, 1])
    hypotheses = TreeClass(tests=_tests([0.5]), depth=1, class_count=2)
    assert _fit(bits, labels, chunk_offsets(4, 1), hypotheses).tolist() == [[0, 1, 1]]


def test_a_tied_leaf_never_takes_a_label_that_errs() -> None:
    """With three labels the parent's majority is taken among the tied ones only."""
    bits = np.array([[1], [1], [0], [0], [0], [0]], dtype=np.uint8)
    labels = np.array([0, 1, 2, 2, 2, 1])
    hypotheses = TreeClass(tests=_tests([0.5]), depth=1, class_count=3)
    assert _fit(bits, labels, chunk_offsets(6, 1), hypotheses).tolist() == [[0, 2, 1]]


def test_leaves_without_rows_under_a_tied_parent_take_class_zero() -> None:
    """A test that is true of every row leaves its false side empty under a tied root."""
    bits = np.array([[1], [1]], dtype=np.uint8)
    hypotheses = TreeClass(tests=_tests([0.5]), depth=1, class_count=2)
    fitted = _fit(bits, np.array([1, 0]), chunk_offsets(2, 1), hypotheses)
    assert fitted.tolist() == [[0, 0, 0]]
