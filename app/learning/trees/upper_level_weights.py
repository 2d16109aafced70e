"""Summed weights of all subtrees, for every set of rows that the feature tests above them select.

The weight of a tree is ``exp(-decay * errors)``, where ``errors`` is the number of rows that it
mislabels. A literal is a test together with one of its outcomes. The literals on the path from the
root of a tree to a node select the rows that reach the node, which are the node's region. The order
of the literals does not matter, so a region is described by a multiset of literals. For trees of
depth D, the summed weight of all subtrees of depth 2 is computed once for each multiset of D - 2
literals; the sums for fewer literals follow from these sums.

Some multisets describe the same region whatever the rows are, for example because a value above the
higher of two cuts (thresholds) is above the lower one too. The sum of such a region is computed
once. This depends on the public tests only: no region is left out because of the rows in it.

A sum is stored at the rank of its multiset. The rank of ``x_0 <= x_1 <= ...`` is the sum of the
binomial coefficients ``C(x_i + i, i + 1)``, which is the number of multisets of the same size that
come before it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations_with_replacement, permutations
from math import comb
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from app.learning.enumerated.enumerated_class import ScaledSums
from app.learning.trees.lower_level_weights import is_narrow, pair_terms
from app.learning.trees.regions import RegionStatistics, exact_outcomes, statistics_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.trees.regions import Counts, RegionRows


def multiset_count(kind_count: int, size: int) -> int:
    """Return the number of multisets of ``size`` elements of ``kind_count`` kinds."""
    return comb(kind_count + size - 1, size)


def multiset_rank(members: Sequence[int]) -> int:
    """Return the rank of a sorted multiset in the list of all multisets of its size."""
    return sum(comb(member + place, place + 1) for place, member in enumerate(members))


def multiset_ranks(members: NDArray[np.int64], kind_count: int) -> NDArray[np.int64]:
    """Return the ranks of sorted multisets.

    Args:
        members: the elements of the multisets, ascending along the last axis.
        kind_count: the number of kinds of elements.

    """
    ranks = np.zeros(members.shape[:-1], dtype=np.int64)
    for place in range(members.shape[-1]):
        ranks += _steps(kind_count, place)[members[..., place]]
    return ranks


def multisets(kind_count: int, size: int) -> NDArray[np.int64]:
    """Return all multisets of ``size`` integers from 0 to ``kind_count - 1``, ordered by rank.

    Returns:
        The sorted elements of each multiset, shape ``(multisets, size)``.

    """
    listed = np.array(
        list(combinations_with_replacement(range(kind_count), size)), dtype=np.int64
    ).reshape(multiset_count(kind_count, size), size)
    ordered = np.empty_like(listed)
    ordered[multiset_ranks(listed, kind_count)] = listed
    return ordered


@cache
def _steps(kind_count: int, place: int) -> NDArray[np.int64]:
    """Return what each kind adds to a rank in its place."""
    return np.array([comb(kind + place, place + 1) for kind in range(kind_count)], dtype=np.int64)


def excluded_literals(tests: Sequence[BinaryTest]) -> NDArray[np.bool_]:
    """Return the pairs of outcomes of feature tests that no row can have at once.

    Args:
        tests: the public tests.

    Returns:
        A symmetric table, shape ``(2 * tests, 2 * tests)``; the index ``2 * a + o`` stands for the
        test with index a and the outcome o.

    """
    excluded = np.zeros((2 * len(tests), 2 * len(tests)), dtype=np.bool_)
    for first, test in enumerate(tests):
        excluded[2 * first, 2 * first + 1] = True
        for second, other in enumerate(tests):
            if first == second or test.feature_index != other.feature_index:
                continue
            if test.cut is not None and other.cut is not None:
                # At or above the higher cut, and not at or above the lower.
                excluded[2 * first + 1, 2 * second] = test.cut >= other.cut
            elif test.cut is None and other.cut is None:
                same = test.category_code == other.category_code
                excluded[2 * first + 1, 2 * second + (not same)] = True
    return excluded | excluded.T


def first_descriptions(excluded: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Return, for each multiset of outcomes of feature tests, the multiset that stands for it.

    The rows with the outcomes of a multiset are called its region. One multiset stands for all
    multisets whose regions are equal whatever the rows are.

    Args:
        excluded: pairs of outcomes that no row can have at once, as :func:`excluded_literals`
            returns them; they contain at least the two outcomes of each test.
        size: the number of outcomes in a multiset.

    Returns:
        For each multiset, in the order of ranks, the rank of the one that stands for it, shape
        ``(multisets,)``.

    """
    regions = multisets(len(excluded), size)
    if size == 1:
        return np.arange(len(regions))
    implied = excluded[:, np.arange(len(excluded)) ^ 1]
    # If one literal of a multiset implies a second one, the second is replaced by the first.
    # Of literals that imply each other, the first stays.  Both outcomes of the first test stand
    # for every empty region.
    gives_way = implied & (~implied.T | np.triu(np.ones_like(implied), 1))
    pairs = list(permutations(range(size), 2))
    is_empty = np.zeros(len(regions), dtype=np.bool_)
    for first, second in pairs:
        is_empty |= excluded[regions[:, first], regions[:, second]]
    for first, second in pairs * size:
        stays, goes = regions[:, first], regions[:, second]
        regions[:, second] = np.where(gives_way[stays, goes], stays, goes)
    regions[is_empty] = [0] * (size - 1) + [1]
    return multiset_ranks(np.sort(regions, axis=1), len(excluded))


PAIR_DEPTH = 2
THREAD_COUNT_MAX = 8
# Sides of nodes that are combined at once: some ten megabytes.
SIDES_PER_BLOCK = 1 << 18
# Pairs of tests that are weighed at once: fewer leave more to the interpreter, more to
# memory beyond a core's cache.
PAIRS_PER_BATCH = 1 << 18

