"""How does the time of an opening that streams grow with the number of rows?

Expected: in proportion to the rows, once there are some millions of them.  On a plot with both
axes logarithmic the slope from 10^5 to 10^8 rows is below 1.05; from 10^5 to 10^6 it is far below
1, since modules and the fitting of 1600 trees take as long whatever the rows are.

    python -m benchmarks.opening_slope [--rows 100000 1000000 10000000 100000000] [--runs 1]
        [--depth 3] [--folder FOLDER]

A release of 1600 trees over 50 public tests, with relabelling, on a Parquet file, opened by the
threads of one process of its own, which starts no other and whose peak memory is printed.  The
least squares slopes are of the medians of each size, by the clock and by the processor.  Rows that
are in the folder already are taken; without a folder each file is deleted after its size.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from statistics import linear_regression, median
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.many_rows import write_streamed
from benchmarks.measuring.opening_once import opened_alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measuring.opening_once import Opening

SIZES: Final = (100_000, 1_000_000, 10_000_000, 100_000_000)
SIZES_MIN: Final = 2
MEGABYTE: Final = 1e6


def main() -> None:
    """Print a line for each opening, then the slopes from the first size to each later one."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, nargs="+", default=SIZES)
    arguments.add_argument("--runs", type=int, default=1)
    arguments.add_argument("--depth", type=int, default=3)
    arguments.add_argument(
        "--folder", type=Path, help="where rows are kept, on the disk to measure"
    )
    chosen = arguments.parse_args()
    sizes = sorted(set(chosen.rows))
    if len(sizes) < SIZES_MIN:
        arguments.error("a slope needs two numbers of rows")
    print(circumstances())
    print(f"{'rows':>12}{'seconds':>10}{'processor':>11}{'us a row':>10}{'peak MB':>9}{'load':>6}")
    clock, processor = list[float](), list[float]()
    for rows in sizes:
        runs = _openings(rows, chosen.runs, depth=chosen.depth, folder=chosen.folder)
        clock.append(median(run.seconds for run in runs))
        processor.append(median(run.processor_seconds for run in runs))
    for count in range(SIZES_MIN, len(sizes) + 1):
        some = sizes[:count]
        print(
            f"slope from {some[0]:,} to {some[-1]:,} rows: "
            f"{log_slope(some, clock[:count]):.3f} by the clock, "
            f"{log_slope(some, processor[:count]):.3f} by the processor"
        )
    print(
        f"slope of the last two sizes: {log_slope(sizes[-2:], clock[-2:]):.3f} by the clock, "
        f"{log_slope(sizes[-2:], processor[-2:]):.3f} by the processor"
    )


def log_slope(rows: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the least squares slope of the logarithms of times over those of numbers of rows."""
    return linear_regression(list(map(math.log, rows)), list(map(math.log, seconds))).slope


def _openings(rows: int, count: int, *, depth: int, folder: Path | None) -> list[Opening]:
    """Open a release so many times on the same rows, each time without a ledger of before."""
    with tempfile.TemporaryDirectory() as temporary:
        config = write_streamed(folder or Path(temporary), rows, depth=depth)
        runs = []
        for _ in range(count):
            for old in config.parent.glob("conclave.db*"):
                old.unlink()
            runs.append(opened_alone(config))
            _print(rows, runs[-1])
    return runs


def _print(rows: int, opening: Opening) -> None:
    peak = opening.peak_bytes / MEGABYTE
    print(
        f"{rows:>12,}{opening.seconds:>10.2f}{opening.processor_seconds:>11.2f}"
        f"{opening.processor_seconds / rows * 1e6:>10.2f}{peak:>9.0f}{opening.load:>6.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
