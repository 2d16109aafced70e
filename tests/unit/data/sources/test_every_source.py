"""The same rows are the same bytes, whatever source they come from."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from app.data.rows import fingerprint
from app.data.schema import (
    BooleanFeature,
    CategoricalFeature,
    DateFeature,
    NumericFeature,
    Schema,
)
from app.data.sources.sources import read_rows
from app.errors import DataError
from tests.builders.schema.schemas import PEOPLE
from tests.builders.schema.tables import FORMATS, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.schema.tables import Table

TABLE: Table = {
    "hours": [40, 13, 1000, None, 0, 40],
    "id": [1, 2, 3, 4, 5, 6],
    "age": [39.0, 50.5, 5.0, None, -0.0, 91.0],
    "income": ["low", "high", "low", "high", "low", "low"],
    "sex": ["F", "M", None, "F", "F", "F"],
    "work": ["Private", "State", "Federal", "?", " Private", "Straße"],
}
ENCODED = [
    [39, 40, 0, 0],
    [50.5, 13, 1, 1],
    [17, 100, 2, 2],
    [math.nan, math.nan, 3, 0],
    [17, 0, 2, 0],
    [90, 40, 2, 0],
]
OTHERS = [name for name in FORMATS if name != "csv"]
# What is written over a column of the table, and the line after "data.source: ".
SPOILED: list[tuple[str, list[object], str]] = [
    ("hours", [40, 13, math.inf, 1, 0, 40], 'column "hours", row 3: is not a finite number'),
    ("age", ["1", "2", "3", "old", "5", "x"], 'column "age", row 4: is not a number'),
    ("income", [*["low"] * 5, "middle"], 'column "income", row 6: is not one of data.classes'),
    ("income", [*["low"] * 4, None, "x"], 'column "income", row 5: is not one of data.classes'),
]


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_source_gives_the_same_rows(tmp_path: Path, format_name: str) -> None:
    """Numbers are clipped, categories become codes, and null is a missing value everywhere."""
    source, query = write_table(tmp_path, TABLE, format_name)
    counts: list[int] = []
    rows = read_rows(source, PEOPLE, query=query, rows_expected=6, progress=counts.append)
    np.testing.assert_array_equal(rows.values, ENCODED)
    np.testing.assert_array_equal(rows.labels, [0, 1, 0, 1, 0, 0])
    assert counts[-1] == rows.count == 6


@pytest.mark.parametrize("format_name", OTHERS)
def test_rows_are_recognised_in_another_source(tmp_path: Path, format_name: str) -> None:
    """Bytes and fingerprint are a CSV's; rows in another order have the same fingerprint."""
    in_csv = read_rows(write_table(tmp_path, TABLE, "csv")[0], PEOPLE)
    source, query = write_table(tmp_path, TABLE, format_name)
    rows = read_rows(source, PEOPLE, query=query)
    assert rows.values.tobytes() == in_csv.values.tobytes()
    assert rows.labels.tobytes() == in_csv.labels.tobytes()
    (tmp_path / "reversed").mkdir()
    reversed_table = {name: list(reversed(values)) for name, values in TABLE.items()}
    source, query = write_table(tmp_path / "reversed", reversed_table, format_name)
    rows = read_rows(source, PEOPLE, query=query)
    assert fingerprint(rows, b"key") == fingerprint(in_csv, b"key")


@pytest.mark.parametrize("format_name", ["parquet", "npz"])
@pytest.mark.parametrize(("column", "cells", "line"), SPOILED)
def test_a_bad_cell_is_one_line(
    tmp_path: Path, format_name: str, column: str, cells: list[object], line: str
) -> None:
    """The line names the column and the row number, never a value."""
    source, query = write_table(tmp_path, {**TABLE, column: cells}, format_name)
    assert line_of(source, query) == f"data.source: {line}"


@pytest.mark.parametrize(("column", "cells", "line"), SPOILED)
def test_a_bad_cell_of_a_database_is_one_line(
    tmp_path: Path, column: str, cells: list[object], line: str
) -> None:
    """A database of any types is held to the same rules."""
    source, query = write_table(tmp_path, {**TABLE, column: cells}, "sqlite")
    assert line_of(source, query) == f"data.source: {line}"


