"""How fast are rows parsed and encoded, and how does that compare with Arrow's own reading?

Expected: a million rows of eight features a second on one core from CSV, in twice the time that
Arrow takes to read the same file into typed columns; several millions a second from Parquet,
in up to twice Arrow's time.  Half a minute and 200 MB of disk.

    python -m benchmarks.source_reading [--rows 1000000] [--runs 5] [--folder FOLDER]

Each run reads a file as an opening does, and then by Arrow into a table, in one process and
with one thread each.  Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import csv, parquet

from app.data.sources.sources import read_rows
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.many_rows import write_configuration, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.data.schema import Schema

SOURCES: Final = ("csv", "parquet")
# Of Arrow's time for the same file.
RATIO_MAX: Final = {"csv": 2.5, "parquet": 3.0}


def main() -> None:
    """Print rows a second of each source, and the ratio to Arrow's time."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    pa.set_cpu_count(1)
    for source in SOURCES:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
            path = Path(place) / f"rows.{source}"
            write_rows(path, chosen.rows)
            config = write_configuration(Path(place), path, size=1)
            schema = load_settings(config, {}).data.public_schema()
            pairs = [_pair(path, schema) for _ in range(chosen.runs + 1)][1:]
        _tell(source, chosen.rows, pairs)


def _pair(path: Path, schema: Schema) -> tuple[float, float]:
    """Return our seconds and Arrow's for one file."""
    return (
        _seconds(lambda: read_rows(path, schema)),
        _seconds(lambda: _by_arrow(path)),
    )


def _by_arrow(path: Path) -> pa.Table:
    """Read a file into typed columns."""
    if path.suffix == ".csv":
        return csv.read_csv(path, read_options=csv.ReadOptions(use_threads=False))
    return parquet.read_table(path, use_threads=False)


def _seconds(read: Callable[[], object]) -> float:
    """Return the processor's seconds of a call."""
    started = time.process_time()
    read()
    return time.process_time() - started


def _tell(source: str, rows: int, pairs: list[tuple[float, float]]) -> None:
    ours, arrows = (median(side) for side in zip(*pairs, strict=True))
    tell(
        Finding(
            question=f"parsing and encoding {rows:,} rows of {source}, rows a second a core",
            ours=f"{rows / ours:,.0f}",
            peer=f"Arrow alone {rows / arrows:,.0f}",
            ratio=median_ratio(pairs),
            at_most=RATIO_MAX[source],
        )
    )


if __name__ == "__main__":
    main()
