"""What does a private answer cost by the Open Inference Protocol, beside a server without privacy?

Expected: several times as many a second as MLServer gives, although each of ours is the
vote of a thousand models, recorded and committed before it is given, and each of theirs
one prediction of one model that nothing is written of.

    python benchmarks/v2_infer.py [--folder FOLDER]

MLServer runs its scikit-learn runtime with one LogisticRegression in its own process
(`parallel_workers = 0`, no metrics, no debugging), in an environment that this program
makes once from benchmarks/peers/requirements.lock.  Both get the same bodies, a row of 14
numbers in JSON, by the same load generator; servers on one core, by turns, the load on the
other.  About two minutes, and two more the first time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measuring import mlserver, pinned
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import new_vectors, open_linear_release
from benchmarks.measuring.load import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measuring.pinned import Server

PAIRS = 5
WARM_UP = 200
REQUESTS = {8: 2000, 64: 3000}
AT_LEAST = {8: 1.5, 64: 3.0}
PATH = f"/v2/models/{mlserver.MODEL}/infer"
OUTPUTS = b'"outputs":['


@dataclass(frozen=True, slots=True)
class Figures:
    """What a server did under one load: requests a second, and processor's time of each."""

    rate: float
    processor_seconds: float


def main() -> None:
    """Print a finding for each number of clients."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args().folder
    print(circumstances())
    if not mlserver.is_possible():
        print("MLServer has no release for this Python; nothing is compared")
        return
    mlserver.environment()
    with tempfile.TemporaryDirectory(dir=chosen) as named:
        folder = Path(named)
        config = open_linear_release(folder / "release")
        peers = folder / "mlserver"
        peers.mkdir()
        with (
            mlserver.serving(_rows(folder), peers) as peer,
            pinned.release(config) as ours,
            pinned.load_on_its_core(),
        ):
            asked = 0
            for clients in REQUESTS:
                asked += compare(peer, ours, clients)
            if _answered(ours.port) != asked:
                sys.exit("not every request of ours was a fresh answer")


def compare(peer: Server, ours: Server, clients: int) -> int:
    """Print what both do by turns under so many clients; return how many answers were ours."""
    count, part = REQUESTS[clients], 1000 * clients
    for server in (peer, ours):
        measured(server, bodies(WARM_UP, part=part), clients)
    pairs = []
    for number in range(1, PAIRS + 1):
        posted = bodies(count, part=part + number)
        theirs = measured(peer, posted, clients)
        pairs.append((measured(ours, posted, clients), theirs))
    tell(
        Finding(
            question=f"V2 infer, {clients} clients",
            ours=told([each for each, _ in pairs]),
            peer="MLServer, one model, not private: " + told([each for _, each in pairs]),
            ratio=median_ratio((mine.rate, theirs.rate) for mine, theirs in pairs),
            at_least=AT_LEAST[clients],
        )
    )
    return WARM_UP + PAIRS * count


def measured(server: Server, posted: Sequence[bytes], clients: int) -> Figures:
    """Post every body once to a server."""
    used = server.processor_seconds()
    load = measure(server.port, posted, clients=clients, expected=OUTPUTS, path=PATH)
    return Figures(load.rate, (server.processor_seconds() - used) / len(posted))


def told(figures: Sequence[Figures]) -> str:
    """Return the medians, for people."""
    rate = median(each.rate for each in figures)
    processor = median(each.processor_seconds for each in figures)
    return f"{rate:,.0f} a second, {processor * 1e6:.0f} us of the processor each"


def bodies(count: int, *, part: int) -> list[bytes]:
    """Return inference requests of a row of 14 numbers each, which nobody has asked before."""
    return [
        b'{"inputs":[{"name":"features","shape":[1,14],"datatype":"FP64","data":['
        + ",".join(map(str, vector)).encode()
        + b"]}]}"
        for vector in new_vectors(count, part=part).tolist()
    ]


def _rows(folder: Path) -> Path:
    """Write rows for the one model of MLServer, labelled by their first number."""
    rows = new_vectors(1000, part=0)
    file = folder / "rows_of_one_model.npz"
    np.savez(file, x=rows, y=np.where(rows[:, 0] > 0, 1, 0))
    return file


def _answered(port: int) -> int:
    """Return how many fresh answers the release has given."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/budget")
    budget = json.loads(connection.getresponse().read())
    connection.close()
    answered: int = budget["queries"]["answered"]
    return answered


if __name__ == "__main__":
    main()
