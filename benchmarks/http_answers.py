"""What does a durable private answer over HTTP cost beside a route that does nothing?

Expected: at 64 clients nine tenths of the floor's rate, and at 8 six tenths, since batches
share commits; one client waits for a commit of its own, and for little more.

    python -m benchmarks.http_answers [--folder FOLDER]

The floor is a FastAPI route with a pydantic body of 14 numbers; the release has 1000
linear models, each fitted by scikit-learn's LogisticRegression.  Both run on one core, by
turns, on uvicorn with uvloop and httptools, and the load on the other.  Every vector is
new, so that every answer is voted on, recorded and committed before it is given.  About
two minutes, half of it for fitting the models.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median

from app.data.vectors import replay_key
from benchmarks.measuring import pinned
from benchmarks.measuring.alternating import Pair, pairs, told_processor, told_rate
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import new_vectors, open_linear_release

REQUESTS = {64: 8000, 8: 4000, 1: 1000}
AT_LEAST = {64: 0.90, 8: 0.60}
FRESH = b'"replayed":false'
COMMITS = 500
# The table and the index of the answers, alone in a database.
ANSWERS = """
CREATE TABLE answers (release_number, query_id, sequence, vector_digest, vector, label, stable,
    PRIMARY KEY (release_number, query_id)) WITHOUT ROWID;
CREATE UNIQUE INDEX answers_by_vector ON answers (vector_digest, release_number);
"""


def main() -> None:
    """Print the floor's code and a finding for each number of clients."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args().folder
    print(circumstances())
    print(f"\nthe floor:\n\n{pinned.FLOOR_FILE.read_text()}")
    with tempfile.TemporaryDirectory(dir=chosen) as folder:
        config = open_linear_release(Path(folder))
        with pinned.floor() as floor, pinned.release(config) as ours, pinned.load_on_its_core():
            found = {
                clients: pairs(
                    floor,
                    ours,
                    clients=clients,
                    requests=requests,
                    expected=FRESH,
                    first_part=100 * clients,
                )
                for clients, requests in REQUESTS.items()
            }
        for clients, at_least in AT_LEAST.items():
            tell(_rates(clients, found[clients], at_least))
        with pinned.on_the_servers_core():
            tell(_latency(found[1], _commit_seconds(Path(folder))))


def _rates(clients: int, found: list[Pair], at_least: float) -> Finding:
    ours = told_rate([each.ours for each in found])
    floor = told_rate([each.floor for each in found])
    return Finding(
        question=f"durable private answer, k = 1000 linear models, {clients} clients",
        ours=f"{ours}, {told_processor([each.ours_processor for each in found])}",
        peer=f"floor {floor}, {told_processor([each.floor_processor for each in found])}",
        ratio=median_ratio((each.ours.rate, each.floor.rate) for each in found),
        at_least=at_least,
    )


def _latency(found: list[Pair], commit_seconds: float) -> Finding:
    """Compare one client's latency with the floor's and one durable commit of its row."""
    latencies = [
        (median(each.ours.latencies), median(each.floor.latencies) + commit_seconds)
        for each in found
    ]
    ours, limit = (median(each) * 1e3 for each in zip(*latencies, strict=True))
    return Finding(
        question="durable private answer, k = 1000 linear models, 1 client",
        ours=f"{ours:.2f} ms",
        peer=f"floor's latency and one commit of the row ({commit_seconds * 1e3:.2f} ms): "
        f"{limit:.2f} ms",
        ratio=median_ratio((limited, our) for our, limited in latencies),
        at_least=0.75,
    )


def _commit_seconds(folder: Path) -> float:
    """Return the median time of one durable transaction of the row of one answer."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(ANSWERS)
    times = []
    for number, vector in enumerate(new_vectors(COMMITS, part=0).tolist()):
        row = (1, number, number, os.urandom(32), replay_key(tuple(vector)), 1, 1)
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")
        times.append(time.perf_counter() - started)
    connection.close()
    return median(times)


if __name__ == "__main__":
    main()
