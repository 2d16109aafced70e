"""How many more private answers a second do four small servers give than one, on PostgreSQL?

Expected: 2.5 to 3.5 times as many, with at most 1.2 times the processor time an answer,
where each server is capped at a fifth of a core.

    python -m benchmarks.capped_replicas [--folder FOLDER] [--pairs PAIRS] [--share SHARE]

Each server has a control group of its own, with a quota for every tenth of a second as
``docker run --cpus`` and Kubernetes set it; that takes the rights of root on Linux.  One
server has a release of 200 models in a database of its own, and four share another one, in
the same PostgreSQL server, which is not capped and waits for the disk.  64 clients ask the
one and then the four, by turns.  Processor time is given for the servers alone, and with
PostgreSQL's processes.  About half a minute.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from benchmarks.measuring import pinned
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import bodies, open_linear_release
from benchmarks.measuring.load import measure_all
from tests.builders.ledger.postgresql_server import own_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.measuring.load import Measured
    from benchmarks.measuring.pinned import Server

MODELS = 200
CLIENTS = 64
SERVERS = 4
PAIRS = 5
SHARE = 0.2
REQUESTS = {1: 2000, SERVERS: 4000}
WARM_UP = 600
QUERIES = 10**6
FRESH = b'"replayed":false'
PERIOD_MICROSECONDS = 100_000
GROUPS = Path("/sys/fs/cgroup")
RATE_WANTED, PROCESSOR_WANTED = 2.5, 1.2


class Turn(NamedTuple):
    """A load on some servers, and the seconds of the processor that an answer took.

    Attributes:
        measured: the load's rate and latencies.
        servers: processor time of the servers alone.
        all: that of PostgreSQL's processes included.

    """

    measured: Measured
    servers: float
    all: float


def main() -> None:
    """Print a finding for the rate and one for the processor time."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    arguments.add_argument("--pairs", type=int, default=PAIRS)
    arguments.add_argument("--share", type=float, default=SHARE, help="of a core, to each server")
    chosen = arguments.parse_args()
    print(circumstances())
    with own_server() as database, tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        database_process = _postmaster(Path(str(database.url.query["host"])))
        with ExitStack() as serving:
            served = {
                count: _serve(serving, Path(folder) / str(count), database.create_database(), count)
                for count in REQUESTS
            }
            for number, server in enumerate(each for some in served.values() for each in some):
                serving.enter_context(_capped(server, f"conclave-bench-{number}", chosen.share))
            pairs = list(_pairs(served, database_process, chosen.pairs))
    _tell(pairs, chosen.share)


def _serve(serving: ExitStack, folder: Path, address: str, count: int) -> Sequence[Server]:
    """Open a release in a database, and start servers on it."""
    config = open_linear_release(folder, queries=QUERIES, size=MODELS)
    with config.open("a", encoding="utf-8") as file:
        file.write(f'[ledger]\nurl = "{address}"\n')
    open_from_settings(load_settings(config, {}), noise=SystemNoise()).ledger.close()
    return [serving.enter_context(pinned.release(config)) for _ in range(count)]


@contextmanager
def _capped(server: Server, name: str, share: float) -> Iterator[None]:
    """Cap a server at a share of a core, on whichever core it is."""
    os.sched_setaffinity(server.process, pinned.CORES)
    for thread in Path(f"/proc/{server.process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), pinned.CORES)
    quota, parent = int(share * PERIOD_MICROSECONDS), GROUPS / "cpu"
    is_second = not parent.is_dir()  # the second version of control groups has one tree
    group = (GROUPS if is_second else parent) / name
    group.mkdir()
    try:
        if is_second:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        (group / "cgroup.procs").write_text(str(server.process))
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(server.process))
        group.rmdir()


def _pairs(
    served: dict[int, Sequence[Server]], database_process: int, count: int
) -> Iterator[dict[int, Turn]]:
    """Yield measurements of one server and of four by turns, with new vectors."""
    for number in range(count + 1):  # the first pair warms both up
        found = {}
        for servers in served.values():
            requests = REQUESTS[len(servers)] if number else WARM_UP
            posted = bodies(requests, part=number)
            found[len(servers)] = _turn(servers, database_process, posted)
        if number:
            yield found


def _turn(servers: Sequence[Server], database_process: int, posted: Sequence[bytes]) -> Turn:
    used = [_used(servers), _used_by_children(database_process)]
    ports = [each.port for each in servers]
    measured = measure_all(ports, posted, clients=CLIENTS, expected=FRESH)
    ours = _used(servers) - used[0]
    theirs = _used_by_children(database_process) - used[1]
    return Turn(measured, ours / len(posted), (ours + theirs) / len(posted))


def _used(servers: Sequence[Server]) -> float:
    return sum(each.processor_seconds() for each in servers)


def _postmaster(folder: Path) -> int:
    """Return the number of the process that started all others of a PostgreSQL server."""
    return int((folder / "postmaster.pid").read_text().splitlines()[0])


def _used_by_children(parent: int) -> float:
    """Return the seconds of the processor that a process's children have used, ended ones too."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended, and is among those that its parent counts
        if int(fields[1]) == parent:
            ticks += sum(map(int, fields[11:13]))
        elif path.parent.name == str(parent):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _tell(pairs: Sequence[dict[int, Turn]], share: float) -> None:
    def told(count: int) -> str:
        turns = [each[count] for each in pairs]
        rate = median(each.measured.rate for each in turns)
        latency = median(median(each.measured.latencies) for each in turns) * 1e3
        return f"{rate:,.0f} a second, {latency:.0f} ms each"

    def spent(count: int) -> str:
        turns = [each[count] for each in pairs]
        alone = median(each.servers for each in turns) * 1e6
        together = median(each.all for each in turns) * 1e6
        return f"{alone:.0f} us, with PostgreSQL {together:.0f} us"

    tell(
        Finding(
            question=f"private answers of {SERVERS} servers on PostgreSQL against one, "
            f"{CLIENTS} clients, each server {share:g} of a core, k = {MODELS}",
            ours=told(SERVERS),
            peer=f"one: {told(1)}",
            ratio=median_ratio((e[SERVERS].measured.rate, e[1].measured.rate) for e in pairs),
            at_least=RATE_WANTED,
        )
    )
    ratios = {
        "of the servers": median_ratio((e[SERVERS].servers, e[1].servers) for e in pairs),
        "of the servers and PostgreSQL": median_ratio((e[SERVERS].all, e[1].all) for e in pairs),
    }
    for what, ratio in ratios.items():
        tell(
            Finding(
                question=f"processor time an answer {what}, {SERVERS} against one",
                ours=spent(SERVERS),
                peer=f"one: {spent(1)}",
                ratio=ratio,
                at_most=PROCESSOR_WANTED,
            )
        )


if __name__ == "__main__":
    main()
