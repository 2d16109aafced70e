"""The same rows are the same bytes, whatever source they come from."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.rows import fingerprint
from app.data.schema import CategoricalFeature, NumericFeature, Schema
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
