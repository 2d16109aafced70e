"""Vectors of any content keep their promises."""

from __future__ import annotations

import csv
import io
import math
import tempfile
from pathlib import Path

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources.sources import read_rows
from app.data.vectors import Vector, decode_key, encode, parse_features, replay_key
from app.errors import InvalidFeaturesError

SCHEMA = Schema(
    label="y",
    classes=("0", "1"),
    features=(
        NumericFeature(name="x", lower=-1.0, upper=1.0),
        CategoricalFeature(name="c", categories=("a", "b")),
        NumericFeature(name="z", lower=0.0, upper=1e6),
    ),
    missing=("?", "-9"),
)
MISSING = st.sampled_from([None, "", "?", "-9"])
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70), MISSING
)
CATEGORIES = st.one_of(
    st.sampled_from(["a", "b"]), st.text(max_size=20).filter(str.isprintable), MISSING
)
POSTED = st.tuples(NUMBERS, CATEGORIES, NUMBERS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(POSTED)
def test_both_forms_are_the_same_vector(posted: tuple[object, ...]) -> None:
    """A list in schema order and an object by name give the same key."""
    by_name = dict(zip(reversed(SCHEMA.feature_names), reversed(posted), strict=True))
    assert replay_key(parse_features(SCHEMA, list(posted))) == replay_key(
        parse_features(SCHEMA, by_name)
    )


@given(POSTED)
def test_a_key_and_its_vector_are_one(posted: tuple[object, ...]) -> None:
    """Reading a key back, or parsing a vector again, changes nothing."""
    vector = parse_features(SCHEMA, posted)
    assert decode_key(replay_key(vector)) == vector
    assert parse_features(SCHEMA, vector) == vector


@given(POSTED, POSTED)
def test_keys_are_equal_where_vectors_are(
    one: tuple[object, ...], other: tuple[object, ...]
) -> None:
    """Two posted vectors share a key if and only if they parse to the same values."""
    first, second = parse_features(SCHEMA, one), parse_features(SCHEMA, other)
    assert (replay_key(first) == replay_key(second)) is (first == second)


@given(POSTED)
def test_a_trip_through_json_keeps_the_key(posted: tuple[object, ...]) -> None:
    """A client that prints the numbers it read asks the same query again."""
    vector = parse_features(SCHEMA, posted)
    again = msgspec.json.decode(msgspec.json.encode(vector))
    assert replay_key(parse_features(SCHEMA, again)) == replay_key(vector)


@given(JSON)
def test_any_document_is_parsed_or_refused(posted: object) -> None:
    """There is no third outcome, and what is parsed has only canonical values."""
    try:
        vector = parse_features(SCHEMA, posted)
    except InvalidFeaturesError:
        return
    for value in vector:
        assert value is None or isinstance(value, str) or math.isfinite(value)


@given(st.lists(POSTED, min_size=1, max_size=5))
def test_encoded_values_lie_in_the_public_ranges(posted: list[tuple[object, ...]]) -> None:
    """Whatever is posted, a value is within its bounds, a known code or missing."""
    values = encode(SCHEMA, [parse_features(SCHEMA, features) for features in posted])
    numbers, codes = values[:, [0, 2]], values[:, 1]
    inside = (numbers >= [-1.0, 0.0]) & (numbers <= [1.0, 1e6])
    assert (inside | np.isnan(numbers)).all()
    assert np.isin(codes, [0, 1, 2, 3]).all()


@given(st.lists(POSTED, min_size=1, max_size=5))
def test_rows_and_queries_are_encoded_alike(posted: list[tuple[object, ...]]) -> None:
    """A row of the source and the same values posted are the same encoded values."""
    vectors = [parse_features(SCHEMA, features) for features in posted]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(_as_csv(vectors), encoding="utf-8", newline="")
        rows = read_rows(path, SCHEMA)
    np.testing.assert_array_equal(rows.values, encode(SCHEMA, vectors))


def _as_csv(vectors: list[Vector]) -> str:
    """Write vectors as rows of a source, all with the same label."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["x", "c", "z", "y"])
    writer.writerows([*("" if value is None else value for value in row), "0"] for row in vectors)
    return text.getvalue()
