"""What does a stream of queries cost beside its own stages alone?

Expected: parsing the lines, casting the votes and committing the answers are most of it;
the rest is deciding query by query and writing replies.

    python -m benchmarks.http_stream [--folder FOLDER]

10,000 new vectors go to `POST /query/stream` in one request, to the release of
``http_answers`` on a core of its own; then the stages alone run on that core, on a copy of
the release as it was, with batches of the writer's greatest size, and the barest program that
could do it: what it takes of the processor is what no server here can be below.  Five pairs.
About a minute.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import tempfile
import time
from itertools import count, repeat
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from app.answering.writer import BATCH_QUERIES_MAX
from app.data.vectors import encode_keys
from app.http.query.query_body import parse_lines_of_numbers
from app.ledger.ledger import AnswerRow, RecordedAnswer
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from benchmarks.measuring import pinned
from benchmarks.measuring.alternating import PAIRS
from benchmarks.measuring.barest_stream import barest_seconds
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import bodies, open_linear_release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.queries import Queries
    from app.release.release import Release

VECTORS = 10_000
RECEIVED_BYTES = 1 << 20
LAST_CHUNK = b"0\r\n\r\n"
SHARE_AT_LEAST = 0.6


def main() -> None:
    """Print a finding for the time by the clock, and one for the processor's."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args().folder
    print(circumstances())
    with tempfile.TemporaryDirectory(dir=chosen) as folder:
        config = open_linear_release(Path(folder) / "served")
        alone = shutil.copytree(config.parent, Path(folder) / "alone") / config.name
        release = open_from_settings(load_settings(alone, {}), noise=SystemNoise())
        streams, used, stages, barest = [], [], [], []
        with pinned.release(config) as server, pinned.load_on_its_core():
            for part in range(PAIRS + 1):  # the first pair warms both up
                lines = bodies(VECTORS, part=part)
                before = server.processor_seconds()
                streams.append(stream_seconds(server.port, lines))
                used.append(server.processor_seconds() - before)
                with pinned.on_the_servers_core():
                    stages.append(_stages(release, lines))
                    database = alone.with_name("barest.db")
                    barest.append(barest_seconds(release.schema, lines, database))
        release.ledger.close()
    _tell(streams[1:], stages[1:])
    _tell_rates(used[1:], barest[1:])


def _tell(streams: Sequence[float], stages: Sequence[tuple[float, float, float]]) -> None:
    parts = ", ".join(
        f"{name} {median(seconds):.2f} s"
        for name, seconds in zip(
            ("parse", "votes", "commit"), zip(*stages, strict=True), strict=True
        )
    )
    tell(
        Finding(
            question="/query/stream, 10,000 new vectors",
            ours=f"{median(streams):.2f} s",
            peer=f"its stages alone: {parts}",
            ratio=median_ratio(
                (sum(alone), seconds) for alone, seconds in zip(stages, streams, strict=True)
            ),
            at_least=0.70,
        )
    )


def _tell_rates(ours: Sequence[float], barest: Sequence[float]) -> None:
    rates = [VECTORS / median(used) for used in (ours, barest)]
    told = [f"{rate:,.0f}, {1e6 / rate:.1f} us each" for rate in rates]
    tell(
        Finding(
            question="the same, vectors a second of the processor",
            ours=told[0],
            peer=f"the barest program without a server: {told[1]}",
            ratio=median_ratio(zip(barest, ours, strict=True)),
            at_least=SHARE_AT_LEAST,
        )
    )


def stream_seconds(port: int, lines: Sequence[bytes]) -> float:
    """Return how long a stream takes, from its first byte to the last answer."""
    body = b"\n".join(lines) + b"\n"
    head = (
        f"POST /query/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        started = time.perf_counter()
        connection.sendall(head + body)
        parts: list[bytes] = []
        while not parts or not parts[-1].endswith(LAST_CHUNK):
            parts.append(connection.recv(RECEIVED_BYTES))
        seconds = time.perf_counter() - started
    received = b"".join(parts)
    if received.count(b'"replayed":false') != len(lines):
        raise ValueError(received[-1000:].decode())
    return seconds


def _stages(release: Release, lines: Sequence[bytes]) -> tuple[float, float, float]:
    """Return the seconds of parsing the lines, of their votes, and of committing answers."""
    started = time.perf_counter()
    batches = [
        _parsed(release, lines[begin : begin + BATCH_QUERIES_MAX])
        for begin in range(0, len(lines), BATCH_QUERIES_MAX)
    ]
    parsed = time.perf_counter()
    for batch in batches:
        release.ensemble.vote_counts(encode_keys(release.schema, batch.vectors))
    voted = time.perf_counter()
    for batch in batches:
        _commit(release, batch)
    return parsed - started, voted - parsed, time.perf_counter() - voted


def _parsed(release: Release, lines: Sequence[bytes]) -> Queries:
    """Return the queries of lines as a stream parses them, together."""
    queries = parse_lines_of_numbers(release.schema, lines)
    if queries is None:
        raise ValueError(lines[0].decode())
    return queries


def _commit(release: Release, batch: Queries) -> None:
    with release.ledger.transaction() as transaction:
        first, vectors = transaction.state.answered + 1, batch.vectors
        digests = release.digests.of_vectors(vectors)
        answers = map(RecordedAnswer, count(first), repeat(1), repeat(object=True))
        transaction.record_answers(list(map(AnswerRow, digests, vectors, answers)))


if __name__ == "__main__":
    main()
