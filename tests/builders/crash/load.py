"""Sixty-four clients over real connections, who ask until their server is gone."""

from __future__ import annotations

import json
import termios
import threading
import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from fcntl import ioctl
from http.client import HTTPConnection, HTTPException
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from tests.builders.server.http_release import agreed, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.data.vectors import Vector
    from tests.builders.crash.witnessed import Question, Reply, Witnessed

CLIENT_COUNT = 64
# Every eighth client sends streams; the others, one query at a time.
STREAM_EVERY = 8
STREAM_LINES_MAX = 12
REPLY_SECONDS_MAX = 60.0
SPLIT_SHARE = 0.25
# What a client asks: something new while there is an allowance, what another client may be
# asking at this moment, a vector known by then under a new key, or anything asked before.
NEW_BELOW, RECENT_BELOW, REKEYED_BELOW = 0.5, 0.65, 0.85
NDJSON = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}


@dataclass
class Allowance:
    """New vectors that the clients of one life may ask, so that no limit is met too early.

    Attributes:
        agreed: vectors that the learners agree on.
        split: vectors that they are split about.

    """

    agreed: float
    split: float
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def grant(self, *, agreed: float, split: float) -> None:
        """Allow so many further vectors."""
        with self._lock:
            self.agreed += agreed
            self.split += split

    def take(self, *, wants_split: bool) -> bool | None:
        """Return whether the vector is to be a split one; None where nothing is left."""
        with self._lock:
            if self.split > 0 and (wants_split or self.agreed <= 0):
                self.split -= 1
                return True
            if self.agreed > 0:
                self.agreed -= 1
                return False
            return None


@dataclass
class Crowd:
    """The clients of one release, who remember everything over every life of its server.

    Attributes:
        witnessed: what they asked and saw.
        seed: of what they choose to ask.

    """

    witnessed: Witnessed
    seed: int
    _clients: list[Client] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _lives: Iterator[int] = field(default_factory=count)

    def ask_until_the_end(self, address: str, allowance: Allowance, stop: threading.Event) -> None:
        """Let everybody ask until the server is gone, or until they are told to stop."""
        seeds = np.random.SeedSequence([self.seed, next(self._lives)]).spawn(CLIENT_COUNT)
        with ThreadPoolExecutor(CLIENT_COUNT) as pool:
            clients = self._clients = [
                Client(self, allowance, np.random.default_rng(seed), connect(address))
                for seed in seeds
            ]
            ends = [
                pool.submit(client.ask_on, stop, streams=number % STREAM_EVERY == 0)
                for number, client in enumerate(clients)
            ]
            for each in ends:
                each.result()

    def received(self) -> set[float]:
        """Return when each request under way was sent that has reached the server's machine."""
        return {sent for client in self._clients if (sent := client.received()) is not None}

    def repeat(self, address: str, questions: Sequence[Question]) -> list[Reply]:
        """Ask questions again in one stream, and return the replies."""
        with closing(connect(address)) as connection:
            connection.request("POST", "/query/stream", _lines(questions), NDJSON)
            replies = [json.loads(line) for line in connection.getresponse().read().splitlines()]
        for question, reply in zip(questions, replies, strict=True):
            self.witnessed.hear(question, reply)
        return replies

    def watch_budget(self, address: str) -> None:
        """Read the stream of budgets until the server is gone."""
        with closing(connect(address)) as connection, suppress(OSError, HTTPException):
            connection.request("GET", "/budget/events")
            for line in connection.getresponse():
                if line.startswith(b"data: ") and line.endswith(b"\n"):
                    self.witnessed.hear_head(json.loads(line[6:])["ledger"])

    def new_vector(self, *, is_split: bool) -> Vector:
        """Return a vector that nobody asked before."""
        age, group = (split if is_split else agreed)(next(self._numbers))
        return (float(str(age)), str(group))


@dataclass
class Client:
    """One connection and what it asks."""

    crowd: Crowd
    allowance: Allowance
    generator: np.random.Generator
    connection: HTTPConnection
    sent: float | None = field(default=None, init=False)

    def ask_on(self, stop: threading.Event, *, streams: bool) -> None:
        """Ask one thing after another."""
        turn = self.stream if streams else self.post
        with closing(self.connection):
            while not stop.is_set():
                self.sent = None
                try:
                    turn()
                except (OSError, HTTPException):
                    if self.sent is not None:
                        self.crowd.witnessed.lost.append(self.sent)
                    return

    def received(self) -> float | None:
        """Return when the request under way was sent, if each byte of it was acknowledged."""
        sent, own = self.sent, self.connection.sock
        if own is None:
            return None
        unacknowledged = array("i", [1])
        with suppress(OSError, ValueError):  # closed meanwhile
            ioctl(own, termios.TIOCOUTQ, unacknowledged)
        return sent if unacknowledged[0] == 0 and sent == self.sent else None

    def post(self) -> None:
        """Ask one question."""
        question = self._question()
        headers = JSON if question.key is None else JSON | {"Idempotency-Key": question.key}
        body = json.dumps({"features": question.vector})
        self.connection.request("POST", "/query", body, headers)
        self.sent = time.monotonic()
        reply = self.connection.getresponse().read()
        self.crowd.witnessed.hear(question, json.loads(reply))

    def stream(self) -> None:
        """Hear every line that came whole, whatever becomes of the rest."""
        line_count = int(self.generator.integers(1, STREAM_LINES_MAX + 1))
        questions = [self._question() for _ in range(line_count)]
        self.connection.request("POST", "/query/stream", _lines(questions), NDJSON)
        self.sent = time.monotonic()
        response = self.connection.getresponse()
        for question in questions:
            line = response.readline()
            if not line.endswith(b"\n"):
                raise HTTPException
            self.crowd.witnessed.hear(question, json.loads(line))
        response.read()

    def _question(self) -> Question:
        witnessed, generator = self.crowd.witnessed, self.generator
        chance = generator.random()
        if chance < NEW_BELOW:
            is_split = self.allowance.take(wants_split=generator.random() < SPLIT_SHARE)
            if is_split is not None:
                vector = self.crowd.new_vector(is_split=is_split)
                return witnessed.ask(vector, with_key=bool(generator.integers(2)))
        known = witnessed.draw(generator, recent=chance < RECENT_BELOW)
        if RECENT_BELOW <= chance < REKEYED_BELOW:
            return witnessed.ask(known.vector, with_key=True)
        return known


def connect(address: str) -> HTTPConnection:
    """Return a connection to a server, which is opened by its first request."""
    return HTTPConnection(address.removeprefix("http://"), timeout=REPLY_SECONDS_MAX)


def _lines(questions: Sequence[Question]) -> str:
    return "".join(json.dumps(question.line()) + "\n" for question in questions)
