"""Boxes: label 1 if one or two numeric features lie in half-open intervals, else label 0.

A list of boxes is made for one of three hypothesis classes. ``thresholds`` has the rules
``x >= cut``. ``intervals`` has the intervals on one feature, each of which may be unbounded on one
side. ``rectangles`` has the intervals on one feature and the pairs of intervals on two features.
Each list has every box of its class once, and then the two hypotheses that give every row label 0
or 1.

A value is encoded as its rank: the number of public cuts of its feature that are at most the value.
A missing value has rank 0, like a value below every cut. An interval is stored as a range of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from app.learning.enumerated.enumerated_class import EnumeratedClass, refuse_size
from app.learning.enumerated.hypothesis_list import distinct_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.enumerated.hypothesis_list import Description, Encoded

CLASS_COUNT = 2
# Boxes whose corners are looked up at once.
BOXES_PER_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A numeric feature with its public cuts (thresholds).

    Attributes:
        feature_index: the index of the feature in the schema.
        cuts: the cuts, strictly increasing, shape ``(cuts,)``.
        shares: a public estimate of the share of people with a value at or above each cut, shape
            ``(cuts,)``.

    """

    feature_index: int
    cuts: NDArray[np.float64]
    shares: NDArray[np.float64]

    def ranks(self, column: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return each value's rank: the number of cuts that are at most the value; 0 if missing."""
        ranks = np.searchsorted(self.cuts, column, side="right")
        return np.where(np.isnan(column), 0, ranks).astype(np.int32)

    def bound(self, rank: int) -> float | None:
        """Return the cut (threshold) at which a rank begins; None if the rank has no such cut."""
        return float(self.cuts[rank - 1]) if 0 < rank <= len(self.cuts) else None


class Side(NamedTuple):
    """An interval ``lower <= x < upper`` of a feature; None stands for an unbounded end."""

    feature: int
    lower: float | None
    upper: float | None


class Boxes:
    """A list of boxes; each is a hypothesis that gives label 1 inside and label 0 outside.

    Args:
        axes: the numeric features with their cuts (thresholds). The index ``len(axes)`` stands for
            a further axis without cuts, on which every row has rank 0.
        sides: the two intervals of each box, int32, shape ``(boxes, 2, 3)``. An interval is given
            by the index of an axis, the first rank inside, and the first rank above the interval.

    """

    def __init__(self, axes: Sequence[Axis], sides: NDArray[np.int32]) -> None:
        """Store the public arrays."""
        self.axes = tuple(axes)
        self.sides = sides

    @property
    def class_count(self) -> int:
        """The number of labels, which is two."""
        return CLASS_COUNT

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.sides)

    @cached_property
    def public_frequencies(self) -> NDArray[np.float64]:
        """The expected share of rows in each box, from public shares of people in its intervals.

        The features are taken as independent. The shape is ``(boxes,)``.
        """
        tables = [np.array([1.0, *axis.shares, 0.0]) for axis in self.axes]
        tables.append(np.array([1.0, 0.0]))
        starts = np.cumsum([0, *map(len, tables)])[:-1]
        table = np.concatenate(tables)
        first = starts[self.sides[:, :, 0]]
        inside = table[first + self.sides[:, :, 1]] - table[first + self.sides[:, :, 2]]
        frequencies: NDArray[np.float64] = np.clip(inside, 0.0, 1.0).prod(axis=1)
        return frequencies

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return each value's rank: the number of cuts (thresholds) that are at most the value.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            Ranks, shape ``(rows, axes + 1)``; the last column is 0.

        """
        ranks = [axis.ranks(values[:, axis.feature_index]) for axis in self.axes]
        return np.stack([*ranks, np.zeros(len(values), dtype=np.int32)], axis=1)

    def predict(self, encoded: Encoded) -> NDArray[np.uint8]:
        """Return for every box and row 1 if the row lies in the box, else 0.

        Args:
            encoded: the ranks that :meth:`encode` returns.

        Returns:
            Labels, shape ``(boxes, rows)``.

        """
        ranks = np.ascontiguousarray(encoded.astype(np.int32, copy=False).T)
        inside = self._within(ranks, 0) & self._within(ranks, 1)
        return inside.view(np.uint8)

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of errors of every box, shape ``(boxes,)``.

        The errors of a box are the rows of label 1 outside it and the rows of label 0 inside it.
        They are counted by two-dimensional prefix sums.

        Args:
            encoded: the ranks that :meth:`encode` returns.
            labels: class indices 0 or 1, shape ``(rows,)``.

        """
        ranks = encoded.astype(np.int64, copy=False)
        excess = np.concatenate([self._excess(pair, ranks, labels) for pair in self._pairs])
        errors = np.empty(len(self), dtype=np.int64)
        for start in range(0, len(self), BOXES_PER_BLOCK):
            block = slice(start, start + BOXES_PER_BLOCK)
            near, low, left, far = (excess[corner[block]] for corner in self._corners)
            errors[block] = near - low - left + far
        return errors + np.count_nonzero(labels)

    def take(self, indices: NDArray[np.int64]) -> Self:
        """Return the boxes at ``indices``, in that order."""
        return type(self)(self.axes, self.sides[indices])

    def describe(self, index: int) -> Description:
        """Return a box's label, and the feature, lower end and upper end of its intervals."""
        sides = [
            {"feature": side.feature, "lower": side.lower, "upper": side.upper}
            for side in self.bounded_sides(index)
        ]
        return {"kind": "box", "label": self.everywhere(index), "sides": sides}

    def bounded_sides(self, index: int) -> list[Side]:
        """Return the intervals of a box that restrict a feature."""
        return [
            self._side(axis, lower, upper)
            for axis, lower, upper in self.sides[index].tolist()
            if axis < len(self.axes)
        ]

    def everywhere(self, index: int) -> int:
        """Return the label inside a box: 1, or 0 if one of its intervals is empty."""
        return int(bool((self.sides[index, :, 1] < self.sides[index, :, 2]).all()))

    def _side(self, axis_index: int, lower: int, upper: int) -> Side:
        """Return a side in the words of its feature."""
        axis = self.axes[axis_index]
        return Side(axis.feature_index, axis.bound(lower), axis.bound(upper))

    def _within(self, ranks: NDArray[np.int32], side: int) -> NDArray[np.bool_]:
        """Return whether each row is in one side of every box; one comparison finds both ends."""
        axis, lower, upper = self.sides[:, side].T
        offset = (ranks[axis] - lower[:, np.newaxis]).view(np.uint32)
        within: NDArray[np.bool_] = offset < (upper - lower).astype(np.uint32)[:, np.newaxis]
        return within

    @cached_property
    def _widths(self) -> NDArray[np.int64]:
        """Number of ranks of every axis, the one without cuts included."""
        return np.array([*(len(axis.cuts) + 1 for axis in self.axes), 1], dtype=np.int64)

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """Pairs of axes that some box has sides on."""
        pairs = np.unique(self.sides[:, :, 0], axis=0)
        return [(first, second) for first, second in pairs.tolist()]

    @cached_property
    def _corners(self) -> NDArray[np.int32]:
        """Where the four corners of every box are in the tables of all pairs, ``(4, N)``."""
        axes = self.sides[:, :, 0].astype(np.int64)
        starts = np.zeros((len(self._widths),) * 2, dtype=np.int64)
        position = 0
        for first, second in self._pairs:
            starts[first, second] = position
            position += int((self._widths[first] + 1) * (self._widths[second] + 1))
        start = starts[axes[:, 0], axes[:, 1]]
        stride = self._widths[axes[:, 1]] + 1
        _, lower, upper = self.sides.astype(np.int64).transpose(2, 0, 1)
        return np.stack(
            [
                start + first * stride + second
                for first in (upper[:, 0], lower[:, 0])
                for second in (upper[:, 1], lower[:, 1])
            ]
        ).astype(np.int32)

    def _excess(
        self, pair: tuple[int, int], ranks: NDArray[np.int64], labels: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return rows of label 0 less those of label 1 below every pair of ranks, flat."""
        first, second = pair
        shape = (int(self._widths[first]), int(self._widths[second]))
        cells = ranks[:, first] * shape[1] + ranks[:, second]
        sizes = shape[0] * shape[1]
        counts = np.bincount(cells[labels == 0], minlength=sizes)
        counts -= np.bincount(cells[labels != 0], minlength=sizes)
        table = np.zeros((shape[0] + 1, shape[1] + 1), dtype=np.int64)
        table[1:, 1:] = counts.reshape(shape).cumsum(axis=0).cumsum(axis=1)
        return table.ravel()


# VC dimension of the rectangles of two features.
RECTANGLE_DIMENSION = 4


def axes_of(tests: Sequence[BinaryTest]) -> list[Axis]:
    """Return the numeric features with cuts in the order of the schema, cuts ascending."""
    cuts: dict[int, dict[float, float]] = {}
    for test in tests:
        if test.cut is not None:
            cuts.setdefault(test.feature_index, {})[test.cut] = test.public_frequency
    return [_axis(feature, sorted(cuts[feature].items())) for feature in sorted(cuts)]


def box_class(kind: str, axes: Sequence[Axis]) -> EnumeratedClass:
    """Return the hypothesis class of all boxes of one kind with the given cuts.

    Args:
        kind: ``thresholds``, ``intervals`` or ``rectangles``.
        axes: the features with their cuts. Without features, the class has only the two hypotheses
            that give every row the same label.

    Raises:
        ConfigurationError: there are too many boxes to list.

    """
    cut_counts = [len(axis.cuts) for axis in axes]
    size = box_count(kind, cut_counts)
    refuse_size(size, f"{kind} over these cuts")
    boxes = Boxes(axes, _sides(kind, cut_counts))
    return EnumeratedClass(boxes, box_dimension(kind, len(axes), size=size))


def box_dichotomies(kind: str, values: NDArray[np.float64], features: Sequence[int]) -> Boxes:
    """Return one box for every way in which boxes of one kind can label the given rows.

    Cuts at the values of the rows are enough for this.

    Args:
        kind: ``thresholds``, ``intervals`` or ``rectangles``.
        values: feature values of the rows, encoded by the public schema, shape
            ``(rows, features)``.
        features: the indices of the numeric features to use.

    """
    axes = [_dividing_axis(feature, values[:, feature]) for feature in features]
    boxes = Boxes(axes, _sides(kind, [len(axis.cuts) for axis in axes]))
    if len(axes) <= 1:
        return boxes  # on one feature different ranges of ranks hold different points
    return boxes.take(distinct_on(boxes, boxes.encode(values)))


def box_count(kind: str, cut_counts: Sequence[int]) -> int:
    """Return the number of boxes of one kind, plus two that give every row the same label.

    With ``m - 1`` cuts per feature, it is an upper bound on the number of ways to label m rows.

    Args:
        kind: ``thresholds``, ``intervals`` or ``rectangles``.
        cut_counts: the number of cuts of each feature.

    """
    if kind == "thresholds":
        return sum(cut_counts) + CLASS_COUNT
    # An end at or below every cut, at each cut, or above all; less the whole line.
    intervals = [comb(count + 2, 2) - 1 for count in cut_counts]
    pairs = sum(first * second for first, second in combinations(intervals, 2))
    return sum(intervals) + CLASS_COUNT + (pairs if kind == "rectangles" else 0)


def box_dimension(kind: str, feature_count: int, *, size: int) -> int:
    """Return the VC dimension of boxes of one kind, or an upper bound on it.

    It is exact for thresholds and intervals on one feature, and for rectangles on two.

    Args:
        kind: ``thresholds``, ``intervals`` or ``rectangles``.
        feature_count: the number of numeric features.
        size: the number of boxes.

    """
    dimension = 0
    while 1 << (dimension + 1) <= min(size, _growth(kind, dimension + 1, feature_count)):
        dimension += 1
    return dimension


def _growth(kind: str, point_count: int, feature_count: int) -> int:
    """Bound the dichotomies of points by a family with any cuts, pair by pair of features."""
    boxes = box_count(kind, [point_count - 1] * feature_count)
    if kind != "rectangles" or feature_count <= 1:
        return boxes
    sauer = sum(comb(point_count, count) for count in range(RECTANGLE_DIMENSION + 1))
    return min(boxes, comb(feature_count, 2) * sauer)


def _axis(feature_index: int, shares: Sequence[tuple[float, float]]) -> Axis:
    """Return an axis from pairs of a cut and its public share, ascending."""
    cuts, frequencies = np.array(shares, dtype=np.float64).T
    return Axis(feature_index, cuts, frequencies)


def _dividing_axis(feature_index: int, column: NDArray[np.float64]) -> Axis:
    """Return the values that part the points as cuts, with a share of one half each."""
    values = np.unique(column[~np.isnan(column)])
    cuts = values if np.isnan(column).any() else values[1:]
    return Axis(feature_index, cuts, np.full(len(cuts), 0.5))


def _sides(kind: str, cut_counts: Sequence[int]) -> NDArray[np.int32]:
    """Return both sides of every box of a family, shape ``(N, 2, 3)``."""
    free = len(cut_counts)
    whole = np.array([[free, 0, 1]], dtype=np.int32)
    single = [_side_rows(kind, axis, count) for axis, count in enumerate(cut_counts)]
    boxes = [_products(sides, whole) for sides in single]
    if kind == "rectangles":
        boxes += [_products(first, second) for first, second in combinations(single, 2)]
    nowhere = np.array([[free, 0, 0]], dtype=np.int32)
    return np.concatenate([*boxes, _products(nowhere, whole), _products(whole, whole)])


def _side_rows(kind: str, axis: int, cut_count: int) -> NDArray[np.int32]:
    """Return the sides of one axis that are neither empty nor the whole line, ``(s, 3)``."""
    if kind == "thresholds":
        lower = np.arange(1, cut_count + 1)
        upper = np.full(cut_count, cut_count + 1)
    else:
        ranges = np.stack(np.triu_indices(cut_count + 2, 1))
        lower, upper = ranges[:, ranges[1] - ranges[0] <= cut_count]
    return np.stack([np.full(len(lower), axis), lower, upper], axis=1).astype(np.int32)


def _products(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return every pair of a first side and a second one, shape ``(a b, 2, 3)``."""
    left = np.repeat(first, len(second), axis=0)
    right = np.tile(second, (len(first), 1))
    return np.stack([left, right], axis=1)
