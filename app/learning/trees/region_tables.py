"""Exponential weights of trees over every region that the upper levels of one can make.

A region is a multiset of literals, a literal being a test and its outcome: the
order in which a tree asks does not matter.  Trees of depth D need
``Z(region, 2)`` once for each multiset of D - 2 literals, and everything above
from that table.  A literal may be repeated or contradicted; the region is then
the same or empty, and is weighed like any other.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from app.learning.lists.scaled_sums import ScaledSums
from app.learning.trees.multisets import multiset_count, multiset_rank, multiset_ranks, multisets
from app.learning.trees.region_statistics import RegionStatistics, exact_outcomes, statistics_length
from app.learning.trees.same_regions import first_descriptions
from app.learning.trees.tree_terms import is_narrow, pair_terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.learning.trees.region_statistics import Counts, MergedRows


PAIR_DEPTH = 2
THREAD_COUNT_MAX = 8
# Sides of nodes that are combined at once: some ten megabytes.
SIDES_PER_BLOCK = 1 << 18
# Pairs of tests that are weighed at once: fewer leave more to the interpreter, more to
# memory beyond a core's cache.
PAIRS_PER_BATCH = 1 << 18

Tests = tuple[int, ...]


def region_tables(
    rows: MergedRows, depth: int, decay: float, excluded: NDArray[np.bool_] | None = None
) -> tuple[ScaledSums, ...]:
    """Return ``Z(region, depth - k)`` by the rank of the region's k literals, k from 1.

    The literal of test a with outcome o is ``2 a + o``.

    Args:
        rows: the private rows.
        depth: 3 or more; the last table is that of ``depth - 2`` literals.
        decay: epsilon / 2.
        excluded: pairs of literals that no row can satisfy, publicly known,
            shape ``(2 t, 2 t)``; regions that they make the same are weighed
            once.  None where nothing is known of the tests.

    """
    lowest = _PairTable.of(rows, depth - PAIR_DEPTH, decay, excluded)
    lowest.fill()
    tables = [lowest.sums]
    for size in reversed(range(1, depth - PAIR_DEPTH)):
        tables.append(_table_above(tables[-1], rows.test_count, size, decay))
    return tuple(reversed(tables))


def table_terms(table: ScaledSums, regions: NDArray[np.int64], test_count: int) -> ScaledSums:
    """Return, for each test at nodes, the product of both sides' sums.

    Args:
        table: sums by rank, of one literal more than ``regions`` have.
        regions: literals in any order, shape ``(m, k)``.
        test_count: t.

    Returns:
        Shape ``(m, t)``.

    """
    sides = []
    for outcome in (0, 1):
        literals = np.empty((len(regions), test_count, regions.shape[1] + 1), dtype=np.int64)
        literals[:, :, :-1] = regions[:, np.newaxis]
        literals[:, :, -1] = 2 * np.arange(test_count) + outcome
        literals.sort(axis=-1)
        sides.append(table[multiset_ranks(literals, 2 * test_count)])
    return sides[0].times(sides[1])


def _table_above(table: ScaledSums, test_count: int, size: int, decay: float) -> ScaledSums:
    """Return the sums with one level more, over regions of ``size`` literals."""
    regions = multisets(2 * test_count, size)
    step = max(1, SIDES_PER_BLOCK // test_count)
    blocks = [
        table_terms(table, regions[start : start + step], test_count).total(decay, 1)
        for start in range(0, len(regions), step)
    ]
    return ScaledSums(
        np.concatenate([block.errors for block in blocks]),
        np.concatenate([block.factors for block in blocks]),
    )


def _pair_sums(counts: Counts, rows: MergedRows, decay: float) -> ScaledSums:
    """Return ``Z(region, 2)`` of regions with these counts, shape ``(k,)``."""
    statistics = RegionStatistics.of(
        counts, test_count=rows.test_count, class_count=rows.class_count
    )
    return pair_terms(statistics, decay).total(decay, 1)


@dataclass(frozen=True, slots=True)
class _PairTable:
    """``Z(region, 2)`` of all regions of so many literals, in the making.

    Attributes:
        rows: the private rows.
        size: literals of a region, at least 1.
        decay: epsilon / 2.
        satisfied: statistics of the rows that satisfy fewer tests than
            ``size``, by their number and rank.
        stand_ins: rank of the region whose sum each takes, by rank.
        sums: what is computed, by rank.

    """

    rows: MergedRows
    size: int
    decay: float
    satisfied: tuple[Counts, ...]
    stand_ins: NDArray[np.int64]
    sums: ScaledSums

    @classmethod
    def of(
        cls, rows: MergedRows, size: int, decay: float, excluded: NDArray[np.bool_] | None
    ) -> _PairTable:
        """Set room aside; public numbers say how much."""
        length = statistics_length(rows.test_count, rows.class_count)
        satisfied = tuple(
            np.empty((multiset_count(rows.test_count, below), length), rows.number)
            for below in range(size)
        )
        count = multiset_count(2 * rows.test_count, size)
        sums = ScaledSums(np.empty(count), np.empty(count))
        itself = np.arange(count)
        stand_ins = itself if excluded is None else first_descriptions(excluded, size)
        return cls(rows, size, decay, satisfied, stand_ins, sums)

    def fill(self) -> None:
        """Weigh every region; threads share the work, and no result depends on how."""
        with ThreadPoolExecutor(min(os.cpu_count() or 1, THREAD_COUNT_MAX)) as pool:
            for visit in (self._count, self._weigh):
                visit((), self.rows)
                if self.size > 1:
                    list(
                        pool.map(partial(self._descend, visit, (), self.rows), self._following(()))
                    )
        self.sums.errors[:] = self.sums.errors[self.stand_ins]
        self.sums.factors[:] = self.sums.factors[self.stand_ins]

    def _following(self, tests: Tests) -> range:
        """Return the tests that extend a sorted multiset."""
        return range(tests[-1] if tests else 0, self.rows.test_count)

    def _descend(
        self, visit: Callable[[Tests, MergedRows], None], tests: Tests, rows: MergedRows, test: int
    ) -> None:
        """Visit a multiset with one test more, and all that extend it by others."""
        extended, satisfying = (*tests, test), rows.restricted(test, 1)
        visit(extended, satisfying)
        if len(extended) + 1 < self.size:
            for following in self._following(extended):
                self._descend(visit, extended, satisfying, following)

    def _count(self, tests: Tests, rows: MergedRows) -> None:
        """Count the rows of a multiset of fewer tests than ``size``."""
        self.satisfied[len(tests)][multiset_rank(tests)] = rows.statistics()

    def _weigh(self, tests: Tests, rows: MergedRows) -> None:
        """Weigh the regions on all multisets that extend one by a last test."""
        if len(tests) + 1 < self.size:
            return
        following = self._following(tests)
        step = max(1, (PAIRS_PER_BATCH >> self.size) // rows.test_count**2)
        for start in range(0, len(following), step):
            self._weigh_batch(tests, rows, following[start : start + step])

    def _weigh_batch(self, tests: Tests, rows: MergedRows, last: range) -> None:
        """Weigh the regions on multisets that differ in their last test."""
        tested = np.arange(1 << self.size)[:, np.newaxis] >> np.arange(self.size) & 1
        counts = exact_outcomes(self._satisfied(tests, rows, last))
        multisets = np.array([(*tests, test) for test in last], dtype=np.int64)
        literals = np.sort(2 * multisets[:, np.newaxis] + tested, axis=-1)
        ranks = multiset_ranks(literals, 2 * rows.test_count).ravel()
        flat = counts.reshape(len(ranks), -1)
        narrow = is_narrow(flat[:, -rows.class_count :], self.decay)
        stands = self.stand_ins[ranks] == ranks
        for kind in (np.flatnonzero(stands & narrow), np.flatnonzero(stands & ~narrow)):
            if len(kind):
                sums = _pair_sums(flat[kind], rows, self.decay)
                self.sums.errors[ranks[kind]] = sums.errors
                self.sums.factors[ranks[kind]] = sums.factors

    def _satisfied(self, tests: Tests, rows: MergedRows, last: range) -> Counts:
        """Return counts by subset of the tests of each multiset, the last its highest bit."""
        half = 1 << len(tests)
        counts = np.empty((len(last), 2 * half, self.satisfied[0].shape[1]), rows.number)
        for subset in range(half):
            chosen = tuple(test for place, test in enumerate(tests) if subset >> place & 1)
            counts[:, subset] = self.satisfied[len(chosen)][multiset_rank(chosen)]
            if subset + 1 < half:
                ranks = [multiset_rank((*chosen, test)) for test in last]
                counts[:, subset + half] = self.satisfied[len(chosen) + 1][ranks]
        for place, test in enumerate(last):
            counts[place, -1] = rows.restricted(test, 1).statistics()
        return counts
