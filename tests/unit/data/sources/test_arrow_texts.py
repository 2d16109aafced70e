"""Texts that are read together are what each alone is read as, whatever stands about them."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.data.field_values import ERRORS, CellError
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources import csv_records, csv_source
from app.data.sources.arrow_texts import ArrowTexts, divided
from app.data.sources.column_values import SourceColumn, column_reader, source_columns
from app.data.sources.csv_dialect import CsvDialect
from app.data.sources.sources import read_rows
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = Schema(
    label="y",
    classes=("a", "ü"),
    features=(
        NumericFeature(name="x", lower=-100.0, upper=1e300),
        CategoricalFeature(name="c", categories=("a", "1", "b,\nc", 'd"e')),
    ),
    missing=("?", "-9", "1e999", "NA"),
)
ODD = (
    *("", " ", "\t", "nan", "NaN", "-nan", "inf", "-Infinity", "infinity", "1_0", "0x1", "0b1"),
    *("1e400", "-1e400", "1e999", "1e-400", "4.9e-324", "2e-324", "1.7976931348623157e308"),
    *("1.7976931348623159e308", "9" * 400, "0." + "0" * 400 + "1", "1" + "0" * 309, "१", "\uff11"),
    *("1\n", "\n1", "1\x0b", "\x0c1", "\xa01", "1\u2003", "\0001", "1\0", "1\0002", "\udc80"),
    *("1\udcff", "?", "-9", "-9.0", " -9", "NA", "na", "1,5", "1.5", ",5", "1'000", "1 000"),
    *("0.1", "123456.7891", "2.2250738585072011e-308", "9007199254740993", "1e22", "1e23"),
    *("5e-324", "-0", "-0.0", "+0", "+1", "++1", "+-1", " +1 ", "1e+", "1e", "e1", ".", "-.", "+."),
    *("1f", "1d", "1L", "0x1p3", "1e5.", "1..", "1.e5", ".5e1", ".e1", "d", "#1", "=1", "/", ":"),
)
# Every text of few of these is tried.
SHORT = [
    *("".join(each) for size in range(1, 4) for each in product("01+-.eE ", repeat=size)),
    *("".join(each) for size in (4, 5) for each in product("1+.e", repeat=size)),
]
ALPHABET = "0123456789+-.eE ,\t_nifax\0\n\r\"'\u0661\u00e9"
TEXTS = st.one_of(
    st.sampled_from(ODD),
    st.text(ALPHABET, max_size=12),
    st.text(max_size=4),
    st.floats().map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
)
FILES = st.lists(st.sampled_from(['"', '""', ",", "\n", "\r\n", "\r", "a", "1", "x,", "\0", "ü"]))


def texts_of(cells: Sequence[str]) -> ArrowTexts:
    """Return texts as a reader of files gives them."""
    body = [cell.encode(errors=ERRORS) for cell in cells]
    return ArrowTexts(pa.array(body, pa.binary()))


@cache
def column_of(index: int, decimal: str = ".") -> SourceColumn:
    """Return a column of the schema."""
    return source_columns(SCHEMA, decimal=decimal)[index]


def alone(cells: Sequence[str], index: int, decimal: str = ".") -> list[str] | None:
    """Read each text alone, by today's rule of one value; None where one is refused."""
    column = column_of(index, decimal)
    try:
        return [float(column.reader.read(cell)).hex() for cell in cells]
    except CellError:
        return None


def together(cells: Sequence[str], index: int, decimal: str = ".") -> list[str] | None:
    """Read texts together."""
    try:
        encoded = column_of(index, decimal).encode(texts_of(cells))
    except CellError:
        return None
    return [each.hex() for each in encoded.tolist()]


@pytest.mark.parametrize("decimal", [".", ","])
def test_every_short_text_is_read_as_alone(decimal: str) -> None:
    """All texts of few characters, and all odd ones: the same bits, or the same refusal."""
    for cell in (*SHORT, *(each.replace(".", ",") for each in SHORT if "." in each), *ODD):
        expected = alone([cell], 0, decimal)
        assert together([cell], 0, decimal) == expected, repr(cell)
    fine = [cell for cell in (*SHORT, *ODD) if alone([cell], 0, decimal) is not None]
    assert len(fine) > 90
    assert together(fine, 0, decimal) == alone(fine, 0, decimal)


@settings(max_examples=150)
@given(st.lists(TEXTS, max_size=8), st.sampled_from([0, 1, 2]), st.sampled_from([".", ","]))
@example(["é".encode()[:1].decode(errors=ERRORS), "é".encode()[1:].decode(errors=ERRORS)], 1, ".")
@example([b"\xed\xa0\x80".decode(errors=ERRORS)], 1, ".")
@example([b"\xc0\x80".decode(errors=ERRORS)], 1, ".")
@example([b"\xf4\x90\x80\x80".decode(errors=ERRORS)], 1, ".")
def test_together_is_alone(cells: list[str], index: int, decimal: str) -> None:
    """Numbers, categories and labels, in any mixture: a text is read by itself."""
    assert together(cells, index, decimal) == alone(cells, index, decimal)
    fine = [cell for cell in cells if alone([cell], index, decimal) is not None]
    assert together(fine, index, decimal) == alone(fine, index, decimal)


