"""A life of six generations under sixteen clients, whose servers are killed at any moment."""

from __future__ import annotations

import random
import ssl
import sys
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx
import pytest

from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.outside_audit import faults_in, hits_between
from tests.builders.server.server_process import serving
from tests.http.end_to_end.test_generations import AGREED, SPLIT, Life

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.crash, pytest.mark.long]

GENERATIONS = 6
CLIENTS = 16
SPLIT_SHARE = 0.005
SECONDS_MAX = 240
KILL_SECONDS = (1.0, 4.0)
# None is used: it spares every client the reading of the certificates.
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Asking:
    """Sixteen clients, each with vectors of its own, that ask on whatever becomes of a server.

    Attributes:
        seen: the answer that each vector got, over all servers.
        refused: how often each status came.

    """

    def __init__(self) -> None:
        """Ask nobody yet."""
        self.seen: dict[float, dict[str, object]] = {}
        self.refused: dict[int, int] = {}
        self.wrong: list[str] = []
        self._address = ""
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(number,), daemon=True)
            for number in range(CLIENTS)
        ]

    def start(self) -> None:
        """Start every client."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let every client end."""
        self._ends.set()
        for thread in self._threads:
            thread.join(SECONDS_MAX)

    def ask_at(self, address: str) -> None:
        """Ask this server from now on; an empty address is nobody."""
        self._address = address

    def _ask(self, number: int) -> None:
        chance, client, place = random.Random(number), httpx.Client(timeout=20, verify=TLS), 0
        while not self._ends.is_set():
            if not self._address:
                time.sleep(0.02)
                continue
            side = SPLIT if chance.random() < SPLIT_SHARE else AGREED
            vector = round(side + number * 1e-2 + place * 1e-6, 6)
            place += 1
            for _ in range(2):  # each is asked again, by the server of then
                self._one(client, vector)
        client.close()

    def _one(self, client: httpx.Client, vector: float) -> None:
        try:
            reply = client.post(f"{self._address}/query", json={"features": [vector]})
        except (httpx.HTTPError, httpx.InvalidURL):
            return
        if reply.status_code != HTTPStatus.OK:
            count = self.refused.get(reply.status_code, 0)
            self.refused[reply.status_code] = count + 1
            return
        answer = {name: reply.json()[name] for name in ("query_id", "label", "stable")}
        if self.seen.setdefault(vector, answer) != answer:
            self.wrong.append(f"{vector} got {self.seen[vector]}, and then {answer}")


def test_nothing_is_lost_or_given_twice_or_uncharged(tmp_path: Path) -> None:
    """Every answer that a client saw is in the ledger, once, and each generation within its T."""
    life = Life(tmp_path)
    text = life.config.read_text(encoding="utf-8").replace('tick = "1h"', 'tick = "2s"')
    life.config.write_text(text, encoding="utf-8")
    chance, asking, appended, kills = random.Random(7), Asking(), 1, 0
    started = time.monotonic()
    asking.start()
    while appended < GENERATIONS or kills < GENERATIONS:
        assert time.monotonic() - started < SECONDS_MAX
        with serving(life.config) as process:
            asking.ask_at(process.address)
            time.sleep(chance.uniform(*KILL_SECONDS))
            if appended < GENERATIONS:
                life.now = time.time()
                appended = life.append(f"further-{appended}", seed=appended + 10)
            time.sleep(chance.uniform(*KILL_SECONDS))
            asking.ask_at("")
            process.kill()
            kills += 1
    with serving(life.config) as process:
        asking.ask_at(process.address)
        time.sleep(KILL_SECONDS[1])
        asking.ask_at("")
        asking.end()
        process.terminate()
        process.wait()
    check(life, asking)


def check(life: Life, asking: Asking) -> None:
    """Compare what clients saw with the ledger, and count every generation's hits."""
    ledger = open_ledger(life.settings.ledger_url, create=False, name="growing")
    report = verify(ledger)
    recorded = {row.answer.query_id: row.answer for row in ledger.answers_after(0)}
    entries: list[dict[str, object]] = []
    while page := ledger.public_entries(len(entries), 1000):
        entries += page
    ledger.close()
    assert asking.wrong == []
    assert len({each["query_id"] for each in asking.seen.values()}) == len(asking.seen)
    for vector, answer in asking.seen.items():
        found = recorded[int(str(answer["query_id"]))]
        label = None if found.label is None else ("no", "yes")[found.label]
        assert (label, found.stable) == (answer["label"], answer["stable"]), vector
    assert faults_in(entries) == []
    hits = hits_between(entries)
    assert len(hits) == GENERATIONS
    told = ", ".join(f"{number}: {used} of {most}" for number, (used, most) in hits.items())
    sys.stdout.write(
        f"{report.answered} answers, {len(asking.seen)} seen, refused {asking.refused}; {told}\n"
    )
