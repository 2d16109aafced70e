"""The halfspaces found are exactly the dichotomies that a linear program finds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from app.errors import InvariantError
from app.learning.halfspaces.arrangement import (
    COORDINATE_MAX,
    dichotomy_levels,
    spanning_axes,
    visible_pairs,
)
from app.learning.halfspaces.halfspaces import dichotomy_bound

GENERATOR_SEED = 3
# Degenerate and not, few enough for 2**m linear programs.
POINT_SETS = {
    "one number": [[7]],
    "numbers with a repeated one": [[5], [0], [9], [5], [2]],
    "one point": [[3, 4]],
    "points on a slanted line": [[0, 1], [2, 2], [4, 3], [8, 5]],
    "points on an upright line": [[4, 0], [4, 9], [4, 3], [4, 4]],
    "the corners of a square": [[0, 0], [0, 9], [9, 0], [9, 9]],
    "a grid of nine": [[x, y] for x in range(3) for y in range(3)],
    "a line and one point off it": [[0, 0], [1, 1], [2, 2], [5, 5], [0, 3]],
    "a repeated point in a plane": [[0, 0], [1, 5], [1, 5], [7, 2], [3, 3]],
    "a line in space": [[0, 0, 1], [1, 2, 2], [2, 4, 3], [5, 10, 6]],
    "a plane in space": [[x, y, x + 2 * y] for x in range(3) for y in range(2)],
    "an upright plane in space": [[4, x, y] for x in range(2) for y in range(3)],
    "the corners of a cube": [list(corner) for corner in product((0, 1), repeat=3)],
    "a square and its apex": [[0, 0, 0], [0, 4, 0], [4, 0, 0], [4, 4, 0], [2, 2, 3]],
    "a row of squares": [list(corner) for corner in product((0, 1, 2), (0, 1), (0, 1))][:9],
    "the ends of the lattice": [
        [COORDINATE_MAX * x, COORDINATE_MAX * y, COORDINATE_MAX * z]
        for x, y, z in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)]
    ]
    + [[COORDINATE_MAX // 2, COORDINATE_MAX, COORDINATE_MAX // 2], [COORDINATE_MAX // 4, 0, 0]],
}


def is_separable(points: np.ndarray, labels: tuple[int, ...]) -> bool:
    """Tell by a linear program whether some halfspace holds the points labelled 1 only."""
    signs = 2.0 * np.array(labels) - 1.0
    scaled = points / max(1, points.max())
    constraints = -signs[:, np.newaxis] * np.hstack([scaled, np.ones((len(points), 1))])
    found = linprog(
        np.zeros(constraints.shape[1]),
        A_ub=constraints,
        b_ub=-np.ones(len(points)),
        bounds=[(None, None)] * constraints.shape[1],
    )
    return bool(found.status == 0)


def labelled(levels: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Predict with Python's own integers, which cannot overflow."""
    rows = []
    for halfspace in levels.tolist():
        labels = []
        for point in points.tolist():
            values = [
                sum(weight * place for weight, place in zip(level[:-1], point, strict=True))
                - level[-1]
                for level in halfspace
            ]
            labels.append(int(next((value for value in values if value), 0) > 0))
        rows.append(labels)
    return np.array(rows)


@pytest.mark.parametrize("name", POINT_SETS)
def test_the_dichotomies_are_those_of_a_linear_program(name: str) -> None:
    """Every separable labelling is there once, and no other."""
    points = np.array(POINT_SETS[name], dtype=np.int64)
    distinct = np.unique(points, axis=0)
    found = labelled(dichotomy_levels(points), distinct)
    expected = {
        labels for labels in product((0, 1), repeat=len(distinct)) if is_separable(distinct, labels)
    }
    assert len(found) == len(expected)
    assert {tuple(labels) for labels in found.tolist()} == expected


@pytest.mark.parametrize(("dimension", "count"), [(1, 9), (2, 3), (2, 11), (3, 4), (3, 12)])
def test_points_in_general_position_have_as_many_as_the_formula(dimension: int, count: int) -> None:
    """Random points on a line, in a plane and in space reach the bound, each labelling once."""
    generator = np.random.default_rng(GENERATOR_SEED)
    points = generator.integers(0, COORDINATE_MAX, size=(count, dimension), endpoint=True)
    found = labelled(dichotomy_levels(points), points)
    assert len(found) == dichotomy_bound(count, dimension)
    assert len(np.unique(found, axis=0)) == len(found)


