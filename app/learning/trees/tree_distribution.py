"""The exponential mechanism over all decision trees of a depth: weights, and a random draw.

The weight of a tree is ``exp(-epsilon * errors / 2)``, where ``errors`` is the number of rows that
it mislabels. The module also computes how many trees there are, and how much time and memory their
exact weights take.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, log, prod
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import invariant
from app.learning.enumerated.enumerated_class import (
    LOG_FACTOR_MAX,
    UNIT_ROUNDOFF,
    choice_roundoffs,
    total_roundoffs,
)
from app.learning.trees.lower_level_weights import (
    DECAY_NARROW,
    gain_roundoffs,
    leaf_terms,
    pair_terms,
    single_terms,
)
from app.learning.trees.regions import MergedRows, RegionStatistics, statistics_length
from app.learning.trees.tree import Tree
from app.learning.trees.upper_level_weights import (
    PAIR_DEPTH,
    PAIRS_PER_BATCH,
    THREAD_COUNT_MAX,
    Told,
    multiset_count,
    region_tables,
    table_terms,
    tell_nobody,
)
from app.noise.exact_choice import draw_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.enumerated.enumerated_class import ScaledSums
    from app.learning.trees.regions import RegionRows
    from app.noise.source import NoiseSource

# Deeper trees have sums that leave the range of doubles, over any two tests.
DEPTH_MAX = 8
# Some ten nanoseconds of a processor each.
WEIGHT_COUNT_MAX = 4 * 10**10
# What a row costs in a region that it satisfies, in weights: a part of each pair of
# tests, and its share of copying.
PAIRS_PER_WEIGHT = 100
WEIGHTS_PER_ROW = 30
MEMORY_BYTES_MAX = 2 * 10**9
# What a region costs besides its pairs of tests, in weights.
WEIGHTS_PER_REGION = 2000
# Doubles a pair of tests that is being weighed: counts, weights and what lies between.
DOUBLES_PER_PAIR = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeSize:
    """The size of a class of trees: number of feature tests t, depth D and number of labels L.

    Attributes:
        test_count: the number of tests t; may be 0 if the depth is 0.
        depth: the depth D.
        class_count: the number of labels L.

    """

    test_count: int
    depth: int
    class_count: int

    @property
    def tree_count(self) -> int:
        """The number of trees, ``t**(2**D - 1) * L**(2**D)`` for t tests, depth D and L labels."""
        leaf_count = 1 << self.depth
        return int(self.test_count ** (leaf_count - 1) * self.class_count**leaf_count)

    @property
    def log_factor_max(self) -> float:
        """An upper bound on the log of any factor in the sums of trees' weights.

        A sum of weights is stored as ``factor * exp(-decay * errors)`` with ``decay = epsilon /
        2``.
        """
        # A factor is at most the number of trees in the sum, times exp(decay) for each set of rows
        # for which is_narrow returns true.  There are fewer such sets than leaves.
        leaf_count = 1 << self.depth
        logs = leaf_count * (log(self.class_count) + DECAY_NARROW)
        return logs + (leaf_count - 1) * log(max(self.test_count, 1))

    @property
    def weight_count(self) -> int:
        """The work of summing the weights of all trees, as a number of weights that are computed.

        There is one weight for each region (set of rows), pair of feature tests and pair of labels,
        and a fixed number for each region.
        """
        label_pairs = self.class_count * (self.class_count - 1) // 2
        pairs = self.test_count**2 * label_pairs + WEIGHTS_PER_REGION
        return self._region_count(self._literal_count) * pairs

    def row_weight_count(self, row_count: int, spread: float) -> float:
        """Return an estimate of the work of counting rows, as a number of weights.

        Counting the rows takes about as long as the computation of this number of weights. The
        estimate assumes that the feature tests are independent. It ignores that equal rows are
        merged, since the number of distinct rows is private.

        Args:
            row_count: the public number of rows.
            spread: the public frequency of each test's rarer outcome, summed over all tests.

        """
        size = self._literal_count
        if size == 0:
            return 0.0
        regions = prod(spread + place for place in range(size)) / factorial(size)
        weights = self.test_count**2 / PAIRS_PER_WEIGHT + WEIGHTS_PER_ROW
        return row_count * regions * weights * (self.class_count - 1)

    @property
    def memory_bytes(self) -> int:
        """An upper bound on the bytes of memory that a random draw needs, apart from the rows."""
        size, length = self._literal_count, statistics_length(self.test_count, self.class_count)
        counts = sum(multiset_count(self.test_count, below) for below in range(size)) * length
        batch = max(PAIRS_PER_BATCH, length << size)
        working = (THREAD_COUNT_MAX if size > 1 else 1) * DOUBLES_PER_PAIR * batch
        # Sums, errors and stand-in of a region, and its literals while it is enumerated.
        return 8 * (counts + working + (3 + 8 * size) * self._region_count(size))

    def is_within_reach(self) -> bool:
        """Return whether exact weights take at most some minutes and two gigabytes of memory."""
        if self.log_factor_max > LOG_FACTOR_MAX:
            return False
        # Without two levels no pair of tests is counted.
        return self.depth < PAIR_DEPTH or (
            self.weight_count <= WEIGHT_COUNT_MAX and self.memory_bytes <= MEMORY_BYTES_MAX
        )

    @property
    def _literal_count(self) -> int:
        """Number of literals of the smallest regions that have a table."""
        return max(0, self.depth - PAIR_DEPTH)

    def _region_count(self, literal_count: int) -> int:
        return multiset_count(max(2 * self.test_count, 1), literal_count)


# Tests and their outcomes, from the root down: the region of a node.
Path = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TreeWeights:
    """The weights ``exp(-decay * errors)`` of all trees, summed for each region; secret.

    A region is the set of rows that reach a node of a tree.

    Attributes:
        rows: the private rows. A feature test that is true on more than half of them is inverted,
            which makes counting cheaper and does not change the probabilities.
        turned: which tests are inverted, as 0 or 1, shape ``(tests,)``.
        depth: the depth of the trees.
        decay: half of epsilon.
        tables: the sums for each region, as
            :func:`app.learning.trees.upper_level_weights.region_tables` returns them.

    """

    rows: RegionRows
    turned: NDArray[np.uint8]
    depth: int
    decay: float
    tables: tuple[ScaledSums, ...]

    @classmethod
    def of(
        cls,
        bits: EncodedRows,
        labels: NDArray[np.int64],
        *,
        depth: int,
        class_count: int,
        epsilon: float,
        excluded: NDArray[np.bool_] | None = None,
        row_weights: NDArray[np.float64] | None = None,
        told: Told = tell_nobody,
    ) -> Self:
        """Return the weights of all trees on some rows.

        Args:
            bits: outcomes of the feature tests, shape ``(rows, tests)``.
            labels: class indices, shape ``(rows,)``.
            depth: the depth of the trees.
            class_count: the number of labels.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            excluded: pairs of test outcomes that no row can have at once, as
                :func:`app.learning.trees.upper_level_weights.excluded_literals` returns them; None
                if no pair is known.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.
            told: a function that is called with the progress: the number of finished steps and the
                number of all steps, both public.

        """
        merged = MergedRows.of(bits, labels, class_count, row_weights)
        return cls.over(merged, depth=depth, epsilon=epsilon, excluded=excluded, told=told)

    @classmethod
    def over(
        cls,
        counted: RegionRows,
        *,
        depth: int,
        epsilon: float,
        excluded: NDArray[np.bool_] | None = None,
        told: Told = tell_nobody,
    ) -> Self:
        """Return the weights of all trees, from rows that are already prepared for counting.

        Args:
            counted: the private rows.
            depth: the depth of the trees.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            excluded: pairs of outcomes of feature tests that no row can have at once; None if no
                pair is known.
            told: a function that is called with the progress: the number of finished steps and the
                number of all steps, both public.

        """
        total = counted.label_counts().sum()
        turned = (2 * counted.single_counts().sum(axis=0) > total).astype(np.uint8)
        rows = counted.turned(turned)
        if depth <= PAIR_DEPTH:
            return cls(rows, turned, depth, epsilon / 2, ())
        if excluded is not None:
            own = np.arange(len(excluded)) ^ np.repeat(turned, 2)
            excluded = excluded[np.ix_(own, own)]
            invariant(not rows.satisfies_any(excluded), "no row satisfies what tests exclude")
        tables = region_tables(rows, depth, epsilon / 2, excluded, told)
        return cls(rows, turned, depth, epsilon / 2, tables)

    def log_normaliser(self) -> float:
        """Return the log of the sum of the weights of all trees; the result is secret."""
        total = self._terms(()).total(self.decay, 0)
        return log(float(total.factors)) - self.decay * float(total.errors)

    def log_weights(self, path: Path) -> NDArray[np.float64]:
        """Return the log weights, up to a constant, of all choices at one node or leaf.

        Args:
            path: the feature tests and their outcomes from the root to the node or leaf.

        Returns:
            One number per test at an inner node, and one number per label at a leaf.

        """
        return self._terms(path).relative_logs(self.decay)

    def draw(self, noise: NoiseSource) -> Tree:
        """Return a random tree, with a probability in proportion to its weight."""
        level: list[Path] = [()]
        tests: list[int] = []
        for _ in range(self.depth):
            drawn = [draw_index(self.log_weights(path), noise) for path in level]
            level = [
                (*path, (test, outcome))
                for path, test in zip(level, drawn, strict=True)
                for outcome in (0, 1)
            ]
            tests += drawn
        leaves = [draw_index(self.log_weights(path), noise) for path in level]
        return Tree(test_indices=tuple(tests), leaf_labels=tuple(leaves))

    def _terms(self, path: Path) -> ScaledSums:
        """Return the sum over all trees that make each choice at a node or a leaf."""
        literals = [(test, int(self.turned[test]) ^ outcome) for test, outcome in path]
        levels_left = self.depth - len(path)
        if levels_left > PAIR_DEPTH:
            region = np.array([[2 * test + outcome for test, outcome in literals]], dtype=np.int64)
            return table_terms(self.tables[len(path)], region, self.rows.test_count)[0]
        rows = self.rows
        for test, outcome in literals:
            rows = rows.restricted(test, outcome)
        return _lowest_terms(rows, levels_left, self.decay)


def draw_log_error(size: TreeSize) -> float:
    """Return a bound on the rounding errors of the trees' log weights in one random draw.

    The weight of a tree is ``exp(-epsilon * errors / 2)``. Numbers of errors are exact, so the
    bound depends neither on the rows nor on epsilon.

    Args:
        size: the number of feature tests, the depth and the number of labels.

    Returns:
        The bound ``eta``; a draw is ``(epsilon + 4 eta)``-DP up to the total variation distance
        that rounding the weights causes.

    """
    # Trees have depth D over t tests, with L labels.  In units of 2**-53, T(n) is total_roundoffs
    # of n terms, G is gain_roundoffs, the bound on the sum over all subtrees of depth 1 with two
    # given labels, and r_d is the bound on a sum over all subtrees of depth d:
    #
    # r_0 = T(L) for the labels of a leaf.
    # r_1 = G + T(L**2) for each side of a node with two levels of tests left.
    # r_d = 2 r_(d-1) + 1 + T(t) for products of two sides, and their sum over the tests.
    #
    # A choice of a test at a node with d levels left uses products with errors of 2 r_(d-1) + 1; a
    # choice of a label at a leaf uses exact weights; each choice adds choice_roundoffs.  A drawn
    # tree has 2**(D - d) nodes with d levels left, and 2**D leaves.  Its probability is the
    # product of the probabilities of its choices, so the errors add.  Doubling the sum covers
    # second-order terms, underflow, and the rounding of the bound itself.
    choice = choice_roundoffs(size.log_factor_max)
    sums = [
        total_roundoffs(size.class_count),
        gain_roundoffs(size.test_count) + total_roundoffs(size.class_count**2),
    ]
    while len(sums) < size.depth:
        sums.append(2 * sums[-1] + 1 + total_roundoffs(size.test_count))
    total = (1 << size.depth) * choice
    for levels in range(1, size.depth + 1):
        total += (1 << (size.depth - levels)) * (2 * sums[levels - 1] + 1 + choice)
    return 2 * UNIT_ROUNDOFF * total


def _lowest_terms(rows: RegionRows, levels_left: int, decay: float) -> ScaledSums:
    """Return the terms of a node with two levels left, of one with one, or of a leaf."""
    if levels_left == 0:
        return leaf_terms(rows.label_counts())
    if levels_left < PAIR_DEPTH:
        return single_terms(rows.single_counts(), rows.label_counts(), decay)
    statistics = RegionStatistics.of(
        rows.statistics()[np.newaxis], test_count=rows.test_count, class_count=rows.class_count
    )
    return pair_terms(statistics, decay)[0]
