"""What does a durable private answer over HTTP cost beside a route that does nothing?

Expected: at 64 clients one and a half times the floor's rate, and at 8 nine tenths, since batches
share commits; one client waits for a commit of its own, and in all for less than twice the floor.

    python -m benchmarks.http_answers [--folder FOLDER]

The floor is a FastAPI route with a pydantic body of 14 numbers; the release has 1000
linear models, each fitted by scikit-learn's LogisticRegression.  Both run on one core, by
turns, on uvicorn with uvloop and httptools, and the load on the other.  Every vector is
new, so that every answer is voted on, recorded and committed before it is given.  Commits
alone are measured on the server's core after each pair of one client.  About two minutes,
half of it for fitting the models.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from app.data.vectors import replay_key
from benchmarks.measuring import pinned
from benchmarks.measuring.alternating import Pair, pairs, told_processor, told_rate
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import new_vectors, open_linear_release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Clients: requests of a measurement, and pairs.  A machine shared with others changes its
# speed by half within seconds, which short measurements by turns share.
REQUESTS = {64: (4000, 9), 8: (1500, 13), 1: (300, 15)}
AT_LEAST = {64: 1.5, 8: 0.9}
ALONE_AT_LEAST = 0.6
FRESH = b'"replayed":false'
COMMITS = 100
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
        with (
            pinned.floor() as floor,
            pinned.release(config) as ours,
            pinned.load_on_its_core(),
            closing(_bare_ledger(Path(folder))) as bare,
        ):
            for clients, at_least in AT_LEAST.items():
                tell(_rates(clients, list(_pairs(floor, ours, clients)), at_least))
            alone = ((pair, _commit_seconds(bare)) for pair in _pairs(floor, ours, 1))
            tell(_latency(list(alone)))


def _pairs(floor: pinned.Server, ours: pinned.Server, clients: int) -> Iterator[Pair]:
    requests, count = REQUESTS[clients]
    return pairs(
        floor,
        ours,
        clients=clients,
        requests=requests,
        expected=FRESH,
        first_part=100 * clients,
        count=count,
    )


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


def _latency(found: Sequence[tuple[Pair, float]]) -> Finding:
    """Compare one client's latency with the floor's and one durable commit of its row."""
    latencies = [
        (median(pair.ours.latencies), median(pair.floor.latencies) + commit_seconds)
        for pair, commit_seconds in found
    ]
    ours, limit = (median(each) * 1e3 for each in zip(*latencies, strict=True))
    commit = median(commit_seconds for _, commit_seconds in found) * 1e3
    return Finding(
        question="durable private answer, k = 1000 linear models, 1 client",
        ours=f"{ours:.2f} ms",
        peer=f"floor's latency and one commit of the row ({commit:.2f} ms): {limit:.2f} ms",
        ratio=median_ratio((limited, our) for our, limited in latencies),
        at_least=ALONE_AT_LEAST,
    )


def _bare_ledger(folder: Path) -> sqlite3.Connection:
    """Return an empty table of answers with its index, in a database of its own."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(ANSWERS)
    return connection


def _commit_seconds(bare: sqlite3.Connection) -> float:
    """Return the median time of one durable transaction of the row of one answer."""
    ((last,),) = bare.execute("SELECT COUNT(*) FROM answers")
    times = []
    with pinned.on_the_servers_core():
        for number, vector in enumerate(new_vectors(COMMITS, part=0).tolist(), start=last + 1):
            row = (1, number, number, os.urandom(32), replay_key(tuple(vector)), 1, 1)
            started = time.perf_counter()
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            bare.execute("COMMIT")
            times.append(time.perf_counter() - started)
    return median(times)


if __name__ == "__main__":
    main()
