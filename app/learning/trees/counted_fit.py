"""The canonical tree learner for two labels, trained on many chunks at once from counts of rows.

Like ``canonical_learner.py``, it takes the tree with the fewest errors on a chunk and, of equally
good tests, the first in the canonical order: the test whose public frequency of being true is
nearest to one half comes first. But it needs only counts of rows, by label and by the outcomes of
feature tests.

The rows are counted twice. The first counts decide the tests above the last level, for every chunk.
The second counts decide the last level, from the rows that reach each of its nodes.

The counts of several blocks of rows can be added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.chunks import FALLBACK_LABEL
from app.learning.encoding.feature_codes import CellCodes
from app.learning.trees.canonical_learner import CanonicalRule, canonical_order
from app.learning.trees.cell_counts import (
    COUNTED_DEPTH_MAX,
    COUNTERS_MAX,
    TestCounts,
    cell_tables,
    counters,
    feature_sets,
)
from app.learning.trees.tree_search import parent_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.trees.cell_counts import Features, Tables

# A region is the set of a chunk's rows that reach a node.  Let N be the number of rows in a region,
# and D the number with label 1 less the number with label 0.  If the node is a leaf, (N + |D|) / 2
# rows are labelled correctly.  Therefore the best tree has the largest sum of |D| over its leaves.
#
# At a node of the last level of feature tests, let y be the D of its region, and x the D of the
# rows on which a test is true.  The two leaves contribute |x| + |y - x| = max(|y|, |2 x - y|), so
# only the tests with the largest and the smallest x matter.

LABELS: Final = 2
SHORT_ROWS_MAX: Final = np.iinfo(np.int16).max
"""Rows of a chunk whose differences fit in 16 bits."""
CHUNKS_AT_ONCE: Final = 64
ROWS_MIN: Final = 1 << 12
"""Rows from which on learners in memory are fitted from counts: a search of fewer takes no time."""
ROWS_AT_ONCE: Final = 1 << 16
"""Rows that are counted at once, or those of one chunk where it has more."""
COUNTERS_AT_ONCE: Final = 1 << 23
"""Counts by cells of some chunks: some tens of megabytes, in which 64 ordinary chunks fit."""
# Nanoseconds of a core, measured with the 52 tests of ``benchmarks/opening.py``: counting a row
# by one set of features, or by a product of matrices of so many tests, and what a chunk's
# search takes beyond that, by tests to the power of the depth.
ROW_NANOSECONDS: Final = 4.0
PRODUCT_NANOSECONDS: Final = 0.01
SEARCH_NANOSECONDS: Final = 9.0


@dataclass(frozen=True, slots=True, eq=False)
class CountedTrees:
    """A training method for the trees of many chunks at once, which only counts rows.

    Attributes:
        coding: the encoding of each feature value by an integer code, made from the feature tests.
        order: the indices of the tests in canonical order, shape ``(tests,)``.
        depth: the depth of the trees, 1 to 3.

    """

    coding: CellCodes
    order: NDArray[np.int64]
    depth: int

    @classmethod
    def over(cls, tests: Sequence[BinaryTest], depth: int) -> CountedTrees | None:
        """Return the training method for trees of a given depth; None if it does not support them.

        It supports a depth of 1 to 3, and tests from which integer codes can be made
        (:meth:`CellCodes.of`), unless there would be too many counts.
        """
        coding = CellCodes.of(tests)
        if coding is None or not 1 <= depth <= COUNTED_DEPTH_MAX:
            return None
        counted = cls(coding, canonical_order(tests), depth)
        return counted if counters(coding, depth) <= COUNTERS_MAX else None

    def chunks_at_once(self, *, row_count: int, chunk_count: int) -> int:
        """Return the number of chunks to count at once.

        Args:
            row_count: the number of rows in all chunks together.
            chunk_count: the number of all chunks.

        """
        chunks = ROWS_AT_ONCE * chunk_count // max(row_count, 1)
        at_once = COUNTERS_AT_ONCE // counters(self.coding, self.depth)
        return max(1, min(CHUNKS_AT_ONCE, at_once, chunks))

    def is_quicker(self, *, row_count: int, chunk_count: int) -> bool:
        """Return whether counting rows trains all trees faster than a search of each chunk does.

        The answer depends only on the public numbers of rows, chunks and feature tests, and on the
        depth of the trees.

        Args:
            row_count: the number of rows in all chunks together.
            chunk_count: the number of chunks.

        """
        sets = len(feature_sets(self.coding, self.depth))
        pairs = self.coding.test_count**self.depth
        rows = row_count / chunk_count
        searched: float = pairs * (PRODUCT_NANOSECONDS * rows + SEARCH_NANOSECONDS)
        return row_count >= ROWS_MIN and sets * ROW_NANOSECONDS * rows <= searched

    def fit(
        self,
        values: EncodedRows,
        labels: NDArray[np.int64],
        *,
        offsets: NDArray[np.int64],
        progress: Callable[[int, int], None] | None,
    ) -> NDArray[np.int64]:
        """Return one trained tree per chunk, computed for a few chunks at a time.

        Args:
            values: feature values of the permuted rows, encoded by the public schema, shape
                ``(rows, features)``.
            labels: class indices 0 or 1 in the same order, shape ``(rows,)``.
            offsets: the index at which each chunk starts, followed by the number of rows, shape
                ``(chunks + 1,)``.
            progress: a function that is called with the number of finished chunks and the number of
                all chunks.

        Returns:
            The trees, shape ``(chunks, 2**(depth + 1) - 1)``: the indices of the feature tests in
            heap order (level by level from the root), then the labels of the leaves.

        """
        chunk_count = len(offsets) - 1
        step = self.chunks_at_once(row_count=int(offsets[-1]), chunk_count=chunk_count)
        found = []
        for start in range(0, chunk_count, step):
            ends = offsets[start : start + step + 1]
            rows = slice(int(ends[0]), int(ends[-1]))
            chunks = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
            codes = self.coding.codes(np.asarray(values[rows], dtype=np.float64))
            found.append(self.fitted(codes, labels[rows], chunks, sizes=np.diff(ends)))
            if progress is not None:
                progress(start + len(ends) - 1, chunk_count)
        return np.concatenate(found)

    def fitted(
        self,
        codes: NDArray[np.uint8],
        labels: NDArray[np.int64],
        chunks: NDArray[np.int64],
        *,
        sizes: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return the trained trees of a few chunks, from the codes of their rows.

        Args:
            codes: the rows' integer codes in any order, shape ``(tested features, rows)``.
            labels: class indices 0 or 1, shape ``(rows,)``.
            chunks: the index of each row's chunk, shape ``(rows,)``.
            sizes: the number of rows in each chunk.

        Returns:
            The trees, shape ``(chunks, 2**(depth + 1) - 1)``: the indices of the feature tests in
            heap order (level by level from the root), then the labels of the leaves.

        """
        counted = self.upper_counts(codes, labels, chunks, chunk_count=len(sizes))
        upper = self.upper_tests(counted, chunk_count=len(sizes), rows_max=int(sizes.max()))
        return self.trees(upper, self.lower_counts(upper, codes, labels, chunks))

    def upper_counts(
        self,
        codes: NDArray[np.uint8],
        labels: NDArray[np.int64],
        chunks: NDArray[np.int64],
        *,
        chunk_count: int,
    ) -> Tables:
        """Return the counts of rows that decide all feature tests above a tree's last level.

        Args:
            codes: the rows' integer codes in any order, shape ``(tested features, rows)``.
            labels: class indices 0 or 1, shape ``(rows,)``.
            chunks: the index of each row's chunk, shape ``(rows,)``.
            chunk_count: the number of chunks.

        Returns:
            For each set of :attr:`depth` features, the number of rows with label 1 less the number
            with label 0, int32, shape ``(chunks, codes of the first feature, ...)``. For trees of
            depth 1 there are no counts.

        """
        if self.depth == 1:
            return {}
        tables = cell_tables(
            self.coding,
            codes,
            LABELS * chunks + labels,
            group_count=LABELS * chunk_count,
            size=self.depth,
        )
        return {
            features: (table[1::2] - table[::2]).astype(np.int32)
            for features, table in tables.items()
        }

    def upper_tests(self, counted: Tables, *, chunk_count: int, rows_max: int) -> NDArray[np.int64]:
        """Return the indices of the feature tests above the last level, for the tree of each chunk.

        Args:
            counted: the counts that :meth:`upper_counts` returns, added over all blocks of rows.
            chunk_count: the number of chunks.
            rows_max: an upper bound on the number of rows in a chunk.

        Returns:
            Indices of tests in heap order (level by level from the root), shape
            ``(chunks, 2**(depth - 1) - 1)``.

        """
        if self.depth == 1:
            return np.zeros((chunk_count, 0), dtype=np.int64)
        kind = np.int16 if rows_max <= SHORT_ROWS_MAX else np.int32
        found = [
            self._upper_tests(counted, slice(start, start + CHUNKS_AT_ONCE), kind)
            for start in range(0, chunk_count, CHUNKS_AT_ONCE)
        ]
        return np.concatenate(found)

    def lower_counts(
        self,
        upper: NDArray[np.int64],
        codes: NDArray[np.uint8],
        labels: NDArray[np.int64],
        chunks: NDArray[np.int64],
    ) -> Tables:
        """Return the counts of rows that decide the last level of a tree's feature tests.

        Args:
            upper: the tests that :meth:`upper_tests` returns.
            codes: the rows' integer codes in any order, shape ``(tested features, rows)``.
            labels: class indices 0 or 1, shape ``(rows,)``.
            chunks: the index of each row's chunk, shape ``(rows,)``.

        Returns:
            For each feature, counts of rows by chunk, by label, by the node of the last level of
            tests that they reach, and by the feature's code.

        """
        regions = np.zeros(len(chunks), dtype=np.int64)
        for _ in range(self.depth - 1):
            tests = upper[chunks, regions]
            regions = 2 * regions + 1 + self.coding.outcomes(codes, tests)
        leaves = 1 << (self.depth - 1)
        groups = (chunks * leaves + regions - (leaves - 1)) * LABELS + labels
        return cell_tables(
            self.coding, codes, groups, group_count=len(upper) * leaves * LABELS, size=1
        )

    def trees(self, upper: NDArray[np.int64], counted: Tables) -> NDArray[np.int64]:
        """Return the finished trees, one per chunk.

        If all rows of a chunk have the same label, all leaves of its tree have this label. If a
        chunk has no rows, all leaves have label 0.

        Args:
            upper: the feature tests that :meth:`upper_tests` returns.
            counted: the counts that :meth:`lower_counts` returns, added over all blocks of rows.

        Returns:
            The trees, shape ``(chunks, 2**(depth + 1) - 1)``: the indices of the tests in heap
            order (level by level from the root), then the labels of the leaves.

        """
        chunk_count, regions = len(upper), 1 << (self.depth - 1)
        tables = {places: np.moveaxis(table, 0, -1) for places, table in counted.items()}
        counts = TestCounts.of(self.coding, tables)
        rows = counts.tables[()].reshape(chunk_count, regions, LABELS)
        inside = self._in_order(counts).reshape(-1, chunk_count, regions, LABELS)
        scores = inside.max(axis=-1) + (rows - inside).max(axis=-1)
        best = scores.argmax(axis=0)
        chosen = np.take_along_axis(inside, best[np.newaxis, ..., np.newaxis], axis=0)[0]
        leaf_counts = np.stack([rows - chosen, chosen], axis=2)
        by_label = np.moveaxis(leaf_counts, -1, 0).reshape(LABELS, chunk_count, 2 * regions)
        counted_leaves = by_label.astype(np.float32)
        leaves = CanonicalRule().label(counted_leaves, parent_counts(counted_leaves))
        return _with_constants(
            np.concatenate([upper, self.order[best]], axis=1), leaves, rows.sum(axis=1)
        )

    def _in_order(self, counts: TestCounts) -> NDArray[np.signedinteger]:
        """Return counts by single tests in canonical order, shape ``(t, groups)``."""
        inside = np.empty((self.coding.test_count, counts.tables[()].shape[0]), dtype=np.int64)
        for place, feature in enumerate(self.coding.features):
            inside[feature.test_indices] = counts.along((place,))
        return inside[self.order]

    def _upper_tests(
        self, counted: Tables, chunks: slice, kind: type[np.signedinteger]
    ) -> NDArray[np.int64]:
        """Choose the upper tests of a few chunks."""
        tables = {
            places: np.ascontiguousarray(np.moveaxis(table[chunks].astype(kind), 0, -1))
            for places, table in counted.items()
        }
        counts = TestCounts.of(self.coding, tables)
        if self.depth == 2:  # noqa: PLR2004 -- one level above the last
            return self._best(_sides(counts)).T
        children = self._children(counts)
        roots = self._best(children.max(axis=2))[0]
        own = np.arange(len(roots))
        below = children[:, roots][:, own, :, own]
        second = self.order[below[..., self.order].argmax(axis=-1)]
        return np.stack([roots, second[:, 0], second[:, 1]], axis=1)

    def _best(self, sides: NDArray[np.signedinteger]) -> NDArray[np.int64]:
        """Return the first best test, shape ``(1, chunks)``, by sums ``(2, t, chunks)``."""
        best: NDArray[np.int64] = self.order[sides.sum(axis=0)[self.order].argmax(axis=0)]
        return best[np.newaxis]

    def _children(self, counts: TestCounts) -> NDArray[np.int32]:
        """Return the best of each child test below each side of each root.

        Returns:
            Sums of ``|D|`` over leaves, shape ``(2, t, t, chunks)``: side, root, child.

        """
        count, features = self.coding.test_count, self.coding.features
        children = np.empty((2, count, count, counts.tables[()].shape[0]), dtype=np.int32)
        for first, feature in enumerate(features):
            for second in range(first, len(features)):
                ours, theirs = feature.test_indices, features[second].test_indices
                quadrants = _quadrants(counts, first, second)
                children[:, ours[:, np.newaxis], theirs] = quadrants.sum(axis=1)
                turned = quadrants.sum(axis=0).swapaxes(1, 2)
                children[:, theirs[:, np.newaxis], ours] = turned
        return children


