"""A search over all trees on the rows of one chunk, level by level, by one of several rules.

The canonical learner takes a tree with the fewest errors, and the halving learner draws random
trees without errors. Both search the same trees, and combine numbers in the same order: for each
leaf, over both sides of a feature test, and over all tests at a node. The canonical learner counts
the rows that a tree labels correctly: it adds over both sides, and takes the maximum over tests.
The halving learner counts the trees without errors: it multiplies over both sides, and adds over
tests. A :class:`TreeRule` has these operations; this module counts rows and applies the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class TreeRule(Protocol):
    """The interface of a rule that rates trees, chooses feature tests and labels leaves.

    The rating of a subtree is, for example, the number of rows that it labels correctly.
    """

    def leaf(self, counts: NDArray[np.float32]) -> NDArray[np.floating]:
        """Return the rating of each leaf, from its number of rows with each label."""
        ...

    def join(self, left: NDArray[np.floating], right: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the joint rating of the subtrees on both sides of a feature test."""
        ...

    def total(self, scores: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the rating of each node: the ratings of its tests combined, over the last axis."""
        ...

    def choose(self, scores: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the index of the chosen feature test at every node.

        Args:
            scores: the rating of each test at each node of each tree, shape
                ``(trees, nodes, tests)``.

        Returns:
            Indices of tests, shape ``(trees, nodes)``.

        """
        ...

    def label(
        self, leaf_counts: NDArray[np.float32], parent_counts: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Return the labels of leaves, from the numbers of rows in leaves and parent nodes."""
        ...


# Numbers held at once in a block of pairs of tests, and in a batch of trees.
BLOCK_NUMBERS_MAX = 1 << 18
BATCH_NUMBERS_MAX = 1 << 22
DEPTH_OF_PAIRS = 2
DEPTH_OF_TRIPLES = 3


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of one chunk, sorted by label.

    Attributes:
        ones: 1 if a feature test is true on a row and else 0, shape ``(tests, rows)``.
        ends: the index at which the rows of each label start, followed by the number of rows, shape
            ``(labels + 1,)``.

    """

    ones: NDArray[np.float32]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, bits: NDArray[np.uint8], labels: NDArray[np.int64], class_count: int) -> Self:
        """Return the rows of a chunk, sorted by their labels.

        Args:
            bits: outcomes of the feature tests, shape ``(rows, tests)``.
            labels: class indices, shape ``(rows,)``.
            class_count: the number of labels.

        """
        order = np.argsort(labels, kind="stable")
        ends = np.searchsorted(labels[order], np.arange(class_count + 1))
        return cls(np.ascontiguousarray(bits[order].T, dtype=np.float32), ends.astype(np.int64))

    @property
    def test_count(self) -> int:
        """The number of feature tests."""
        return len(self.ones)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return int(self.ends[-1])

    def count(self, member: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the number of selected rows of each label that pass each feature test.

        Args:
            member: for each selection, 1 if a row belongs to it and else 0, shape
                ``(selections, rows)``.

        Returns:
            Counts, shape ``(labels, selections, tests)``; exact for fewer than ``2**24`` rows.

        """
        return np.stack([member[:, rows] @ self.ones[:, rows].T for rows in self._label_rows()])

    def count_rows(self, member: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the number of selected rows of each label, shape ``(labels, selections)``.

        Args:
            member: for each selection, 1 if a row belongs to it and else 0, shape
                ``(selections, rows)``.

        """
        return np.stack([member[:, rows].sum(axis=1) for rows in self._label_rows()])

    def where(self, test_index: int, outcome: int) -> Chunk:
        """Return the rows of the chunk for which one feature test has a given outcome.

        Args:
            test_index: the index of the test.
            outcome: the outcome, 0 or 1.

        """
        kept = self.ones[test_index] == outcome
        before = np.concatenate([[0], kept.cumsum()])
        return Chunk(np.ascontiguousarray(self.ones[:, kept]), before[self.ends])

    def _label_rows(self) -> Iterator[slice]:
        for start, end in zip(self.ends[:-1], self.ends[1:], strict=True):
            yield slice(int(start), int(end))


def grow(chunk: Chunk, *, depth: int, tree_count: int, rule: TreeRule) -> NDArray[np.int64]:
    """Return trees that a rule grows on one chunk, level by level.

    Args:
        chunk: the rows.
        depth: the depth of the trees. Each level beyond the third multiplies the work by twice the
            number of feature tests.
        tree_count: the number of trees.
        rule: the rule that rates trees, chooses tests and labels leaves.

    Returns:
        The trees, shape ``(tree_count, 2**(depth + 1) - 1)``: the indices of the tests in heap
        order (level by level from the root), then the labels of the leaves from left to right.

    """
    if depth > DEPTH_OF_TRIPLES:
        return _grow_deep(chunk, depth=depth, tree_count=tree_count, rule=rule)
    tables = _Tables.of(chunk, depth, rule)
    region_numbers = (1 << depth) * max(chunk.row_count, chunk.test_count * len(chunk.ends), 1)
    batch = max(1, min(tree_count, BATCH_NUMBERS_MAX // region_numbers))
    return np.concatenate(
        [
            _grow_batch(chunk, tables, min(batch, tree_count - start), rule)
            for start in range(0, tree_count, batch)
        ]
    )


def _grow_deep(chunk: Chunk, *, depth: int, tree_count: int, rule: TreeRule) -> NDArray[np.int64]:
    """Choose the roots, then grow each side of each root as a chunk of its own."""
    scores = _root_scores(chunk, depth, rule)
    roots = rule.choose(np.broadcast_to(scores, (tree_count, 1, chunk.test_count)))[:, 0]
    trees = np.empty((tree_count, (2 << depth) - 1), dtype=np.int64)
    for root in np.unique(roots).tolist():
        chosen = np.flatnonzero(roots == root)
        sides = [
            grow(chunk.where(root, side), depth=depth - 1, tree_count=len(chosen), rule=rule)
            for side in (0, 1)
        ]
        trees[chosen] = _under_root(root, sides, depth)
    return trees


def _root_scores(chunk: Chunk, depth: int, rule: TreeRule) -> NDArray[np.float64]:
    """Score each root test of trees of 3 levels or more, shape ``(t,)``."""
    if depth == DEPTH_OF_TRIPLES:
        return _Tables.of(chunk, depth, rule).root
    known: dict[bytes, NDArray[np.floating]] = {}
    sides = np.empty((2, chunk.test_count))
    for side, test in np.ndindex(sides.shape):
        rows = (chunk.ones[test] == side).tobytes()
        if rows not in known:
            known[rows] = rule.total(_root_scores(chunk.where(test, side), depth - 1, rule))
        sides[side, test] = known[rows]
    return _joined(sides, rule)


def _under_root(root: int, sides: list[NDArray[np.int64]], depth: int) -> NDArray[np.int64]:
    """Join trees of the false and of the true side below one root, level by level."""
    levels = [np.full((len(sides[0]), 1), root)]
    for level in range(depth):
        # Below the tests come the leaves, which are twice as many again.
        nodes = slice((1 << level) - 1, (2 << level) - 1)
        levels += [side[:, nodes] for side in sides]
    return np.concatenate(levels, axis=1)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Scores of the levels above the last one, which is scored from its own regions.

    Attributes:
        root: score of each root test, shape ``(t,)``; empty below depth 2.
        child: score of each child test under each side of each root, shape
            ``(2, t, t)``: side, root, child; empty below depth 3.

    """

    depth: int
    root: NDArray[np.float64]
    child: NDArray[np.float64]

    @classmethod
    def of(cls, chunk: Chunk, depth: int, rule: TreeRule) -> Self:
        """Return the score of every choice of tests for all levels of a tree but the last."""
        if depth < DEPTH_OF_PAIRS:
            return cls(depth, np.zeros(0), np.zeros((2, 0, 0)))
        pairs = chunk.count(chunk.ones)
        if depth == DEPTH_OF_PAIRS:
            sides = _side_scores(chunk, pairs, rule)
            return cls(depth, _joined(sides, rule), np.zeros((2, 0, 0)))
        grandchild = _quadrant_scores(chunk, pairs, rule)
        child = _joined(grandchild.swapaxes(0, 1), rule)
        return cls(depth, _joined(rule.total(child), rule), child)


def _joined(sides: NDArray[np.floating], rule: TreeRule) -> NDArray[np.float64]:
    """Combine the false and the true side, which are the first axis."""
    return rule.join(sides[0], sides[1]).astype(np.float64)


def _side_scores(chunk: Chunk, pairs: NDArray[np.float32], rule: TreeRule) -> NDArray[np.float64]:
    """Score both sides of every test with one more level, shape ``(2, t)``."""
    single = np.diagonal(pairs, axis1=1, axis2=2)
    rows = _row_counts(chunk)
    return np.stack(
        [
            _last_level_total(single[:, np.newaxis, :] - pairs, rows - single, rule),
            _last_level_total(pairs, single, rule),
        ]
    )


def _quadrant_scores(
    chunk: Chunk, pairs: NDArray[np.float32], rule: TreeRule
) -> NDArray[np.float64]:
    """Score every pair of sides of two tests with one more level.

    Only pairs (a, b) with a <= b are counted: swapping the tests swaps the
    sides.

    Returns:
        Shape ``(2, 2, t, t)``: side of a, side of b, a, b.

    """
    first, second = np.triu_indices(chunk.test_count)
    scores = np.empty((2, 2, len(first)))
    numbers = chunk.row_count + len(pairs) * chunk.test_count
    step = max(1, BLOCK_NUMBERS_MAX // max(numbers, 1))
    for start in range(0, len(first), step):
        block = slice(start, start + step)
        scores[..., block] = _pair_block_scores(chunk, pairs, first[block], second[block], rule)
    full = np.empty((2, 2, chunk.test_count, chunk.test_count))
    full[:, :, second, first] = scores.swapaxes(0, 1)
    full[:, :, first, second] = scores
    return full


def _pair_block_scores(
    chunk: Chunk,
    pairs: NDArray[np.float32],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    rule: TreeRule,
) -> NDArray[np.float64]:
    """Score the four quadrants of the pairs ``(first, second)``, shape ``(2, 2, P)``."""
    single = np.diagonal(pairs, axis1=1, axis2=2)
    both = chunk.count(chunk.ones[first] * chunk.ones[second])
    only_first = pairs[:, first] - both
    only_second = pairs[:, second] - both
    neither = single[:, np.newaxis, :] - pairs[:, first] - only_second
    both_rows = pairs[:, first, second]
    first_rows = single[:, first] - both_rows
    second_rows = single[:, second] - both_rows
    neither_rows = _row_counts(chunk) - both_rows - first_rows - second_rows
    return np.array(
        [
            [
                _last_level_total(neither, neither_rows, rule),
                _last_level_total(only_second, second_rows, rule),
            ],
            [
                _last_level_total(only_first, first_rows, rule),
                _last_level_total(both, both_rows, rule),
            ],
        ]
    )


def _last_level_total(
    inside: NDArray[np.float32], rows: NDArray[np.float32], rule: TreeRule
) -> NDArray[np.float64]:
    """Combine all tests of a last level; ``inside`` is ``(L, R, t)``, ``rows`` ``(L, R)``."""
    return rule.total(_last_level_scores(inside, rows, rule)).astype(np.float64)


def _last_level_scores(
    inside: NDArray[np.float32], rows: NDArray[np.float32], rule: TreeRule
) -> NDArray[np.floating]:
    """Score each test of a last level, shape ``(R, t)``."""
    return rule.join(rule.leaf(inside), rule.leaf(rows[:, :, np.newaxis] - inside))


def _row_counts(chunk: Chunk) -> NDArray[np.float32]:
    """Return the rows of each label as a column, shape ``(L, 1)``."""
    return np.diff(chunk.ends)[:, np.newaxis].astype(np.float32)


def _grow_batch(
    chunk: Chunk, tables: _Tables, tree_count: int, rule: TreeRule
) -> NDArray[np.int64]:
    """Grow ``tree_count`` trees; ``member`` follows the rows of every node of a level."""
    member = np.ones((tree_count, 1, chunk.row_count), dtype=np.float32)
    levels: list[NDArray[np.int64]] = []
    for level in range(tables.depth):
        if level == tables.depth - 1:
            scores = _region_scores(chunk, member, rule)
        elif level == 0:
            scores = np.broadcast_to(tables.root, (tree_count, 1, chunk.test_count))
        else:
            scores = tables.child[:, levels[0][:, 0]].swapaxes(0, 1)
        tests = rule.choose(scores)
        levels.append(tests)
        member = _split(member, chunk.ones[tests])
    leaf_counts = chunk.count_rows(_flat(member)).reshape(-1, tree_count, 1 << tables.depth)
    return np.concatenate([*levels, rule.label(leaf_counts, parent_counts(leaf_counts))], axis=1)


def _region_scores(
    chunk: Chunk, member: NDArray[np.float32], rule: TreeRule
) -> NDArray[np.floating]:
    """Score each test in each region of ``member`` (``(G, N, m)``), shape ``(G, N, t)``."""
    flat = _flat(member)
    scores = _last_level_scores(chunk.count(flat), chunk.count_rows(flat), rule)
    return scores.reshape(*member.shape[:2], chunk.test_count)


def _flat(member: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the members of all nodes of all trees in a row, of no rows perhaps."""
    return member.reshape(member.shape[0] * member.shape[1], member.shape[2])


def _split(member: NDArray[np.float32], true_rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Send the rows of each node to its false child, then its true child."""
    inside = member * true_rows
    children = np.stack([member - inside, inside], axis=2)
    return children.reshape(len(member), 2 * member.shape[1], member.shape[2])


def parent_counts(leaf_counts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return, for each leaf, the counts of rows by label in its parent node.

    A tree without feature tests has one leaf, and the counts of this leaf are returned.

    Args:
        leaf_counts: counts of rows, shape ``(labels, trees, leaves)``.

    """
    leaf_count = leaf_counts.shape[2]
    if leaf_count == 1:
        return leaf_counts
    siblings = leaf_counts.reshape(*leaf_counts.shape[:2], leaf_count // 2, 2)
    return np.repeat(siblings.sum(axis=3), 2, axis=2)
