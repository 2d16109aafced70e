"""What does an opening that streams take, beside what reading the rows alone takes?

Expected: a million rows of eight features in some two seconds of a processor, of which reading
is a fifth, and ten million in some ten, within a gigabyte; time and memory in proportion to the
rows beyond what the trees of the chunks take, which does not depend on them.

    python -m benchmarks.opening_streamed [--rows 1000000 10000000] [--pairs 3] [--folder FOLDER]

A release of 1600 trees of depth 3 over 50 public tests, with relabelling, on Parquet.  Each
opening is of a process of its own, by turns with one that only decodes the same file with the
library that reads it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.many_rows import write_streamed
from benchmarks.measuring.opening_once import opened_alone

SIZES: Final = (1_000_000, 10_000_000)
READ_ALONE: Final = """\
import sys, time
from pyarrow import parquet
begun = time.process_time()
for batch in parquet.ParquetFile(sys.argv[1]).iter_batches(65_536, use_threads=False):
    batch.num_rows
print(time.process_time() - begun)
"""


def main() -> None:
    """Print a line for each pair of each size, and the medians."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, nargs="+", default=SIZES)
    arguments.add_argument("--pairs", type=int, default=3)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    print(f"{'rows':>12}{'seconds':>10}{'processor':>11}{'reading':>9}{'ratio':>7}{'peak MB':>9}")
    for rows in sorted(chosen.rows):
        with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
            config = write_streamed(Path(place), rows, depth=3)
            ratios = [_pair(config, rows) for _ in range(chosen.pairs)]
        print(f"{rows:>12,} median of the ratios {median(ratios):.1f}", flush=True)


def _pair(config: Path, rows: int) -> float:
    """Open the release afresh, then decode its rows alone; print and return the ratio."""
    for old in config.parent.glob("conclave.db*"):
        old.unlink()
    opening = opened_alone(config)
    command = [sys.executable, "-c", READ_ALONE, str(config.parent / "rows.parquet")]
    ended = subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, check=True
    )
    reading = float(ended.stdout)
    ratio = opening.processor_seconds / reading
    print(
        f"{rows:>12,}{opening.seconds:>10.2f}{opening.processor_seconds:>11.2f}{reading:>9.2f}"
        f"{ratio:>7.1f}{opening.peak_bytes / 1e6:>9.0f}",
        flush=True,
    )
    return ratio


if __name__ == "__main__":
    main()
