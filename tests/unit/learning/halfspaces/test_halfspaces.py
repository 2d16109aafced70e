"""Halfspaces on the lattice: what they read, predict, count and refuse."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.public_columns import PublicColumn
from app.learning.enumerated.enumerated_class import SIZE_MAX
from app.learning.enumerated.hypothesis_list import count_errors
from app.learning.halfspaces.arrangement import COORDINATE_MAX
from app.learning.halfspaces.halfspaces import (
    VALUES_PER_BLOCK,
    Halfspaces,
    dichotomy_bound,
    grid_halfspaces,
    halfspace_dichotomies,
    over,
)
from app.learning.halfspaces.lattice import Lattice, public_grid, used_lattice

GENERATOR_SEED = 5
COLUMNS = (
    PublicColumn(bounds=(0.0, 10.0)),
    PublicColumn(category_count=2),
    PublicColumn(bounds=(-1.0, 1.0)),
    PublicColumn(bounds=(0.0, 4.0)),
    PublicColumn(bounds=(0.0, 8.0)),
)
PLANE = Lattice((0, 2), ((0.0, 10.0), (-1.0, 1.0)))


def cut(feature_index: int, value: float, share: float = 0.5) -> BinaryTest:
    """Return a public cut."""
    return BinaryTest(
        feature_index=feature_index, cut=value, category_code=None, public_frequency=share
    )


def cuts(feature_index: int, bins: int) -> list[BinaryTest]:
    """Return equal cuts of a feature with their shares as if its values were uniform."""
    lower, upper = COLUMNS[feature_index].bounds or (0.0, 1.0)
    return [
        cut(feature_index, lower + (upper - lower) * index / bins, 1 - index / bins)
        for index in range(1, bins)
    ]


def predicted(description: dict[str, Any], row: list[float]) -> int:
    """Predict as a stranger would, from a description and nothing else."""
    point = []
    for feature, (lower, upper) in zip(description["features"], description["bounds"], strict=True):
        place = (row[feature] - lower) / (upper - lower) * description["steps"]
        point.append(0 if math.isnan(place) else round(place))
    for level in description["levels"]:
        value = sum(w * u for w, u in zip(level["weights"], point, strict=True)) - level["offset"]
        if value:
            return int(value > 0)
    return 0


def test_a_number_is_its_place_between_its_bounds() -> None:
    """Bounds are the ends of the lattice, a missing number lies at the lower one."""
    values = np.array([[0.0, 9.0, 1.0], [10.0, 9.0, -1.0], [5.0, 9.0, np.nan], [99.0, 0.0, 0.0]])
    expected = [[0, 65536], [65536, 0], [32768, 0], [65536, 32768]]
    assert PLANE.encode(values).tolist() == expected


def test_the_code_of_a_row_does_not_depend_on_other_rows() -> None:
    """Rows encoded together and one by one have the same codes."""
    values = np.random.default_rng(GENERATOR_SEED).normal(size=(50, 3))
    alone = [PLANE.encode(values[index : index + 1])[0].tolist() for index in range(50)]
    assert PLANE.encode(values).tolist() == alone


def test_the_features_with_a_cut_are_those_used() -> None:
    """Categories, and numbers without a cut, are left out."""
    code = BinaryTest(feature_index=1, cut=None, category_code=0, public_frequency=0.5)
    lattice = used_lattice([cut(2, 0.0), code, cut(0, 3.0), cut(0, 4.0)], COLUMNS)
    assert lattice == PLANE


def test_a_fourth_feature_is_refused_by_name_of_the_setting() -> None:
    """Four numeric features with cuts say how to leave one out."""
    tests = [cut(0, 1.0), cut(2, 0.0), cut(3, 1.0), cut(4, 1.0)]
    with pytest.raises(ConfigurationError, match=r"hypotheses\.class: .*4 have a cut.*empty list"):
        used_lattice(tests, COLUMNS)


def test_without_a_cut_the_constants_are_left() -> None:
    """Public points that are all alike leave no cut, and class 0 and class 1 everywhere."""
    hypotheses = grid_halfspaces([], COLUMNS)
    encoded = hypotheses.encode(np.array([[3.0, 1.0, 0.0, 0.0, 0.0]]))
    assert hypotheses.hypotheses.predict(encoded).tolist() == [[0], [1]]
    assert hypotheses.dimension == 1


@pytest.mark.parametrize("bins", [2, 3, 5, 7, 10, 16])
def test_equal_cells_have_equally_spaced_middles_inside_them(bins: int) -> None:
    """Rounding to the lattice does not bend the grid, whatever the number of bins."""
    lattice = used_lattice(cuts(0, bins), COLUMNS)
    (middles,) = public_grid(lattice, cuts(0, bins)).coordinates
    assert len(np.unique(np.diff(middles))) <= 1
    edges = [0, *lattice.coordinates(0, np.array([test.cut for test in cuts(0, bins)])), 65536]
    assert all(
        low < middle < high
        for low, middle, high in zip(edges[:-1], middles, edges[1:], strict=True)
    )


def test_unequal_cells_have_their_own_middles() -> None:
    """A cut at a tenth leaves cells with middles at a twentieth and at eleven twentieths."""
    tests = [cut(0, 1.0, 0.7)]
    grid = public_grid(used_lattice(tests, COLUMNS), tests)
    assert grid.coordinates[0].tolist() == [3277, 36045]
    assert grid.weights[0].tolist() == [9830, 22938]
    assert grid.point_weights().tolist() == [9830, 22938]


def test_the_public_grid_has_the_size_of_its_dichotomies() -> None:
    """Sixteen cells by sixteen are parted in 40,150 ways, as the regular grid is."""
    hypotheses = grid_halfspaces(cuts(0, 16) + cuts(2, 16), COLUMNS)
    assert hypotheses.size == 40150
    assert hypotheses.dimension == 3
    assert hypotheses.class_count == 2


def test_public_frequencies_are_shares_of_the_grid() -> None:
    """A halfspace is expected to hold the people of the cells it holds."""
    tests = [cut(0, 5.0, 0.25), cut(2, 0.0, 0.5)]
    halfspaces = grid_halfspaces(tests, COLUMNS).hypotheses
    cells = np.array([[2.5, 0, -0.5], [2.5, 0, 0.5], [7.5, 0, -0.5], [7.5, 0, 0.5]])
    labels = halfspaces.predict(halfspaces.encode(cells))
    assert len(halfspaces) == 14
    assert halfspaces.public_frequencies == pytest.approx(labels @ [0.375, 0.375, 0.125, 0.125])


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_errors_are_counted_as_predictions_say(dimension: int) -> None:
    """The fast count equals one by predicting, with repeated rows and rows on hyperplanes."""
    generator = np.random.default_rng(GENERATOR_SEED)
    lattice = Lattice(tuple(range(dimension)), ((0.0, 1.0),) * dimension)
    points = np.array(list(product((0, 20000, 65536), repeat=dimension)))
    halfspaces = over(lattice, points)
    rows = np.concatenate([points, points, generator.integers(0, 65537, size=(3000, dimension))])
    labels = generator.integers(0, 2, size=len(rows))
    assert len(halfspaces) * len(rows) > VALUES_PER_BLOCK or dimension == 1
    expected = count_errors(halfspaces, rows, labels)
    assert halfspaces.error_counts(rows, labels).tolist() == expected.tolist()


def test_no_rows_are_no_errors() -> None:
    """An empty set of rows has zero errors under every halfspace."""
    halfspaces = over(PLANE, np.array([[0, 0], [9, 9]]))
    none = np.zeros((0, 2), dtype=np.int64)
    assert halfspaces.error_counts(none, np.zeros(0, dtype=np.int64)).tolist() == [0] * 4


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_stranger_predicts_from_the_description(dimension: int) -> None:
    """Whatever lies on a level or is missing, the description alone gives the same labels."""
    generator = np.random.default_rng(GENERATOR_SEED)
    used = (0, 2, 3)[:dimension]
    tests = [test for feature in used for test in cuts(feature, 3)]
    halfspaces = grid_halfspaces(tests, COLUMNS).hypotheses
    middles = product((5 / 3, 5.0, 25 / 3), (0.0,), (-2 / 3, 0.0, 2 / 3), (2 / 3, 2.0, 10 / 3))
    rows = [[*row, 0.0] for row in middles] + [[np.nan, 0.0, np.nan, 4.0, 0.0]]
    rows += (generator.random((40, 5)) * [10, 1, 2, 4, 8] - [0, 0, 1, 0, 0]).tolist()
    chosen = generator.choice(len(halfspaces), size=min(60, len(halfspaces)), replace=False)
    labels = halfspaces.predict(halfspaces.encode(np.array(rows)))
    for index in chosen:
        description = dict(halfspaces.describe(int(index)))
        assert [predicted(description, row) for row in rows] == labels[index].tolist()


def test_taking_keeps_the_order_and_repeats() -> None:
    """An ensemble's votes are a list with repeats."""
    halfspaces = over(PLANE, np.array([[0, 0], [9, 9], [4, 60]]))
    points = np.array([[1, 1], [8, 9], [4, 40]])
    taken = halfspaces.take(np.array([3, 0, 3]))
    assert isinstance(taken, Halfspaces)
    assert taken.predict(points).tolist() == halfspaces.predict(points)[[3, 0, 3]].tolist()


