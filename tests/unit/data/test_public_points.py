"""Public points: rows of a CSV read exactly as queries are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data import public_points
from app.data.public_points import no_points, read_public_points
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources.csv_dialect import LONG_CELL
from app.data.vectors import encode
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SCHEMA = Schema(
    label="answer",
    classes=("no", "yes"),
    features=(
        NumericFeature(name="age", lower=0.0, upper=100.0),
        CategoricalFeature(name="group", categories=("a", "b")),
    ),
    missing=("?",),
)
MARKER = "31337"


def points(folder: Path, text: str) -> list[list[float]]:
    """Return what a CSV of that text holds."""
    path = folder / "public.csv"
    path.write_text(text, encoding="utf-8")
    return listed(read_public_points(path, SCHEMA))


def listed(values: NDArray[np.float64]) -> list[list[float]]:
    """Return encoded values as lists that compare; NaN as -1."""
    found: list[list[float]] = np.nan_to_num(values, nan=-1.0).tolist()
    return found


def refusal(folder: Path, text: str) -> str:
    """Return the line that refuses a CSV of that text."""
    with pytest.raises(ConfigurationError) as refused:
        points(folder, text)
    return str(refused.value).replace(str(folder), "FOLDER")


def test_rows_are_encoded_as_the_same_queries_are(tmp_path: Path) -> None:
    """Clipped, coded, and missing where a query of the same values would be."""
    read = points(tmp_path, "age,group\n1e2,a\n-7,b\n 3.5 ,other\n?,?\n,\n250,A\n")
    vectors = [(100.0, "a"), (-7.0, "b"), (3.5, "other"), (None, None), (None, ""), (250.0, "A")]
    assert read == listed(encode(SCHEMA, vectors))


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    """Another order, a label, a column twice that nobody asks for, empty lines: all the same."""
    wanted = points(tmp_path, "age,group\n1,a\n2,b\n")
    assert points(tmp_path, "\ufeffx,group,answer,age,x\n\n,a,maybe,1,\n,b,,2,\n\n") == wanted


def test_blocks_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than a block holds are all there, in order, and numbered across blocks."""
    monkeypatch.setattr(public_points, "POINTS_PER_BLOCK", 3)
    text = "age,group\n" + "".join(f"{age},a\n" for age in range(7))
    assert [age for age, _ in points(tmp_path, text)] == list(range(7))
    assert 'column "age", row 8' in refusal(tmp_path, f"{text}x,a\n")


def test_no_points_have_the_schemas_width() -> None:
    """The points of a class that nothing restricts are none, of two features."""
    assert no_points(SCHEMA).shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", '--public: column "age" is missing in the header'),
        ("age\n1\n", '--public: column "group" is missing in the header'),
        ("age,group,age\n1,a,1\n", '--public: column "age" occurs more than once in the header'),
        ("age,group\n", "--public: FOLDER/public.csv has no row of data"),
        ("age,group\n1,a\n2\n", "--public: row 2: has 1 cells, the header has 2"),
        ("age,group\n1,a\n2,b,c\n", "--public: row 2: has 3 cells, the header has 2"),
        (f"age,group\n1,a\n{MARKER}x,b\n", '--public: column "age", row 2: must be a number'),
        ("age,group\nnan,a\n", '--public: column "age", row 1: must be a number'),
        ("age,group\n1e400,a\n", '--public: column "age", row 1: must be a finite number'),
        ("age,group\n٣,a\n", '--public: column "age", row 1: must be a number'),
        (
            f"age,group\n1,{'a' * 1001}\n",
            '--public: column "group", row 1: must have at most 1000 characters',
        ),
        (
            'age,group\n1,"a\n',
            "--public: FOLDER/public.csv is not well-formed CSV: a quote is stray, or never closed",
        ),
        (
            f"age,group\n1,{'a' * 140_000}\n",
            f"--public: FOLDER/public.csv {LONG_CELL.format(limit=131_072)}",
        ),
    ],
)
def test_what_no_query_could_hold_is_refused(tmp_path: Path, text: str, line: str) -> None:
    """One line names the column and the row, and never the value."""
    assert refusal(tmp_path, text) == line
    assert MARKER not in line


@pytest.mark.parametrize(
    ("name", "problem"),
    [("absent.csv", "no such file or directory"), (".", "is a directory")],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    """The line names the path and why."""
    with pytest.raises(ConfigurationError, match=problem):
        read_public_points(tmp_path / name, SCHEMA)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """Bytes of another encoding are refused by their row."""
    path = tmp_path / "latin.csv"
    path.write_bytes(b"age,group\n1,\xe9\n")
    with pytest.raises(ConfigurationError, match='"group", row 1: must be Unicode text'):
        read_public_points(path, SCHEMA)
