"""Real data are the same rows as Parquet, as parts and in a database as in their CSV."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.rows import fingerprint
from app.data.sources.sources import read_rows
from app.settings.settings import load_settings
from tests.builders.schema.tables import write_table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.schema.tables import Table

pytestmark = pytest.mark.data


@pytest.fixture
def table(data_folder: Path) -> Table:
    """Return the training rows in another order, numbers as numbers and ``?`` as null."""
    with (data_folder / "adult" / "train.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    order = np.random.default_rng(1).permutation(len(rows))
    columns = zip(*(rows[index] for index in order), strict=True)
    return {
        name: [_typed(cell) for cell in column]
        for name, column in zip(header, columns, strict=True)
    }


@pytest.mark.parametrize("format_name", ["parquet", "parts", "npz", "sqlite"])
def test_adult_is_recognised(
    repository: Path, data_folder: Path, tmp_path: Path, table: Table, format_name: str
) -> None:
    """The rows of Adult, in any order and source, have the fingerprint of the CSV."""
    schema = load_settings(repository / "examples" / "adult.toml", {}).data.public_schema()
    in_csv = read_rows(data_folder / "adult" / "train.csv", schema)
    source, query = write_table(tmp_path, table, format_name)
    rows = read_rows(source, schema, query=query, rows_expected=in_csv.count)
    assert fingerprint(rows, b"key") == fingerprint(in_csv, b"key")


def _typed(cell: str) -> object:
    return None if cell == "?" else int(cell) if cell.isdecimal() else cell