@pytest.mark.parametrize(("column", "cells", "line"), SPOILED)
def test_a_bad_cell_of_a_part_names_the_part(
    tmp_path: Path, column: str, cells: list[object], line: str
) -> None:
    """In a folder, the row is counted over all parts, and within its own."""
    source, query = write_table(tmp_path, {**TABLE, column: cells}, "parts")
    number = int(line.partition("row ")[2].partition(":")[0])
    part = f"row {number - 3} of b.parquet" if number > 3 else f"row {number} of a.parquet"
    assert line_of(source, query) == "data.source: " + line.replace(
        f"row {number}:", f"row {number} ({part}):"
    )


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_absent_column_is_named(tmp_path: Path, format_name: str) -> None:
    """The schema names the columns; one that is not there is refused by its name."""
    table = {name: values for name, values in TABLE.items() if name != "work"}
    source, query = write_table(tmp_path, table, format_name)
    assert line_of(source, query).startswith('data.source: column "work" is missing in ')


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_source_without_rows_is_refused(tmp_path: Path, format_name: str) -> None:
    """Columns and nothing in them are no data."""
    source, query = write_table(tmp_path, {name: [] for name in TABLE}, format_name)
    assert line_of(source, query) == "data.source: has no row of data"


@pytest.mark.parametrize("format_name", OTHERS)
def test_typed_labels_and_categories_are_found_by_value(tmp_path: Path, format_name: str) -> None:
    """Whole numbers and booleans are looked up under their usual spellings."""
    schema = Schema(
        label="digit",
        classes=("7", "3"),
        features=(
            CategoricalFeature(name="floor", categories=("1", "2.0")),
            CategoricalFeature(name="member", categories=("false",)),
            NumericFeature(name="years", lower=-50.0, upper=50.0),
        ),
        missing=("-9",),
    )
    table: Table = {
        "digit": [3, 7, 7],
        "floor": [1.0, 2.0, -9.0],
        "member": [True, False, True],
        "years": [-9, 9, -90],
    }
    source, query = write_table(tmp_path, table, format_name)
    rows = read_rows(source, schema, query=query)
    member = [1, 0, 1] if format_name != "sqlite" else [1, 1, 1]
    np.testing.assert_array_equal(rows.labels, [1, 0, 0])
    np.testing.assert_array_equal(rows.values[:, 0], [0, 1, 3])
    np.testing.assert_array_equal(rows.values[:, 1], member)
    np.testing.assert_array_equal(rows.values[:, 2], [math.nan, 9, -50])


KINDS = Schema(
    label="income",
    classes=("low", "high"),
    features=(
        BooleanFeature(name="member"),
        DateFeature(name="born", lower=-10_000.0, upper=20_000.0),
    ),
    missing=("9999-12-31",),
)
LONG_AGO = replace(
    KINDS,
    features=(
        BooleanFeature(name="member"),
        DateFeature(name="born", lower=-150_000.0, upper=150_000.0),
    ),
)
MOMENTS = [
    dt.datetime(1900, 1, 1, 12),  # noqa: DTZ001 -- without a zone
    dt.datetime(1969, 12, 31, 23, 59, 59),  # noqa: DTZ001 -- without a zone
    dt.datetime(1970, 1, 1),  # noqa: DTZ001 -- without a zone
    dt.datetime(2020, 2, 29, 23, 59, 59, 999_999),  # noqa: DTZ001 -- without a zone
    dt.datetime(2260, 1, 1),  # noqa: DTZ001 -- without a zone
]
DATED = [-10_000.0, -1.0, 0.0, 18_321.0, 20_000.0]


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize(
    "born",
    [
        MOMENTS,
        [moment.date() for moment in MOMENTS],
        [moment.date().isoformat() for moment in MOMENTS],
        [moment.isoformat() for moment in MOMENTS],
    ],
    ids=["moments", "dates", "texts", "texts of moments"],
)
def test_dates_and_booleans_are_alike_in_every_source(
    tmp_path: Path, format_name: str, born: list[object]
) -> None:
    """Typed or as texts they are the same bytes, and clipped as numbers of days."""
    truths: list[object] = [True, False, True, False, True]
    if isinstance(born[0], dt.date) and format_name == "npz":
        born = [*np.array(born, dtype="datetime64[us]")]
    if isinstance(born[0], dt.date) and format_name == "sqlite":
        born = [str(each) for each in born]
    table: Table = {"member": truths, "born": born, "income": ["low", "high"] * 2 + ["low"]}
    source, query = write_table(tmp_path, table, format_name)
    rows = read_rows(source, KINDS, query=query)
    expected = np.array([[1, 0, 1, 0, 1], DATED], dtype=np.float64).T
    assert rows.values.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("zone", ["+09:00", "America/New_York"])
def test_a_moment_has_the_date_of_its_zone(tmp_path: Path, zone: str) -> None:
    """It is the date that the same moment has in a CSV, and not that of Greenwich."""
    moments = pa.array([0, 86_399, None], pa.timestamp("s")).dictionary_encode()
    moments = moments.dictionary_decode().cast(pa.timestamp("s", tz=zone))
    columns = {"member": [True, None, False], "born": moments, "income": ["low"] * 3}
    parquet.write_table(pa.table(columns), tmp_path / "people.parquet")
    rows = read_rows(tmp_path / "people.parquet", KINDS)
    days = [0.0, 1.0] if zone == "+09:00" else [-1.0, 0.0]
    np.testing.assert_array_equal(rows.values, [[1, days[0]], [3, days[1]], [0, math.nan]])


