"""Clients that remember every answer they saw, and hold the server to it."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx

from app.ledger.ledger import open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from app.ledger.entries.fold import LedgerState
    from tests.builders.server.http_release import SmallRelease

NDJSON = {"Content-Type": "application/x-ndjson"}
REPLY_SECONDS_MAX = 60.0
Answer: TypeAlias = dict[str, Any]
Vectors: TypeAlias = "Callable[[int], list[object]]"


@dataclass
class Clients:
    """What all clients of one release have asked and seen, over every restart.

    Attributes:
        asked: vectors by idempotency key, answered or not.
        seen: answers of the ensemble by idempotency key.
        refused: problems other than 200, by status.

    """

    asked: dict[str, list[object]] = field(default_factory=dict)
    seen: dict[str, Answer] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask_new(self, http: httpx.Client, vector: Vectors) -> Answer | None:
        """Ask a vector that nobody asked before; None where it was refused."""
        with self._lock:
            number = next(self._numbers)
            key = f"key-{number}"
            self.asked[key] = vector(number)
        return self.ask(http, key)

    def ask(self, http: httpx.Client, key: str) -> Answer | None:
        """Ask the vector of a key, and compare the answer with the one seen before."""
        response = http.post(
            "/query", json={"features": self.asked[key]}, headers={"Idempotency-Key": key}
        )
        if response.status_code != HTTPStatus.OK:
            self.refused.append(response.status_code)
            return None
        answer: Answer = response.json()
        if answer["phase"] == "ensemble":
            self._remember(key, answer)
        return answer

    def repeat_all(self, address: str) -> None:
        """Ask everything again that was answered; each answer must be the same."""
        keys = sorted(self.seen)
        lines = [json.dumps({"features": self.asked[key], "idempotency_key": key}) for key in keys]
        with connect(address) as http:
            response = http.post("/query/stream", content="\n".join(lines), headers=NDJSON)
        answers = [json.loads(line) for line in response.text.splitlines()]
        assert answers == [self.seen[key] | {"replayed": True} for key in keys]

    def ask_the_rest(self, address: str) -> None:
        """Ask everything again that a kill left without an answer."""
        with connect(address) as http:
            for key in sorted(self.asked.keys() - self.seen.keys()):
                self.ask(http, key)

    def ask_until_the_end(self, address: str, vectors: Sequence[Vectors]) -> None:
        """Let one client a vector ask on and on, until the server is gone or refuses."""
        with ThreadPoolExecutor(len(vectors)) as pool:
            for each in [pool.submit(self._ask_on, address, vector) for vector in vectors]:
                each.result()

    def _ask_on(self, address: str, vector: Vectors) -> None:
        with connect(address) as http:
            try:
                while self.ask_new(http, vector) is not None:
                    continue
            except httpx.TransportError:
                return

    def _remember(self, key: str, answer: Answer) -> None:
        """Keep an answer; one that was seen before must not have changed."""
        with self._lock:
            before = self.seen.setdefault(key, answer | {"replayed": False})
        assert before | {"replayed": answer["replayed"]} == answer


def connect(address: str) -> httpx.Client:
    """Return a client of the server."""
    return httpx.Client(base_url=address, timeout=REPLY_SECONDS_MAX)


def check_ledger(release: SmallRelease, clients: Clients) -> LedgerState:
    """Compare the ledger with what clients saw, and return its state.

    Every answer seen is recorded under its number; numbers have no gaps; no
    limit is passed; and the answers' share was charged once, before the first.
    """
    settings = release.settings()
    ledger = open_ledger(settings.ledger_url, create=False)
    try:
        state = ledger.read_state()
        recorded = {row.answer.query_id: row.answer for row in ledger.answers_after(0)}
    finally:
        ledger.close()
    assert sorted(recorded) == list(range(1, state.answered + 1))
    assert state.answered <= settings.answers.queries
    assert state.unstable <= settings.answers.cutoff
    mechanisms = [share.mechanism for share in state.charged]
    assert sorted(mechanisms) == sorted(set(mechanisms))
    assert not recorded or "answers" in mechanisms
    for answer in clients.seen.values():
        held = recorded[answer["query_id"]]
        label = None if held.label is None else settings.data.classes[held.label]
        assert (label, held.stable) == (answer["label"], answer["stable"])
    return state