def _sides(counts: TestCounts) -> NDArray[np.int32]:
    """Return the best last level on both sides of each test, shape ``(2, t, chunks)``."""
    whole, features = counts.tables[()], counts.coding.features
    singles = np.concatenate([counts.along((place,)) for place in range(len(features))])
    sides = np.empty((2, counts.coding.test_count, len(whole)), dtype=np.int32)
    for place, feature in enumerate(features):
        both = _joined(counts, (place,))
        single = counts.along((place,))
        sides[1, feature.test_indices] = _last_level(both, single)
        sides[0, feature.test_indices] = _last_level(singles[:, np.newaxis] - both, whole - single)
    return sides


def _quadrants(counts: TestCounts, first: int, second: int) -> NDArray[np.int32]:
    """Return the best last level where two tests have each outcome, shape ``(2, 2, a, b, chunks)``.

    Args:
        counts: differences by tests.
        first: place of the feature of the tests a.
        second: place of the feature of the tests b.

    """
    both = _joined(counts, (first, second))
    of_first = _joined(counts, (first,))[:, :, np.newaxis]
    of_second = _joined(counts, (second,))[:, np.newaxis]
    of_all = _joined(counts, ())[:, np.newaxis, np.newaxis]
    whole, pair = counts.tables[()], counts.along((first, second))
    one, other = counts.along((first,))[:, np.newaxis], counts.along((second,))[np.newaxis]
    only_second = of_second - both
    return np.array(
        [
            [
                _last_level((of_all - of_first) - only_second, whole - one - other + pair),
                _last_level(only_second, other - pair),
            ],
            [_last_level(of_first - both, one - pair), _last_level(both, pair)],
        ]
    )


