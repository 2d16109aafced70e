"""Parquet of any column type is read like text, and what is broken is named."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import compute, parquet

from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources import parquet_source
from app.data.sources.sources import read_rows
from app.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema(
    label="y",
    classes=("a", "b"),
    features=(
        NumericFeature(name="x", lower=-10.0, upper=1e6),
        CategoricalFeature(name="c", categories=("u", "v")),
    ),
)
LABELS = pa.array(["a", "b", "a"])
TEXTS = pa.array(["u", None, "v"])
NUMBERS = pa.array([1.5, None, 2.0])
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]
NUMBER_TYPES = [
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.uint64(),
    pa.decimal32(5, 4),
    pa.decimal64(9, 4),
    pa.decimal128(9, 4),
    pa.decimal256(60, 4),
    pa.string(),
    pa.dictionary(pa.int16(), pa.float64()),
    pa.dictionary(pa.int16(), pa.string()),
]
REFUSED_TYPES = [
    pa.date32(),
    pa.timestamp("us"),
    pa.time64("us"),
    pa.list_(pa.float64()),
    pa.struct({"x": pa.float64()}),
]


def write(path: Path, **columns: Any) -> Path:
    """Write a file of three rows, columns replaced by name, and return its path."""
    table = pa.table({"x": NUMBERS, "c": TEXTS, "y": LABELS} | columns)
    parquet.write_table(table, path)
    return path


def line_of(path: Path) -> str:
    """Return the line that a source is refused with."""
    with pytest.raises(DataError) as refused:
        read_rows(path, SCHEMA)
    return str(refused.value)


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_text_of_any_type_is_read(tmp_path: Path, kind: pa.DataType) -> None:
    """Categories and labels are the same, however their text is stored."""
    changes = {"c": TEXTS.cast(kind), "y": LABELS.cast(kind)}
    rows = read_rows(write(tmp_path / "rows.parquet", **changes), SCHEMA)
    np.testing.assert_array_equal(rows.values[:, 1], [0, 3, 1])
    np.testing.assert_array_equal(rows.labels, [0, 1, 0])


@pytest.mark.parametrize("kind", NUMBER_TYPES, ids=str)
def test_numbers_of_any_type_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    """A number is itself, however it is stored, and null is missing."""
    numbers = pa.array([1.0, None, 2.0])
    if pa.types.is_decimal(kind):
        numbers = pa.array([Decimal("1.0000"), None, Decimal(2)], type=kind)
    if pa.types.is_dictionary(kind):
        numbers = numbers.cast(kind.value_type).dictionary_encode()
    rows = read_rows(write(tmp_path / "rows.parquet", x=numbers.cast(kind)), SCHEMA)
    np.testing.assert_array_equal(rows.values[:, 0], [1, np.nan, 2])


def test_decimals_are_the_nearest_floats(tmp_path: Path) -> None:
    """A decimal is what its text would be in a CSV, to the last bit."""
    texts = ["0.1000", "123456.7891", "-0.0003"]
    decimals = pa.array([Decimal(text) for text in texts], type=pa.decimal128(30, 4))
    rows = read_rows(write(tmp_path / "rows.parquet", x=decimals), SCHEMA)
    assert rows.values[:, 0].tolist() == [float(text) for text in texts]


def test_a_column_of_nulls_is_missing(tmp_path: Path) -> None:
    """A column that has no type, since it has no value, is missing everywhere."""
    nulls = pa.nulls(3)
    rows = read_rows(write(tmp_path / "rows.parquet", x=nulls, c=nulls), SCHEMA)
    assert np.isnan(rows.values[:, 0]).all()
    assert rows.values[:, 1].tolist() == [3, 3, 3]


def test_what_a_dictionary_holds_besides_is_no_matter(tmp_path: Path) -> None:
    """An unused entry of a label's dictionary is no row."""
    labels = pa.DictionaryArray.from_arrays([0, 1, 0], ["a", "b", "unused"])
    rows = read_rows(write(tmp_path / "rows.parquet", y=labels), SCHEMA)
    np.testing.assert_array_equal(rows.labels, [0, 1, 0])


def test_every_missing_number_is_the_same(tmp_path: Path) -> None:
    """A NaN of any sign and payload is stored as one NaN, so that the bytes are the same."""
    odd = np.array([0xFFF8000000000001, 0x7FF8000000000002, 0], dtype="<u8").view("<f8")
    rows = read_rows(write(tmp_path / "rows.parquet", x=pa.array(odd)), SCHEMA)
    assert rows.values[:, 0].tobytes() == np.array([np.nan, np.nan, 0.0]).tobytes()


