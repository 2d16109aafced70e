"""One tree for every dichotomy: against the listing of all trees."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.statistics_tables.representative_domain import cover
from app.learning.trees.tree_lists import TreeList, _all_cells, covering_trees, tree_candidate_count

TESTS = [
    BinaryTest(feature_index=0, cut=cut, category_code=None, public_frequency=0.5)
    for cut in (1.0, 2.0)
] + [BinaryTest(feature_index=1, cut=None, category_code=0, public_frequency=0.5)]
POINTS = np.array([[0.0, 0.0], [1.5, 0.0], [2.5, 1.0], [nan, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize("depth", [1, 2])
def test_it_covers_what_all_trees_do(depth: int) -> None:
    """The labellings of the points are those of all parametrised trees, each once."""
    cells = _all_cells(len(TESTS), depth=depth, class_count=2)
    listed = TreeList(TESTS, cells, depth=depth, class_count=2)
    whole = cover(listed, listed.encode(POINTS))
    found = covering_trees(TESTS, POINTS, depth=depth)
    labels = found.predict(found.encode(POINTS))
    assert len(found) == len(whole) <= tree_candidate_count(len(TESTS), depth=depth)
    assert set(map(bytes, labels.astype(np.uint8))) == set(
        map(bytes, whole.predict(whole.encode(POINTS)).astype(np.uint8))
    )


def test_depth_three_parts_points_that_differ_in_three_tests() -> None:
    """All labellings of eight corners of a cube are trees of depth 3."""
    tests = [
        BinaryTest(feature_index=feature, cut=1.0, category_code=None, public_frequency=0.5)
        for feature in range(3)
    ]
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    assert len(covering_trees(tests, corners, depth=3)) == 256


@pytest.mark.parametrize("depth", [0, 2])
def test_without_tests_or_levels_the_constants_are_left(depth: int) -> None:
    """Two labels on one cell."""
    tests = [] if depth else TESTS
    found = covering_trees(tests, POINTS, depth=depth)
    assert (len(found), found.depth) == (2, 0)
    assert found.predict(found.encode(POINTS)).tolist() == [[0] * 5, [1] * 5]


def test_candidates_are_counted_level_by_level() -> None:
    """Pairs of what the level below keeps, for every test; stumps keep 2t + 2."""
    assert tree_candidate_count(0, depth=2) == 2
    assert tree_candidate_count(5, depth=1) == 20
    assert tree_candidate_count(5, depth=2) == 5 * 12**2
