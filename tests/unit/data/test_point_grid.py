"""The rule by which public points choose the tests of published trees, as it is documented."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.data.feature_tests import (
    classifier_tests,
    cuts_of_shared_values,
    extra_cuts,
    frequent_codes,
    is_spiked,
    quantile_cuts,
    with_shared_values,
)
from app.data.schema import CategoricalFeature, NumericFeature, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

GAIN = NumericFeature(name="gain", lower=0.0, upper=100.0)
AGE = NumericFeature(name="age", lower=0.0, upper=100.0)
WORK = CategoricalFeature(name="work", categories=tuple("abcdefgh"))
PEOPLE = Schema(label="income", classes=("low", "high"), features=(GAIN, AGE, WORK), missing=("?",))
NUMBERS = Schema(label="income", classes=("low", "high"), features=(GAIN, AGE), missing=())
POINT_COUNT = 200
CODES = range(WORK.missing_code + 1)
LONE_SPIKE = np.array([0.0] * 160 + list(range(1, 41)))


def points(*, gain: object, age: object, work: object) -> np.ndarray:
    """Return encoded points, one column a feature."""
    columns = (np.broadcast_to(np.asarray(each, float), POINT_COUNT) for each in (gain, age, work))
    return np.stack(tuple(columns), axis=1)


def cuts_of(feature: int, public_values: np.ndarray, *, bins: int, for_trees: bool) -> list[float]:
    """Return the cuts of a feature."""
    tests = classifier_tests(PEOPLE, bins=bins, public_values=public_values, for_trees=for_trees)
    return [test.cut for test in tests if test.feature_index == feature and test.cut is not None]


@pytest.mark.parametrize(
    ("values", "spiked"),
    [
        pytest.param([0, 0, 0, 7], True, id="over half, at the bottom"),
        pytest.param([0, 7, 7, 7], True, id="over half, at the top"),
        pytest.param([0, 0, 7, 7], False, id="half only"),
        pytest.param([5, 5, 5], False, id="nothing else"),
        pytest.param([math.nan, math.nan, 5, 5, 6], True, id="missing aside"),
        pytest.param([math.nan], False, id="all missing"),
        pytest.param([], False, id="no point"),
    ],
)
def test_a_spike_is_a_value_of_over_half(values: list[float], *, spiked: bool) -> None:
    """One value has over half of the points that have a value, and another has some."""
    assert is_spiked(np.array(values, dtype=np.float64)) is spiked


@pytest.mark.parametrize(
    ("bins", "spare", "spiked_count", "extra"),
    [
        pytest.param(6, 100, 0, 0, id="no spike"),
        pytest.param(6, 9, 2, 4, id="shared equally, rounded down"),
        pytest.param(6, 100, 2, 30, id="five times the bins at most"),
        pytest.param(6, 1, 2, 0, id="too few to share"),
        pytest.param(6, -3, 1, 0, id="nothing spared"),
    ],
)
def test_spiked_features_share_what_is_spared(
    bins: int, spare: int, spiked_count: int, extra: int
) -> None:
    """Each has its part of the spare tests, and five times ``bins`` at most."""
    assert extra_cuts(bins=bins, spare=spare, spiked_count=spiked_count) == extra


@pytest.mark.parametrize(
    ("counts", "kept"),
    [
        pytest.param(
            [60, 30, 10], [0, 1, 2], id="a tenth of the points with five bins is not rare"
        ),
        pytest.param([61, 30, 9], [0, 1], id="a little less is"),
        pytest.param([100, 0, 0], [0], id="held by nobody"),
        pytest.param([9, 82, 9], [1], id="up to a quarter of the points"),
        pytest.param([*[9] * 10, 10], [*range(8), 10], id="and no more, of equal ones the last"),
        pytest.param([0, 0, 0], [0], id="one is always kept"),
    ],
)
def test_rare_categories_are_left_out(counts: list[int], kept: list[int]) -> None:
    """With 5 bins those of under a tenth of the points, together a quarter at most."""
    column = np.repeat(np.arange(len(counts), dtype=np.float64), counts)
    column = column if len(column) else np.full(100, math.nan)
    assert frequent_codes(column, range(len(counts)), bins=5) == tuple(kept)


def test_a_spike_has_finer_cuts_with_the_tests_that_are_spared() -> None:
    """Four bins give 3 cuts; 6 of 10 categories are rare, and spare 6 cuts more."""
    work = np.arange(POINT_COUNT) % 4
    public_values = points(gain=LONE_SPIKE, age=np.linspace(1, 100, POINT_COUNT), work=work)
    assert cuts_of(0, public_values, bins=4, for_trees=False) == [1.0, 14.0, 27.0]
    finer = cuts_of(0, public_values, bins=4, for_trees=True)
    assert finer == [1.0, 5.0, 9.0, 14.0, 18.0, 23.0, 27.0, 32.0, 36.0]
    assert len(cuts_of(1, public_values, bins=4, for_trees=True)) == 3
    tests = classifier_tests(PEOPLE, bins=4, public_values=public_values, for_trees=True)
    assert [test.category_code for test in tests if test.cut is None] == [0, 1, 2, 3]


def test_lists_are_left_alone() -> None:
    """A listed feature has its list only, rare categories and few cuts as they may be."""
    public_values = points(gain=LONE_SPIKE, age=5, work=0)
    tests = classifier_tests(
        PEOPLE,
        bins=4,
        listed={"gain": (50.0,), "work": ("a", "h")},
        public_values=public_values,
        for_trees=True,
    )
    assert [test.cut for test in tests if test.feature_index == 0] == [50.0]
    assert [test.category_code for test in tests if test.cut is None] == [0, 7]


def test_points_that_are_all_alike_leave_the_equal_cuts() -> None:
    """So that a class of numbers has a test, whatever clients ask."""
    alike = np.full((POINT_COUNT, 2), 100.0)
    tests = classifier_tests(NUMBERS, bins=4, public_values=alike, for_trees=True)
    assert [test.cut for test in tests] == [25.0, 50.0, 75.0] * 2


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(0, 40), st.just(2)),
        elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, 7.0, 9.0, math.nan]),
    ),
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
)
def test_no_points_ask_for_more_tests_than_none(numbers: np.ndarray, seed: int, bins: int) -> None:
    """What fits when a release opens fits at the switch, and there is always a test."""
    codes = np.random.default_rng(seed).choice(CODES, size=(len(numbers), 1))
    public_values = np.hstack((numbers, codes))
    tests = classifier_tests(PEOPLE, bins=bins, public_values=public_values, for_trees=True)
    without = classifier_tests(PEOPLE, bins=bins, public_values=public_values[:0], for_trees=True)
    assert len(without) == 2 * (bins - 1) + len(CODES)
    assert 1 <= len(tests) <= len(without)


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(0, 9)), max_size=60),
    st.integers(2, 12),
    st.integers(0, 24),
)
def test_cuts_are_values_and_no_more_than_asked_for(
    values: list[float], bins: int, extra: int
) -> None:
    """They increase, each is a point's value, and some point is below each."""
    cuts = quantile_cuts(np.array(values, dtype=np.float64), bins=bins, extra=extra)
    assert len(cuts) <= bins - 1 + extra
    assert list(cuts) == sorted(set(cuts))
    assert all(cut in values and cut > min(values) for cut in cuts)