@pytest.mark.parametrize(
    ("side", "dimension", "expected"),
    [(2, 2, 14), (2, 3, 104), (3, 2, 58), (4, 2, 174), (3, 3, 2702)],
)
def test_a_regular_grid_has_its_known_number(side: int, dimension: int, expected: int) -> None:
    """The corners of a square and a cube have the 14 and 104 threshold functions of logic."""
    points = np.array(list(product(range(side), repeat=dimension))) * 1000
    found = labelled(dichotomy_levels(points), points)
    assert len(found) == expected
    assert len(np.unique(found, axis=0)) == expected


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_one_point_more_than_the_dimension_is_shattered_and_two_are_not(dimension: int) -> None:
    """The VC dimension is that of halfspaces, one more than the dimension."""
    simplex = np.vstack([np.zeros((1, dimension)), 50 * np.eye(dimension)]).astype(np.int64)
    assert len(dichotomy_levels(simplex)) == 2 ** (dimension + 1)
    generator = np.random.default_rng(GENERATOR_SEED)
    more = generator.integers(0, COORDINATE_MAX, size=(dimension + 2, dimension))
    assert len(dichotomy_levels(more)) < 2 ** (dimension + 2)


@pytest.mark.parametrize("dimension", [2, 3])
def test_no_given_point_lies_on_all_levels_of_a_halfspace(dimension: int) -> None:
    """A point that no level decided would have the same label in a halfspace and its complement."""
    points = np.array(list(product((0, 30, 70), repeat=dimension)))
    levels = dichotomy_levels(points)
    values = (levels[:, :, np.newaxis, :-1] * points).sum(axis=3) - levels[:, :, -1:]
    assert (values != 0).any(axis=1).all()


def test_no_number_leaves_sixty_four_bits_at_the_ends_of_the_lattice() -> None:
    """Weights and offsets keep to the bounds that the module states, whichever corners are used."""
    ends = np.array(list(product((0, 1, COORDINATE_MAX - 1, COORDINATE_MAX), repeat=3)))
    generator = np.random.default_rng(GENERATOR_SEED)
    points = ends[generator.choice(len(ends), size=24, replace=False)]
    levels = dichotomy_levels(points)
    assert np.abs(levels[..., :-1]).max() <= 2**33
    assert np.abs(levels[..., -1]).max() <= 3 * 2**49
    some = levels[generator.choice(len(levels), size=60, replace=False)]
    values = (some[:, :, np.newaxis, :-1] * ends).sum(axis=3) - some[:, :, -1:]
    exact = [
        [
            [
                sum(w * u for w, u in zip(level[:-1], end, strict=True)) - level[-1]
                for end in ends.tolist()
            ]
            for level in halfspace
        ]
        for halfspace in some.tolist()
    ]
    assert values.tolist() == exact
    assert np.abs(values).max() < 2**53


def test_the_order_depends_on_the_set_of_points_only() -> None:
    """Points in another order, some of them twice, give the same list."""
    points = np.array([[0, 0], [3, 1], [5, 5], [2, 8]])
    again = points[[3, 1, 1, 0, 2, 3]]
    assert np.array_equal(dichotomy_levels(points), dichotomy_levels(again))


def test_without_points_one_halfspace_is_left() -> None:
    """All halfspaces agree on no points."""
    assert len(dichotomy_levels(np.zeros((0, 2), dtype=np.int64))) == 1


def test_a_span_is_seen_in_its_first_coordinates() -> None:
    """A line across two coordinates needs one of them; a plane over them needs both."""
    assert spanning_axes(np.array([[4, 1], [4, 3]])) == (1,)
    assert spanning_axes(np.array([[0, 0, 5], [1, 2, 5], [2, 4, 5]])) == (0,)
    assert spanning_axes(np.array([[0, 5, 0], [1, 5, 2], [2, 5, 3]])) == (0, 2)
    assert spanning_axes(np.array([[6, 6], [6, 6]])) == ()


def test_a_point_hides_those_behind_it() -> None:
    """Of three points on a line the outer two do not see each other."""
    first, second = visible_pairs(np.array([[0, 0], [2, 4], [3, 6]]))
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
        (1, 2),
        (2, 1),
    ]


@pytest.mark.parametrize("points", [[[-1, 0]], [[0, COORDINATE_MAX + 1]], [[0, 0, 0, 0]]])
def test_points_off_the_lattice_are_refused(points: list[list[int]]) -> None:
    """The bound against overflow holds on the lattice only, and in three dimensions."""
    with pytest.raises(InvariantError):
        dichotomy_levels(np.array(points))
