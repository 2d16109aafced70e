"""The barest server that gives one durable answer at a time: what is left if all else is left out.

It has one connection at a time in mind: it reads a request, parses the numbers, hashes the vector
under a key, casts the votes by one product, and commits one blob on a thread of its own, flushed to
the disk, before it writes the reply.  It checks no header, notices no vector that was asked before,
draws nothing, keeps no chain, and could find no answer again.

    python -m benchmarks.measuring.barest_server DATABASE PORT
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, cast

import msgspec
import numpy as np
import uvloop

from benchmarks.measuring.linear_release import FEATURE_COUNT, MODEL_COUNT, SEED

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_BYTES: Final = 32
_END_OF_HEAD: Final = b"\r\n\r\n"


class Body(msgspec.Struct):
    """The body of a query."""

    features: tuple[float, ...]


_decode: Final = msgspec.json.Decoder(Body).decode


class Writer:
    """A thread that casts votes and commits answers, one after the other."""

    def __init__(self, database: str) -> None:
        """Start the thread with a table of its own."""
        self._database = database
        self._key = os.urandom(KEY_BYTES)
        self._weights = np.random.default_rng(SEED).normal(size=(FEATURE_COUNT, MODEL_COUNT))
        self.tasks: SimpleQueue[tuple[bytes, Callable[[bytes], object]]] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        connection = sqlite3.connect(self._database, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS answers (body BLOB)")
        while True:
            body, then = self.tasks.get()
            values = np.array(_decode(body).features)
            votes, vector = np.count_nonzero(values @ self._weights > 0), values.tobytes()
            digest = hashlib.blake2b(vector, key=self._key, digest_size=KEY_BYTES).digest()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO answers VALUES (?)", (digest + vector,))
            connection.execute("COMMIT")
            label = b"yes" if votes > MODEL_COUNT // 2 else b"no"
            then(b'{"query_id":1,"label":"%b","stable":true}' % label)


class Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, writer: Writer, loop: asyncio.AbstractEventLoop) -> None:
        """Answer by a writer."""
        self._writer = writer
        self._loop = loop
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer a request, which comes whole."""
        if data.startswith(b"GET"):
            self._reply(b"{}")
            return
        body = data[data.find(_END_OF_HEAD) + len(_END_OF_HEAD) :]
        self._writer.tasks.put((body, self._answer))

    def _answer(self, body: bytes) -> None:
        self._loop.call_soon_threadsafe(self._reply, body)

    def _reply(self, body: bytes) -> None:
        if self._transport is not None:
            head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
            self._transport.write(head + body)


async def main() -> None:
    """Serve until the process is ended."""
    database, port = sys.argv[1:]
    writer, loop = Writer(database), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(writer, loop), "127.0.0.1", int(port))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
