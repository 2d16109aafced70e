"""Thresholds, intervals and rectangles as lists of boxes over given cuts.

Every list holds each box of its family once as a range of ranks, then the
constants 0 and 1.  Thresholds are ``x >= cut``; intervals may lack either end;
rectangles are intervals on one feature or on two.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from app.learning.lists.boxes import CLASS_COUNT, Axis, Boxes
from app.learning.lists.enumerated_class import EnumeratedClass, refuse_size
from app.learning.lists.hypothesis_list import distinct_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

BOX_KINDS = ("thresholds", "intervals", "rectangles")
# VC dimension of the rectangles of two features.
RECTANGLE_DIMENSION = 4


def axes_of(tests: Sequence[BinaryTest]) -> list[Axis]:
    """Return the numeric features that have a cut, in schema order, cuts ascending."""
    cuts: dict[int, dict[float, float]] = {}
    for test in tests:
        if test.cut is not None:
            cuts.setdefault(test.feature_index, {})[test.cut] = test.public_frequency
    return [_axis(feature, sorted(cuts[feature].items())) for feature in sorted(cuts)]


def box_class(kind: str, axes: Sequence[Axis]) -> EnumeratedClass:
    """Return the class of a family over cuts.

    Args:
        kind: ``thresholds``, ``intervals`` or ``rectangles``.
        axes: the features with their cuts; none leaves the constants.

    Raises:
        ConfigurationError: too many boxes to list.

    """
    cut_counts = [len(axis.cuts) for axis in axes]
    size = box_count(kind, cut_counts)
    refuse_size(size, f"{kind} over these cuts")
    boxes = Boxes(axes, _sides(kind, cut_counts))
    return EnumeratedClass(boxes, box_dimension(kind, len(axes), size=size))


def box_dichotomies(kind: str, values: NDArray[np.float64], features: Sequence[int]) -> Boxes:
    """Return one box for every dichotomy of points by a family with any cuts.

    Any cut is one at a value of a point, as far as the points can tell.

    Args:
        kind: ``thresholds``, ``intervals`` or ``rectangles``.
        values: encoded points, shape ``(m, d)``.
        features: indices of the numeric features.

    """
    axes = [_dividing_axis(feature, values[:, feature]) for feature in features]
    boxes = Boxes(axes, _sides(kind, [len(axis.cuts) for axis in axes]))
    if len(axes) <= 1:
        return boxes  # on one feature different ranges of ranks hold different points
    return boxes.take(distinct_on(boxes, boxes.encode(values)))


def box_count(kind: str, cut_counts: Sequence[int]) -> int:
    """Return the number of boxes of a family, constants included.

    With ``m - 1`` cuts a feature it bounds the dichotomies of m points.
    """
    if kind == "thresholds":
        return sum(cut_counts) + CLASS_COUNT
    # An end at or below every cut, at each cut, or above all; less the whole line.
    intervals = [comb(count + 2, 2) - 1 for count in cut_counts]
    pairs = sum(first * second for first, second in combinations(intervals, 2))
    return sum(intervals) + CLASS_COUNT + (pairs if kind == "rectangles" else 0)


def box_dimension(kind: str, feature_count: int, *, size: int) -> int:
    """Return the largest m for which m points could have all ``2**m`` labellings.

    It is the VC dimension of thresholds and intervals on one feature, of
    rectangles on two; with more features it is an upper bound of it.
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
