"""The same table written as each kind of source."""

from __future__ import annotations

import csv
import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Table = Mapping[str, Sequence[object]]
    """Columns by name; None is a missing value."""

QUERY = "select * from people"
FORMATS = ("csv", "parquet", "parts", "npz", "sqlite")


def write_table(folder: Path, table: Table, format_name: str) -> tuple[str, str | None]:
    """Write a table, and return its source and query."""
    if format_name == "csv":
        return write_csv(folder / "people.csv", table), None
    if format_name == "parquet":
        return write_parquet(folder / "people.parquet", table), None
    if format_name == "parts":
        return write_parts(folder / "parts.parquet", table), None
    if format_name == "npz":
        return write_npz(folder / "people.npz", table), None
    return write_sqlite(folder / "people.db", table), QUERY


def write_csv(path: Path, table: Table) -> str:
    """Write a CSV; a missing value is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return str(path)


def write_parquet(path: Path, table: Table) -> str:
    """Write a Parquet file; a missing value is null."""
    parquet.write_table(pa.table({name: list(values) for name, values in table.items()}), path)
    return str(path)


def write_parts(folder: Path, table: Table) -> str:
    """Write a folder of two parts, beside files that are none."""
    folder.mkdir()
    half = len(next(iter(table.values()))) // 2
    for name, part in (("b.parquet", slice(half, None)), ("a.parquet", slice(half))):
        write_parquet(folder / name, {name: values[part] for name, values in table.items()})
    for name in ("_SUCCESS", ".a.parquet.crc", "_metadata"):
        (folder / name).write_bytes(b"no rows")
    return str(folder)


def write_npz(path: Path, table: Table) -> str:
    """Write an array a column; a missing value is NaN, or an empty text."""
    arrays = {}
    for name, values in table.items():
        is_text = any(isinstance(value, str) for value in values)
        missing = "" if is_text else np.nan
        arrays[name] = np.array([missing if value is None else value for value in values])
    np.savez_compressed(path, allow_pickle=False, **arrays)
    return str(path)


def write_sqlite(path: Path, table: Table) -> str:
    """Write a table of a database, untyped; a missing value is null."""
    names = ", ".join(f'"{name}"' for name in table)
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table people ({names})")
        marks = ", ".join("?" * len(table))
        rows = zip(*table.values(), strict=True)
        connection.executemany(f"insert into people values ({marks})", rows)  # noqa: S608 -- marks
    connection.close()
    return f"sqlite:///{path}"