@pytest.mark.parametrize("zone", [None, "UTC", "+05:30", "-05:00", "Europe/Berlin"])
def test_a_moment_at_an_end_of_64_bits_has_its_date(tmp_path: Path, zone: str | None) -> None:
    """The zone's offset does not carry it past the end, to the other one."""
    ends = pa.array([2**63 - 1, -(2**63), None], pa.int64()).cast(pa.timestamp("ns", tz=zone))
    columns = {"member": [True, None, False], "born": ends, "income": ["low"] * 3}
    parquet.write_table(pa.table(columns), tmp_path / "people.parquet")
    rows = read_rows(tmp_path / "people.parquet", LONG_AGO)
    last, first = dt.date(2262, 4, 11), dt.date(1677, 9, 21)
    if zone in {"+05:30", "Europe/Berlin"}:
        last += dt.timedelta(days=1)
    if zone == "-05:00":
        first -= dt.timedelta(days=1)
    days = [(each - dt.date(1970, 1, 1)).days for each in (last, first)]
    np.testing.assert_array_equal(rows.values[:, 1], [*days, math.nan])


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ms", tz="+05:30")], ids=str)
@pytest.mark.parametrize("count", [2**63 - 1, -(2**63)])
def test_a_moment_beyond_every_calendar_is_no_date(
    tmp_path: Path, kind: pa.DataType, count: int
) -> None:
    """It is refused by its row, and neither wrapped nor taken for a missing one."""
    born = pa.array([0, count], pa.int64()).view(kind)
    table = pa.table({"member": [True, True], "born": born, "income": ["low"] * 2})
    parquet.write_table(table, tmp_path / "people.parquet")
    with pytest.raises(DataError, match=r'column "born", row 2: is not a date'):
        read_rows(tmp_path / "people.parquet", KINDS)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize(
    ("column", "cells", "problem"),
    [
        ("member", ["true", "f", "yes"], "is neither true nor false"),
        ("member", [1, 0, 2], "is neither true nor false"),
        ("born", ["2020-02-29", "9999-12-31", "2021-02-29"], "is not a date such as 2026-12-31"),
        ("born", [None, "9999-12-31", "18321"], "is not a date such as 2026-12-31"),
    ],
)
def test_what_is_of_another_kind_is_one_line(
    tmp_path: Path, format_name: str, column: str, cells: list[object], problem: str
) -> None:
    """The line names the column and the row, never the value."""
    good: Table = {"member": [True] * 3, "born": ["2020-02-29"] * 3, "income": ["low"] * 3}
    source, query = write_table(tmp_path, {**good, column: cells}, format_name)
    with pytest.raises(DataError) as refused:
        read_rows(source, KINDS, query=query)
    place = "3 (row 2 of b.parquet)" if format_name == "parts" else "3"
    assert str(refused.value) == f'data.source: column "{column}", row {place}: {problem}'


@pytest.mark.parametrize("format_name", ["parquet", "npz"])
def test_typed_dates_belong_to_dates_only(tmp_path: Path, format_name: str) -> None:
    """In a column of another kind they are refused by its name, as before."""
    born = dt.date(2020, 2, 29) if format_name == "parquet" else np.datetime64("2020-02-29")
    table: Table = {"member": [born], "born": [born], "income": ["low"]}
    source, query = write_table(tmp_path, table, format_name)
    with pytest.raises(DataError, match='column "member"'):
        read_rows(source, KINDS, query=query)


@pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.parquet.bak"])
def test_what_is_no_source_is_refused(tmp_path: Path, name: str) -> None:
    """A name that says nothing of what is in it is refused, whether or not it is there."""
    expected = (
        "data.source: is neither a .csv, .csv.gz, .parquet or .npz file, nor a folder of "
        "Parquet parts, nor an SQLAlchemy URL"
    )
    assert line_of(str(tmp_path / name)) == expected


def test_a_csv_needs_no_other_library() -> None:
    """A release on a CSV starts without the libraries of the other sources."""
    script = (
        "import sys; import app.release.drawing, app.data.sources.sources; "
        "sys.exit(any(name in sys.modules for name in "
        "('pyarrow', 'app.data.sources.database_source')))"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert ended.returncode == 0


def line_of(source: str, query: str | None = None) -> str:
    """Return the line that a source is refused with."""
    with pytest.raises(DataError) as refused:
        read_rows(source, PEOPLE, query=query)
    return str(refused.value)
