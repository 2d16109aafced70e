"""Which tests a table takes, and what is too large for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.statistics_tables.table_hypotheses import (
    CHOSEN_POINT_COUNT_MAX,
    CHOSEN_QUERY_COUNT_MAX,
    COVERED_KINDS,
    chosen_tests,
    covering,
    point_count,
    query_count_bound,
    refuse_table,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cuts(feature: int, count: int) -> list[BinaryTest]:
    """Return cuts that part [0, 1] evenly."""
    return [
        BinaryTest(
            feature_index=feature,
            cut=number / (count + 1),
            category_code=None,
            public_frequency=1 - number / (count + 1),
        )
        for number in range(1, count + 1)
    ]


def codes(feature: int, count: int) -> list[BinaryTest]:
    """Return a test for every code."""
    return [
        BinaryTest(feature_index=feature, cut=None, category_code=number, public_frequency=0.1)
        for number in range(count)
    ]


def points(feature_count: int, count: int = 400) -> NDArray[np.float64]:
    """Return points in the unit cube."""
    return np.random.default_rng(1).random((count, feature_count))


@pytest.mark.parametrize("kind", COVERED_KINDS)
@pytest.mark.parametrize("feature_count", [2, 5, 12])
def test_chosen_tests_keep_the_table_small(kind: str, feature_count: int) -> None:
    """Every feature keeps as many at most, some at least, and what they make can be listed."""
    tests = [test for feature in range(feature_count) for test in cuts(feature, 15)]
    chosen = chosen_tests(kind, tests, points(feature_count), depth=2)
    counts = [sum(test.feature_index == each for test in chosen) for each in range(feature_count)]
    assert 1 <= min(counts) == max(counts)
    assert query_count_bound(kind, chosen, depth=2) <= CHOSEN_QUERY_COUNT_MAX
    assert point_count(chosen) <= CHOSEN_POINT_COUNT_MAX
    refuse_table(kind, chosen, depth=2)
    assert len(covering(kind, chosen, points(feature_count), depth=2)) <= CHOSEN_QUERY_COUNT_MAX


def test_cuts_next_to_quantiles_are_kept() -> None:
    """Of fifteen cuts that part the points evenly three are kept, a quarter apart."""
    tests = [test for feature in range(7) for test in cuts(feature, 15)]
    grid = np.repeat(((np.arange(400) + 0.5) / 400)[:, np.newaxis], 7, axis=1)
    chosen = chosen_tests("trees", tests, grid, depth=1)
    kept = [test.cut for test in chosen if test.feature_index == 0]
    assert len(kept) == 3
    assert kept == pytest.approx([0.25, 0.5, 0.75], abs=0.01)


def test_one_test_a_feature_is_kept_where_even_that_is_too_much() -> None:
    """Of 25 features with three cuts each one cut stays; the table is then refused by name."""
    tests = [test for feature in range(25) for test in cuts(feature, 3)]
    chosen = chosen_tests("stumps", tests, points(25), depth=1)
    assert [test.feature_index for test in chosen] == list(range(25))
    with pytest.raises(ConfigurationError, match=r"^statistics\.tests: the grid of the tests has"):
        refuse_table("stumps", chosen, depth=1)


def test_the_commonest_categories_are_kept() -> None:
    """Of eight codes those that most points hold."""
    tests = [test for feature in range(7) for test in codes(feature, 8)]
    column = np.repeat(np.arange(8.0), [1, 30, 2, 50, 3, 10, 1, 3])
    chosen = chosen_tests("trees", tests, np.repeat(column[:, None], 7, axis=1), depth=1)
    kept = [test.category_code for test in chosen if test.feature_index == 0]
    assert kept == [1, 3, 5]


def test_tests_that_part_no_points_are_left_out_and_listed_ones_are_not() -> None:
    """A cut that every point meets tells none apart; an operator's list is taken as it is."""
    tests = [*cuts(0, 3), *cuts(1, 3)]
    half = points(2) / 2 + 0.5
    free = chosen_tests("stumps", tests, half, depth=1)
    assert {test.cut for test in free} == {0.75}
    listed = chosen_tests("stumps", tests, half, depth=1, listed=[0])
    assert [test.cut for test in listed if test.feature_index == 0] == [0.25, 0.5, 0.75]


def test_boxes_ask_numbers_only() -> None:
    """Categories are no sides of a rectangle."""
    chosen = chosen_tests("rectangles", [*cuts(0, 2), *codes(1, 4)], points(2), depth=1)
    assert {test.feature_index for test in chosen} == {0}


def test_without_points_one_test_a_feature_is_taken() -> None:
    """That is the smallest table there may be, which a release is opened for."""
    chosen = chosen_tests("trees", [*cuts(0, 9), *cuts(1, 9)], np.empty((0, 2)), depth=2)
    assert [test.feature_index for test in chosen] == [0, 1]


def test_more_features_than_a_table_takes_keep_one_test_each() -> None:
    """Even that is too much, and the refusal of its size says so."""
    tests = [test for feature in range(22) for test in cuts(feature, 3)]
    chosen = chosen_tests("stumps", tests, points(22), depth=1)
    assert len(chosen) == 22
    with pytest.raises(ConfigurationError, match="the grid of the tests has 4194304 points"):
        refuse_table("stumps", chosen, depth=1)


def test_too_large_a_table_is_refused_with_its_size() -> None:
    """One line names the key, the size and what to lower."""
    listed = [test for feature in range(3) for test in cuts(feature, 60)]
    with pytest.raises(ConfigurationError, match=r"^statistics\.tests: .* hypotheses on .* lower"):
        refuse_table("trees", listed, depth=3)
    wide = [test for feature in range(25) for test in cuts(feature, 1)]
    with pytest.raises(ConfigurationError, match=r"^statistics\.tests: the grid of the tests has"):
        refuse_table("stumps", wide, depth=1)
