"""How does an opening's rate grow with the workers of a cluster, each of a quarter of a core?

Expected: with four workers at least .9 of four times the rate of one (efficiency), since a part
of the rows is one worker's and what is merged is small.  What is left is the server's own work
and the rows that move between workers.

    python -m benchmarks.opening_workers [--rows 10000000] [--workers 1 2 4] [--cores .25]
        [--runs 1] [--folder FOLDER]

Each worker is in a control group of its own (the rights of root are needed), so that four use
one core; scheduler and server have the rest.  All of them come before what else runs on the
machine.  Every cluster opens a small release first.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.local_cluster import LocalCluster, before_others
from benchmarks.measuring.many_rows import write_streamed
from benchmarks.opening_dask import SMALL, on_cluster

ROWS: Final = 10_000_000
CORES: Final = 0.25


def main() -> None:
    """Print a line for each number of workers."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, default=ROWS)
    arguments.add_argument("--workers", type=int, nargs="+", default=(1, 2, 4))
    arguments.add_argument("--cores", type=float, default=CORES)
    arguments.add_argument("--runs", type=int, default=1)
    arguments.add_argument("--depth", type=int, default=3)
    arguments.add_argument("--folder", type=Path, help="where rows are kept")
    chosen = arguments.parse_args()
    print(circumstances())
    print(
        f"{'workers':>8}{'seconds':>9}{'rows/s':>10}{'efficiency':>12}{'processor':>11}{'load':>6}"
    )
    with tempfile.TemporaryDirectory() as temporary, before_others():
        kept = chosen.folder or Path(temporary)
        small = write_streamed(kept, SMALL, depth=chosen.depth)
        config, first = write_streamed(kept, chosen.rows, depth=chosen.depth), None
        for workers in sorted(chosen.workers):
            folder = Path(temporary) / f"cluster-{workers}"
            with LocalCluster(folder, workers, cores=chosen.cores) as cluster:
                on_cluster(small, cluster)
                runs = [on_cluster(config, cluster) for _ in range(chosen.runs)]
            seconds = median(run.seconds for run in runs)
            first = first or seconds * workers
            print(
                f"{workers:>8}{seconds:>9.1f}{chosen.rows / seconds:>10,.0f}"
                f"{first / (workers * seconds):>12.3f}"
                f"{median(run.processor_seconds for run in runs):>11.1f}{runs[-1].load:>6.1f}",
                flush=True,
            )
            print(f"{'':>8} stages: {runs[-1].stages}", flush=True)


if __name__ == "__main__":
    main()
