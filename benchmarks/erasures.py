"""Do answers wait longer in a minute in which rows come and go?

Expected: under twice as long at the 99th percentile.  A release of 20,000 rows in 400 trees
takes generations, its tick is a minute, and 64 clients ask without pause.  In every minute of the
middle part one file of 1,000 erasures and one of 1,000 rows to append are given to the commands
that an operator runs, beside the server; before and after it the clients ask alone.

    python -m benchmarks.erasures [--minutes 1 3 1] [--folder FOLDER]

The clients are replied to by one server all the time, so that the parts differ in what they are
asked beside them; that each tick adds a generation's votes is in the part after.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import uvloop

from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.findings import Finding, tell
from benchmarks.measuring.load import Measured, measure_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS: Final = 20_000
CHANGED: Final = 1000
CLIENTS: Final = 64
PORT: Final = 8795
RATIO_MAX: Final = 2.0
PERCENTILE: Final = 99
MINUTE: Final = 60
POLL_SECONDS: Final = 0.1
FEATURES: Final = 6
CONFIGURATION: Final = f"""\
[release]
name = "erasures"
[data]
source = "first.csv"
id = "record"
label = "y"
classes = ["no", "yes"]
{{features}}
[hypotheses]
class = "trees"
depth = 2
bins = 8
[privacy]
epsilon = 4.0
[privacy.shares]
relabel = 0.1
answers = 0.9
classifier = 0
[answers]
cutoff = 5
ensemble = 400
after = "halt"
[generations]
tick = "{MINUTE}s"
labelling = "inherit"
[server]
port = {PORT}
"""
FEATURE: Final = '[[data.features]]\nname = "x{number}"\nkind = "numeric"\nbounds = [0, 1]\n'


def main() -> None:
    """Print the percentile of every part, and their ratio."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--minutes", type=int, nargs=3, default=(1, 3, 1))
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder, _served(Path(folder)) as config:
        asked_for(10)  # what is made at the first queries
        before, changing, after = chosen.minutes
        parts = [asked_for(before * MINUTE)]
        with _changing(config, changing) as told:
            parts.append(asked_for(changing * MINUTE))
        parts.append(asked_for(after * MINUTE))
    print("\n".join(told))
    for name, part in zip(("before", "changing", "after"), parts, strict=True):
        print(
            f"{name}: {len(part.latencies):,} answers, p50 {_at(part, 50):.2f} ms, p99 "
            f"{_at(part, PERCENTILE):.2f} ms, the longest {max(part.latencies) * 1e3:.0f} ms"
        )
    alone = [*parts[0].latencies, *parts[2].latencies]
    peer = _at(Measured(1, alone), PERCENTILE)
    ours = _at(parts[1], PERCENTILE)
    tell(
        Finding(
            question=f"p99 of answers to {CLIENTS} clients, {CHANGED} erasures and rows a minute",
            ours=f"{ours:.2f} ms",
            peer=f"before and after: {peer:.2f} ms",
            ratio=ours / peer,
            at_most=RATIO_MAX,
        )
    )


def _at(part: Measured, percentile: int) -> float:
    return float(np.percentile(part.latencies, percentile)) * 1e3


def asked_for(seconds: float) -> Measured:
    """Ask new vectors, on which learners agree, for so long."""
    return uvloop.run(measure_for(PORT, _bodies(), CLIENTS, b'"stable":true', seconds))


def _bodies() -> Iterator[bytes]:
    drawn = random.SystemRandom()
    while True:
        # Far from the cut: an unstable answer of these comes once in a life.
        first = 0.02 if drawn.random() < 0.5 else 0.9
        vector = [first + drawn.random() * 0.05, *(drawn.random() for _ in range(FEATURES - 1))]
        yield json.dumps({"features": vector}).encode()


@contextmanager
def _changing(config: Path, minutes: int) -> Iterator[list[str]]:
    """Give both files to the commands in every minute, while the block runs."""
    told: list[str] = []

    def change() -> None:
        for minute in range(minutes):
            began = time.monotonic()
            erased = config.with_name(f"forget-{minute}.txt")
            first = minute * CHANGED
            names = (f"first-{row}\n" for row in range(first, first + CHANGED))
            erased.write_text("".join(names), encoding="utf-8")
            further = write_rows(config.parent, f"further-{minute}", CHANGED, seed=minute + 2)
            told.append(_run(config, ["erase", "--from", str(erased)]))
            told.append(_run(config, ["append", str(further)]))
            if minute + 1 < minutes:
                time.sleep(max(0, began + MINUTE - time.monotonic()))

    changing = threading.Thread(target=change)
    changing.start()
    try:
        yield told
    finally:
        changing.join()


def _run(config: Path, command: Sequence[str]) -> str:
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "app", command[0], "--config", str(config), *command[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = (ended.stdout + ended.stderr).strip()
    return f"{command[0]}: {ended.returncode} after {time.monotonic() - began:.1f} s: {said}"


def write_rows(folder: Path, name: str, count: int, *, seed: int) -> Path:
    """Write rows of named records: the first number decides, one in ten is the other way round."""
    generator = np.random.default_rng(seed)
    values = generator.uniform(0, 1, (count, FEATURES))
    labels = (values[:, 0] >= 0.5) ^ (generator.uniform(0, 1, count) < 0.1)
    lines = [
        f"{name}-{row},{','.join(f'{value:.6f}' for value in vector)},{('no', 'yes')[int(label)]}"
        for row, (vector, label) in enumerate(zip(values, labels, strict=True))
    ]
    header = ",".join(["record", *(f"x{number}" for number in range(FEATURES)), "y"])
    path = folder / f"{name}.csv"
    path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return path


@contextmanager
def _served(folder: Path) -> Iterator[Path]:
    """Open and serve the release; yield its configuration once it is ready."""
    write_rows(folder, "first", ROWS, seed=1)
    config = folder / "conclave.toml"
    features = "".join(FEATURE.format(number=number) for number in range(FEATURES))
    config.write_text(CONFIGURATION.format(features=features), encoding="utf-8")
    log = folder / "server.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "app", "serve", "--config", str(config)]
        server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
    try:
        while not _is_ready():
            if server.poll() is not None:
                sys.exit(log.read_text())
            time.sleep(POLL_SECONDS)
        yield config
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


if __name__ == "__main__":
    main()
