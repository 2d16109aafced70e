"""What does an answer cost beside the same answer by an earlier checkout?

Expected: no more of the processor: the earlier time over today's is above .95 at 1, 8 and 64
clients, in a stream, by the Open Inference Protocol and in the classifier phase, and so is that of
an opening, with the imports of its process and without.  By the clock likewise: a median latency
with one client, otherwise the time of all answers over their number.

    python -m benchmarks.earlier_tree FOLDER [--pairs 15] [--only TEXT]

FOLDER is a checkout of this project with an environment of its own (``make install``).  Both
servers run on one core and are asked by turns, the load on the other; each opens the release of
``http_answers`` by its own code.  After a pair that only warms up, the median of the pairs' ratios
is printed with the interval of order statistics that leaves it out in at most 5 of 100 runs,
whatever the law of the ratios is.  An opening is of 20,000 rows and 500 trees, by turns as well.
Some five minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from scipy.stats import binom

from benchmarks.http_stream import VECTORS, stream_seconds
from benchmarks.measuring import pinned
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.linear_release import BOUND, FEATURE, FEATURE_COUNT, TEMPLATE, bodies
from benchmarks.measuring.load import measure
from benchmarks.v2_infer import OUTPUTS, PATH
from benchmarks.v2_infer import bodies as inference_bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from benchmarks.measuring.pinned import Server

    Ask: TypeAlias = Callable[[Server, int], tuple[int, float]]
    """Asks a part of the requests; returns how many answers came, and their time by the clock."""

PAIRS: Final = 15
REQUESTS: Final = {1: 1000, 8: 2000, 64: 4000}
ANSWERS_BEFORE: Final = 400
SWITCH_SECONDS: Final = 5.0
AT_LEAST: Final = 0.95
FALSE_ALARM: Final = 0.05
OPENING: Final = "opening"
OPENED_BY: Final = "benchmarks.measuring.opening_once"
OPENING_ROWS: Final = 20_000
OPENING_SEED: Final = 1
OF_LINEAR_MODELS: Final = ("estimator = ", "params = ")
OPEN: Final = """
import sys
from pathlib import Path
from benchmarks.measuring.linear_release import open_linear_release
queries, after = int(sys.argv[2]), sys.argv[3]
print(open_linear_release(Path(sys.argv[1]), queries=queries, after=after))
"""


def main() -> None:
    """Print a line for each kind of request, and two for an opening."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("tree", type=Path, help="a checkout with .venv")
    arguments.add_argument("--pairs", type=int, default=PAIRS)
    arguments.add_argument("--only", default="", help="questions with this text in them")
    given = arguments.parse_args()
    trees = (given.tree.resolve(), ROOT)
    print(circumstances())
    for question, (switches, ask) in _questions().items():
        if given.only not in question:
            continue
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            servers = [
                stack.enter_context(serving(tree, Path(folder) / str(number), switches=switches))
                for number, tree in enumerate(trees)
            ]
            with pinned.load_on_its_core():
                if switches:
                    for server in servers:
                        measure(
                            server.port,
                            bodies(ANSWERS_BEFORE, part=0),
                            clients=8,
                            expected=b'"ensemble"',
                        )
                    time.sleep(SWITCH_SECONDS)
                used = [
                    [_used(server, ask, part) for server in servers]
                    for part in range(1, given.pairs + 2)
                ]
        for index, unit in enumerate(("processor", "clock")):
            _tell(f"{question}, {unit}", [[each[index] for each in pair] for pair in used[1:]])
    if given.only in OPENING:
        with tempfile.TemporaryDirectory() as folder:
            config = _write_rows(Path(folder))
            _opened(trees, config)  # warms up
            pairs = [_opened(trees, config) for _ in range(given.pairs)]
        for index, part in enumerate(("alone", "with imports")):
            _tell(f"{OPENING}, {part}", [[both[index] for both in pair] for pair in pairs])


