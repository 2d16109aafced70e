"""How many files of ``app/`` does a query cross between the socket's read and the reply's write?

Expected: at most 38 for a new answer of the ensemble, by any of the ways in.

    python -m benchmarks.files_on_the_way [--names]

A server of this process answers one client.  While a query is under way, every thread notes
the files of the Python functions that it enters: from the web server's call with the bytes
that it read until the connection's ``write``.  A head that the server has seen before goes
past the parser; the first one, and one with an idempotency key, go through the framework.
Every way is asked several times, since a thread of another kind of work may run meanwhile:
what counts is the smallest set, and ``--names`` prints its files.  Some seconds.
"""

from __future__ import annotations

import argparse
import json
import logging
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from app.cli.logs import configure_logs
from app.cli.web_server import WebServer, listen
from app.main import Server
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.findings import Finding, tell
from benchmarks.measuring.many_rows import CATEGORIES, write_release

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from types import FrameType

    from app.http.wire.connection_guard import GuardedProtocol

LEARNERS: Final = 200
ROWS: Final = 10_000
QUERIES: Final = 40
REPEATS: Final = 4
FILES_MAX: Final = 38
APPLICATION: Final = f"{ROOT / 'app'}/"
ENDING: Final = ("queries = 100000", f'queries = {QUERIES}\nafter = "classifier"')


class Watch:
    """The files that threads of this process enter while a query is under way."""

    def __init__(self) -> None:
        """Watch nothing yet."""
        self._files: set[str] = set()
        self._is_armed = self._is_under_way = False
        self._written = threading.Event()

    def install(self) -> None:
        """Watch this thread and those that it starts."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def arm(self) -> None:
        """Note files from the next read of a socket on."""
        self._files, self._written = set(), threading.Event()
        self._is_armed = True

    def begin(self) -> None:
        """Note that bytes of a request were read."""
        self._is_under_way |= self._is_armed
        self._is_armed = False

    def end(self) -> None:
        """Note that a reply is written."""
        self._is_under_way = False
        self._written.set()

    def crossed(self) -> frozenset[str]:
        """Return the files until the reply was written, by their paths below ``app/``."""
        self._written.wait()
        return frozenset(self._files)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        del argument
        path = frame.f_code.co_filename
        if self._is_under_way and event == "call" and path.startswith(APPLICATION):
            self._files.add(path.removeprefix(APPLICATION))


class WatchedTransport:
    """A connection of the web server, which notes that a reply is written."""

    def __init__(self, transport: asyncio.Transport, watch: Watch) -> None:
        """Write to ``transport``."""
        self._transport = transport
        self._watch = watch

    def write(self, data: bytes) -> None:
        """Write a reply, or a part of one."""
        self._watch.end()
        self._transport.write(data)

    def __getattr__(self, name: str) -> object:
        """Return whatever else the transport has."""
        return getattr(self._transport, name)


def watched(protocol: type[GuardedProtocol], watch: Watch) -> type[GuardedProtocol]:
    """Return the server's class of connections, whose reads and writes are watched."""

    class WatchedProtocol(protocol):  # type: ignore[valid-type, misc]  # its class is made
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(WatchedTransport(transport, watch))

        def data_received(self, data: bytes) -> None:
            watch.begin()
            super().data_received(data)

    return WatchedProtocol


class Client:
    """One connection to the server, which counts the files of each request.

    Attributes:
        phase: of the last answer.

    """

    def __init__(self, port: int, watch: Watch) -> None:
        """Connect."""
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._watch = watch
        self.phase = ""

    def ask(
        self, numbers: float, *, replayed: bool | None = False, headers: str = ""
    ) -> frozenset[str]:
        """Ask one query, check that its answer is of the wanted kind; return the files crossed."""
        features = [*[numbers] * 6, CATEGORIES[0], CATEGORIES[1]]
        body = json.dumps({"features": features}).encode()
        head = (
            f"POST /query HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"{headers}content-length: {len(body)}\r\n\r\n"
        )
        self._watch.arm()
        self._socket.sendall(head.encode() + body)
        files = self._watch.crossed()
        answer = json.loads(self._reply())
        if replayed is not None and answer.get("replayed") is not replayed:
            message = f"another kind of answer than the wanted one: {answer}"
            raise RuntimeError(message)
        self.phase = answer["phase"]
        return files

    def _reply(self) -> bytes:
        """Read one reply, whose body has a Content-Length."""
        read = b""
        while b"\r\n\r\n" not in read:
            read += self._socket.recv(65_536)
        head, _, body = read.partition(b"\r\n\r\n")
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(lines[b"content-length"]):
            body += self._socket.recv(65_536)
        return body


def main() -> None:
    """Print a finding for each way."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--names", action="store_true", help="print the files of each way")
    chosen = arguments.parse_args()
    print(circumstances())
    for way, files in found_ways().items():
        if chosen.names:
            print(f"\n{way}:", *sorted(files), sep="\n  ")
        tell(
            Finding(
                question=f"files of app/ that {way} crosses",
                ours=f"{len(files)} files",
                peer="no other server is asked",
                ratio=len(files),
                at_most=FILES_MAX,
            )
        )


def found_ways() -> dict[str, frozenset[str]]:
    """Serve a release in this process and ask it; return the smallest set of files of each way."""
    watch, failed = Watch(), []
    found: dict[str, frozenset[str]] = {}
    watch.install()
    with tempfile.TemporaryDirectory() as folder:
        config = write_release(Path(folder), source="npz", rows=ROWS, size=LEARNERS, port=0)
        config.write_text(config.read_text().replace(*ENDING))
        configure_logs(level=logging.ERROR)
        server = Server(load_settings(config, {}))
        listening = listen("127.0.0.1", 0)
        web_server = WebServer(server.application(), server, listening)
        plain = cast("type[GuardedProtocol]", web_server.config.http)
        web_server.config.http = watched(plain, watch)

        def ask() -> None:
            try:
                for way, files in _ways(Client(listening.getsockname()[1], watch)):
                    found[way] = min(found.get(way, files), files, key=len)
            except Exception as error:  # noqa: BLE001 -- raised again by the thread that serves
                failed.append(error)
            finally:
                web_server.stop()

        server.on_open = threading.Thread(target=ask, daemon=True).start
        web_server.serve_until_stopped()
    for error in failed:
        raise error
    return found


def _ways(client: Client) -> Iterator[tuple[str, frozenset[str]]]:
    """Ask each kind of query several times; yield its name and its files."""
    ask = client.ask
    for repeat in range(REPEATS):
        new = (repeat + 1) / 1000  # of one length, so that the head is the same
        key, other = f"idempotency-key: {repeat}\r\n", f"x-other: {repeat}\r\n"
        yield "a new answer, of a head not seen before", ask(new, headers=other)
        yield "a new answer, of a known head", ask(new + 0.1)
        yield "a new answer, with an idempotency key", ask(new + 0.2, headers=key)
        yield "a recorded answer, of a known head", ask(new + 0.1, replayed=True)
        yield (
            "a recorded answer, by its idempotency key",
            ask(new + 0.2, replayed=True, headers=key),
        )
    for place in range(QUERIES):
        if client.phase != "ensemble":
            break
        ask(0.5 + place / 1000, replayed=None)
    for place in range(REPEATS):
        yield "a published answer, of a known head", ask(0.9 + place / 1000)


if __name__ == "__main__":
    main()
