"""Private rows are read whole and encoded by public rules, or refused in one line."""

from __future__ import annotations

import gzip
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.schema import NumericFeature, Schema
from app.data.sources.column_values import REMEMBERED_CELLS_MAX
from app.data.sources.sources import ROWS_PER_BLOCK, read_rows
from app.errors import DataError
from tests.builders.schema.schemas import PEOPLE
from tests.builders.server.nursery import run_forked

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "age,hours,work,sex,income\n"
RIGHT = HEADER + "39,40,Private,F,low\n50,13.5,State,M,high\n"

# The file, and the line after "conclave: data.source: ".
SPOILED = [
    ("", "is empty; the first line names the columns"),
    ("\n\n", "is empty; the first line names the columns"),
    (HEADER, "has no row of data"),
    ("years,hours,work,sex,income\n", 'column "age" is missing in the header'),
    ("age,hours,work,income\n", 'column "sex" is missing in the header'),
    ("age,hours,work,sex\n", 'column "income" is missing in the header'),
    ("age,age,hours,work,sex,income\n", 'column "age" occurs more than once in the header'),
    (RIGHT + "39,40,Private,F\n", "row 3: has 4 cells, the header has 5"),
    (RIGHT + "39,40,Private,F,low,1\n", "row 3: has 6 cells, the header has 5"),
    (HEADER + "39,40,Private,F\n", "row 1: has 4 cells, the header has 5"),
    (RIGHT + "old,40,Private,F,low\n", 'column "age", row 3: is not a number'),
    (RIGHT + "39,1_000,Private,F,low\n", 'column "hours", row 3: is not a number'),
    (RIGHT + "39,0x10,Private,F,low\n", 'column "hours", row 3: is not a number'),
    (RIGHT + "39,\u0664,Private,F,low\n", 'column "hours", row 3: is not a number'),
    (RIGHT + "39,nan,Private,F,low\n", 'column "hours", row 3: is not a number'),
    (RIGHT + "39,-inf,Private,F,low\n", 'column "hours", row 3: is not a number'),
    (RIGHT + "39,True,Private,F,low\n", 'column "hours", row 3: is not a number'),
    (RIGHT + "39,  ,Private,F,low\n", 'column "hours", row 3: is not a number'),
    (RIGHT + '39,"1,5",Private,F,low\n', 'column "hours", row 3: is not a number'),
    (RIGHT + "39,1e999,Private,F,low\n", 'column "hours", row 3: is not a finite number'),
    (RIGHT + "39,40,Private,F,middle\n", 'column "income", row 3: is not one of data.classes'),
    (RIGHT + "39,40,Private,F,\n", 'column "income", row 3: is not one of data.classes'),
    (RIGHT + "39,40,Private,F,?\n", 'column "income", row 3: is not one of data.classes'),
    (RIGHT + "39,40,Private,F, low\n", 'column "income", row 3: is not one of data.classes'),
    (RIGHT + "old,40,Private,F,x\nx,1,P,F,x\n", 'column "age", row 3: is not a number'),
    (
        RIGHT + "39,40,Private,F,x\nold,1,P,F,low\n",
        'column "income", row 3: is not one of data.classes',
    ),
    (
        RIGHT + '39,40,"Private,F,low\n',
        "row 3: is not well-formed CSV: a quote is stray, or never closed",
    ),
    (
        RIGHT + '39,40,"Priv"ate,F,low\n',
        "row 3: is not well-formed CSV: a quote is stray, or never closed",
    ),
    (
        RIGHT + f"39,40,{'P' * 200_000},F,low\n",
        "row 3: has a cell above 131072 characters, or a quote that is never closed",
    ),
    (
        '"age,hours\n',
        "header: is not well-formed CSV: a quote is stray, or never closed",
    ),
]


def write(folder: Path, text: str = RIGHT, name: str = "rows.csv") -> Path:
    """Write a file of rows and return its path."""
    path = folder / name
    path.write_bytes(text.encode())
    return path


def line_of(path: Path | str, *, rows_expected: int | None = None) -> str:
    """Return the line that a file is refused with."""
    with pytest.raises(DataError) as refused:
        read_rows(path, PEOPLE, rows_expected=rows_expected)
    return f"conclave: {refused.value}"


def test_rows_are_encoded_by_public_rules(tmp_path: Path) -> None:
    """Numbers are clipped, categories become codes, other and missing have codes of their own."""
    text = RIGHT + "5,1e2,Federal,,low\n?,,?,F,high\n-0.0,+.5, Private,F,low\n 91 ,7.,State,F,low\n"
    rows = read_rows(write(tmp_path, text), PEOPLE)
    expected = [
        [39, 40, 0, 0],
        [50, 13.5, 1, 1],
        [17, 100, 2, 2],
        [math.nan, math.nan, 3, 0],
        [17, 0.5, 2, 0],
        [90, 7, 1, 0],
    ]
    np.testing.assert_array_equal(rows.values, expected)
    np.testing.assert_array_equal(rows.labels, [0, 1, 0, 1, 0, 0])
    assert rows.count == 6


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(RIGHT.replace("\n", "\r\n"), id="line ends of Windows"),
        pytest.param("\ufeff" + RIGHT, id="byte order mark"),
        pytest.param(RIGHT.rstrip("\n"), id="no last line end"),
        pytest.param("\n" + RIGHT.replace("\n", "\n\n") + "\n", id="empty lines"),
        pytest.param(RIGHT.replace("Private", '"Private"'), id="quotes"),
        pytest.param(
            "income,id,sex,work,hours,age\nlow,a,F,Private,40,39\nhigh,b,M,State,13.5,50\n",
            id="another order, another column",
        ),
    ],
)
def test_the_same_rows_read_the_same(tmp_path: Path, text: str) -> None:
    """How a file is written, and in which order its columns come, is no matter."""
    rows = read_rows(write(tmp_path, text), PEOPLE)
    np.testing.assert_array_equal(rows.values, [[39, 40, 0, 0], [50, 13.5, 1, 1]])
    np.testing.assert_array_equal(rows.labels, [0, 1])


