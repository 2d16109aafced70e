"""The public tests of a schema are the ones that the documentation counts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.feature_tests import classifier_tests, equal_cuts, public_tests, quantile_cuts
from tests.builders.schema.schemas import AGE, HOURS, PEOPLE, SEX, WORK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.learning.encoding.binary_tests import BinaryTest

POINTS = np.array([[20.0, 1, 0, 0], [30, 2, 0, 1], [40, 3, 1, 0], [50, 4, 3, 0]])
NO_POINTS = np.empty((0, 4))


def references(tests: Sequence[BinaryTest]) -> list[tuple[int, float]]:
    """Return the feature of each test and the cut or code that it compares with."""
    return [
        (test.feature_index, test.cut if test.cut is not None else float(test.category_code or 0))
        for test in tests
    ]


def frequencies(tests: Sequence[BinaryTest]) -> list[float]:
    """Return the public frequency of each test."""
    return [test.public_frequency for test in tests]


def test_bins_are_parted_equally() -> None:
    """B bins have B - 1 cuts between them, equally spaced."""
    assert equal_cuts(lower=0.0, upper=1.0, bins=4) == (0.25, 0.5, 0.75)
    assert equal_cuts(lower=-1.0, upper=1.0, bins=2) == (0.0,)


def test_cuts_that_round_to_one_are_one() -> None:
    """Bounds too close for the bins give each cut once."""
    upper = math.nextafter(1.0, 2.0)
    assert len(equal_cuts(lower=1.0, upper=upper, bins=16)) == 2


def test_every_feature_has_its_tests() -> None:
    """Thresholds replace bins; categories, other and missing have a test each."""
    tests = public_tests(PEOPLE, bins=4)
    assert references(tests) == [
        (0, 25.0),
        (0, 50.0),
        (1, 25.0),
        (1, 50.0),
        (1, 75.0),
        (2, 0.0),
        (2, 1.0),
        (2, 2.0),
        (2, 3.0),
        (3, 0.0),
        (3, 1.0),
        (3, 2.0),
    ]  # fmt: skip -- one line a feature


def test_public_shares_become_frequencies() -> None:
    """Given shares count; without, a cut's part of the range and equal parts of categories."""
    tests = public_tests(PEOPLE, bins=4)
    assert frequencies(tests) == pytest.approx(
        [0.8, 0.2, 0.75, 0.5, 0.25, 0.7, 0.1, 0.2, 1 / 3, 1 / 2, 1 / 2, 1 / 2]
    )


def test_no_test_is_for_missing_where_nothing_says_so() -> None:
    """Without a token of missing there is no test of it; the complement of one test is dropped."""
    tests = public_tests(replace(PEOPLE, missing=()), bins=2)
    assert references(tests)[3:] == [(2, 0.0), (2, 1.0), (2, 2.0), (3, 0.0)]


def test_lists_replace_all_else() -> None:
    """A listed feature has its list only; a token of missing stands for missing's test."""
    listed = {"age": (30.0, 50.0), "hours": (), "work": ("State", "?", "")}
    tests = public_tests(PEOPLE, bins=4, listed=listed)
    assert references(tests)[:4] == [(0, 30.0), (0, 50.0), (2, 1.0), (2, 3.0)]
    assert frequencies(tests)[:2] == pytest.approx([60 / 73, 0.2])


@pytest.mark.parametrize(
    ("values", "bins", "cuts"),
    [
        pytest.param([1, 2, 3, 4], 2, [3], id="the median"),
        pytest.param(list(range(100)), 4, [25, 50, 75], id="quartiles"),
        pytest.param([1, 2], 16, [2], id="fewer points than bins"),
        pytest.param([5, 5, 5], 16, [], id="one value"),
        pytest.param([0, 0, 0, 7], 2, [7], id="common at the bottom"),
        pytest.param([0, 7, 7, 7], 16, [7], id="common at the top"),
        pytest.param([1, 5, 5, 5, 9], 3, [5, 9], id="common in the middle"),
        pytest.param([*[0] * 92, *range(1, 9)], 5, [1, 3, 5, 7], id="common and fine above"),
        pytest.param([math.nan, math.nan, math.nan, 1, 2], 2, [2], id="missing aside"),
        pytest.param([math.nan], 4, [], id="all missing"),
    ],
)
def test_quantiles_follow_the_public_points(
    values: list[float], bins: int, cuts: list[float]
) -> None:
    """Cuts part the points equally, and a value held by over half has cuts of its own."""
    assert quantile_cuts(np.array(values, dtype=np.float64), bins=bins) == pytest.approx(cuts)


def test_the_classifier_follows_the_public_points() -> None:
    """Its cuts are quantiles, its frequencies shares of the points; grids are not asked."""
    tests = classifier_tests(PEOPLE, bins=2, public_values=POINTS)
    assert references(tests)[:3] == [(0, 40.0), (1, 3.0), (2, 0.0)]
    assert frequencies(tests)[:4] == [0.5, 0.5, 0.5, 0.25]


def test_the_classifier_takes_lists_first() -> None:
    """A list of the classifier wins over the quantiles."""
    listed: dict[str, tuple[float | str, ...]] = {"age": (20.0,), "work": ("State", "?")}
    tests = classifier_tests(PEOPLE, bins=2, listed=listed, public_values=POINTS)
    assert references(tests)[:3] == [(0, 20.0), (1, 3.0), (2, 1.0)]


def test_the_classifier_needs_no_public_point() -> None:
    """Without points, or where all are missing, cuts are equally spaced."""
    spaced = [(0, 53.5), (1, 50.0)]
    assert references(classifier_tests(PEOPLE, bins=2, public_values=NO_POINTS))[:2] == spaced
    missing = np.array([[math.nan, math.nan, 0, 0]])
    assert references(classifier_tests(PEOPLE, bins=2, public_values=missing))[:2] == spaced


def test_features_are_what_they_seem() -> None:
    """The codes of other and missing follow the categories."""
    assert (WORK.other_code, WORK.missing_code, SEX.missing_code) == (2, 3, 2)
    assert PEOPLE.feature_indices == {AGE.name: 0, HOURS.name: 1, WORK.name: 2, SEX.name: 3}


def test_cuts_of_a_range_whose_multiples_overflow_lie_inside() -> None:
    """A finite range is all that the settings ask of bounds."""
    lower, upper = -8e307, 8e307
    cuts = equal_cuts(lower=lower, upper=upper, bins=8)
    assert cuts == pytest.approx([lower + (upper - lower) / 8 * index for index in range(1, 8)])
    assert all(lower < cut < upper for cut in cuts)
