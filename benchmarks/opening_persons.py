"""What does opening a release on rows of persons take more than on the same rows as rows?

Expected: a fifth more for a million rows of 250,000 persons, whose rows lie anywhere: identifiers
are read and digested under a key, and the persons of all parts are merged.  Both openings stream.
Some minutes, 200 MB of disk and 500 MB of memory.

    python -m benchmarks.opening_persons [--rows 1000000] [--persons 250000] [--pairs 5]
        [--sources parquet csv] [--folder FOLDER]

A release of 1000 trees of depth 2 over 98 public tests, with relabelling, on one file: with
``data.person`` and without it, by turns, which is first by turns too.  Each opening is of a
process of its own; what is measured leaves importing the server's modules out.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.many_rows import write_configuration, write_rows_of_persons
from benchmarks.measuring.opening_once import opened_alone

if TYPE_CHECKING:
    from benchmarks.measuring.opening_once import Opening

LEARNERS: Final = 1000
RATIO_MAX: Final = 1.3
SOURCES: Final = ("parquet", "csv")


def main() -> None:
    """Print a line for each pair, and both ratios."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--persons", type=int, default=250_000)
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--sources", nargs="+", choices=SOURCES, default=[*SOURCES])
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    for source in chosen.sources:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
            rows = Path(place) / f"rows.{source}"
            write_rows_of_persons(rows, chosen.rows, persons=chosen.persons)
            pairs = [_pair(rows, chosen.persons, number) for number in range(chosen.pairs)]
        _compare(f"{chosen.rows:,} rows of {chosen.persons:,} persons, {source}", pairs)


def _compare(counted: str, pairs: list[tuple[Opening, Opening]]) -> None:
    """Print the ratios of all pairs on one file."""
    _tell(
        f"opening a release on {counted}: the clock",
        [(persons.seconds, plain.seconds) for persons, plain in pairs],
    )
    _tell(
        "the same: the processor",
        [(persons.processor_seconds, plain.processor_seconds) for persons, plain in pairs],
    )


def _pair(rows: Path, persons: int, number: int) -> tuple[Opening, Opening]:
    """Open with persons and without; every other pair begins with the latter."""
    found: dict[int | None, Opening] = {}
    for named in (persons, None) if number % 2 else (None, persons):
        with tempfile.TemporaryDirectory(dir=rows.parent) as place:
            config = write_configuration(Path(place), rows, size=LEARNERS, persons=named)
            found[named] = opened_alone(config)
        _print("rows" if named is None else "persons", found[named])
    return found[persons], found[None]


def _print(title: str, opening: Opening) -> None:
    reading = opening.stages.get("reading rows", 0.0)
    print(
        f"{title:>10}: {opening.seconds:.2f} s, {opening.processor_seconds:.2f} s of the "
        f"processor, {reading:.2f} s reading, {opening.peak_bytes / 1e6:.0f} MB at the most",
        flush=True,
    )


def _tell(question: str, pairs: list[tuple[float, float]]) -> None:
    persons, plain = (median(side) for side in zip(*pairs, strict=True))
    tell(
        Finding(
            question=question,
            ours=f"{persons:.2f} s",
            peer=f"without `data.person` {plain:.2f} s",
            ratio=median_ratio(pairs),
            at_most=RATIO_MAX,
        )
    )


if __name__ == "__main__":
    main()
