"""Sixty-four clients who ask whichever server answers, and turn to another when one is gone."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

import numpy as np

from tests.builders.crash.load import CLIENT_COUNT, STREAM_EVERY, Client, Crowd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.builders.crash.load import Allowance
    from tests.builders.crash.replicas import Replicas
    from tests.builders.crash.shared_witness import SharedWitness
    from tests.builders.crash.witnessed import Question, Reply

ASKED_OF_ONE = 12
# Between two questions of a client, so that sixty-four do not keep both processors to themselves.
PAUSE_SECONDS = 0.06
READ_EVERY_SECONDS = 0.02
END_SECONDS_MAX = 60.0


@dataclass
class RoamingCrowd:
    """The clients of several servers.

    Attributes:
        crowd: whose questions they ask, and whose witness hears the replies.
        replicas: whom they ask.
        allowance: new vectors that they may ask.
        seed: of what they choose.
        patience_seconds: after which a server that says nothing is left.

    """

    crowd: Crowd
    replicas: Replicas
    allowance: Allowance
    seed: int
    patience_seconds: float
    _open: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def witness(self) -> SharedWitness:
        """Return who hears the replies."""
        return self.crowd.witnessed  # type: ignore[return-value]  # this crowd has no other

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Let everybody ask, and somebody read, while the block runs."""
        stop = threading.Event()
        generators = map(
            np.random.default_rng, np.random.SeedSequence(self.seed).spawn(CLIENT_COUNT + 1)
        )
        with ThreadPoolExecutor(CLIENT_COUNT + 1) as pool:
            ends = [pool.submit(self._read_on, stop, next(generators))]
            ends += [
                pool.submit(self._ask_on, stop, generator, number % STREAM_EVERY == 0)
                for number, generator in enumerate(generators)
            ]
            try:
                yield
            finally:
                stop.set()
            for each in ends:
                each.result(END_SECONDS_MAX)

    def repeat(self, number: int, questions: Sequence[Question]) -> list[Reply]:
        """Ask questions again of one server in a stream, and return the replies."""
        self.witness.begin()
        return self.crowd.repeat(self.replicas.address(number), questions)

    def are_at(self, number: int) -> bool:
        """Return whether anybody has a connection to this server."""
        with self._lock:
            return self._open[self.replicas.address(number)] > 0

    def _ask_on(
        self,
        stop: threading.Event,
        generator: np.random.Generator,
        streams: bool,  # noqa: FBT001 -- given by position to the pool
    ) -> None:
        while not stop.is_set():
            with self._connected(generator) as connection, suppress(OSError, HTTPException):
                client = Client(self.crowd, self.allowance, generator, connection)
                for _ in range(ASKED_OF_ONE):
                    self.witness.begin()
                    client.stream() if streams else client.post()
                    if stop.wait(PAUSE_SECONDS):
                        return
            time.sleep(PAUSE_SECONDS)

    def _read_on(self, stop: threading.Event, generator: np.random.Generator) -> None:
        """Read budgets of one server after the other: as such, as a head, and as an event."""
        reads = (self._read_budget, self._read_head, self._read_event)
        while not stop.wait(READ_EVERY_SECONDS):
            with self._connected(generator) as connection, suppress(OSError, HTTPException):
                reads[int(generator.integers(len(reads)))](connection)

    @contextmanager
    def _connected(self, generator: np.random.Generator) -> Iterator[HTTPConnection]:
        with self._lock:
            address = self.replicas.any_address(generator)
            self._open[address] += 1
        host = address.removeprefix("http://")
        try:
            with closing(HTTPConnection(host, timeout=self.patience_seconds)) as connection:
                yield connection
        finally:
            with self._lock:
                self._open[address] -= 1

    def _read_budget(self, connection: HTTPConnection) -> None:
        self.witness.begin()
        connection.request("GET", "/budget")
        response = connection.getresponse()
        body = json.loads(response.read())
        if response.status == HTTPStatus.OK:
            self.witness.hear_budget(body)

    def _read_head(self, connection: HTTPConnection) -> None:
        self.witness.begin()
        connection.request("GET", "/ledger/head")
        response = connection.getresponse()
        body = json.loads(response.read())
        if response.status == HTTPStatus.OK:
            self.witness.hear_newest({"sequence": body["sequence"], "head": body["hash"]})

    def _read_event(self, connection: HTTPConnection) -> None:
        """Take the first budget of a stream for any budget; later ones follow changes."""
        connection.request("GET", "/budget/events")
        response = connection.getresponse()
        for line in response:
            if line.startswith(b"data: ") and line.endswith(b"\n"):
                self.witness.hear_head(json.loads(line[6:])["ledger"])
                return
