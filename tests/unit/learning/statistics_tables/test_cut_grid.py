"""Places on the grid of tests: each row's own, and the one whose cell labels it alike."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.statistics_tables.representative_domain import CutGrid, product_domain
from app.learning.trees.tree_lists import covering_trees

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cut(feature: int, value: float) -> BinaryTest:
    """Return a test of a number."""
    return BinaryTest(feature_index=feature, cut=value, category_code=None, public_frequency=0.5)


def code(feature: int, value: int) -> BinaryTest:
    """Return a test of a category."""
    return BinaryTest(feature_index=feature, cut=None, category_code=value, public_frequency=0.5)


TESTS = (cut(0, 2.0), cut(0, 1.0), code(2, 3), code(2, 0))


def rows(count: int = 300) -> NDArray[np.float64]:
    """Return rows on cuts, between them, beyond all and missing."""
    generator = np.random.default_rng(1)
    numbers = generator.choice([-inf, 0.0, 1.0, 1.5, 2.0, 3.0, inf, nan], (count, 2))
    codes = generator.integers(0, 6, (count, 1)).astype(np.float64)
    return np.concatenate([numbers, codes], axis=1)


def test_a_place_is_one_of_the_product() -> None:
    """Two cuts and two codes make nine points; an untested feature has one value."""
    grid = CutGrid.of(TESTS, 3)
    assert grid.point_count == 9
    assert [len(axis) for axis in grid.axes] == [3, 1, 3]
    places = grid.places(np.array([[nan, 0, 5.0], [1.0, 0, 0.0], [9.0, 0, 3.0], [1.9, 7, 1.0]]))
    assert places.tolist() == [0, 4, 8, 3]


def test_a_row_is_counted_in_the_cell_that_labels_it_alike() -> None:
    """By its place on the grid as by its labels, one row at a time and all together."""
    grid, values = CutGrid.of(TESTS, 3), rows()
    trees = covering_trees(TESTS, values, depth=2)
    domain = product_domain(trees, grid.axes)
    by_place = domain.private_count_at(grid.places(values))
    assert np.array_equal(by_place, domain.private_cell_count(trees.encode(values)))
    for row in values[:40]:
        (cell,) = np.flatnonzero(domain.private_count_at(grid.places(row[None])))
        assert np.array_equal(domain.labels[:, cell], trees.predict(trees.encode(row[None]))[:, 0])


def test_a_count_of_cells_does_not_depend_on_the_rows() -> None:
    """Every cell of the public space is there, occupied or not."""
    grid = CutGrid.of(TESTS, 3)
    trees = covering_trees(TESTS, rows(), depth=2)
    domain = product_domain(trees, grid.axes)
    for values in (rows(1), rows(300)):
        assert len(domain.private_count_at(grid.places(values))) == domain.cell_count == 9


def test_the_cells_of_points_are_read_only() -> None:
    """As the labels are."""
    domain = product_domain(covering_trees(TESTS, rows(), depth=1), CutGrid.of(TESTS, 3).axes)
    with pytest.raises(ValueError, match="read-only"):
        domain.cell_of_point[0] = 1