def test_compressed_rows_read_the_same(tmp_path: Path) -> None:
    """A .csv.gz file is read like the file in it."""
    path = tmp_path / "rows.CSV.GZ"
    path.write_bytes(gzip.compress(RIGHT.encode()))
    rows = read_rows(path, PEOPLE, rows_expected=2)
    np.testing.assert_array_equal(rows.values, [[39, 40, 0, 0], [50, 13.5, 1, 1]])


@pytest.mark.parametrize(("text", "line"), SPOILED)
def test_bad_data_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    """The line names the column and the row number, never a value."""
    assert line_of(write(tmp_path, text)) == f"conclave: data.source: {line}"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        pytest.param(
            b"39,40,Priv\xe9,F,low\n", 'column "work", row 3: is not UTF-8 text', id="encoding"
        ),
        pytest.param(
            b"39,40,Private,F,l\xf6w\n",
            'column "income", row 3: is not one of data.classes',
            id="label",
        ),
    ],
)
def test_bytes_of_another_encoding_are_named(tmp_path: Path, body: bytes, line: str) -> None:
    """A cell that is no UTF-8 is refused by its column and row number."""
    path = tmp_path / "rows.csv"
    path.write_bytes(RIGHT.encode() + body)
    assert line_of(path) == f"conclave: data.source: {line}"


def test_a_truncated_compressed_file_is_refused(tmp_path: Path) -> None:
    """A download that broke off is not taken for the whole."""
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "39,40,Private,F,low\n" * 9).encode())[:-9])
    assert line_of(path) == "conclave: data.source: row 10: the compressed file ends too early"


def test_what_is_no_compressed_file_is_refused(tmp_path: Path) -> None:
    """A plain file with a compressed one's name is refused before any row."""
    path = write(tmp_path, name="rows.csv.gz")
    assert line_of(path) == "conclave: data.source: header: is not valid gzip"


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    """The line names the path, and a folder is no file either."""
    absent, folder = tmp_path / "rows.csv", tmp_path / "folder.csv"
    folder.mkdir()
    assert line_of(absent) == f"conclave: data.source: no such file: {absent}"
    assert line_of(folder) == f"conclave: data.source: {folder} cannot be read: Is a directory"


def test_the_number_of_rows_must_agree(tmp_path: Path) -> None:
    """The public n of the configuration is the number of rows."""
    line = "conclave: data.rows: says 3, but the source has 2 rows"
    assert line_of(write(tmp_path), rows_expected=3) == line


def test_blocks_join_without_a_seam(tmp_path: Path) -> None:
    """Rows beyond a block, and more distinct cells than are remembered, are all there."""
    count = REMEMBERED_CELLS_MAX + 2 * ROWS_PER_BLOCK + 1
    schema = Schema(
        label="y",
        classes=("0", "1"),
        features=(NumericFeature(name="x", lower=0.0, upper=1e9),),
    )
    text = "x,y\n" + "".join(f"{number},{number % 2}\n" for number in range(count))
    progress: list[int] = []
    rows = read_rows(write(tmp_path, text), schema, progress=progress.append)
    np.testing.assert_array_equal(rows.values[:, 0], np.arange(count))
    np.testing.assert_array_equal(rows.labels, np.arange(count) % 2)
    assert progress[0] == ROWS_PER_BLOCK
    assert progress[-1] == count


def test_row_numbers_count_across_blocks(tmp_path: Path) -> None:
    """The row number of a refusal counts from the first row of data, empty lines aside."""
    text = RIGHT + "\n39,40,Private,F,low\n" * (ROWS_PER_BLOCK + 5) + "39,x,Private,F,low\n"
    row_number = ROWS_PER_BLOCK + 8
    line = f'conclave: data.source: column "hours", row {row_number}: is not a number'
    assert line_of(write(tmp_path, text)) == line


def test_private_rows_are_frozen_and_hidden(tmp_path: Path) -> None:
    """No array of the rows can be written to, and their text shows no value."""
    rows = read_rows(write(tmp_path), PEOPLE)
    assert repr(rows) == "PrivateRows()"
    with pytest.raises(ValueError, match="read-only"):
        rows.values[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        rows.labels[0] = 1


CONFIGURATION = """
[release]
name = "people"
[data]
source = "rows.csv"
label = "income"
classes = ["low", "high"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [17, 90]
[hypotheses]
class = "stumps"
[answers]
ensemble = 1
[server]
port = 0
"""


def test_the_server_prints_the_line_and_ends_with_two(tmp_path: Path) -> None:
    """The operator reads which cell is wrong, not what is in it, and nothing is served."""
    write(tmp_path, HEADER + "39,40,Private,F,low\nmarker,1,State,F,low\n")
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION, encoding="utf-8")
    ended = run_forked(("-m", "app", "serve", "--config", str(path)))
    line = 'conclave: data.source: column "age", row 2: is not a number'
    assert (ended.returncode, ended.stderr.decode().splitlines()[-1]) == (2, line)
    assert b"marker" not in ended.stderr + ended.stdout
