"""The exponential mechanism's distribution over all trees of a depth, with a random draw.

How large a class of trees is, and what its exact weights take, from public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, log, prod
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import invariant
from app.learning.lists.enumerated_class import (
    LOG_FACTOR_MAX,
    UNIT_ROUNDOFF,
    choice_roundoffs,
    total_roundoffs,
)
from app.learning.trees.region_tables import (
    PAIR_DEPTH,
    PAIRS_PER_BATCH,
    THREAD_COUNT_MAX,
    Told,
    multiset_count,
    region_tables,
    table_terms,
    tell_nobody,
)
from app.learning.trees.regions import MergedRows, RegionStatistics, statistics_length
from app.learning.trees.tree import Tree
from app.learning.trees.tree_terms import (
    DECAY_NARROW,
    gain_roundoffs,
    leaf_terms,
    pair_terms,
    single_terms,
)
from app.noise.exact_choice import draw_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.lists.enumerated_class import ScaledSums
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
    """The size of a class of trees: depth, number of tests and number of labels.

    Attributes:
        test_count: t; may be 0 where the depth is 0.
        depth: levels of tests.
        class_count: L.

    """

    test_count: int
    depth: int
    class_count: int

    @property
    def tree_count(self) -> int:
        """The number of trees in the class, ``t**(2**D - 1) * L**(2**D)``."""
        leaf_count = 1 << self.depth
        return int(self.test_count ** (leaf_count - 1) * self.class_count**leaf_count)

    @property
    def log_factor_max(self) -> float:
        """A bound on the log of any factor in the sums of trees' weights.

        A factor is at most the number of trees that it adds, times
        ``exp(decay)`` for every region in it whose gains were narrow: fewer
        than it has leaves.
        """
        leaf_count = 1 << self.depth
        logs = leaf_count * (log(self.class_count) + DECAY_NARROW)
        return logs + (leaf_count - 1) * log(max(self.test_count, 1))

    @property
    def weight_count(self) -> int:
        """The number of weights that are added up, one for each region and pair of tests."""
        label_pairs = self.class_count * (self.class_count - 1) // 2
        pairs = self.test_count**2 * label_pairs + WEIGHTS_PER_REGION
        return self._region_count(self._literal_count) * pairs

    def row_weight_count(self, row_count: int, spread: float) -> float:
        """An estimate, from public numbers, of the work of counting rows.

        A region's rows satisfy each of its tests; were tests independent, so
        many of n would on average.  How rows are merged is private and left out.

        Args:
            row_count: n.
            spread: the sum over tests of the rarer outcome's public frequency.

        """
        size = self._literal_count
        if size == 0:
            return 0.0
        regions = prod(spread + place for place in range(size)) / factorial(size)
        weights = self.test_count**2 / PAIRS_PER_WEIGHT + WEIGHTS_PER_ROW
        return row_count * regions * weights * (self.class_count - 1)

    @property
    def memory_bytes(self) -> int:
        """A bound on the bytes of memory that a draw needs besides its rows."""
        size, length = self._literal_count, statistics_length(self.test_count, self.class_count)
        counts = sum(multiset_count(self.test_count, below) for below in range(size)) * length
        batch = max(PAIRS_PER_BATCH, length << size)
        working = (THREAD_COUNT_MAX if size > 1 else 1) * DOUBLES_PER_PAIR * batch
        # Sums, errors and stand-in of a region, and its literals while it is enumerated.
        return 8 * (counts + working + (3 + 8 * size) * self._region_count(size))

    def is_within_reach(self) -> bool:
        """Return whether computing exact weights takes minutes and two gigabytes at most."""
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
    """The weights ``exp(-decay errors)`` of all trees, summed by region; secret.

    Attributes:
        rows: the private rows, each test turned so that few satisfy it: counts
            cost less, and the law is the same.
        turned: the tests that were, as 0 or 1, shape ``(t,)``.
        depth: levels of tests.
        decay: epsilon / 2.
        tables: sums by region; see :func:`app.learning.trees.region_tables.region_tables`.

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
            bits: outcomes of the tests, shape ``(n, t)``.
            labels: class indices, shape ``(n,)``.
            depth: levels of tests.
            class_count: number of labels.
            epsilon: parameter of the weights.
            excluded: literals that exclude each other, by what the tests ask:
                :func:`app.learning.trees.region_tables.excluded_literals`; None
                where nothing is known of the tests.
            row_weights: what each row counts for, shape ``(n,)``; None for 1 each.
            told: of how far it has come.

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
        """Return the weights of all trees, from distinct rows and their numbers, or from counts.

        Args:
            counted: the private rows.
            depth: levels of tests.
            epsilon: parameter of the weights.
            excluded: as for :meth:`of`.
            told: as for :meth:`of`.

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
        """Return the log of the sum of the weights of all trees."""
        total = self._terms(()).total(self.decay, 0)
        return log(float(total.factors)) - self.decay * float(total.errors)

    def log_weights(self, path: Path) -> NDArray[np.float64]:
        """Return the log weight, up to a constant, of each choice that may follow a path.

        Args:
            path: what leads there.

        Returns:
            One number a test where ``path`` is shorter than the depth, and
            one a label where it is as long.

        """
        return self._terms(path).relative_logs(self.decay)

    def draw(self, noise: NoiseSource) -> Tree:
        """Return a random tree by weight, drawn level by level from the root."""
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
    """Return a bound (eta) on the rounding errors of trees' log weights in one draw.

    Numbers of errors are exact, so relative errors of sums depend on neither
    rows nor epsilon.  In roundoffs, ``u = 2**-53``:

    * ``r_0 = T(L)``: :func:`app.learning.lists.enumerated_class.total_roundoffs` of a
      leaf's labels.
    * ``r_1 = G + T(L**2)``: a side of a node with two levels left, from gains
      of ``G`` roundoffs, :func:`app.learning.trees.tree_terms.gain_roundoffs`.
    * ``r_d = 2 r_(d-1) + 1 + T(t)``: products of two sides, and their sum.
    * A choice at a node with d levels left uses products, ``2 r_(d-1) + 1``
      (of leaves where d is 1), and one at a leaf weights without error; both
      lose :func:`app.learning.lists.enumerated_class.choice_roundoffs` more.
    * A drawn tree has ``2**(D - d)`` such nodes and ``2**D`` leaves; its
      probability is the product of theirs, so the errors add.

    The sum is doubled, which covers the second-order terms, what is lost to
    underflow and the rounding of the bound itself.

    Returns:
        eta, in nats.

    """
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