@pytest.mark.parametrize("kind", REFUSED_TYPES, ids=str)
def test_other_types_are_refused_by_column(tmp_path: Path, kind: pa.DataType) -> None:
    """What no CSV could hold is named with its type."""
    path = write(tmp_path / "rows.parquet", c=pa.nulls(3, type=kind))
    expected = f'data.source: column "c" in the file holds neither text nor numbers, but {kind}'
    assert line_of(path).startswith(expected[:70])


def test_a_number_is_no_boolean(tmp_path: Path) -> None:
    """A boolean where a number belongs is refused like the word in a CSV."""
    path = write(tmp_path / "rows.parquet", x=pa.array([None, True, False]))
    assert line_of(path) == 'data.source: column "x", row 2: is not a number'


def test_text_that_is_not_utf8_is_refused_by_row(tmp_path: Path) -> None:
    """A file may call text what is none."""
    cells = pa.array([b"u", b"v", b"\xff"]).view(pa.string())
    path = write(tmp_path / "rows.parquet", c=cells)
    assert line_of(path) == 'data.source: column "c", row 3: is not UTF-8 text'


def test_a_repeated_column_is_refused(tmp_path: Path) -> None:
    """Two columns of a name that is wanted are refused; of another name they are no matter."""
    path = tmp_path / "rows.parquet"
    arrays = [NUMBERS, TEXTS, LABELS, TEXTS]
    parquet.write_table(pa.Table.from_arrays(arrays, ["x", "c", "y", "c"]), path)
    assert line_of(path) == 'data.source: column "c" occurs more than once in the file'
    parquet.write_table(pa.Table.from_arrays([*arrays, TEXTS], ["x", "c", "y", "z", "z"]), path)
    assert read_rows(path, SCHEMA).count == 3


def test_a_name_with_a_point_is_a_name(tmp_path: Path) -> None:
    """A column called like a field of another's structure is not taken for it."""
    structure = pa.array([{"b": 7.0}] * 3)
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"a": structure, "a.b": NUMBERS, "y": LABELS}), path)
    feature = NumericFeature(name="a.b", lower=0.0, upper=9.0)
    rows = read_rows(path, Schema(label="y", classes=("a", "b"), features=(feature,)))
    np.testing.assert_array_equal(rows.values[:, 0], [1.5, np.nan, 2])


def test_parts_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Parts may differ in types and in the order of columns; batches join without a seam."""
    folder = tmp_path / "parts"
    folder.mkdir()
    count = parquet_source.ROWS_PER_BATCH + 7
    for number, name in enumerate(["part-1", "part-10", "part-2"]):
        first = number * count
        columns = {
            "x": pa.array(range(first, first + count)).cast([pa.int32(), pa.float64()][number % 2]),
            "y": pa.array(["a", "b"][number % 2 :: -1][:1] * count),
            "c": pa.array(["u"] * count),
        }
        table = pa.table(dict(list(columns.items())[:: 1 - 2 * (number % 2)]))
        parquet.write_table(table, folder / f"{name}.parquet", row_group_size=30_000)
    counts: list[int] = []
    rows = read_rows(folder, SCHEMA, progress=counts.append)
    np.testing.assert_array_equal(rows.values[:, 0], np.arange(3 * count))
    np.testing.assert_array_equal(rows.labels, np.repeat([0, 1, 0], count))
    assert counts[-1] == 3 * count


def test_a_folder_holds_parts_only(tmp_path: Path) -> None:
    """Something that is no part, or no part at all, is refused by its name."""
    folder = tmp_path / "rows.parquet"
    folder.mkdir()
    assert line_of(folder) == f"data.source: the folder {folder} has no .parquet file"
    (folder / "_temporary").mkdir()
    write(folder / "a.parquet")
    assert read_rows(folder, SCHEMA).count == 3
    (folder / "b.parq").touch()
    assert line_of(folder).startswith('data.source: "b.parq" in the folder is not a .parquet file')
    (folder / "b.parq").rename(folder / "c.parquet")
    assert line_of(folder) == "data.source: c.parquet is not valid Parquet"


def test_a_part_without_a_column_is_named(tmp_path: Path) -> None:
    """The part that has not the columns is named before any row is read."""
    write(tmp_path / "a.parquet")
    parquet.write_table(pa.table({"x": NUMBERS, "y": LABELS}), tmp_path / "b.parquet")
    assert line_of(tmp_path) == 'data.source: column "c" is missing in b.parquet'


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    """An absent file, an empty one and one that breaks off in its middle are told apart."""
    path = tmp_path / "rows.parquet"
    assert line_of(path) == f"data.source: no such file: {path}"
    path.write_bytes(b"PAR1 private PAR1")
    assert line_of(path) == f"data.source: {path} is not valid Parquet"
    body = write(path, c=compute.cast(pa.array(range(3)), pa.string())).read_bytes()
    path.write_bytes(body[:4] + b"\xff" * 60 + body[64:])
    assert line_of(path) == "data.source: row 1: is not valid Parquet from here on"
