"""Does an answer take longer where the release has a thousand times the rows?

Expected: no.  A query is answered by k learners of one size each, whatever they were
fitted on; both releases have the same k.  About four minutes, most of which is opening
the larger one; 2 GB of disk and of memory.

    python benchmarks/latency_by_rows.py [--rows 10000 10000000] [--pairs 20]
        [--queries 200] [--folder FOLDER]

Two servers stand side by side, and one client asks them in turn, as many new queries each
in a block.  The ratio is the median over pairs of blocks of the ratio of their medians.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.many_rows import CATEGORIES, NUMBERS, write_release

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES: Final = (10_000, 10_000_000)
LEARNERS: Final = 1000
PORTS: Final = (8793, 8794)
RATIO_MAX: Final = 1.1
POLL_SECONDS: Final = 0.1
HEADERS: Final = {"Content-Type": "application/json"}


def main() -> None:
    """Print both medians and their ratio."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", type=int, nargs=2, default=SIZES)
    arguments.add_argument("--pairs", type=int, default=20)
    arguments.add_argument("--queries", type=int, default=200, help="of a block")
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    with ExitStack() as stack:
        few, many = (
            stack.enter_context(_served(rows, port, folder=chosen.folder))
            for rows, port in zip(chosen.rows, PORTS, strict=True)
        )
        for connection in (few, many):
            _median_milliseconds(connection, chosen.queries)  # what is made at the first queries
        pairs = [
            (_median_milliseconds(many, chosen.queries), _median_milliseconds(few, chosen.queries))
            for _ in range(chosen.pairs)
        ]
    ours, peer = (median(each) for each in zip(*pairs, strict=True))
    smaller, larger = chosen.rows
    tell(
        Finding(
            question=f"median latency of a query at {larger:,} rows",
            ours=f"{ours:.3f} ms",
            peer=f"at {smaller:,} rows: {peer:.3f} ms",
            ratio=median_ratio(pairs),
            at_most=RATIO_MAX,
        )
    )


@contextmanager
def _served(rows: int, port: int, *, folder: Path | None) -> Iterator[HTTPConnection]:
    """Open and serve a release on so many rows; yield a connection once it is ready."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        config = write_release(Path(place), source="npz", rows=rows, size=LEARNERS, port=port)
        started = time.perf_counter()
        command = [sys.executable, "-m", "app", "serve", "--config", str(config)]
        log = config.with_name("server.log")
        with log.open("wb") as output:
            server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        try:
            while not _is_ready(port):
                if server.poll() is not None:
                    sys.exit(log.read_text())
                time.sleep(POLL_SECONDS)
            print(f"{rows:,} rows: ready after {time.perf_counter() - started:.1f} s", flush=True)
            yield HTTPConnection("127.0.0.1", port)
        finally:
            server.terminate()
            server.wait()


def _is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _median_milliseconds(connection: HTTPConnection, count: int) -> float:
    """Ask so many new queries, one after the other; each must be answered by the ensemble."""
    connection.close()  # the server may have ended it while the other one was asked
    drawn, times = random.SystemRandom(), []
    for _ in range(count):
        # Far from where the label changes: no answer may be unstable, whatever the rows.
        numbers = [drawn.random() for _ in NUMBERS]
        numbers[:2] = drawn.choice((0.0, 0.7)) + 0.3 * drawn.random(), 0.5 + 0.5 * drawn.random()
        body = json.dumps({"features": [*numbers, *drawn.choices(CATEGORIES, k=2)]})
        started = time.perf_counter()
        connection.request("POST", "/query", body, HEADERS)
        answer = json.loads(connection.getresponse().read())
        times.append((time.perf_counter() - started) * 1e3)
        if answer.get("phase") != "ensemble" or answer.get("replayed"):
            sys.exit(f"no fresh answer of the ensemble: {answer}")
    return median(times)


if __name__ == "__main__":
    main()