def test_private_rows_have_one_halfspace_a_labelling() -> None:
    """Rows that share a lattice point count once, and the list parts the rest in every way."""
    values = np.array([[1.0, 0, -1.0], [1.0, 1, -1.0], [9.0, 0, 0.5], [4.0, 0, 0.9]])
    hypotheses = halfspace_dichotomies(PLANE, values)
    labels = hypotheses.hypotheses.predict(hypotheses.encode(values))
    assert sorted(map(tuple, labels[:, 1:].tolist())) == sorted(product((0, 1), repeat=3))
    assert hypotheses.dimension == 3


@pytest.mark.parametrize(
    ("points", "dimension", "expected"),
    [(0, 2, 1), (1, 3, 2), (5, 1, 10), (4, 2, 14), (8, 3, 128), (256, 2, 65282)],
)
def test_the_bound_is_the_sum_of_binomials(points: int, dimension: int, expected: int) -> None:
    """Twice the ways to choose up to dim of the other points."""
    assert dichotomy_bound(points, dimension) == expected


@pytest.mark.parametrize(("points", "dimension"), [(1025, 2), (148, 3), (1 << 19 | 1, 1)])
def test_too_many_points_are_refused_with_their_size(points: int, dimension: int) -> None:
    """One point beyond the limit is refused, with the number and what to do, before it is read."""
    bound = 2 * sum(math.comb(points - 1, size) for size in range(dimension + 1))
    assert bound > SIZE_MAX >= dichotomy_bound(points - 1, dimension)
    lattice = Lattice(tuple(range(dimension)), ((0.0, 1.0),) * dimension)
    unread = np.full((points, dimension), COORDINATE_MAX + 1)
    with pytest.raises(ConfigurationError, match=f"up to {bound} ways.*lower bins"):
        over(lattice, unread)


def test_without_people_a_halfspace_is_expected_to_hold_half() -> None:
    """No points, or points that stand for nobody, say nothing about frequencies."""
    none = over(PLANE, np.zeros((0, 2), dtype=np.int64))
    nobody = over(PLANE, np.array([[1, 1]]), weights=np.array([0]))
    assert none.public_frequencies.tolist() == [0.5]
    assert nobody.public_frequencies.tolist() == [0.5, 0.5]


def test_a_fine_grid_is_refused_before_it_is_made() -> None:
    """A thousand bins on three features are a number, never an array."""
    tests = [test for feature in (0, 2, 3) for test in cuts(feature, 1000)]
    with pytest.raises(ConfigurationError, match="1000000000 points in 3 dimensions"):
        grid_halfspaces(tests, COLUMNS)
