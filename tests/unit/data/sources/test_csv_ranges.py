"""A CSV is read in ranges that end with records, wherever quotes are, or as a whole."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources import csv_source, encoded_parts
from app.data.sources.csv_dialect import CsvDialect
from app.data.sources.csv_records import MARK, record_borders
from app.data.sources.encoded_parts import list_parts, read_part

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from app.data.sources.parts import Part

SCHEMA = Schema(
    features=(
        NumericFeature(name="size", lower=0.0, upper=1000.0),
        CategoricalFeature(name="note", categories=("a", "b,c", 'q"q', "two\nlines")),
    ),
    label="y",
    classes=("no", "yes"),
)
NOTES = ("a", '"b,c"', '"q""q"', '"two\nlines"', '"a"')


def _text(count: int, *, seed: int, notes: tuple[str, ...] = NOTES) -> str:
    generator = np.random.default_rng(seed)
    chosen = generator.integers(0, len(notes), count)
    rows = [
        f"{row % 1000},{notes[which]},{('no', 'yes')[row % 2]}" for row, which in enumerate(chosen)
    ]
    return "size,note,y\n" + "\n".join(rows) + "\n"


def _borders(body: bytes, step: int) -> tuple[int, ...]:
    return record_borders(io.BytesIO(body).read, ",", step=step)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mark", [b"", MARK])
def test_borders_are_where_records_begin(seed: int, mark: bytes) -> None:
    """Python's reader finds the same records in the ranges as in the whole."""
    text = _text(60, seed=seed)
    body = mark + text.encode()
    whole = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    for step in range(5, 60, 7):
        borders = _borders(body, step)
        assert len(borders) > 3
        assert list(borders) == sorted(set(borders))
        pieces = [body[start:end] for start, end in zip(borders, (*borders[1:], None), strict=True)]
        pieces[0] = pieces[0].removeprefix(mark)
        found = [
            row
            for piece in pieces
            for row in csv.reader(io.StringIO(piece.decode(), newline=""), strict=True)
        ]
        assert found == whole


@pytest.mark.parametrize("field", ['a"b', '"a"b', ' "a"', 'a\r"b"', '"', '"a\n', '5" x 4"'])
def test_a_file_whose_quotes_leave_it_open_is_one_part(field: str) -> None:
    """Where a quote neither begins a field nor ends one, no border is sure."""
    body = (_text(20, seed=1) + f"1,{field},no\n" + _text(20, seed=2)).encode()
    for step in (9, 30, 200):
        assert _borders(body, step) == (0,)


@pytest.mark.parametrize("notes", [NOTES, ("a",)])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ranges_have_the_rows_of_the_file(
    tmp_path: Path, notes: tuple[str, ...], mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, each row alone, by either reader."""
    path = tmp_path / "rows.csv"
    path.write_text(mark + _text(500, seed=3, notes=notes), newline="")
    (whole,) = list_parts(str(path), SCHEMA)
    monkeypatch.setattr(encoded_parts, "RANGE_BYTES", 400)
    for small in (1 << 20, 0):
        monkeypatch.setattr(csv_source, "SMALL_BYTES", small)
        parts = list_parts(str(path), SCHEMA)
        assert len(parts) > 10
        wanted, found = _read(str(path), [whole]), _read(str(path), parts)
        assert np.array_equal(found[0], wanted[0])
        assert np.array_equal(found[1], wanted[1])
        assert len(found[1]) == 500


def test_other_encodings_and_short_files_are_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range is some megabytes, of a file in UTF-8."""
    path = tmp_path / "rows.csv"
    path.write_text(_text(50, seed=3))
    assert [part.span for part in list_parts(str(path), SCHEMA)] == [None]
    monkeypatch.setattr(encoded_parts, "RANGE_BYTES", 100)
    for dialect in (CsvDialect(encoding="latin-1"), CsvDialect(separator="\u00a7")):
        assert [part.span for part in list_parts(str(path), SCHEMA, dialect=dialect)] == [None]


def _read(source: str, parts: Sequence[Part]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the values and labels of parts together."""
    rows = [each for part in parts for each in read_part(part, source, SCHEMA)]
    return np.concatenate([each.values for each in rows]), np.concatenate(
        [each.labels for each in rows]
    )
