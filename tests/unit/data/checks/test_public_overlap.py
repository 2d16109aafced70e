"""Public points that are the private rows are refused, and equal ones are told of."""

from __future__ import annotations

import gzip
import os
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.checks.public_overlap import (
    PublicRuns,
    refuse_source_file,
    refuse_source_rows,
    row_numbers,
)
from app.data.public_points import read_public_points
from app.data.sources.sources import read_rows
from app.errors import ConfigurationError
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from app.data.schema import Schema

    Rows = NDArray[np.float64]
    Copy = Callable[[Rows], Rows]

SEED = 3
PART_ROWS = 1300


def cells(values_each: tuple[int, ...], count: int, seed: int = SEED) -> Rows:
    """Return rows of independent columns, each of so many values."""
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, values, count) for values in values_each]
    return np.column_stack(columns).astype(np.float64)


def told(points: Rows, rows: Rows) -> str:
    """Return what is said of points: a warning, a refusal or nothing."""
    lines: list[str] = []
    try:
        refuse_source_rows(points, rows, lines.append)
    except ConfigurationError as refused:
        lines.append(str(refused))
    (line,) = lines or [""]
    for part_rows in (len(rows), PART_ROWS):
        assert line == told_by_parts(points, rows, part_rows)
    return line


def told_by_parts(points: Rows, rows: Rows, part_rows: int) -> str:
    """Return what is said of points where rows are read in parts."""
    if not len(points):
        return ""
    lines: list[str] = []
    runs = PublicRuns.of(points)
    found = [
        runs.among([row_numbers(rows[start : start + part_rows])])
        for start in range(0, len(rows), part_rows)
    ]
    try:
        runs.refuse(reduce(runs.merged, found[::-1]), row_count=len(rows), warn=lines.append)
    except ConfigurationError as refused:
        lines.append(str(refused))
    (line,) = lines or [""]
    return line


def shuffled(rows: Rows) -> Rows:
    """Return rows in another order."""
    return rows[np.random.default_rng(1).permutation(len(rows))]


def thinned(rows: Rows) -> Rows:
    """Return six in ten of the rows, in their order."""
    return rows[np.random.default_rng(1).random(len(rows)) < 0.6]


def diluted(rows: Rows) -> Rows:
    """Return some rows with fewer others behind them."""
    return np.concatenate([rows[:1000], rows[:900] + 0.5])


# The numbers of values of the columns: rows that hardly repeat, the example's ages and
# regions, and a single bit, of which sixteen in a row repeat.
TABLES = {"wide": (50,) * 6, "ages and regions": (73, 4), "a bit": (2,)}
COPIES: dict[str, Copy] = {
    "all": np.copy,
    "the first half": lambda rows: rows[: len(rows) // 2],
    "a few from the middle": lambda rows: rows[700:800],
    "in another order": shuffled,
    "with others": diluted,
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("values_each", TABLES.values(), ids=TABLES)
def test_rows_of_the_source_are_refused(copy: Copy, values_each: tuple[int, ...]) -> None:
    """Whole, in part or in another order, however often its rows repeat."""
    rows = cells(values_each, 4000)
    line = told(copy(rows), rows)
    assert line.startswith("--public: ")
    assert "data.source" in line
    assert "\n" not in line


def test_most_of_the_source_in_its_order_is_refused() -> None:
    """Six in ten rows follow one another in six pairs of ten, which is more than half."""
    rows = cells(TABLES["wide"], 4000)
    assert "half of its rows or more" in told(thinned(rows), rows)


@pytest.mark.parametrize("values_each", TABLES.values(), ids=TABLES)
def test_independent_rows_pass(values_each: tuple[int, ...]) -> None:
    """Rows of the same law are not those of the source, however many of them equal one."""
    rows, points = cells(values_each, 4000), cells(values_each, 4000, seed=4)
    assert "--public" not in told(points, rows)


def test_a_part_in_another_order_is_told_of() -> None:
    """Nothing is known of single points but that they equal a record."""
    rows = cells(TABLES["wide"], 4000)
    assert told(shuffled(rows[:1000]), rows).startswith("100.0% of the public points have ")


def test_the_share_of_equal_points_is_told() -> None:
    """One point in three equals a record: a missing value and -0.0 are what they are there."""
    rows = np.array([[np.nan, 0.0], [1.0, 1.0], [2.0, 5.0]])
    points = np.array([[3.0, 3.0], [np.nan, -0.0], [4.0, 4.0]])
    assert told(points, rows).startswith("33.3% of the public points have the features of a ")
    assert told(points[::2], rows) == ""
    assert told(points[:0], rows) == ""


@pytest.mark.parametrize(("own", "is_refused"), [(99, True), (101, False)])
def test_half_of_the_pairs_is_the_limit(own: int, *, is_refused: bool) -> None:
    """A hundred pairs of the source beside 99 others are half, and beside 102 they are not."""
    rows = cells((1000,) * 3, 500)
    points = np.concatenate([rows[:101], cells((1000,) * 3, own, seed=4) + 0.5])
    assert told(points, rows).startswith("--public: half") is is_refused


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_the_source_itself_is_refused(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    """A link to the private file is that file; another file, or none, is not."""
    source, public = tmp_path / "records.csv", tmp_path / "public.csv"
    refuse_source_file(public, str(source))
    source.write_text("age\n1\n")
    refuse_source_file(public, str(source))
    link(source, public)
    refuse_source_file(public, f"sqlite:///{source}")
    for path in (public, source):
        with pytest.raises(ConfigurationError, match=r"is data\.source itself"):
            refuse_source_file(path, str(source))


def real(repository: Path, folder: Path) -> tuple[Schema, Rows]:
    """Return the schema of a data set of the examples, and its training rows, encoded."""
    settings = load_settings(repository / "examples" / f"{folder.name}.toml", {})
    schema = settings.data.public_schema()
    return schema, read_rows(folder / "train.csv", schema).values


@pytest.mark.data
@pytest.mark.parametrize(("name", "share"), [("adult", "18.3%"), ("skin", "86.6%")])
def test_real_test_rows_pass(repository: Path, data_folder: Path, name: str, share: str) -> None:
    """Other people's rows of Adult and Skin may be public, and so many equal a record."""
    schema, rows = real(repository, data_folder / name)
    points = read_public_points(data_folder / name / "test.csv", schema)
    assert told(points, rows).startswith(f"{share} of the public points")


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "skin"])
def test_real_training_rows_are_refused(
    repository: Path, data_folder: Path, tmp_path: Path, name: str
) -> None:
    """The training file is refused where the source is it, or it compressed, and so is half."""
    schema, rows = real(repository, data_folder / name)
    points = read_public_points(data_folder / name / "train.csv", schema)
    compressed = tmp_path / "records.csv.gz"
    compressed.write_bytes(gzip.compress((data_folder / name / "train.csv").read_bytes(), 1))
    assert told(points, read_rows(compressed, schema).values).startswith("--public: has the rows")
    assert told(shuffled(points), rows).startswith("--public: has the rows")
    for copy in (points[: len(points) // 2], points[:1000], thinned(points)):
        assert told(copy, rows).startswith("--public: half of its rows or more")
    assert told(shuffled(points[: len(points) // 2]), rows).startswith("100.0% of the public")