Tests = tuple[int, ...]
Told: TypeAlias = "Callable[[int, int], None]"
"""Is told how many steps of how many are done; the numbers depend on public ones only."""


def tell_nobody(done: int, total: int) -> None:
    """Do nothing with the progress of a random draw."""
    del done, total


def region_tables(
    rows: RegionRows,
    depth: int,
    decay: float,
    excluded: NDArray[np.bool_] | None = None,
    told: Told = tell_nobody,
) -> tuple[ScaledSums, ...]:
    """Return the summed weights of all subtrees, for every set of rows that can reach their root.

    Such a set has the rows with given outcomes of the feature tests above the subtrees. The
    outcomes are listed as a multiset.

    Args:
        rows: the private rows.
        depth: the depth of the trees, 3 or more.
        decay: half of epsilon; the weight of a tree is ``exp(-decay * errors)``.
        excluded: pairs of outcomes that no row can have at once, as :func:`excluded_literals`
            returns them; multisets that select the same rows because of them are computed once.
            None if no pair is known.
        told: a function that is called with the progress: the number of finished steps and the
            number of all steps. Neither number depends on the private rows.

    Returns:
        One table for each number of outcomes from 1 to ``depth - 2``: the sums for all multisets
        of this number of outcomes, ordered by rank.

    """
    lowest = _PairTable.of(rows, depth - PAIR_DEPTH, decay, excluded)
    lowest.fill(told)
    tables = [lowest.sums]
    for size in reversed(range(1, depth - PAIR_DEPTH)):
        tables.append(_table_above(tables[-1], rows.test_count, size, decay))
    return tuple(reversed(tables))


def table_terms(table: ScaledSums, regions: NDArray[np.int64], test_count: int) -> ScaledSums:
    """Return, for each test at a node, the summed weights of the subtrees with this test as root.

    The summed weight is the product of the sums for both sides of the test.

    Args:
        table: one of the tables that :func:`region_tables` returns: the one with the summed weights
            of the subtrees whose roots are the children of the nodes.
        regions: the test outcomes that lead from the root to each node, in any order, shape
            ``(nodes, outcomes)``; the number ``2 * a + o`` stands for the test with index a and the
            outcome o.
        test_count: the number of tests.

    Returns:
        Sums, shape ``(nodes, tests)``.

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


def _pair_sums(counts: Counts, rows: RegionRows, decay: float) -> ScaledSums:
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

    rows: RegionRows
    size: int
    decay: float
    satisfied: tuple[Counts, ...]
    stand_ins: NDArray[np.int64]
    sums: ScaledSums

    @classmethod
    def of(
        cls, rows: RegionRows, size: int, decay: float, excluded: NDArray[np.bool_] | None
    ) -> _PairTable:
        """Return an allocated table, whose size depends on public numbers only."""
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

    def fill(self, told: Told) -> None:
        """Compute the weights of every region, on several threads with the same result."""
        test_count = self.rows.test_count
        total = multiset_count(test_count, self.size)
        self._count((), self.rows)
        if self.size == 1:
            for batch in self._batches(()):
                self._weigh_batch((), self.rows, batch)
                told(batch.stop, total)
        else:
            with ThreadPoolExecutor(min(os.cpu_count() or 1, THREAD_COUNT_MAX)) as pool:
                for _ in self._visited(pool, self._count):
                    pass
                for first, _ in enumerate(self._visited(pool, self._weigh), start=1):
                    # Those of tests from here on are left.
                    told(total - multiset_count(test_count - first, self.size), total)
        self.sums.errors[:] = self.sums.errors[self.stand_ins]
        self.sums.factors[:] = self.sums.factors[self.stand_ins]

    def _visited(
        self, pool: ThreadPoolExecutor, visit: Callable[[Tests, RegionRows], None]
    ) -> Iterator[None]:
        """Visit the multisets that begin with each test, and yield as they are done, in order."""
        return pool.map(partial(self._descend, visit, (), self.rows), self._following(()))

    def _following(self, tests: Tests) -> range:
        """Return the tests that extend a sorted multiset."""
        return range(tests[-1] if tests else 0, self.rows.test_count)

    def _descend(
        self, visit: Callable[[Tests, RegionRows], None], tests: Tests, rows: RegionRows, test: int
    ) -> None:
        """Visit a multiset with one test more, and all that extend it by others."""
        extended, satisfying = (*tests, test), rows.restricted(test, 1)
        visit(extended, satisfying)
        if len(extended) + 1 < self.size:
            for following in self._following(extended):
                self._descend(visit, extended, satisfying, following)

    def _count(self, tests: Tests, rows: RegionRows) -> None:
        """Count the rows of a multiset of fewer tests than ``size``."""
        self.satisfied[len(tests)][multiset_rank(tests)] = rows.statistics()

    def _weigh(self, tests: Tests, rows: RegionRows) -> None:
        """Weigh the regions on all multisets that extend one by a last test."""
        if len(tests) + 1 < self.size:
            return
        for batch in self._batches(tests):
            self._weigh_batch(tests, rows, batch)

    def _batches(self, tests: Tests) -> Iterator[range]:
        """Yield the last tests of multisets that are weighed at once: a public number of them."""
        following = self._following(tests)
        step = max(1, (PAIRS_PER_BATCH >> self.size) // self.rows.test_count**2)
        for start in range(0, len(following), step):
            yield following[start : start + step]

    def _weigh_batch(self, tests: Tests, rows: RegionRows, last: range) -> None:
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

    def _satisfied(self, tests: Tests, rows: RegionRows, last: range) -> Counts:
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
