"""How do the time and the memory of opening a release grow with its rows?

Expected: with the rows themselves; a million rows of eight features in ten to twenty
seconds, most of which is the reading of a CSV; and a peak of three times the rows at
eight bytes a cell and 300 MB at the most.  About six minutes, 4 GB of disk and 2 GB of
memory in all.

    python benchmarks/opening.py [--rows 10000 100000 1000000 10000000]
        [--sources csv parquet npz] [--folder FOLDER]

A release of 1000 trees of depth 2 over 98 public tests, with relabelling.  Each opening is
of a process of its own; what is measured leaves importing the server's modules out.  The
slope is the steeper one of a straight line through all sizes and of the last step alone.
"""

from __future__ import annotations

import argparse
import tempfile
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, tell
from benchmarks.measuring.many_rows import FEATURE_COUNT, SOURCES, write_release
from benchmarks.measuring.opening_once import opened_alone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.measuring.opening_once import Opening

SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
MILLION: Final = 1_000_000
SECONDS_OF_A_MILLION_MAX: Final = 60.0
SLOPE_MAX: Final = 1.1
COPIES_MAX: Final = 3
SPARE_BYTES: Final = 300_000_000
LEARNERS: Final = 1000
HEADING: Final = (
    f"{'rows':>12}{'seconds':>10}{'processor':>11}{'reading':>9}{'peak MB':>9}{'allowed':>9}"
)


def main() -> None:
    """Print a line for each size of each source, and what follows."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, nargs="+", default=SIZES)
    arguments.add_argument("--sources", nargs="+", choices=SOURCES, default=SOURCES)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    for source in chosen.sources:
        print(f"\n{source}\n{HEADING}")
        openings = {
            rows: _measured(source, rows, folder=chosen.folder) for rows in sorted(chosen.rows)
        }
        _tell(source, openings)


def _measured(source: str, rows: int, *, folder: Path | None) -> Opening:
    """Write the rows, open a release on them, and print the line."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        config = write_release(Path(place), source=source, rows=rows, size=LEARNERS)
        opening = opened_alone(config)
    reading = opening.stages.get("reading rows", 0.0)
    print(
        f"{rows:>12,}{opening.seconds:>10.2f}{opening.processor_seconds:>11.2f}{reading:>9.2f}"
        f"{opening.peak_bytes / 1e6:>9.0f}{_allowed_bytes(rows) / 1e6:>9.0f}",
        flush=True,
    )
    return opening


def _allowed_bytes(rows: int) -> int:
    return COPIES_MAX * rows * FEATURE_COUNT * 8 + SPARE_BYTES


def _tell(source: str, openings: Mapping[int, Opening]) -> None:
    """Print slope, seconds of a million rows, and the largest share of the memory allowed."""
    if len(openings) > 1:
        slope = _slope({rows: opening.seconds for rows, opening in openings.items()})
        sizes = f"{min(openings):,} to {max(openings):,} rows"
        tell(
            Finding(
                question=f"opening a release on {source}: slope in log-log",
                ours=f"{slope:.2f}",
                peer=sizes,
                ratio=slope,
                at_most=SLOPE_MAX,
            )
        )
    if MILLION in openings:
        seconds = openings[MILLION].seconds
        tell(
            Finding(
                question=f"opening a release on a million rows of {source}",
                ours=f"{seconds:.1f} s",
                peer=f"{SECONDS_OF_A_MILLION_MAX:.0f} s",
                ratio=seconds / SECONDS_OF_A_MILLION_MAX,
                at_most=1.0,
            )
        )
    rows = max(openings, key=lambda each: openings[each].peak_bytes / _allowed_bytes(each))
    peak, allowed = openings[rows].peak_bytes, _allowed_bytes(rows)
    tell(
        Finding(
            question=f"opening a release on {source}: peak memory",
            ours=f"{peak / 1e6:.0f} MB at {rows:,} rows, where it comes closest",
            peer=f"3 x rows x features x 8 bytes and 300 MB: {allowed / 1e6:.0f} MB",
            ratio=peak / allowed,
            at_most=1.0,
        )
    )


def _slope(seconds: Mapping[int, float]) -> float:
    """Return the steeper slope: of the line through all sizes, or of the last step."""
    points = [(log(rows), log(taken)) for rows, taken in sorted(seconds.items())]
    along = linear_regression(*zip(*points, strict=True)).slope
    (rows_before, before), (rows_last, last) = points[-2:]
    return max(along, (last - before) / (rows_last - rows_before))


if __name__ == "__main__":
    main()
