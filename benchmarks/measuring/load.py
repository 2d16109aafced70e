"""A load generator: clients that post one body after another on connections of their own."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import uvloop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OK: Final = b"HTTP/1.1 200"


class LoadError(Exception):
    """A reply that is none of those that are measured."""


@dataclass(slots=True)
class Load:
    """What the clients share: bodies to post, and what came of them.

    Attributes:
        requests: still to be posted.
        expected: what every reply must hold.
        done: set when the last reply has come.
        latencies: seconds of each reply.
        waiting: requests without a reply.

    """

    requests: Iterator[bytes]
    expected: bytes
    done: asyncio.Future[None]
    latencies: list[float] = field(default_factory=list)
    waiting: int = 0


class Client(asyncio.Protocol):
    """One connection, which always has one request under way."""

    def __init__(self, load: Load) -> None:
        """Post what the load holds."""
        self._load = load
        self._received = b""
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def post(self) -> None:
        """Post the next request, if there is one."""
        request = next(self._load.requests, None)
        if request is None or self._transport is None:
            if not self._load.waiting and not self._load.done.done():
                self._load.done.set_result(None)
            return
        self._load.waiting += 1
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Count a reply that is whole, and post the next request."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or not body.endswith(b"}"):
            return
        if not head.startswith(OK) or self._load.expected not in body:
            self._fail(LoadError(self._received.decode()))
            return
        self._received = b""
        self._load.waiting -= 1
        self._load.latencies.append(time.perf_counter() - self._sent_at)
        self.post()

    def connection_lost(self, exc: Exception | None) -> None:
        """Refuse to go on without a connection."""
        self._fail(exc or LoadError("the server closed a connection"))

    def _fail(self, error: Exception) -> None:
        if not self._load.done.done():
            self._load.done.set_exception(error)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a load came to.

    Attributes:
        seconds: from the first request to the last reply.
        latencies: of every reply, in seconds.

    """

    seconds: float
    latencies: Sequence[float]

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.latencies) / self.seconds


def requests_of(bodies: Sequence[bytes], port: int, path: str = "/query") -> list[bytes]:
    """Return whole requests, written beforehand so that a client only sends them."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    ).encode()
    return [b"%b%d\r\n\r\n%b" % (head, len(body), body) for body in bodies]


def measure(
    port: int,
    bodies: Sequence[bytes],
    *,
    clients: int,
    expected: bytes,
    path: str = "/query",
) -> Measured:
    """Post every body once, by so many clients at a time.

    Args:
        port: on loopback.
        bodies: to be posted.
        clients: connections, each with one request under way.
        expected: what every reply must hold.
        path: where they are posted.

    Raises:
        LoadError: a reply that is not 200, or lacks what was expected.

    """
    requests = requests_of(bodies, port, path)
    return uvloop.run(_measure([port], requests, clients, expected))


async def measure_for(
    port: int, bodies: Iterable[bytes], clients: int, expected: bytes, seconds: float
) -> Measured:
    """Post bodies to ``/query`` for so long, as :func:`measure` does; those begun are waited for.

    Args:
        port: on loopback.
        bodies: as many as are asked for.
        clients: connections, each with one request under way.
        expected: what every reply must hold.
        seconds: after which no further body is posted.

    """
    ends = time.perf_counter() + seconds

    def lasting() -> Iterator[bytes]:
        for body in bodies:
            if time.perf_counter() > ends:
                return
            yield requests_of([body], port)[0]

    return await _measure([port], lasting(), clients, expected)


def measure_all(
    ports: Sequence[int], bodies: Sequence[bytes], *, clients: int, expected: bytes
) -> Measured:
    """Post every body once to ``/query`` of any of several servers, as :func:`measure` does.

    Args:
        ports: on loopback; each has as many of the clients as the others.
        bodies: to be posted, each to the server of the client whose turn it is.
        clients: of all servers.
        expected: what every reply must hold.

    Raises:
        LoadError: a reply that is not 200, or lacks what was expected.

    """
    requests = requests_of(bodies, ports[0])
    return uvloop.run(_measure(ports, requests, clients, expected))


async def _measure(
    ports: Sequence[int], requests: Iterable[bytes], clients: int, expected: bytes
) -> Measured:
    loop = asyncio.get_running_loop()
    load = Load(iter(requests), expected, loop.create_future())
    made = [
        await loop.create_connection(lambda: Client(load), "127.0.0.1", port)
        for port in (ports[number % len(ports)] for number in range(clients))
    ]
    started = time.perf_counter()
    for _, client in made:
        client.post()
    await load.done
    seconds = time.perf_counter() - started
    for transport, _ in made:
        transport.abort()
    return Measured(seconds, load.latencies)
