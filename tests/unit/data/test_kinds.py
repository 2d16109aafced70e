"""Booleans and dates: one meaning of a value, in a cell of a source and in a posted vector."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from app.data.feature_tests import public_tests
from app.data.field_values import CellError, day_in, day_number, iso_date
from app.data.schema import BooleanFeature, CategoricalFeature, DateFeature, NumericFeature, Schema
from app.data.sources.column_values import UNITS_PER_DAY, Values, dates, source_columns
from app.data.sources.sources import read_rows
from app.data.vectors import encode, parse_features
from app.errors import DataError, InvalidFeaturesError

if TYPE_CHECKING:
    from pathlib import Path

BORN = DateFeature(
    name="born", lower=day_in("1900-01-01") or 0.0, upper=day_in("2026-12-31") or 0.0
)
SCHEMA = Schema(
    label="label",
    classes=("no", "yes"),
    features=(
        BooleanFeature(name="member"),
        BORN,
        CategoricalFeature(name="floor", categories=("1", "2.0", "True")),
        NumericFeature(name="height", lower=0.0, upper=3.0),
    ),
    missing=("?", "99", "9999-12-31"),
)
FALSE, TRUE, NO_TRUTH = 0.0, 1.0, 3.0
LEAP = 18_321.0
"""Days from 1970-01-01 to 2020-02-29."""
NAN = math.nan

TRUTHS = [True, "true", "True", "TRUE", "t", "T", " true ", 1, 1.0, "1", "1.0"]
FALSEHOODS = [False, "false", "False", "FALSE", "f", 0, -0.0, 0.0, "0", "0.0"]
MISSING: list[object] = [None, "", "?", "99", 99, "99.0"]
DAYS = ["2020-02-29", " 2020-02-29", "2020-02-29T23:59:59.999Z", "2020-02-29 00:00:00+02:00"]
POSTED: list[tuple[int, list[object], float]] = [
    (0, TRUTHS, TRUE),
    (0, FALSEHOODS, FALSE),
    (0, MISSING, NO_TRUTH),
    (1, list(DAYS), LEAP),
    (1, ["1066-10-14", "1900-01-01"], BORN.lower),
    (1, ["2999-01-01", "2026-12-31T12:00"], BORN.upper),
    (1, ["1970-04-10"], 99.0),
    (1, [*MISSING, "9999-12-31", "9999-12-31T00:00:00"], NAN),
    (2, [1, 1.0, "1"], 0.0),
    (2, [2, 2.0, "2.0"], 1.0),
    (2, [True, "True"], 2.0),
    (2, [7, False, "1.0", "2", "true"], 3.0),
    (2, [99, 99.0, "99", "?", None], 4.0),
]
"""Of a feature: values as a cell holds them or JSON, and what they are encoded as."""
TYPED: list[tuple[int, list[object], float]] = [
    (0, [np.bool(True), Decimal(1), np.int8(1), b"true"], TRUE),
    (0, [NAN, np.float32("nan")], NO_TRUTH),
    (1, [dt.date(2020, 2, 29), np.datetime64("2020-02-29"), b"2020-02-29"], LEAP),
    (1, [dt.datetime(2020, 2, 29, 23, tzinfo=dt.UTC), np.datetime64("2020-02-29T23:59")], LEAP),
    (1, [np.datetime64("NaT"), dt.date(9999, 12, 31), NAN], NAN),
]
UNFIT: list[tuple[int, list[object], str]] = [
    (0, ["yes", "no", "y", "on", 2, -1, 0.5, "tru", "01x"], "must be true, false or null"),
    (1, ["2020-2-29", "29.02.2020", "02/29/2020", "2020-02-30", "2021-02-29", "20200229"], ""),
    (1, [18321, 18321.0, "18321", True, "2020-02-29T25:00", "2020-02-29x", "0000-01-01"], ""),
]


@pytest.mark.parametrize(("index", "values", "encoded"), [*POSTED, *TYPED])
def test_a_cell_is_read_by_its_value(index: int, values: list[object], encoded: float) -> None:
    """Every way to write a value in a source is one value, alone and beside others."""
    column = source_columns(SCHEMA)[index]
    for value in values:
        np.testing.assert_equal(column.reader.read(value), encoded, err_msg=repr(value))
    np.testing.assert_equal(column.encode(Values(values)), [encoded] * len(values))


@pytest.mark.parametrize(("index", "values", "encoded"), POSTED)
def test_a_posted_value_is_what_a_cell_is(index: int, values: list[object], encoded: float) -> None:
    """JSON's values mean what the same cell of a source means."""
    for value in values:
        posted: list[object] = [None] * len(SCHEMA.features)
        posted[index] = value
        vector = parse_features(SCHEMA, posted)
        np.testing.assert_equal(encode(SCHEMA, [vector])[0, index], encoded, err_msg=repr(value))


