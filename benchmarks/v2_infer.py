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
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import mlserver, pinned
from benchmarks.measuring.beside_mlserver import answered, by_turns, rows_of_one_model
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.linear_release import new_vectors, open_linear_release
from benchmarks.measuring.load import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measuring.pinned import Server

PAIRS = 5
WARM_UP = 200
REQUESTS = {8: 2000, 64: 3000}
AT_LEAST = {8: 3.0, 64: 5.0}
PATH = f"/v2/models/{mlserver.MODEL}/infer"
OUTPUTS = b'"outputs":['


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
            mlserver.serving(rows_of_one_model(folder), peers) as peer,
            pinned.release(config) as ours,
            pinned.load_on_its_core(),
        ):
            asked = 0
            for clients in REQUESTS:
                asked += compare(peer, ours, clients)
            if answered(ours.port) != asked:
                sys.exit("not every request of ours was a fresh answer")


def compare(peer: Server, ours: Server, clients: int) -> int:
    """Print what both do by turns under so many clients; return how many answers were ours."""
    count, part = REQUESTS[clients], 1000 * clients
    return by_turns(
        f"V2 infer, {clients} clients",
        [bodies(WARM_UP, part=part), *(bodies(count, part=part + n + 1) for n in range(PAIRS))],
        lambda server, posted: rate(server.port, posted, clients),
        peer=peer,
        ours=ours,
        at_least=AT_LEAST[clients],
    )


def rate(port: int, posted: Sequence[bytes], clients: int) -> float:
    """Post every body once to a server, and return how many it answered a second."""
    return measure(port, posted, clients=clients, expected=OUTPUTS, path=PATH).rate


def bodies(count: int, *, part: int) -> list[bytes]:
    """Return inference requests of a row of 14 numbers each, which nobody has asked before."""
    return [
        b'{"inputs":[{"name":"features","shape":[1,14],"datatype":"FP64","data":['
        + ",".join(map(str, vector)).encode()
        + b"]}]}"
        for vector in new_vectors(count, part=part).tolist()
    ]


if __name__ == "__main__":
    main()