def test_a_slice_is_read_from_its_place() -> None:
    """Texts that lie in the middle of others' bytes are their own."""
    cells = ["x", "1", "", "?", "2.5", "y"]
    body = pa.array([cell.encode() for cell in cells], pa.large_binary()).slice(1, 4)
    encoded = column_of(0).encode(ArrowTexts(body)).tolist()
    assert [each.hex() for each in encoded] == alone(cells[1:5], 0)
    assert column_of(0).encode(ArrowTexts(body.slice(0, 0))).tolist() == []


@settings(max_examples=150)
@given(FILES.map("".join), st.sampled_from([",", ";", "\t"]), st.integers(1, 3))
@example('"a""b",c\n"",""\n', ",", 2)
@example('a"b,c\n', ",", 2)
@example('"a"b,c\n', ",", 2)
@example('""\n\n""\n', ",", 1)
@example("a\rb\n", ",", 1)
def test_records_are_divided_alike_or_left(text: str, separator: str, width: int) -> None:
    """What is divided by one reader has the fields that the other finds."""
    body = text.replace(",", separator).encode()
    fields = divided(body, separator, width=width, wanted=range(width)) if body else None
    if fields is None:
        return
    lines = body.decode().splitlines(keepends=True)
    rows = [row for row in csv.reader(lines, delimiter=separator, strict=True) if row]
    assert all(len(row) == width for row in rows)
    columns = [list(cells) for cells in fields.cells if cells is not None]
    assert list(zip(*columns, strict=True)) == list(map(tuple, rows))
    assert fields.row_count == len(rows)


def test_a_field_above_the_limit_is_left() -> None:
    """Also where it is long by many lines and quotes, none of which is long."""
    for field in ("x" * 131_073, '""\n' * 50_000):
        assert divided(f'"{field}",1\n'.encode(), ",", width=2, wanted=[0]) is None
    fields = divided(b'"' + b'""\n' * 30_000 + b'",1\n', ",", width=2, wanted=[0])
    assert fields is not None
    assert fields.row_count == 1


def test_a_mark_within_the_file_is_text_wherever_a_block_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte order mark is one at the start of the file only; elsewhere it is part of a cell."""
    monkeypatch.setattr(csv_source, "SMALL_BYTES", 1)
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", 64)
    monkeypatch.setattr(csv_records, "PIECE_BYTES", 16)
    text = "c,x,y\n" + "\ufeffa,1,a\n" * 100
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    read = read_rows(tmp_path / "rows.csv", SCHEMA)
    other = float(len(("a", "1", "b,\nc", 'd"e')))
    assert read.values[:, 1].tolist() == [other] * 100


ROWS = st.lists(
    st.sampled_from(
        [
            *("1,a,a\n", "2.5,b,ü\n", '"3",zz,"a"\n', "?,,a\n", '4,"b,\nc",a\n', '5,"d""e",a\n'),
            *("\n", "\r\n", "6,a,a\r\n", "7,a,a\r", '8,5" pipe,a\n', "9,1\n", "x,1,a\n", "1,1,z\n"),
            *('1,"1"x,a\n', '1,"1,a\n', "1,\udcff,a\n", "1,\0,a\n", "1,1,a", "NA,-9,a\n"),
        ]
    ),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(ROWS, st.integers(1, 40), st.sampled_from([".csv", ".csv.gz"]), st.integers(0, 20))
def test_a_file_is_read_alike_by_both_readers(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], size: int, suffix: str, cut: int
) -> None:
    """Blocks of few bytes and Python's reader give the same rows, or the same line."""
    body = "".join(["\ufeffx,c,y\n", *rows]).encode(errors=ERRORS)
    path = tmp_path_factory.mktemp("csv") / f"rows{suffix}"
    path.write_bytes(body if suffix == ".csv" else gzip.compress(body)[: -cut or None])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "SMALL_BYTES", 0)
        patch.setattr(csv_records, "BLOCK_BYTES", size)
        patch.setattr(csv_records, "PIECE_BYTES", size)
        by_blocks = outcome(path)
    assert by_blocks == outcome(path)


def outcome(path: Path, dialect: CsvDialect | None = None) -> str | bytes:
    """Return the bytes of a file's rows, or the line that it is refused with."""
    try:
        rows = read_rows(path, SCHEMA, dialect=dialect or CsvDialect())
    except DataError as error:
        return str(error)
    return rows.values.tobytes() + rows.labels.tobytes()


def test_a_large_file_is_read_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is odd, no row of it comes to Python's reader."""
    lines = [f'{number / 7!r},"a","ü"\r\n' for number in range(60_000)]
    path = tmp_path / "rows.csv"
    path.write_text("".join(["x,c,y\n", *lines]), encoding="utf-8", newline="")
    monkeypatch.setattr(csv_source, "SMALL_BYTES", 2**40)
    expected = outcome(path)
    monkeypatch.undo()
    monkeypatch.setattr(csv_source, "groupby", None)
    assert outcome(path) == expected


def test_the_reader_of_a_column_is_asked_for_what_is_odd_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plain numbers never come to the reader of one text; a token comes once."""
    feature = SCHEMA.features[0]
    reader = column_reader(feature, SCHEMA, ".")
    seen: list[object] = []
    read = reader.read

    def noted(value: object) -> float:
        seen.append(value)
        return read(value)

    monkeypatch.setattr(reader, "read", noted)
    column = SourceColumn("x", reader)
    column.encode(texts_of(["1", "2.5e3", "?", "?", "", " 7 ", "-9"]))
    assert sorted(map(str, seen)) == ["", "-9", "?"]
