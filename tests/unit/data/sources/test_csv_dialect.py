"""Dialects of CSV: the same rows in another writing, and which setting a header asks for."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.public_points import read_public_points
from app.data.sources.csv_dialect import CsvDialect
from app.data.sources.sources import read_rows
from app.errors import ConfigurationError, DataError
from tests.builders.schema.schemas import PEOPLE

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

PLAIN = 'age,hours,work,sex,income\n39.5,40,"a, b",F,low\n?,-1e2,Straße,M,high\n'
ENCODED = [[39.5, 40, 2, 0], [np.nan, 0, 2, 1]]
SEMICOLON = 'age;hours;work;sex;income\n39,5;40;"a, b";F;low\n?;-1,0e2;Straße;M;high\n'
GERMAN = CsvDialect(";", ",", "cp1252")
COMMA = ', and data.decimal = "," where numbers have a comma'
NAME = "PRIVATE-MARKER"


def rows_of(path: Path, dialect: CsvDialect) -> NDArray[np.float64]:
    """Return the encoded rows of a file, as its private and as its public reader has them."""
    rows = read_rows(path, PEOPLE, dialect=dialect)
    np.testing.assert_array_equal(read_public_points(path, PEOPLE, dialect), rows.values)
    return rows.values


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (PLAIN, CsvDialect()),
        (PLAIN, CsvDialect(encoding="utf-16")),
        (PLAIN, CsvDialect(encoding="utf-16-be")),
        (PLAIN, CsvDialect(encoding="iso8859-1")),
        (SEMICOLON, GERMAN),
        (SEMICOLON, CsvDialect(";", ",")),
        (SEMICOLON.replace(";", "\t"), CsvDialect("\t", ",")),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_dialect_is_the_same_rows(
    tmp_path: Path, text: str, dialect: CsvDialect, suffix: str
) -> None:
    """Separator, decimal comma and encoding change nothing of what the rows are."""
    path = tmp_path / f"people{suffix}"
    body = text.encode(dialect.encoding)
    path.write_bytes(gzip.compress(body) if suffix.endswith("gz") else body)
    np.testing.assert_array_equal(rows_of(path, dialect), ENCODED)


def test_numbers_that_hardly_repeat_are_read_alike(tmp_path: Path) -> None:
    """A column of many numbers, which are read together, has its commas too."""
    numbers = np.arange(20_000) / 200.0
    lines = [f"{number:.3f}".replace(".", ",") + ";1;a;F;low\n" for number in numbers]
    path = tmp_path / "people.csv"
    path.write_text("hours;age;work;sex;income\n" + "".join(lines), encoding="utf-8")
    rows = read_rows(path, PEOPLE, dialect=CsvDialect(";", ","))
    np.testing.assert_array_equal(rows.values[:, 1], numbers)


@pytest.mark.parametrize("cell", ["39.5", "1.000", "1.000,5", "39,5,1"])
def test_a_point_is_no_decimal_comma(tmp_path: Path, cell: str) -> None:
    """A point may part thousands, so that a number with one is refused and not guessed."""
    path = tmp_path / "people.csv"
    path.write_text(f"age;hours;work;sex;income\n{cell};40;a;F;low\n", encoding="utf-8")
    with pytest.raises(DataError, match='column "age", row 1: is not a number'):
        read_rows(path, PEOPLE, dialect=CsvDialect(";", ","))


@pytest.mark.parametrize(
    ("body", "likely"),
    [
        (
            SEMICOLON.encode(),
            'separated by ";": set data.separator = ";"' + COMMA,
        ),
        (
            b'"Age";"Hours";"work";"sex";"income"\n39;40;a;F;low\n',
            'separated by ";": set data.separator = ";"' + COMMA,
        ),
        (
            PLAIN.replace(",", "\t").encode(),
            'separated by tabs: set data.separator = "\\t"' + COMMA,
        ),
        (PLAIN.encode("utf-16"), 'written in UTF-16: set data.encoding = "utf-16"'),
        (PLAIN.encode("utf-32"), 'written in UTF-32: set data.encoding = "utf-32"'),
        (PLAIN.encode("utf-16-le"), 'written in UTF-16-LE: set data.encoding = "utf-16-le"'),
        (PLAIN.encode("utf-16-be"), 'written in UTF-16-BE: set data.encoding = "utf-16-be"'),
        (
            gzip.compress(PLAIN.encode(), mtime=0),
            "compressed by gzip: let the name of the file end in .csv.gz",
        ),
        (b"PK\x03\x04\x14\0", "like a ZIP archive or a spreadsheet: save the table as CSV"),
        (b"PAR1\x15\x04\n", "like Parquet: let the name of the file end in .parquet"),
    ],
)
def test_a_header_in_another_dialect_says_which(tmp_path: Path, body: bytes, likely: str) -> None:
    """One line names the setting, for private rows and for public points."""
    path = tmp_path / "people.csv"
    path.write_bytes(body)
    with pytest.raises(DataError) as refused:
        read_rows(path, PEOPLE)
    assert str(refused.value) == f"data.source: the header looks {likely}"
    with pytest.raises(ConfigurationError) as public:
        read_public_points(path, PEOPLE)
    assert str(public.value) == f"--public: the header looks {likely}"


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("Age,hours,work,sex,income", 'which has "Age": name it alike in one of them'),
        ("A-G-E ,hours,work,sex,income", 'which has "A-G-E ": name it alike in one of them'),
        ("\x07a ge\t,hours,work,sex,income", ""),
        ("age\t,hours,work,sex,income", r"which has 'age\t': name it alike in one of them"),
        (f"{NAME},hours,work,sex,income", ""),
        (f"{NAME};1;2;3;4", ""),
    ],
)
def test_a_name_that_is_near_is_shown(tmp_path: Path, header: str, line: str) -> None:
    """Of a header, which may be a row, only what is nearly a public name is shown."""
    path = tmp_path / "people.csv"
    path.write_text(f"{header}\n1,1,a,F,low\n", encoding="utf-8")
    with pytest.raises(DataError) as refused:
        read_rows(path, PEOPLE)
    expected = 'data.source: column "age" is missing in the header'
    assert str(refused.value) == f"{expected}, {line}" if line else expected
    assert NAME not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "dialect", "line"),
    [
        (PLAIN.encode(), CsvDialect(encoding="utf-16"), "header: is not text in the encoding"),
        (
            PLAIN.encode("utf-16") + b"\0\xd8a\0",
            CsvDialect(encoding="utf-16"),
            "header: is not text",
        ),
        (b"\xe4ge,hours,work,sex,income\n", CsvDialect(), "the header is not UTF-8 text: set"),
    ],
)
def test_bytes_of_another_encoding_are_one_line(
    tmp_path: Path, body: bytes, dialect: CsvDialect, line: str
) -> None:
    """A file that is no text in its encoding is refused where it breaks."""
    path = tmp_path / "people.csv"
    path.write_bytes(body)
    with pytest.raises(DataError) as refused:
        read_rows(path, PEOPLE, dialect=dialect)
    assert str(refused.value).startswith(f"data.source: {line}")