@pytest.mark.parametrize(
    ("values", "bins", "cuts"),
    [
        pytest.param([3, 1, 2, 1, math.nan], 4, (2, 3), id="few values, a cut at each"),
        pytest.param([0, 0, 0, 0, 7, 7, 7], 2, (7,), id="two values, one of them a spike"),
        # 0 and 5 are held by 3 of 12 each, more than one in 5; one quantile is left.
        pytest.param([0, 0, 0, *range(1, 5), 5, 5, 5, 6, 7], 5, (1, 4, 5, 6), id="shared apart"),
        pytest.param([*range(9), 9, 9, 9], 5, (2, 4, 6, 9), id="the top one has one cut"),
        pytest.param([0] + [1] * 5 + [2] * 5 + [3], 3, (1, 2), id="no more cuts than bins"),
        pytest.param(range(12), 5, (), id="no value is shared"),
        pytest.param([0] * 9 + [1, 2, 3, 4, 5], 4, (), id="a spike is set apart otherwise"),
        pytest.param([math.nan], 4, (), id="all missing"),
        pytest.param([], 4, (), id="no point"),
    ],
)
def test_a_value_that_many_points_share_is_set_apart(
    values: list[float], bins: int, cuts: tuple[float, ...]
) -> None:
    """There is a cut at it, and one at the next value, so that one test tells who is above it."""
    assert cuts_of_shared_values(np.array(values, dtype=np.float64), bins=bins) == cuts


def test_lists_win_over_shared_values() -> None:
    """What the configuration lists stays as it is, and categories have no cuts."""
    public_values = points(gain=np.arange(POINT_COUNT) % 3, age=7.0, work=0.0)
    given = with_shared_values(PEOPLE, bins=4, listed={}, public_values=public_values)
    assert given == {"gain": (1.0, 2.0)}
    listed: dict[str, Sequence[float | str]] = {"gain": (50.0,), "work": ("a",)}
    found = with_shared_values(PEOPLE, bins=4, listed=listed, public_values=public_values)
    assert found == listed
