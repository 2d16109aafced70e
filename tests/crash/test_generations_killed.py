"""Six generations and erasures under sixteen clients, whose servers are killed at any moment."""

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

from app.ledger.beside_entries import REQUEST
from app.ledger.entries.generations import generations_of
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from app.main import change_from_settings
from app.noise.system import SystemNoise
from app.release.generations.requests import identity_of
from app.release.generations.slots import read_slots
from tests.builders.ledger.outside_audit import faults_in, hits_between
from tests.builders.server.server_process import serving
from tests.http.end_to_end.test_generations import AGREED, SPLIT, Life

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger

pytestmark = [pytest.mark.crash, pytest.mark.long]

GENERATIONS = 6
CLIENTS = 16
ERASED_AT_ONCE = 40
SPLIT_SHARE = 0.005
SECONDS_MAX = 240
KILL_SECONDS = (1.0, 4.0)
# None is used: it spares every client the reading of the certificates.
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class NamedLife(Life):
    """A life of records with identifiers: a generation's file, and a number.

    Attributes:
        names: of the files, by their generations.
        forgotten: the identifiers of every record whose erasure was taken down.

    """

    def __post_init__(self) -> None:
        """Write the configuration and the first rows."""
        self.names: list[str] = []
        self.forgotten: list[str] = []
        super().__post_init__()
        text = self.config.read_text(encoding="utf-8").replace('tick = "1h"', 'tick = "2s"')
        text = text.replace("[data]\n", '[data]\nid = "record"\n')
        self.config.write_text(text, encoding="utf-8")

    def write(self, name: str, *, seed: int) -> str:
        """Write rows to a file, whose path is returned."""
        path = super().write(name, seed=seed)
        self.names.append(name)
        header, *rows = (self.folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        lines = [f"record,{header}", *(f"{name}-{row},{each}" for row, each in enumerate(rows))]
        (self.folder / f"{name}.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
        return path

    def forget(self, name: str, start: int, *, now: bool) -> None:
        """Erase so many records of a file, as the command does: at the next tick, or at once.

        The tick of a server that is there is as good as the command's own: then it comes later.
        """
        asked = [f"{name}-{row}" for row in range(start, start + ERASED_AT_ONCE)]
        told = change_from_settings(
            self.settings, identifiers=asked, now=now, noise=SystemNoise(), clock=time.time
        ).taken
        self.forgotten += [
            each for place, each in enumerate(asked, start=1) if place not in told.unknown
        ]


class Asking:
    """Sixteen clients, each with vectors of its own, that ask on whatever becomes of a server.

    Attributes:
        seen: the answer that each vector got, over all servers.
        refused: how often each status came.
        may_split: whether unstable answers are asked for, which make generations retire.

    """

    def __init__(self) -> None:
        """Ask nobody yet."""
        self.seen: dict[float, dict[str, object]] = {}
        self.refused: dict[int, int] = {}
        self.wrong: list[str] = []
        self.may_split = True
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
            is_split = self.may_split and chance.random() < SPLIT_SHARE
            side = SPLIT if is_split else AGREED
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
    life = NamedLife(tmp_path)
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
                name = f"further-{appended}"
                appended = life.append(name, seed=appended + 10)
            asking.may_split = appended < GENERATIONS - 1  # the last ones are there at the end
            life.forget(life.names[-1], kills * ERASED_AT_ONCE, now=False)
            life.forget("first", kills * ERASED_AT_ONCE, now=kills % 2 == 1)
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


def forgotten_of(ledger: Ledger, life: NamedLife) -> int:
    """Compare the slots that are kept with who was erased; return how many of them are empty."""
    holes = 0
    for each in generations_of(ledger.read_state().generations).kept:
        slots, name = read_slots(ledger, each), life.names[each.number - 1]
        of_this = [whom for whom in life.forgotten if whom.rpartition("-")[0] == name]
        assert slots.places().keys().isdisjoint(identity_of(ledger, whom) for whom in of_this)
        assert int((~slots.is_filled).sum()) == len(of_this)
        holes += len(of_this)
    return holes


def check(life: NamedLife, asking: Asking) -> None:
    """Compare what clients saw with the ledger, and count every generation's hits."""
    ledger = open_ledger(life.settings.ledger_url, create=False, name="growing")
    report = verify(ledger)
    assert not ledger.beside(REQUEST)
    holes = forgotten_of(ledger, life)
    assert holes >= ERASED_AT_ONCE
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
        f"{report.answered} answers, {len(asking.seen)} seen, refused {asking.refused}; {told}; "
        f"{len(life.forgotten)} records forgotten, {holes} empty slots\n"
    )
