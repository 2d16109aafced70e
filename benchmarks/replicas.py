"""What do servers that share a ledger in PostgreSQL answer a second, beside one on SQLite?

Expected: one on PostgreSQL somewhat less than one on SQLite while the ensemble answers, since
each commit asks another process, and as much after the switch, when nothing is written.
Further servers add what further processors can do: none where they share one.

    python -m benchmarks.replicas [--folder FOLDER]

The releases are those of ``http_answers`` with 200 models, one in a file and one in a
database of a PostgreSQL server that waits for the disk, with four servers open on it all
the time.  64 clients ask one server on SQLite and then the first one, two or four on
PostgreSQL, by turns, five times each.  The load has a processor of its own and all the
servers have the others; on two processors they all share one.  About two minutes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from benchmarks.measuring import pinned
from benchmarks.measuring.alternating import PAIRS
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import bodies, open_linear_release
from benchmarks.measuring.load import measure_all
from tests.builders.ledger.postgresql_server import own_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measuring.load import Measured
    from benchmarks.measuring.pinned import Server

MODELS = 200
CLIENTS = 64
COUNTS = (1, 2, 4)
REQUESTS = {"ensemble": 3000, "classifier": 8000}
WARM_UP = 500
QUERIES = 5 * 10**5
SWITCH_QUERIES = 300
SWITCH_SECONDS = 10.0
EXPECTED = {"ensemble": b'"replayed":false', "classifier": b'"phase":"classifier"'}


class Turn(NamedTuple):
    """The same load on one server on SQLite, and right after on some on PostgreSQL."""

    sqlite: Measured
    postgresql: Measured


def main() -> None:
    """Print a finding for each phase and number of servers."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args().folder
    print(circumstances())
    with own_server() as database:
        for phase in REQUESTS:
            with tempfile.TemporaryDirectory(dir=chosen) as folder:
                found = _measure(Path(folder), database.create_database(), phase)
            for count, turns in found.items():
                tell(_finding(phase, count, turns))


def _measure(folder: Path, address: str, phase: str) -> dict[int, list[Turn]]:
    """Serve both releases, bring them to the phase, and measure them by turns."""
    config = _configured(folder / "sqlite", phase)
    shared = _configured(folder / "postgresql", phase, address)
    with ExitStack() as serving:
        alone = serving.enter_context(pinned.release(config))
        servers = [serving.enter_context(pinned.release(shared)) for _ in range(max(COUNTS))]
        serving.enter_context(pinned.load_on_its_core())
        if phase == "classifier":
            _switch(alone, servers)
        return {
            count: _turns(phase, [alone], servers[:count], first_part=100 * count)
            for count in COUNTS
        }


def _configured(folder: Path, phase: str, address: str | None = None) -> Path:
    """Open a release of few models, in a file or in a database; return its configuration."""
    is_first = phase == "ensemble"
    config = open_linear_release(
        folder,
        queries=QUERIES if is_first else SWITCH_QUERIES,
        after="halt" if is_first else "classifier",
        size=MODELS,
    )
    if address is not None:
        with config.open("a", encoding="utf-8") as file:
            file.write(f'[ledger]\nurl = "{address}"\n')
        open_from_settings(load_settings(config, {}), noise=SystemNoise()).ledger.close()
    return config


def _switch(alone: Server, servers: Sequence[Server]) -> None:
    for each in (alone, servers[0]):
        posted = bodies(SWITCH_QUERIES, part=0)
        measure_all([each.port], posted, clients=8, expected=b'"ensemble"')
    time.sleep(SWITCH_SECONDS)


def _turns(
    phase: str, alone: Sequence[Server], servers: Sequence[Server], *, first_part: int
) -> list[Turn]:
    """Measure one and the others by turns, with vectors that neither was asked before."""
    found = []
    for number in range(PAIRS + 1):  # the first turn warms both up
        requests = REQUESTS[phase] if number else WARM_UP
        posted = bodies(requests, part=first_part + number)
        measured = [
            measure_all(
                [each.port for each in asked],
                posted,
                clients=CLIENTS,
                expected=EXPECTED[phase],
            )
            for asked in (alone, servers)
        ]
        found.append(Turn(*measured))
    return found[1:]


def _finding(phase: str, count: int, turns: Sequence[Turn]) -> Finding:
    def told(measured: Sequence[Measured]) -> str:
        latency = median(median(each.latencies) for each in measured) * 1e3
        return f"{median(each.rate for each in measured):,.0f} a second, {latency:.1f} ms each"

    servers = "server" if count == 1 else "servers"
    return Finding(
        question=f"{phase}, {count} {servers} on PostgreSQL, {CLIENTS} clients, k = {MODELS}",
        ours=told([each.postgresql for each in turns]),
        peer=f"one on SQLite: {told([each.sqlite for each in turns])}",
        ratio=median_ratio((each.postgresql.rate, each.sqlite.rate) for each in turns),
    )


if __name__ == "__main__":
    main()