def _joined(counts: TestCounts, places: Features) -> NDArray[np.signedinteger]:
    """Return the counts by every test, along the first axis, and by those of some features."""
    count = len(counts.coding.features)
    found = [np.moveaxis(counts.along((*places, last)), len(places), 0) for last in range(count)]
    return np.concatenate(found)


def _last_level(
    inside: NDArray[np.signedinteger], region: NDArray[np.signedinteger]
) -> NDArray[np.int32]:
    """Return the largest ``|x| + |y - x|`` over tests, the first axis of x, in regions of D = y."""
    whole = region.astype(np.int32)
    most, least = inside.max(axis=0).astype(np.int32), inside.min(axis=0).astype(np.int32)
    best: NDArray[np.int32] = np.maximum(2 * most - whole, whole - 2 * least)
    return np.maximum(np.abs(whole), best)


def _with_constants(
    tests: NDArray[np.int64], leaves: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Put constants in the place of trees of chunks of one label, or none; rows by label."""
    trees = np.concatenate([tests, leaves], axis=1)
    constant = (rows > 0).sum(axis=1) < LABELS
    labels = np.where(rows.any(axis=1), rows.argmax(axis=1), FALLBACK_LABEL)
    trees[constant, : tests.shape[1]] = 0
    trees[constant, tests.shape[1] :] = labels[constant, np.newaxis]
    return trees
