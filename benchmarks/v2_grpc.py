"""What does a private answer cost over gRPC, beside a server without privacy?

Expected: at least half as many again a second as MLServer gives, although each of ours is the
vote of a thousand models, recorded and committed before it is given, and each of theirs one
prediction of one model that nothing is written of.  Less than over HTTP: most of the time is
the library's, grpc.aio, which is the same in both.

    python -m benchmarks.v2_grpc [--folder FOLDER]

As benchmarks/v2_infer.py, with the same model of MLServer: 64 clients, each with a connection
of its own and one call under way, send a row of 14 numbers as ``raw_input_contents``; servers
on one core, by turns, the load on the other.  About a minute, and two more the first time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import grpc.aio
import uvloop

from app.http.protocols.v2_grpc.messages import MESSAGES
from benchmarks.measuring import mlserver, pinned
from benchmarks.measuring.beside_mlserver import answered, by_turns, rows_of_one_model
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.linear_release import new_vectors, open_linear_release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CLIENTS = 64
PAIRS = 3
WARM_UP = 200
CALLS = 2000
AT_LEAST = 1.5
METHOD = "/inference.GRPCInferenceService/ModelInfer"
# Without it all channels to one address share one connection.
OF_ITS_OWN = (("grpc.use_local_subchannel_pool", 1),)


def main() -> None:
    """Print one finding."""
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
            pinned.release(config, with_grpc=True) as ours,
            pinned.load_on_its_core(),
        ):
            asked = by_turns(
                f"V2 infer over gRPC, {CLIENTS} clients",
                [messages(WARM_UP, part=1), *(messages(CALLS, part=n + 2) for n in range(PAIRS))],
                lambda server, sent: uvloop.run(rate(server.grpc_port, sent)),
                peer=peer,
                ours=ours,
                at_least=AT_LEAST,
            )
            if answered(ours.port) != asked:
                sys.exit("not every call of ours was a fresh answer")


async def rate(port: int, sent: Sequence[bytes]) -> float:
    """Send every message once, and return how many were answered a second."""
    waiting = iter(sent)
    channels = [
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=OF_ITS_OWN) for _ in range(CLIENTS)
    ]
    try:
        for channel in channels:
            await channel.channel_ready()
        started = time.perf_counter()
        await asyncio.gather(*(ask(channel, waiting) for channel in channels))
        return len(sent) / (time.perf_counter() - started)
    finally:
        for channel in channels:
            await channel.close()


async def ask(channel: grpc.aio.Channel, waiting: Iterator[bytes]) -> None:
    """Send one message after the other; a call that is refused raises."""
    call = channel.unary_unary(METHOD)
    for message in waiting:
        await call(message)


def messages(count: int, *, part: int) -> list[bytes]:
    """Return inference requests of a row of 14 numbers each, which nobody has asked before."""
    request = MESSAGES["ModelInferRequest"]
    rows = new_vectors(count, part=part).astype("<f8")
    return [
        request(
            model_name=mlserver.MODEL,
            inputs=[{"name": "features", "datatype": "FP64", "shape": [1, len(row)]}],
            raw_input_contents=[row.tobytes()],
        ).SerializeToString()
        for row in rows
    ]


if __name__ == "__main__":
    main()
