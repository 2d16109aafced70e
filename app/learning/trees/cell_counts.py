"""Counts of rows by the values of up to three features, and by the feature tests that they pass.

A value is given by its integer code: the index of its interval or category. Rows are counted once
for each set of features of a given size (one to three): by the codes of these features, and by a
group, which is a chunk, a label, or both. Counting takes one addition per row and set of features,
for any number of tests. The counts are integers, so counts of several blocks of rows can be added
in any order. Counts by tests follow from counts by codes.

The exponential mechanism over trees needs only these counts of the rows.

Rows have weights if a person may have several rows: the weights of a person's rows add up to at
most 1. Every weight is a multiple of ``1 / u`` for some integer u, so weights are added up exactly,
as integers, in units of ``1 / u``. Without weights a row is one unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from app.errors import invariant
from app.learning.encoding.encoded_rows import parts
from app.learning.trees.regions import SINGLE_PRECISION_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.feature_codes import CellCodes, CodedFeature
    from app.learning.trees.regions import Counts

COUNTED_DEPTH_MAX: Final = 3
"""Levels of a tree whose counts are by three tests at most."""
COUNTERS_MAX: Final = 1 << 22
"""Counts by cells of one group of rows."""
SETS_MAX: Final = 500
"""Sets of features by which a row is counted: about what reading the row takes."""
Features = tuple[int, ...]
Tables = dict[Features, "NDArray[np.signedinteger]"]


def feature_sets(coding: CellCodes, size: int) -> list[Features]:
    """Return all sets of ``size`` tested features, as ascending positions in ``coding.features``.

    If there are fewer features, the only set is the set of all features.
    """
    places = range(len(coding.features))
    return list(combinations(places, min(size, len(places))))


def counters(coding: CellCodes, size: int) -> int:
    """Return the number of counters for one group of rows and all sets of ``size`` features."""
    cells = [feature.cell_count for feature in coding.features]
    sets = feature_sets(coding, size)
    return sum(math.prod(cells[place] for place in places) for places in sets)


def cell_tables(
    coding: CellCodes,
    codes: NDArray[np.uint8],
    groups: NDArray[np.int64],
    *,
    group_count: int,
    size: int,
    weights: NDArray[np.float64] | None = None,
) -> Tables:
    """Return counts of rows by group and feature codes, for each set of ``size`` features.

    Args:
        coding: the encoding of each feature value by an integer code, made from the feature tests.
        codes: the rows' codes, shape ``(tested features, rows)``.
        groups: the index of each row's group, shape ``(rows,)``.
        group_count: the number of groups.
        size: the number of features in a set, 1 to 3.
        weights: the integer amount by which each row raises a count, shape ``(rows,)``; None for 1.

    Returns:
        For each set of ``size`` features an int64 array, shape
        ``(groups, codes of the first feature, ...)``.

    """
    total: Tables = {}
    for rows in parts(codes.shape[1]):
        its_weights = None if weights is None else weights[rows]
        counted = _cell_tables(coding, codes[:, rows], groups[rows], group_count, size, its_weights)
        total = merged_tables(total, counted) if total else counted
    return total


def _cell_tables(
    coding: CellCodes,
    codes: NDArray[np.uint8],
    groups: NDArray[np.int64],
    group_count: int,
    size: int,
    weights: NDArray[np.float64] | None,
) -> Tables:
    """Count as :func:`cell_tables` does, few rows at a time."""
    wide = codes.astype(np.int64)
    cells = [feature.cell_count for feature in coding.features]
    begun: dict[Features, NDArray[np.int64]] = {(): groups}
    tables: Tables = {}
    for features in feature_sets(coding, size):
        for length in range(1, len(features)):
            if features[:length] not in begun:
                before, last = begun[features[: length - 1]], features[length - 1]
                begun[features[:length]] = before * cells[last] + wide[last]
        index = begun[features[:-1]] * cells[features[-1]] + wide[features[-1]]
        shape = (group_count, *(cells[place] for place in features))
        counts = np.bincount(index, weights, minlength=int(np.prod(shape)))
        tables[features] = counts.astype(np.int64, copy=False).reshape(shape)
    return tables


def merged_tables(first: Tables, second: Tables) -> Tables:
    """Return the sum of the counts of two blocks of rows."""
    return {features: first[features] + second[features] for features in first}


@dataclass(frozen=True, slots=True, eq=False)
class TestCounts:
    """Counts of the rows that pass up to three tests of different features at once.

    Attributes:
        coding: the encoding of each feature value by an integer code, made from the tests.
        tables: for each set of up to three features (also for no feature), the number of rows that
            pass one test of each of them, shape ``(tests of the first feature, ..., groups)``.

    """

    coding: CellCodes
    tables: dict[Features, NDArray[np.signedinteger]]

    @classmethod
    def of(cls, coding: CellCodes, counted: dict[Features, NDArray[np.signedinteger]]) -> Self:
        """Return counts of rows by the feature tests that they pass, from counts by feature codes.

        Args:
            coding: the encoding of each feature value by an integer code, made from the tests.
            counted: for each set of features of the largest size (one to three), counts with shape
                ``(codes of the first feature, ..., groups)``.

        """
        features = coding.features
        by_cells = dict(counted)
        for wide in sorted(counted, key=len, reverse=True):
            _add_marginals(by_cells, wide)
        tables = {
            places: _by_tests(cells, [features[place] for place in places])
            for places, cells in by_cells.items()
        }
        return cls(coding, tables)

    def along(self, places: Features) -> NDArray[np.signedinteger]:
        """Return the number of rows that pass one test of each of the given features.

        Args:
            places: positions of features in ``coding.features``, in any order and with repeats. The
                result has one axis for each position, along which the tests of this feature lie.

        """
        distinct = tuple(sorted(set(places)))
        table = self.tables[distinct]
        if len(distinct) == len(places):
            axes = [distinct.index(place) for place in places]
            return table.transpose(*axes, len(places))
        padded = np.pad(table, [*[(0, 1)] * len(distinct), (0, 0)])
        return padded[self._met(places, distinct)]

    def _met(self, places: Features, distinct: Features) -> tuple[NDArray[np.int64], ...]:
        """Return, for tests along ``places``, the test of each feature where all of it hold."""
        met: dict[int, NDArray[np.int64]] = {}
        for axis, place in enumerate(places):
            tests = self._tests_along(place, axis, len(places))
            met[place] = self._meeting(place, met[place], tests) if place in met else tests
        return tuple(met[place] for place in distinct)

    def _tests_along(self, place: int, axis: int, axes: int) -> NDArray[np.int64]:
        shape = [1] * axes
        shape[axis] = -1
        return np.arange(len(self.coding.features[place].test_indices)).reshape(shape)

    def _meeting(
        self, place: int, first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        padded = np.pad(self.coding.features[place].meets(), (0, 1))
        count = len(padded) - 1
        padded[count], padded[:, count] = count, count
        return padded[first, second]


def _add_marginals(tables: dict[Features, NDArray[np.signedinteger]], wide: Features) -> None:
    """Add the counts by all but one feature of a set, and by all of those in turn."""
    for axis in range(len(wide)):
        fewer = wide[:axis] + wide[axis + 1 :]
        if fewer not in tables:
            tables[fewer] = tables[wide].sum(axis=axis, dtype=tables[wide].dtype)
            _add_marginals(tables, fewer)


def _by_tests(
    cells: NDArray[np.signedinteger], features: Sequence[CodedFeature]
) -> NDArray[np.signedinteger]:
    """Return counts by tests along the first axes from counts by cells."""
    for axis, feature in enumerate(features):
        first = np.moveaxis(cells, axis, 0)[1:]
        if feature.is_cut:
            first = first.copy()
            for cell in range(len(first) - 2, -1, -1):
                first[cell] += first[cell + 1]
        cells = np.moveaxis(first, 0, axis)
    return cells


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """Rows of which only counts are known: how many rows of each label pass a few feature tests.

    Attributes:
        satisfied: the number of rows of each label that pass several tests at once, or the sum of
            their weights, shape ``(labels, tests + 1, ...)``. Index 0 of an axis stands for a test
            that every row passes, and index ``1 + a`` for the test with index a.
        row_count: the number of all rows, or the sum of their weights, in units.
        unit_count: the number u of units in a row of weight 1; 1 if rows have no weights.

    """

    satisfied: NDArray[np.float64]
    row_count: int
    unit_count: int = 1

    @classmethod
    def of(cls, coding: CellCodes, tables: Tables, *, depth: int, unit_count: int = 1) -> Self:
        """Return counts of rows by the feature tests that they pass, from counts by feature codes.

        Args:
            coding: the encoding of each feature value by an integer code, made from the tests.
            tables: counts for each set of ``depth`` features, with one group per label.
            depth: the depth of the trees that the counts are for, 1 to 3.
            unit_count: the number u of units in a row of weight 1, in which the counts are given.

        """
        counts = TestCounts.of(
            coding, {places: np.moveaxis(table, 0, -1) for places, table in tables.items()}
        )
        label_count = len(next(iter(tables.values())))
        satisfied = np.zeros((coding.test_count + 1,) * depth + (label_count,))
        axes = [(None, *range(len(coding.features)))] * depth
        for choice in np.ndindex(*(len(axis) for axis in axes)):
            _place(satisfied, counts, tuple(each - 1 for each in choice))
        total = int(satisfied[(0,) * depth].sum())
        if unit_count > 1:
            satisfied /= unit_count
        return cls(np.moveaxis(satisfied, -1, 0), total, unit_count)

    def is_of(self, row_count: int) -> bool:
        """Return whether the counts agree with the public number of rows or persons.

        Without weights there are exactly as many rows. With weights, the weights add up to at most
        the number of persons.
        """
        if self.unit_count == 1:
            return self.row_count == row_count
        return self.row_count <= row_count * self.unit_count

    @property
    def class_count(self) -> int:
        """The number of labels."""
        return len(self.satisfied)

    @property
    def test_count(self) -> int:
        """The number of feature tests."""
        return int(self.satisfied.shape[-1]) - 1

    @property
    def number(self) -> np.dtype[np.floating]:
        """The number type in which counts of these rows, or sums of their weights, are exact."""
        is_short = self.unit_count == 1 and self.row_count < SINGLE_PRECISION_MAX
        return np.dtype(np.float32 if is_short else np.float64)

    def turned(self, turned: NDArray[np.uint8]) -> CountedRows:
        """Return the rows with the outcomes of some feature tests inverted.

        Args:
            turned: 1 for each test whose outcome is inverted, else 0, shape ``(tests,)``.

        """
        flipped = np.flatnonzero(turned) + 1
        satisfied = self.satisfied.copy()
        for axis in range(1, satisfied.ndim):
            view = np.moveaxis(satisfied, axis, 0)
            view[flipped] = view[:1] - view[flipped]
        return replace(self, satisfied=satisfied)

    def restricted(self, test_index: int, outcome: int) -> CountedRows:
        """Return only those rows for which one feature test has a given outcome.

        Args:
            test_index: the index of the test.
            outcome: the outcome, 0 or 1.

        """
        invariant(self.satisfied.ndim > 1, "rows are counted by as many tests as trees ask")
        inside = self.satisfied[:, test_index + 1]
        return replace(self, satisfied=inside if outcome else self.satisfied[:, 0] - inside)

    def satisfies_any(self, pairs: NDArray[np.bool_]) -> bool:
        """Return whether any row satisfies both conditions of any marked pair of conditions.

        A condition is one outcome of one feature test.

        Args:
            pairs: True for each marked pair, shape ``(2 * tests, 2 * tests)``; the index
                ``2 * a + o`` stands for the condition that the test with index a has the outcome o.

        """
        both = self._first_axes(2).sum(axis=0)
        quadrants = np.empty((self.test_count, 2, self.test_count, 2))
        whole, first, second = both[0, 0], both[1:, :1], both[:1, 1:]
        quadrants[:, 1, :, 1] = both[1:, 1:]
        quadrants[:, 1, :, 0] = first - both[1:, 1:]
        quadrants[:, 0, :, 1] = second - both[1:, 1:]
        quadrants[:, 0, :, 0] = whole - first - second + both[1:, 1:]
        return bool(np.any((quadrants.reshape(pairs.shape) > 0) & pairs))

    def label_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label, shape ``(labels,)``."""
        return self._first_axes(0)

    def single_counts(self) -> NDArray[np.float64]:
        """Return the number of rows of each label that pass each feature test.

        Returns:
            Counts, shape ``(labels, tests)``.

        """
        return self._first_axes(1)[:, 1:]

    def statistics(self) -> Counts:
        """Return the counts of rows that the exponential mechanism over trees of depth 2 needs.

        :meth:`~app.learning.trees.regions.RegionStatistics.of` describes the layout of the returned
        array.
        """
        both = self._first_axes(2)
        products = both[1:, 1:, 1:] - both[:1, 1:, 1:]
        counts = (products, both[:, 1:, 0], both[:, 0, 0])
        return np.concatenate([part.ravel() for part in counts]).astype(self.number)

    def _first_axes(self, count: int) -> NDArray[np.float64]:
        """Return the counts by ``count`` tests, with nothing asked by the others."""
        asked = self.satisfied.ndim - 1
        invariant(asked >= count, "rows are counted by as many tests as trees ask")
        index: tuple[slice | int, ...] = (
            slice(None),
            *[slice(None)] * count,
            *[0] * (asked - count),
        )
        counts: NDArray[np.float64] = self.satisfied[index]
        return counts


def _place(satisfied: NDArray[np.float64], counts: TestCounts, places: Features) -> None:
    """Write the counts by the tests of some features; -1 stands for the test that always holds."""
    asked = tuple(place for place in places if place >= 0)
    found = counts.along(asked)
    rows = [
        counts.coding.features[place].test_indices + 1 if place >= 0 else np.zeros(1, np.int64)
        for place in places
    ]
    shape = [len(each) for each in rows]
    satisfied[np.ix_(*rows)] = found.reshape(*shape, -1)
