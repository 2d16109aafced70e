"""The time of single queries over HTTP, as a client with one open connection sees it."""

from __future__ import annotations

import re
import socket
import time
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import msgspec

from benchmarks.measuring.stopwatch import NANO, Timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.measuring.margins import Kind, Margins

RECEIVED_BYTES: Final = 65_536
SECONDS_MAX: Final = 30.0
_HEAD: Final = re.compile(
    rb"^HTTP/1.1 (\d+) .*?content-length: (\d+).*?\r\n\r\n", re.DOTALL | re.IGNORECASE
)
_OK: Final = 200


class Connection:
    """One connection to a server, kept open; requests are written in one piece."""

    def __init__(self, address: str) -> None:
        """Connect to a server's URL."""
        parts = urlsplit(address)
        self._socket = socket.create_connection((parts.hostname, parts.port), SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST /query HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json"
        )

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self._socket.close()

    def post(self, body: str) -> tuple[dict[str, object], float]:
        """Ask one query; return the reply and the seconds until its last byte."""
        request = f"{self._head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        started = time.perf_counter_ns()
        self._socket.sendall(request)
        received = self._socket.recv(RECEIVED_BYTES)
        while not (found := _HEAD.match(received)) or len(received) < found.end() + int(found[2]):
            more = self._socket.recv(RECEIVED_BYTES)
            if not more:
                message = "the server closed the connection"
                raise ConnectionError(message)
            received += more
        seconds = (time.perf_counter_ns() - started) * NANO
        reply = received[found.end() :]
        if int(found[1]) != _OK:
            raise ConnectionError(reply.decode())
        return msgspec.json.decode(reply, type=dict[str, object]), seconds


def time_posts(
    address: str,
    margins: Margins,
    kinds: Iterable[Kind],
    *,
    first_number: int = 0,
    told: Callable[[int], None] = lambda _: None,
) -> list[Timed]:
    """Ask a server one query after the other, in the order of ``kinds``, and time each reply.

    Args:
        address: of a server on the release of ``margins``.
        margins: where its kinds are.
        kinds: one a query.
        first_number: of the first vector, so that none is asked twice.
        told: how many are done, after each.

    """
    timed: list[Timed] = []
    with Connection(address) as connection:
        for number, kind in enumerate(kinds, start=first_number):
            place, second = margins.vector(kind, number)
            reply, seconds = connection.post(f'{{"features": [{place}, {second}]}}')
            stable = bool(reply["stable"])
            timed.append(
                Timed(kind, stable=stable, voted=seconds, decided=seconds, committed=seconds)
            )
            told(len(timed))
    return timed
