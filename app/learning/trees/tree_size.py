"""How large a class of trees is, and what its exact weights take, from public numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, log, prod

from app.learning.lists.scaled_sums import LOG_FACTOR_MAX
from app.learning.trees.multisets import multiset_count
from app.learning.trees.region_statistics import statistics_length
from app.learning.trees.region_tables import PAIR_DEPTH, PAIRS_PER_BATCH, THREAD_COUNT_MAX
from app.learning.trees.tree_terms import DECAY_NARROW

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
    """Trees of a depth over so many tests and labels.

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
        """Number of parametrised trees, ``t**(2**D - 1) * L**(2**D)``."""
        leaf_count = 1 << self.depth
        return int(self.test_count ** (leaf_count - 1) * self.class_count**leaf_count)

    @property
    def log_factor_max(self) -> float:
        """Bound the log of every factor of :mod:`app.learning.lists.scaled_sums`.

        A factor is at most the number of trees that it adds, times
        ``exp(decay)`` for every region in it whose gains were narrow: fewer
        than it has leaves.
        """
        leaf_count = 1 << self.depth
        logs = leaf_count * (log(self.class_count) + DECAY_NARROW)
        return logs + (leaf_count - 1) * log(max(self.test_count, 1))

    @property
    def weight_count(self) -> int:
        """Number of weights that are added up, each a pair of tests in a region."""
        label_pairs = self.class_count * (self.class_count - 1) // 2
        pairs = self.test_count**2 * label_pairs + WEIGHTS_PER_REGION
        return self._region_count(self._literal_count) * pairs

    def row_weight_count(self, row_count: int, spread: float) -> float:
        """Estimate what counting rows costs, in weights, from public numbers.

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
        """Bound the memory of a draw, besides its rows."""
        size, length = self._literal_count, statistics_length(self.test_count, self.class_count)
        counts = sum(multiset_count(self.test_count, below) for below in range(size)) * length
        batch = max(PAIRS_PER_BATCH, length << size)
        working = (THREAD_COUNT_MAX if size > 1 else 1) * DOUBLES_PER_PAIR * batch
        # Sums, errors and stand-in of a region, and its literals while it is enumerated.
        return 8 * (counts + working + (3 + 8 * size) * self._region_count(size))

    def is_within_reach(self) -> bool:
        """Tell whether exact weights take minutes and one or two gigabytes at most."""
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
