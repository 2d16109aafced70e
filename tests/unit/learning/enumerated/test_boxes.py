"""Boxes predict, err and are counted as their definition says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.enumerated.boxes import Boxes, Side, axes_of, box_class, box_count, box_dimension
from app.learning.enumerated.enumerated_class import EnumeratedClass
from app.learning.enumerated.hypothesis_list import count_errors, distinct_on
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from tests.builders.learners.labelings import labelings, shatters

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = ("thresholds", "intervals", "rectangles")


def cuts(feature: int, *numbers: float) -> list[BinaryTest]:
    """Return tests of one feature; a fifth of the people is below each cut."""
    return [
        BinaryTest(
            feature_index=feature,
            cut=number,
            category_code=None,
            public_frequency=1.0 - 0.2 * (place + 1),
        )
        for place, number in enumerate(numbers)
    ]


CATEGORY = BinaryTest(feature_index=1, cut=None, category_code=0, public_frequency=0.5)
# Given out of order, with a category between: numbers are features 0 and 2.
TESTS = [*cuts(2, 1.0, 2.0, 3.0), CATEGORY, *reversed(cuts(0, -1.0, 0.5))]


def boxes_of(kind: str) -> Boxes:
    """Return the list of a family over the tests above."""
    listed = box_class(kind, axes_of(TESTS)).hypotheses
    assert isinstance(listed, Boxes)
    return listed


def rows(count: int, seed: int = 1) -> NDArray[np.float64]:
    """Return rows with values on cuts, between them and missing."""
    generator = np.random.default_rng(seed)
    values = generator.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 9.0, np.nan], (count, 3))
    values[:, 1] = generator.integers(0, 3, count)
    return values


def inside(boxes: Boxes, index: int, row: NDArray[np.float64]) -> int:
    """Label a row by the description of a box, one comparison after the other."""
    label = boxes.everywhere(index)
    for side in boxes.bounded_sides(index):
        value = row[side.feature]
        if side.lower is not None and not value >= side.lower:
            label = 0
        if side.upper is not None and value >= side.upper:
            label = 0
    return label


@pytest.mark.parametrize("kind", ["intervals", "rectangles"])
def test_the_registry_lists_the_boxes_of_its_tests(kind: str) -> None:
    """By its name a class has the boxes whose sides are the numeric tests' cuts."""
    named, boxes = (
        hypothesis_class(ClassAsked(kind=kind, tests=TESTS, depth=1, class_count=2)),
        boxes_of(kind),
    )
    assert isinstance(named, EnumeratedClass)
    predicted = named.hypotheses.predict(named.encode(rows(40)))
    assert predicted.tolist() == boxes.predict(boxes.encode(rows(40))).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_description(kind: str) -> None:
    """On cuts, between them and missing, which lies below every cut."""
    boxes, values = boxes_of(kind), rows(40)
    predicted = boxes.predict(boxes.encode(values))
    for index in range(len(boxes)):
        assert predicted[index].tolist() == [inside(boxes, index, row) for row in values]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_by_sums_equal_errors_by_prediction(kind: str) -> None:
    """For every box, over rows of both labels, of one label and of none."""
    boxes, values = boxes_of(kind), rows(60)
    encoded, labels = boxes.encode(values), np.random.default_rng(2).integers(0, 2, 60)
    for given in (labels, np.zeros_like(labels), np.ones_like(labels)):
        expected = (boxes.predict(encoded) != given).sum(axis=1)
        assert boxes.error_counts(encoded, given).tolist() == expected.tolist()
        assert count_errors(boxes, encoded, given).tolist() == expected.tolist()
    assert not boxes.error_counts(encoded[:0], labels[:0]).any()


def test_a_family_holds_every_range_of_cuts_once() -> None:
    """Two and three cuts give 5 thresholds, 14 intervals, 45 more rectangles; and constants."""
    sizes = {kind: len(boxes_of(kind)) for kind in KINDS}
    assert sizes == {"thresholds": 5 + 2, "intervals": 5 + 9 + 2, "rectangles": 5 + 9 + 45 + 2}
    for kind in KINDS:
        assert box_count(kind, [2, 3]) == sizes[kind]
        assert len(np.unique(boxes_of(kind).sides, axis=0)) == sizes[kind]


def test_constants_come_last() -> None:
    """First class 0 everywhere, then class 1."""
    boxes = boxes_of("rectangles")
    predicted = boxes.predict(boxes.encode(rows(5)))
    assert predicted[-2:].tolist() == [[0] * 5, [1] * 5]
    assert boxes.describe(len(boxes) - 1) == {"kind": "box", "label": 1, "sides": []}
    assert boxes.describe(len(boxes) - 2) == {"kind": "box", "label": 0, "sides": []}