def _write_rows(folder: Path) -> Path:
    """Write rows and the configuration of a release of trees on them; return its path."""
    names = [f"f{index}" for index in range(FEATURE_COUNT)]
    rows = np.random.default_rng(OPENING_SEED).normal(size=(OPENING_ROWS, FEATURE_COUNT))
    columns = {name: rows[:, index] for index, name in enumerate(names)}
    columns["answer"] = np.where(rows.sum(axis=1) > 0, "yes", "no")
    np.savez(folder / "rows.npz", **columns)  # type: ignore[arg-type]  # columns by name
    features = "".join(FEATURE.format(name=name, bound=BOUND) for name in names)
    text = TEMPLATE.format(
        features=features, queries=1000, size=500, after="halt", answers=1, classifier=0
    )
    config = folder / "conclave.toml"
    lines = text.splitlines(keepends=True)
    trees = "".join(line for line in lines if not line.startswith(OF_LINEAR_MODELS))
    config.write_text(trees, encoding="utf-8")
    return config


def _opened(trees: Sequence[Path], config: Path) -> list[tuple[float, float]]:
    """Open a new ledger by each tree; return seconds of the opening, and of its whole process."""
    # Bytecode is kept, as `make` does: else the sources are compiled at every start.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for tree in trees:
        for file in config.parent.glob("conclave.db*"):
            file.unlink()
        before = _seconds_of_children()
        ended = subprocess.run(
            [tree / ".venv" / "bin" / "python", "-m", OPENED_BY, config],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        alone = json.loads(ended.stdout.splitlines()[-1])["processor_seconds"]
        found.append((alone, _seconds_of_children() - before))
    return found


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _questions() -> Mapping[str, tuple[bool, Ask]]:
    """Return each question with whether a switch comes before it, and what asks it."""

    def posting(clients: int, expected: bytes) -> Ask:
        def ask(server: Server, part: int) -> tuple[int, float]:
            posted = bodies(REQUESTS[clients], part=1000 * clients + part)
            found = measure(server.port, posted, clients=clients, expected=expected)
            return len(posted), median(found.latencies) if clients == 1 else 1 / found.rate

        return ask

    def infer(server: Server, part: int) -> tuple[int, float]:
        posted = inference_bodies(REQUESTS[8], part=part)
        found = measure(server.port, posted, clients=8, expected=OUTPUTS, path=PATH)
        return len(posted), 1 / found.rate

    def stream(server: Server, part: int) -> tuple[int, float]:
        return VECTORS, stream_seconds(server.port, bodies(VECTORS, part=part)) / VECTORS

    return {
        **{
            f"{clients} client{'s' * (clients > 1)}": (False, posting(clients, b'"label":'))
            for clients in REQUESTS
        },
        "V2 infer, 8 clients": (False, infer),
        "stream": (False, stream),
        "classifier phase, 64 clients": (True, posting(64, b'"classifier"')),
    }


def serving(tree: Path, folder: Path, *, switches: bool) -> AbstractContextManager[Server]:
    """Open the release by a tree's own code, and serve it by the same."""
    python = str(tree / ".venv" / "bin" / "python")
    terms = (str(ANSWERS_BEFORE), "classifier") if switches else (str(10**9), "halt")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    opened = subprocess.run(
        [python, "-c", OPEN, str(folder), *terms],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    config = opened.stdout.decode().splitlines()[-1]
    port = pinned.free_port()
    command = [python, "-m", "app", "serve", "--config", config]
    return pinned.peer(
        command, port, "/readyz", folder=tree, environ={"CONCLAVE_SERVER__PORT": str(port)}
    )


def _used(server: Server, ask: Ask, part: int) -> tuple[float, float]:
    """Return an answer's seconds of the processor, and by the clock."""
    before = server.processor_seconds()
    count, seconds = ask(server, part)
    return (server.processor_seconds() - before) / count, seconds


def _tell(question: str, used: Sequence[Sequence[float]]) -> None:
    ratios = sorted(earlier / today for earlier, today in used)
    low = int(binom.ppf(FALSE_ALARM / 2, len(ratios), 0.5))
    interval = f"[{ratios[low - 1]:.3f}, {ratios[-low]:.3f}]" if low else "[too few pairs]"
    earlier, today = (median(column) * 1e6 for column in zip(*used, strict=True))
    print(
        f"{question:40} {earlier:8.1f} us, today {today:8.1f} us: "
        f"{median(ratios):.3f} {interval} (wanted above {AT_LEAST})"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
