"""Posted features become one canonical vector, or are refused by the feature's name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.data.vectors import decode_key, encode, parse_features, replay_key
from app.errors import InvalidFeaturesError
from tests.builders.schema.schemas import PEOPLE

RIGHT = [39, 40, "Private", "F"]

# What is posted, the feature that is named and what is wrong with it.
REFUSED = [
    (None, "features", "must be a list in schema order or an object by name"),
    ("a string", "features", "must be a list in schema order or an object by name"),
    (39, "features", "must be a list in schema order or an object by name"),
    ([], "features", "must be 4 values, got 0"),
    ([39, 40, "Private"], "features", "must be 4 values, got 3"),
    ([*RIGHT, 1], "features", "must be 4 values, got 5"),
    (["39", 40, "Private", "F"], "age", "must be a number, not a string"),
    ([39, " ", "Private", "F"], "hours", "must be a number, not a string"),
    ([39, "NaN", "Private", "F"], "hours", "must be a number, not a string"),
    ([True, 40, "Private", "F"], "age", "must be a number or null"),
    ([[39], 40, "Private", "F"], "age", "must be a number or null"),
    ([{}, 40, "Private", "F"], "age", "must be a number or null"),
    ([39, math.nan, "Private", "F"], "hours", "must be a finite number"),
    ([39, math.inf, "Private", "F"], "hours", "must be a finite number"),
    ([39, -math.inf, "Private", "F"], "hours", "must be a finite number"),
    ([39, 10**400, "Private", "F"], "hours", "must be a finite number"),
    ([39, 40, math.nan, "F"], "work", "must be a string or null"),
    ([39, 40, ["Private"], "F"], "work", "must be a string or null"),
    ([39, 40, "x" * 1001, "F"], "work", "must have at most 1000 characters"),
    ([39, 40, "\ud800", "F"], "work", "must be Unicode text"),
    ({}, "age", "is absent; null is a missing value"),
    ({"age": 39, "work": "Private", "sex": "F"}, "hours", "is absent; null is a missing value"),
    (
        {"age": 39, "hours": 40, "work": "Private", "sex": "F", "race": "x"},
        "race",
        "is not a feature of the schema",
    ),
    (
        {"age": 39, "hours": 40, "work": "Private", "sex": "F", "a\nb": 1},
        r"'a\nb'",
        "is not a feature of the schema",
    ),
    (
        {"age": 39, "hours": 40, "work": "Private", "sex": {}},
        "sex",
        "must be a string or null",
    ),
]


@pytest.mark.parametrize(("posted", "feature", "problem"), REFUSED)
def test_bad_features_are_refused_by_name(posted: object, feature: str, problem: str) -> None:
    """The refusal names the feature and never the value."""
    with pytest.raises(InvalidFeaturesError) as refused:
        parse_features(PEOPLE, posted)
    assert (refused.value.feature, refused.value.problem) == (feature, problem)


def test_an_object_is_put_in_the_order_of_the_schema() -> None:
    """Both forms of the same features are the same vector."""
    by_name = {"sex": "F", "work": "Private", "hours": 40, "age": 39}
    assert parse_features(PEOPLE, by_name) == parse_features(PEOPLE, RIGHT)
    assert parse_features(PEOPLE, tuple(RIGHT)) == (39.0, 40.0, "Private", "F")


def test_numbers_are_canonical() -> None:
    """1 is 1.0, minus zero is zero, and an integer beyond 2^53 is its nearest float64."""
    vector = parse_features(PEOPLE, [1, -0.0, "Private", "F"])
    assert [type(value) for value in vector[:2]] == [float, float]
    assert replay_key(vector) == replay_key(parse_features(PEOPLE, [1.0, 0, "Private", "F"]))
    assert math.copysign(1.0, float(vector[1] or 0.0)) == 1.0
    large = parse_features(PEOPLE, [2**53 + 1, 0, "Private", "F"])
    assert large == parse_features(PEOPLE, [2**53, 0, "Private", "F"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([95, 40, "Private", "F"], [96, 40, "Private", "F"]),
        ([39, 40, "Federal", "F"], [39, 40, "Abroad", "F"]),
        ([39, 40, None, "F"], [39, 40, "?", "F"]),
        ([39, 40.0, "Private", "F"], [39, math.nextafter(40.0, 41.0), "Private", "F"]),
    ],
)
def test_what_differs_as_posted_is_another_query(one: list[object], other: list[object]) -> None:
    """The replay key is taken before clipping, binning and merging of categories."""
    keys = {replay_key(parse_features(PEOPLE, posted)) for posted in (one, other)}
    assert len(keys) == 2


def test_a_key_can_be_read_back() -> None:
    """The vector comes back from its key, so that the asked queries need no other record."""
    vector = parse_features(PEOPLE, [39, None, "Straße", "?"])
    assert decode_key(replay_key(vector)) == vector == (39.0, None, "Straße", "?")


def test_values_are_clipped_and_coded() -> None:
    """Numbers meet their bounds; other and missing have codes beyond the categories."""
    posted: list[list[object]] = [
        [5, 1e300, "Private", "F"],
        [91, -1, "Federal", "M"],
        [None, "?", None, "?"],
        ["", 7, "", "F"],
        [39, 40, "State", "f"],
    ]
    values = encode(PEOPLE, [parse_features(PEOPLE, features) for features in posted])
    expected = [
        [17, 100, 0, 0],
        [90, 0, 2, 1],
        [math.nan, math.nan, 3, 2],
        [math.nan, 7, 3, 0],
        [39, 40, 1, 1],
    ]
    np.testing.assert_array_equal(values, expected)
    assert values.dtype == np.float64


def test_no_vectors_are_encoded_as_no_rows() -> None:
    """An empty batch keeps the width of the schema."""
    assert encode(PEOPLE, []).shape == (0, 4)
