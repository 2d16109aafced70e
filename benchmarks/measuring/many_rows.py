"""Rows of eight features in great number, as each kind of source holds them.

Six numbers of full precision, so that no cell repeats, and two categories.  The label
follows two of the numbers and is wrong on one row in ten.  Where there are persons, each has
one row and the other rows are at random anybody's; a person's rows lie anywhere.
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
STREAMED_SIZE: Final = 1600
ROWS_PER_BLOCK: Final = 100_000
NUMBERS: Final = tuple(f"number{index}" for index in range(6))
CATEGORIES: Final = ("red", "green", "blue", "white")
COLUMNS: Final = (*NUMBERS, "colour", "shade", "label")
PERSON: Final = "person"
SEED: Final = 1
_COLOURS: Final = np.array((*CATEGORIES, "grey"))
_FREQUENCIES: Final = (0.4, 0.3, 0.15, 0.1, 0.05)
_WRONG: Final = 0.1
_CONFIGURATION: Final = """\
[release]
name = "many"
[data]
source = "{source}"
{person}label = "label"
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
_PERSONS: Final = f'person = "{PERSON}"\npersons = {{}}\n'
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
    path = folder / f"rows.{source}"
    write_rows(path, rows)
    return write_configuration(folder, path, size=size, port=port)


def write_configuration(
    folder: Path, rows: Path, *, size: int, port: int = 8080, persons: int | None = None
) -> Path:
    """Write the configuration of a release on rows that are written; return its path.

    Args:
        folder: one without a release.
        rows: the path of the rows.
        size: k.
        port: where it is to be served.
        persons: how many are named; None where each row is a unit of its own.

    """
    features = [_NUMBER.format(name) for name in NUMBERS]
    features += [_CATEGORY.format(name) for name in ("colour", "shade")]
    config = folder / "conclave.toml"
    config.write_text(
        _CONFIGURATION.format(
            source=rows,
            person="" if persons is None else _PERSONS.format(persons),
            size=size,
            port=port,
            features="\n".join(features),
        )
    )
    return config


def write_streamed(folder: Path, rows: int, *, depth: int, source: str = "parquet") -> Path:
    """Write a release of 1600 trees on 8 bins in a folder of its own; return its configuration.

    Args:
        folder: where the release's folder is; rows that are there already are taken.
        rows: how many.
        depth: of the trees.
        source: one of ``SOURCES``.

    """
    place = folder / f"{rows}-{source}"
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"rows.{source}"
    if not path.exists():
        unfinished = path.with_stem("unfinished")
        write_rows(unfinished, rows)
        unfinished.rename(path)
    config = write_configuration(place, path, size=STREAMED_SIZE)
    text = config.read_text().replace("bins = 16", "bins = 8")
    config.write_text(text.replace("depth = 2", f"depth = {depth}"))
    return config


def write_rows(path: Path, count: int) -> None:
    """Write ``count`` rows into a file whose suffix is one of ``SOURCES``."""
    if path.suffix == ".npz":
        _write_npz(path, count)
        return
    _write_tables(path, (pa.table(block) for block in blocks(count)))


def persons_of_rows(count: int, persons: int) -> NDArray[np.int64]:
    """Return the person of each row, in an order at random; each has one row or more."""
    generator = np.random.default_rng(SEED)
    others = generator.integers(0, persons, count - persons)
    return generator.permutation(np.concatenate([np.arange(persons), others]))


def write_rows_of_persons(path: Path, count: int, *, persons: int) -> None:
    """Write ``count`` rows of so many persons into a CSV or a Parquet file."""
    whose = persons_of_rows(count, persons)
    starts = range(0, count, ROWS_PER_BLOCK)
    named = (whose[start : start + ROWS_PER_BLOCK] for start in starts)
    _write_tables(
        path,
        (
            pa.table({**block, PERSON: [f"person-{number:07}" for number in numbers]})
            for block, numbers in zip(blocks(count), named, strict=True)
        ),
    )


def _write_tables(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write the rows block by block."""
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