def test_frequencies_are_shares_of_people_in_a_box() -> None:
    """Shares of sides multiply, an open end keeps everybody beyond it."""
    boxes = boxes_of("rectangles")
    for index in range(len(boxes)):
        share = float(boxes.everywhere(index))
        for side in boxes.bounded_sides(index):
            at_least = {test.cut: test.public_frequency for test in cuts_of(side)}
            kept = 1.0 if side.lower is None else at_least[side.lower]
            share *= kept - (0.0 if side.upper is None else at_least[side.upper])
        assert boxes.public_frequencies[index] == pytest.approx(share)


def cuts_of(side: Side) -> list[BinaryTest]:
    """Return the tests of a side's feature."""
    return [test for test in TESTS if test.feature_index == side.feature]


def test_shares_that_contradict_each_other_stay_shares() -> None:
    """A cut said to be met by more people than a lower one gives 0, no negative share."""
    odd = [*cuts(0, 1.0), *cuts(0, 0.0)]
    odd[1] = BinaryTest(feature_index=0, cut=0.0, category_code=None, public_frequency=0.1)
    boxes = box_class("intervals", axes_of(odd)).hypotheses
    assert boxes.public_frequencies.min() == 0.0


def test_without_cuts_the_constants_are_left() -> None:
    """Public points that are all alike leave two hypotheses."""
    for kind in KINDS:
        listed = box_class(kind, [])
        assert (listed.size, listed.dimension) == (2, 1)
        encoded = listed.encode(np.zeros((3, 1)))
        assert listed.hypotheses.predict(encoded).tolist() == [[0] * 3, [1] * 3]


@pytest.mark.parametrize(
    ("kind", "feature_count", "expected"),
    [("thresholds", 1, 1), ("intervals", 1, 2), ("rectangles", 2, 4), ("rectangles", 1, 2)],
)
def test_the_dimension_is_that_of_brute_force(kind: str, feature_count: int, expected: int) -> None:
    """Some set of that many points is shattered, and none of one more on a grid of 4 a side."""
    axes = axes_of([test for feature in range(feature_count) for test in cuts(feature, 1, 2, 3)])
    listed = box_class(kind, axes)
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * feature_count), axis=-1)
    labels = labelings(listed.hypotheses, grid.reshape(-1, feature_count))
    assert listed.dimension == expected
    assert shatters(labels, expected)
    assert not shatters(labels, expected + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_dimension_over_several_features_is_an_upper_bound(kind: str) -> None:
    """Three features: no set of more points is shattered among 60 random ones."""
    axes = axes_of([test for feature in range(3) for test in cuts(feature, 1, 2)])
    listed = box_class(kind, axes)
    values = np.random.default_rng(4).integers(0, 3, (9, 3)).astype(np.float64)
    assert not shatters(labelings(listed.hypotheses, values), listed.dimension + 1)
    assert listed.dimension <= box_dimension(kind, 3, size=1 << 60)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sublist_repeats_and_keeps_its_order(kind: str) -> None:
    """Votes may name a box twice."""
    boxes, values = boxes_of(kind), rows(20)
    indices = np.array([3, 0, 3, len(boxes) - 1])
    part, encoded = boxes.take(indices), boxes.encode(values)
    assert np.array_equal(part.predict(encoded), boxes.predict(encoded)[indices])
    labels = np.random.default_rng(5).integers(0, 2, 20)
    errors = boxes.error_counts(encoded, labels)[indices]
    assert part.error_counts(encoded, labels).tolist() == errors.tolist()
    assert part.describe(1) == boxes.describe(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point_count", [0, 1, 7, 90])
def test_one_box_is_kept_for_each_dichotomy_of_points(kind: str, point_count: int) -> None:
    """It is the first of those that label the points alike."""
    boxes = boxes_of(kind)
    encoded = boxes.encode(rows(point_count, seed=6))
    seen: dict[bytes, int] = {}
    for index, labels in enumerate(boxes.predict(encoded)):
        seen.setdefault(labels.tobytes(), index)
    assert distinct_on(boxes, encoded).tolist() == list(seen.values())


def test_boxes_too_many_to_list_are_refused_before_they_are_built() -> None:
    """The line gives their number and says what to change."""
    halves = [
        BinaryTest(feature_index=number % 2, cut=number, category_code=None, public_frequency=0.5)
        for number in range(90)
    ]
    assert box_count("rectangles", [43, 43]) <= 1 << 20 < box_count("rectangles", [45, 45])
    with pytest.raises(ConfigurationError, match=r"rectangles over these cuts number 11[0-9]{5},"):
        box_class("rectangles", axes_of(halves))
