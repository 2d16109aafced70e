"""What does a single client wait for, beside an earlier version and the barest durable server?

Expected: 1.9 times the latency of the earlier version, which is not reached; the barest server
shows how much of the rest is a request, a thread and a commit, whatever is decided between them.

    python -m benchmarks.one_client [FOLDER] [--pairs 10]

FOLDER is a checkout of an earlier version with an environment of its own (``make install``).  All
servers run on one core and are asked by turns, 1000 new vectors at a time: this version's and the
earlier one's with the release of ``http_answers``, the barest server, and the floor, which records
nothing.  The first turn warms up.  About a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.earlier_tree import serving
from benchmarks.measuring import pinned
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.linear_release import bodies
from benchmarks.measuring.load import measure

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

REQUESTS: Final = 1000
PAIRS: Final = 10
TODAY: Final = "this version"


def main() -> None:
    """Print a line for each server."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("tree", type=Path, nargs="?", help="a checkout with .venv")
    arguments.add_argument("--pairs", type=int, default=PAIRS)
    given = arguments.parse_args()
    print(circumstances())
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = {
            TODAY: stack.enter_context(serving(ROOT, Path(folder) / "today", switches=False)),
            "the barest server": stack.enter_context(_barest(Path(folder) / "barest.db")),
            "the floor": stack.enter_context(pinned.floor()),
        }
        if given.tree is not None:
            earlier = serving(given.tree.resolve(), Path(folder) / "earlier", switches=False)
            servers["the earlier version"] = stack.enter_context(earlier)
        with pinned.load_on_its_core():
            turns = [
                {name: _asked(server, part) for name, server in servers.items()}
                for part in range(given.pairs + 1)
            ]
    for name in servers:
        _tell(name, turns[1:])


def _barest(database: Path) -> AbstractContextManager[pinned.Server]:
    port = pinned.free_port()
    module = "benchmarks.measuring.barest_server"
    command = [sys.executable, "-m", module, str(database), str(port)]
    return pinned.peer(command, port, "/", environ={"OPENBLAS_NUM_THREADS": "1"})


def _asked(server: pinned.Server, part: int) -> tuple[float, float]:
    """Return an answer's seconds of the processor, and the median latency."""
    before = server.processor_seconds()
    found = measure(server.port, bodies(REQUESTS, part=part), clients=1, expected=b'"label":')
    return (server.processor_seconds() - before) / REQUESTS, median(found.latencies)


def _tell(name: str, turns: list[dict[str, tuple[float, float]]]) -> None:
    processor, latency = (median(turn[name][index] for turn in turns) * 1e6 for index in (0, 1))
    ratios = [median(turn[name][index] / turn[TODAY][index] for turn in turns) for index in (0, 1)]
    print(
        f"{name:20} {processor:6.0f} us of the processor, latency {latency:6.0f} us: "
        f"{ratios[0]:.2f} and {ratios[1]:.2f} times this version's"
    )


if __name__ == "__main__":
    main()
