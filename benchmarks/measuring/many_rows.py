"""Rows of eight features in great number, as each kind of source holds them.

Six numbers of full precision, so that no cell repeats, and two categories.  The label
follows two of the numbers and is wrong on one row in ten.
"""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from pyarrow import csv, parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SOURCES: Final = ("csv", "parquet", "npz")
FEATURE_COUNT: Final = 8
ROWS_PER_BLOCK: Final = 100_000
NUMBERS: Final = tuple(f"number{index}" for index in range(6))
CATEGORIES: Final = ("red", "green", "blue", "white")
COLUMNS: Final = (*NUMBERS, "colour", "shade", "label")
SEED: Final = 1
_COLOURS: Final = np.array((*CATEGORIES, "grey"))
_FREQUENCIES: Final = (0.4, 0.3, 0.15, 0.1, 0.05)
_WRONG: Final = 0.1
_CONFIGURATION: Final = """\
[release]
name = "many"
[data]
source = "rows.{source}"
label = "label"
classes = ["no", "yes"]
{features}
[hypotheses]
class = "trees"
depth = 2
bins = 16
[privacy]
epsilon = 20
delta = 1e-6
[answers]
queries = 100000
cutoff = 50
ensemble = {size}
[server]
port = {port}
"""
_NUMBER: Final = '[[data.features]]\nname = "{}"\nkind = "numeric"\nbounds = [0, 1]'
_CATEGORY: Final = (
    '[[data.features]]\nname = "{}"\nkind = "categorical"\n'
    'categories = ["red", "green", "blue", "white"]'
)


def write_release(folder: Path, *, source: str, rows: int, size: int, port: int = 8080) -> Path:
    """Write rows and the configuration of a release on them; return the latter's path.

    Args:
        folder: an empty one.
        source: one of ``SOURCES``.
        rows: how many; the same ones every time.
        size: k.
        port: where it is to be served.

    """
    features = [_NUMBER.format(name) for name in NUMBERS]
    features += [_CATEGORY.format(name) for name in ("colour", "shade")]
    config = folder / "conclave.toml"
    config.write_text(
        _CONFIGURATION.format(source=source, size=size, port=port, features="\n".join(features))
    )
    write_rows(folder / f"rows.{source}", rows)
    return config


def write_rows(path: Path, count: int) -> None:
    """Write ``count`` rows into a file whose suffix is one of ``SOURCES``."""
    if path.suffix == ".npz":
        _write_npz(path, count)
        return
    tables = (pa.table(block) for block in blocks(count))
    first = next(tables)
    writer = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
    with writer(path, first.schema) as opened:
        opened.write_table(first)
        for table in tables:
            opened.write_table(table)


def blocks(count: int) -> Iterator[dict[str, NDArray[np.generic]]]:
    """Yield the columns of the rows block by block, with numbers from 0 to 1."""
    generator = np.random.default_rng(SEED)
    for start in range(0, count, ROWS_PER_BLOCK):
        size = min(ROWS_PER_BLOCK, count - start)
        numbers = generator.random((len(NUMBERS), size))
        colours = _COLOURS[generator.choice(len(_COLOURS), (2, size), p=_FREQUENCIES)]
        is_wrong = generator.random(size) < _WRONG
        labels = np.where((numbers[0] > 0.5) & (numbers[1] > 0.25) ^ is_wrong, "yes", "no")
        yield dict(zip(COLUMNS, (*numbers, *colours, labels), strict=True))


def _write_npz(path: Path, count: int) -> None:
    """Write one array a column, block by block."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in COLUMNS:
            kind = np.dtype("<f8" if name in NUMBERS else "<U5")
            header = {"descr": kind.str, "fortran_order": False, "shape": (count,)}
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                npy.write_array_header_1_0(file, header)
                for block in blocks(count):
                    file.write(block[name].astype(kind).tobytes())