@pytest.mark.parametrize(("index", "values"), [(0, TRUTHS), (0, FALSEHOODS), (1, DAYS)])
def test_spellings_of_one_value_are_one_query(index: int, values: list[object]) -> None:
    """A replay does not depend on how a boolean or a date was written."""
    posted = [[*[None] * index, value, *[None] * (3 - index)] for value in values]
    assert len({parse_features(SCHEMA, each) for each in posted}) == 1


@pytest.mark.parametrize(("index", "values", "problem"), UNFIT)
def test_what_fits_no_kind_is_refused(index: int, values: list[object], problem: str) -> None:
    """A source and a query refuse the same values, by the feature and not by the value."""
    problem = problem or "must be a date such as 2026-12-31 or null"
    for value in values:
        posted: list[object] = [None] * len(SCHEMA.features)
        posted[index] = value
        with pytest.raises(InvalidFeaturesError) as refused:
            parse_features(SCHEMA, posted)
        assert (refused.value.feature, refused.value.problem) == (
            SCHEMA.feature_names[index],
            problem,
        )
        with pytest.raises(CellError, match=r"^is (neither true nor false|not a date)"):
            source_columns(SCHEMA)[index].check(value)


@pytest.mark.parametrize("value", [True, "1"])
def test_a_number_is_still_neither_true_nor_text(value: object) -> None:
    """What a numeric feature refuses over HTTP did not change."""
    with pytest.raises(InvalidFeaturesError):
        parse_features(SCHEMA, [None, None, None, value])


@pytest.mark.parametrize("day", [-25_567.0, -1.0, 0.0, 1.0, LEAP, BORN.upper])
def test_a_date_is_its_days(day: float) -> None:
    """Days and dates are each other's inverse, before 1970 as well."""
    assert day_in(iso_date(day)) == day


def test_a_boolean_has_one_test_and_one_of_missing() -> None:
    """That it is false and that it is other are not asked beside that it is true."""
    asked = [test.category_code for test in public_tests(SCHEMA, bins=2) if test.feature_index == 0]
    assert asked == [TRUE, NO_TRUTH]
    never = Schema(label="label", classes=("no", "yes"), features=SCHEMA.features[:1])
    assert [test.category_code for test in public_tests(never, bins=2)] == [TRUE]


def test_half_of_the_people_are_true_unless_it_is_said() -> None:
    """The public share of a boolean is the frequency of its test."""
    features = (BooleanFeature(name="a"), BooleanFeature(name="b", category_shares=(0.875, 0.125)))
    schema = Schema(label="label", classes=("no", "yes"), features=features)
    assert [test.public_frequency for test in public_tests(schema, bins=2)] == [0.5, 0.125]


def test_cuts_of_a_date_are_dates() -> None:
    """A listed cut is a date, and equally spaced ones are days."""
    tests = public_tests(SCHEMA, bins=2, listed={"born": ["2020-02-29"], "member": ["false"]})
    assert [(test.cut, test.category_code) for test in tests][:2] == [(None, FALSE), (LEAP, None)]


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_the_outermost_moments_are_on_their_side_of_the_bounds(unit: str) -> None:
    """A moment that some program writes for "never" or "always" becomes no date by overflow."""
    first = np.iinfo(np.int64).min + 1
    units_per_day = UNITS_PER_DAY[unit]
    assert [day_number(day, frozenset()) for day in _days([-1, 0, 1], unit)] == [-1.0, 0.0, 0.0]
    assert _days([first], unit)[0].astype(np.int64) == first // units_per_day


def test_a_moment_beyond_all_dates_is_refused(tmp_path: Path) -> None:
    """Though the number of its day, cut to 32 bits, would be that of a date."""
    born = pa.array([(2**32 + 20_000) * 86_400_000], pa.timestamp("ms"))
    with pytest.raises(DataError, match='column "born", row 1: is not a date'):
        read_rows(_written(tmp_path, born), SCHEMA)


def test_a_time_zone_that_is_not_known_is_refused(tmp_path: Path) -> None:
    """By one line that names the column."""
    born = pa.array([0], pa.timestamp("us", "Mars/Phobos"))
    with pytest.raises(DataError, match='column "born" in the file has an unknown time zone'):
        read_rows(_written(tmp_path, born), SCHEMA)


def _written(folder: Path, born: pa.Array) -> Path:
    """Write one row in Parquet."""
    others = {"member": ["t"], "floor": ["1"], "height": [1.0], "label": ["no"]}
    parquet.write_table(pa.table({"born": born, **others}), folder / "rows.parquet")
    return folder / "rows.parquet"


def _days(counts: list[int], unit: str) -> list[np.datetime64]:
    """Return the dates of moments that are so many units after 1970-01-01."""
    read = dates(np.array(counts, dtype=np.int64).view(f"datetime64[{unit}]"))
    return [each for each in read if isinstance(each, np.datetime64)]
