"""What does an opening on a Dask cluster take, beside the same opening by threads?

Expected: the same bytes, and at most 1.3 times the processor seconds of all processes, since
rows are read and counted by the same functions; on few rows what is beside them shows, a second
or less.  Two workers of one thread each against two threads of one process.

    python -m benchmarks.opening_dask [--rows 1000000 10000000] [--pairs 3] [--workers 2]
        [--depth 3] [--folder FOLDER]

Scheduler, workers and server speak by certificates.  The cluster is up before, and has opened a
small release, as one that stays does; both openings draw from the same scripted noise, and what
they draw is compared.  Rows that are in the folder already are taken.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.local_cluster import LocalCluster
from benchmarks.measuring.many_rows import write_streamed
from benchmarks.measuring.opening_once import opened_alone

if TYPE_CHECKING:
    from benchmarks.measuring.opening_once import Opening

SIZES: Final = (1_000_000, 10_000_000)
SMALL: Final = 100_000
SEED: Final = 7


def main() -> None:
    """Print a line for each pair of each size, and the medians of the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, nargs="+", default=SIZES)
    arguments.add_argument("--pairs", type=int, default=3)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--depth", type=int, default=3)
    arguments.add_argument("--folder", type=Path, help="where rows are kept")
    chosen = arguments.parse_args()
    print(circumstances())
    with tempfile.TemporaryDirectory() as temporary:
        kept = chosen.folder or Path(temporary)
        with LocalCluster(Path(temporary) / "cluster", chosen.workers) as cluster:
            on_cluster(write_streamed(kept, SMALL, depth=chosen.depth), cluster)
            for rows in sorted(chosen.rows):
                config = write_streamed(kept, rows, depth=chosen.depth)
                pairs = [_pair(config, cluster, number) for number in range(chosen.pairs)]
                _print_medians(rows, pairs)


def on_cluster(config: Path, cluster: LocalCluster) -> Opening:
    """Return an opening on a cluster, with the processor seconds of all its processes."""
    text, used = config.read_text(), cluster.processor_seconds()
    config.write_text(text + cluster.section())
    try:
        opening = opened_afresh(config, cluster.environment)
    finally:
        config.write_text(text)
    each = zip(cluster.processor_seconds(), used, strict=True)
    shares = [opening.processor_seconds, *(now - before for now, before in each)]
    print(f"   server, scheduler, workers: {', '.join(f'{share:.2f}' for share in shares)} s")
    return replace(opening, processor_seconds=sum(shares))


def opened_afresh(config: Path, environ: dict[str, str] | None = None) -> Opening:
    """Return an opening without a ledger of before."""
    for old in config.parent.glob("conclave.db*"):
        old.unlink()
    return opened_alone(config, seed=SEED, environ=environ)


def _pair(config: Path, cluster: LocalCluster, number: int) -> tuple[Opening, Opening]:
    """Open on the cluster and by threads, in turns; return both."""
    if number % 2:
        there, here = on_cluster(config, cluster), opened_afresh(config)
    else:
        here, there = opened_afresh(config), on_cluster(config, cluster)
    for name, opening in (("local", here), ("dask", there)):
        print(
            f"{name:>7}: {opening.processor_seconds:.2f} s of the processor, {opening.seconds:.2f} "
            f"s by the clock at load {opening.load:.1f}, {opening.peak_bytes / 1e6:.0f} MB",
            flush=True,
        )
    same = "the same bytes" if here.digest == there.digest else "OTHER BYTES"
    peaks = ", ".join(f"{peak / 1e6:.0f}" for peak in cluster.peaks_bytes())
    print(f"{same}; workers held {peaks} MB at the most so far", flush=True)
    return here, there


def _print_medians(rows: int, pairs: list[tuple[Opening, Opening]]) -> None:
    processor = median(there.processor_seconds / here.processor_seconds for here, there in pairs)
    clock = median(there.seconds / here.seconds for here, there in pairs)
    print(
        f"{rows:,} rows: median of the ratios {processor:.2f} (processor), {clock:.2f} (clock)",
        flush=True,
    )


if __name__ == "__main__":
    main()
