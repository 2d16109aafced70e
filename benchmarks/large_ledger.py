"""What does a ledger of a million answers cost: a start, a recorded answer, GET /budget?

Expected: `conclave serve` is ready within 2 s beyond importing its modules, whether
a thousand answers share an entry or each has one; a recorded answer that is not in
memory is found in tens of microseconds; GET /budget takes under a millisecond.

    python benchmarks/large_ledger.py [--answers 1000000] [--folder FOLDER]

Beside the time of a clock stands the processor's, which other work on the machine
changes less.  The release is real, on 600 rows of one feature, and its answers are written as the
server writes them but for fewer transactions.  Every figure is of processes of its
own; the server is started five times, and the modules that it imports are imported
as often without it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from app.answering.replays import RecentReplays
from app.ledger.ledger import open_ledger
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.findings import Finding, tell
from benchmarks.measuring.long_ledger import lengthen, open_number_release, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROUNDS = 5
SEARCHES = 2000
REQUESTS = 500
PORT = 8792
POLL_SECONDS = 0.002
LOOKUP_MICROSECONDS_MAX = 20.0
BUDGET_MILLISECONDS_MAX = 1.0
IMPORTS = "import app.cli, app.cli.web_server, app.main, app.settings.settings, uvicorn"


def main() -> None:
    """Print the figures of both ledgers, and of one without an answer."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--answers", type=int, default=1_000_000)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    print(f"importing the modules of `conclave serve`: {_told(_import_seconds())}")
    budgets, lookups = [], []
    for answers_an_entry in (0, 1000, 1):
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            count = chosen.answers if answers_an_entry else 0
            print(f"\n{count:,} answers, {answers_an_entry} an entry")
            config = open_number_release(Path(folder), limit=chosen.answers + 1, port=PORT)
            budgets.append(_measure(config, count, answers_an_entry))
            if count:
                lookups.append(_measure_lookups(load_settings(config, {}).ledger_url, count))
    _tell(chosen.answers, max(lookups), max(budgets))


def _tell(answers: int, microseconds: float, milliseconds: float) -> None:
    """Print what is judged: the slowest of the ledgers."""
    tell(
        Finding(
            question=f"a recorded answer among {answers:,}, looked up alone",
            ours=f"{microseconds:.1f} microseconds",
            peer=f"{LOOKUP_MICROSECONDS_MAX:.0f} microseconds",
            ratio=microseconds,
            at_most=LOOKUP_MICROSECONDS_MAX,
        )
    )
    tell(
        Finding(
            question=f"GET /budget of a ledger of {answers:,} answers",
            ours=f"{milliseconds:.2f} ms",
            peer=f"{BUDGET_MILLISECONDS_MAX:.0f} ms",
            ratio=milliseconds,
            at_most=BUDGET_MILLISECONDS_MAX,
        )
    )


def _import_seconds() -> list[tuple[float, float]]:
    """Return the times of importing alone: of a clock, and of the processor."""
    times = []
    for _ in range(ROUNDS):
        started, used = time.perf_counter(), _processor_seconds_of_children()
        subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, check=True)
        seconds = time.perf_counter() - started
        times.append((seconds, _processor_seconds_of_children() - used))
    return times


def _processor_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _told(times: Sequence[tuple[float, float]]) -> str:
    clock, processor = (median(each) for each in zip(*times, strict=True))
    least = min(seconds for seconds, _ in times)
    return f"{clock:.2f} s (least {least:.2f}), of the processor {processor:.2f} s"


def _measure(config: Path, count: int, answers_an_entry: int) -> float:
    """Print what a server takes; return the milliseconds of ``GET /budget``."""
    url = load_settings(config, {}).ledger_url
    if count:
        started = time.perf_counter()
        ledger = open_ledger(url, create=True)
        lengthen(ledger, answer_count=count, answers_an_entry=answers_an_entry)
        ledger.close()
        size = config.with_name("conclave.db").stat().st_size / 1e6
        print(f"  written in {time.perf_counter() - started:.0f} s, {size:,.0f} MB")
    ready, budgets, memory = [], [], 0.0
    for _ in range(ROUNDS):
        with _served(config) as (seconds, pid):
            ready.append((seconds, _processor_seconds(pid)))
            budgets += _request_milliseconds()
            memory = _resident_megabytes(pid)
    print(f"  process start to ready: {_told(ready)}")
    print(f"  GET /budget, the connection kept: {median(budgets):.2f} ms")
    print(f"  resident memory of the server: {memory:.0f} MB")
    return median(budgets)


@contextmanager
def _served(config: Path) -> Iterator[tuple[float, int]]:
    """Serve in a process of its own; yield how long until it was ready, and its number."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "app", "serve", "--config", str(config)]
    with config.with_name("server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        while not _is_ready():
            if server.poll() is not None:
                sys.exit(config.with_name("server.log").read_text())
            time.sleep(POLL_SECONDS)
        yield time.perf_counter() - started, server.pid
    finally:
        server.terminate()
        server.wait()


def _is_ready() -> bool:
    connection = HTTPConnection("127.0.0.1", PORT, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _request_milliseconds() -> list[float]:
    connection = HTTPConnection("127.0.0.1", PORT)
    times = []
    for _ in range(REQUESTS):
        started = time.perf_counter()
        connection.request("GET", "/budget")
        json.loads(connection.getresponse().read())
        times.append((time.perf_counter() - started) * 1e3)
    connection.close()
    return times


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _resident_megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e3


def _measure_lookups(url: str, count: int) -> float:
    """Look vectors up, none of which is in memory; return microseconds of a recorded one alone."""
    ledger = open_ledger(url, create=True)
    numbers = random.SystemRandom().sample(range(1, count + 1), min(SEARCHES, count))
    known = [recorded(ledger.digests, number).vector_digest for number in numbers]
    new = [recorded(ledger.digests, count + number).vector_digest for number in numbers]
    alone = 0.0
    with ledger.transaction() as transaction:
        for name, digests in (("recorded", known), ("new", new)):
            for size in (1, 64):
                times = []
                for begin in range(0, len(digests) - size + 1, size):
                    asked: Sequence[bytes] = digests[begin : begin + size]
                    replays = RecentReplays()
                    replays.leave_out_answers()
                    started = time.perf_counter()
                    replays.among(vector_digests=asked, key_digests=(), records=transaction)
                    times.append((time.perf_counter() - started) / size * 1e6)
                print(f"  {name} vectors, {size:>2} together: {median(times):.1f} us each")
                if (name, size) == ("recorded", 1):
                    alone = median(times)
    ledger.close()
    return alone


if __name__ == "__main__":
    main()
