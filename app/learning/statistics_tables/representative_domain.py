"""A public division of the feature space into cells, on which every hypothesis has one label.

A statistics table contains, for each hypothesis, the number of private rows to which it gives label
1, with noise; these numbers follow from the numbers of rows in the cells. Two feature vectors are
in the same cell if every listed hypothesis gives them the same label. The cells are found from the
points of a public grid; every cell contains at least one of these points. The cells are never found
from private rows, and the cell of a row depends on this row only.

The grid has one point for every joint outcome of the feature tests: for each feature, an interval
between cuts (thresholds) or a category. Every possible row belongs to one grid point, and all
hypotheses that use only these tests give the row the label of its point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import ConfigurationError, invariant
from app.learning.enumerated.hypothesis_list import PREDICTIONS_PER_BLOCK, distinct_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.enumerated.hypothesis_list import Encoded, HypothesisList

BINARY = 2
GRID_POINT_COUNT_MAX = 1 << 20
# Labels of all hypotheses on all cells, one byte each.
LABEL_COUNT_MAX = 1 << 28


@dataclass(frozen=True, slots=True, eq=False)
class RepresentativeDomain:
    """The public cells (parts of the feature space) on which every listed hypothesis has one label.

    Attributes:
        hypotheses: the listed hypotheses, with two labels.
        labels: the label of every hypothesis on every cell, uint8, shape ``(hypotheses, cells)``;
            no two cells have the same labels.
        cell_of_point: the index of the cell of each grid point, int64, shape ``(points,)``.

    """

    hypotheses: HypothesisList
    labels: NDArray[np.uint8]
    cell_of_point: NDArray[np.int64]

    @property
    def cell_count(self) -> int:
        """The number of cells."""
        return int(self.labels.shape[1])

    def private_count_at(
        self,
        private_places: NDArray[np.int64],
        private_weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the number of rows in each cell, from the rows' grid points; secret.

        Args:
            private_places: the index of each row's grid point, shape ``(rows,)``.
            private_weights: the weight of each row in the counts, shape ``(rows,)``; None for 1
                each.

        Returns:
            Counts, shape ``(cells,)``.

        """
        cells = self.cell_of_point[private_places]
        return np.bincount(cells, private_weights, self.cell_count)

    def private_cell_count(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the number of rows in every cell, shape ``(cells,)``; secret.

        A row is in the cell on which the hypotheses have the same labels as on the row. If there
        were no such cell, the row would be counted in the first cell. Nothing reveals this, and
        the row still changes one count only.

        Args:
            encoded: the private rows, in the encoding of the hypotheses; the first axis counts the
                rows.

        """
        cells = {column: index for index, column in enumerate(_columns(self.labels))}
        counts = np.zeros(self.cell_count, dtype=np.int64)
        for block in _blocks(len(encoded), len(self.hypotheses)):
            for column in _columns(self.hypotheses.predict(encoded[block])):
                counts[cells.get(column, 0)] += 1
        return counts


class Projection:
    """A search for the listed hypothesis that labels public points as a client's hypothesis does.

    A client may ask for the number of rows to which any hypothesis of the class gives label 1. The
    answer is the one for the listed hypothesis with the same labels or, within a limit, the most
    similar ones.

    Args:
        hypotheses: the listed hypotheses, one for every labelling of the points.
        public_points: the points, in the encoding of the hypotheses; the first axis counts the
            points.

    """

    def __init__(self, hypotheses: HypothesisList, public_points: Encoded) -> None:
        """Store the labels of every listed hypothesis on the public points."""
        self._words = _words(_packed_rows(hypotheses, public_points))
        self._point_count = len(public_points)
        self._indices = {row.tobytes(): index for index, row in enumerate(self._words)}
        invariant(len(self._indices) == len(hypotheses), "no two hypotheses agree on all points")

    def index_of(self, labels: NDArray[np.uint8]) -> int:
        """Return the index of the listed hypothesis that gives the points these labels.

        Args:
            labels: one label per public point, 0 or 1.

        Raises:
            InvariantError: no listed hypothesis gives these labels.

        """
        index, apart = self.nearest(labels)
        invariant(apart == 0, "a hypothesis of the class has these labels")
        return index

    def nearest(self, labels: NDArray[np.uint8]) -> tuple[int, int]:
        """Return the listed hypothesis with the most similar labels, and the number of differences.

        Args:
            labels: one label per public point, 0 or 1.

        Returns:
            The index of the hypothesis (of several equally similar ones, the first), and the number
            of points to which it gives another label.

        """
        packed = self._packed(labels)
        index = self._indices.get(packed.tobytes())
        if index is not None:
            return index, 0
        apart = np.bitwise_count(self._words ^ packed).sum(axis=1, dtype=np.int64)
        nearest = int(apart.argmin())
        return nearest, int(apart[nearest])

    def search_word_count(self, labels: NDArray[np.uint8]) -> int:
        """Return the number of 64-bit integers that :meth:`nearest` compares, to estimate its work.

        Each integer has the labels of 64 points as bits. The number is 0 if a listed hypothesis has
        exactly these labels.

        Args:
            labels: one label per public point, 0 or 1.

        """
        known = self._packed(labels).tobytes() in self._indices
        return 0 if known else int(self._words.size)

    def _packed(self, labels: NDArray[np.uint8]) -> NDArray[np.uint64]:
        invariant(labels.shape == (self._point_count,), "there is a label for each point")
        packed: NDArray[np.uint64] = _words(np.packbits(labels)[np.newaxis])[0]
        return packed


def cover(hypotheses: HypothesisList, public_points: Encoded) -> HypothesisList:
    """Return one of the hypotheses for each way in which they label the public points.

    Args:
        hypotheses: any list.
        public_points: the points, in the encoding of the list; the first axis counts the points.

    """
    return hypotheses.take(distinct_on(hypotheses, public_points))


def representative_axes(
    references: Mapping[int, Iterable[float]], feature_count: int
) -> list[NDArray[np.float64]]:
    """Return for each feature a few values, one for each joint outcome of its tests.

    Hypotheses compare a feature with cuts (``x >= cut``) or with codes of categories
    (``x == code``). The values are a missing value, the cuts and the codes. A missing value makes
    every test false, like a number below all cuts or a category that no test names. A cut stands
    for the numbers from this cut up to the next one.

    Args:
        references: by feature index, every cut or code that a hypothesis uses.
        feature_count: the number of features in the schema.

    Returns:
        For each feature its values, starting with NaN for a missing value.

    """
    return [
        np.array([math.nan, *sorted(set(references.get(feature, ())))], dtype=np.float64)
        for feature in range(feature_count)
    ]


def product_domain(
    hypotheses: HypothesisList, axes: Sequence[NDArray[np.float64]]
) -> RepresentativeDomain:
    """Return the cells on which every hypothesis has one label, found on a grid of feature values.

    Args:
        hypotheses: the listed hypotheses, with two labels. They give any row the label of the
            row's grid point.
        axes: for each feature, the values that :func:`representative_axes` returns.

    Raises:
        ConfigurationError: the grid or the table is too large. This depends on the public schema
            and public points (feature vectors) only.

    """
    invariant(hypotheses.class_count == BINARY, "a query is a hypothesis with two labels")
    shape = [len(axis) for axis in axes]
    refuse_grid(math.prod(shape))
    seen: dict[bytes, int] = {}
    kept: list[NDArray[np.uint8]] = []
    cell_of_point = np.empty(math.prod(shape), dtype=np.int64)
    for block in _blocks(math.prod(shape), len(hypotheses)):
        places = np.unravel_index(np.arange(block.start, block.stop), shape)
        values = np.stack([axis[place] for axis, place in zip(axes, places, strict=True)], axis=1)
        labels = hypotheses.predict(hypotheses.encode(values)).astype(np.uint8)
        for place, column in enumerate(_columns(labels)):
            cell = seen.setdefault(column, len(seen))
            cell_of_point[block.start + place] = cell
            if cell == len(kept):
                kept.append(labels[:, place].copy())
        refuse_cells(len(seen), len(hypotheses))
    table = np.stack(kept, axis=1)
    for array in (table, cell_of_point):
        array.flags.writeable = False
    return RepresentativeDomain(hypotheses, table, cell_of_point)


def refuse_grid(point_count: int) -> None:
    """Refuse a grid that has too many points, before it is built.

    Raises:
        ConfigurationError: there are too many points; the message says the number, and what to
            change.

    """
    if point_count > GRID_POINT_COUNT_MAX:
        problem = (
            f"the grid of the tests has {point_count} points, and at most "
            f"{GRID_POINT_COUNT_MAX} can be listed: use fewer features or fewer tests"
        )
        raise ConfigurationError("statistics.tests", problem)


def refuse_cells(cell_count: int, query_count: int) -> None:
    """Refuse a statistics table with too many cells and hypotheses.

    Args:
        cell_count: the number of cells.
        query_count: the number of hypotheses, each of which has one entry in the table.

    Raises:
        ConfigurationError: the table is too large; the message says its size, and what to change.

    """
    if cell_count * query_count > LABEL_COUNT_MAX:
        problem = (
            f"{query_count} hypotheses on {cell_count} cells or more are too large a table: "
            "use fewer features, tests or public points"
        )
        raise ConfigurationError("statistics.tests", problem)


def _packed_rows(hypotheses: HypothesisList, encoded: Encoded) -> NDArray[np.uint8]:
    """Return the labels of every hypothesis on the points, eight to a byte.

    Points that all tests read alike are labelled once.
    """
    distinct, place = np.unique(encoded, axis=0, return_inverse=True)
    place = place.reshape(len(encoded))
    rows = []
    for block in _blocks(len(hypotheses), len(encoded)):
        part = hypotheses.take(np.arange(block.start, block.stop))
        rows.append(np.packbits(part.predict(distinct)[:, place], axis=1))
    return np.concatenate(rows)


def _words(packed_rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return bytes of labels as words, filled up with zeros."""
    missing = -packed_rows.shape[1] % np.dtype(np.uint64).itemsize
    whole = np.pad(packed_rows, ((0, 0), (0, missing))) if missing else packed_rows
    return np.ascontiguousarray(whole).view(np.uint64)


def _columns(labels: NDArray[np.unsignedinteger]) -> list[bytes]:
    """Return each column of labels as a key."""
    return [row.tobytes() for row in np.packbits(labels.T.astype(np.uint8), axis=1)]


def _blocks(row_count: int, hypothesis_count: int) -> Iterator[slice]:
    """Yield rows whose predictions by all hypotheses can be held at once."""
    step = max(1, PREDICTIONS_PER_BLOCK // max(1, hypothesis_count))
    for start in range(0, row_count, step):
        yield slice(start, min(start + step, row_count))


@dataclass(frozen=True, slots=True, eq=False)
class CutGrid:
    """A grid with one point for every combination of an interval or category of each feature.

    Attributes:
        axes: for each feature, the values that :func:`representative_axes` returns; the first is
            NaN, for values that make every test false.
        is_numeric: for each feature, whether its tests are ``x >= cut``.

    """

    axes: tuple[NDArray[np.float64], ...]
    is_numeric: tuple[bool, ...]

    @classmethod
    def of(cls, tests: Sequence[BinaryTest], feature_count: int) -> Self:
        """Return the grid that some tests define.

        Args:
            tests: the public tests of features.
            feature_count: the number of features in the schema.

        """
        references: dict[int, list[float]] = {}
        for test in tests:
            value = test.cut if test.cut is not None else float(test.category_code or 0)
            references.setdefault(test.feature_index, []).append(value)
        numeric = {test.feature_index for test in tests if test.cut is not None}
        return cls(
            tuple(representative_axes(references, feature_count)),
            tuple(feature in numeric for feature in range(feature_count)),
        )

    @property
    def point_count(self) -> int:
        """The number of grid points, a public constant."""
        return math.prod(len(axis) for axis in self.axes)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index of each row's grid point, shape ``(rows,)``.

        Grid points are numbered so that the last feature varies fastest. The index of a row depends
        on this row only, and is as secret as the row.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        places = np.zeros(len(values), dtype=np.int64)
        for axis, numeric, column in zip(self.axes, self.is_numeric, values.T, strict=True):
            rank = _rank(axis[1:], column) if numeric else _match(axis[1:], column)
            places = places * len(axis) + rank
        return places


def _rank(cuts: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many cuts each number is at or above; none where it is missing."""
    ranks = np.searchsorted(cuts, column, side="right")
    return np.where(np.isnan(column), 0, ranks).astype(np.int64)


def _match(codes: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return one more than the index of each code, 0 where no test names it."""
    if not len(codes):
        return np.zeros(len(column), dtype=np.int64)
    found = np.minimum(np.searchsorted(codes, column), len(codes) - 1)
    return np.where(codes[found] == column, found + 1, 0).astype(np.int64)
