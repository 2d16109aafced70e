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
import numpy as np
import pytest

from app.ledger.entries.generations import generations_of
from app.ledger.erasure_state import REQUEST
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from app.main import change_from_settings
from app.noise.system import SystemNoise
from app.release.generations.slots import read_slots
from app.release.generations.waiting_requests import identity_of
from tests.builders.ledger.outside_audit import faults_in, hits_between
from tests.builders.server.server_process import serving
from tests.http.end_to_end.test_generations import AGREED, SPLIT, Life

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from tests.builders.ledger.postgresql_server import PostgresqlServer

pytestmark = [pytest.mark.crash, pytest.mark.long]

GENERATIONS = 6
CLIENTS = 16
ERASED_AT_ONCE = 40
SPLIT_SHARE = 0.005
SECONDS_MAX = 240
KILL_SECONDS = (1.0, 4.0)
ROWS_EACH = 4
PERSON_COUNT = 1000
RETURNING = range(900, 1000)  # who is never forgotten
LOOK_SECONDS = 0.1
KILLS_WITH_ERASURES = 20  # forty persons each, of whom the last hundred come back
# None is used: it spares every client the reading of the certificates.
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


RECORDS, PERSONS = 'id = "record"', f'person = "who"\npersons = {PERSON_COUNT}'


class NamedLife(Life):
    """A life of records with identifiers, or of persons: a generation's file, and a number.

    Attributes:
        names: of the files, by their generations.
        forgotten: the identifiers of every record or person whose erasure was taken down.
        returned: the files, persons of which came back with a further row each.

    """

    def __init__(self, folder: Path, *, unit: str, ledger_url: str = "") -> None:
        """Write the configuration and the first rows."""
        self.names: list[str] = []
        self.forgotten: list[str] = []
        self.returned: list[str] = []
        self.unit = unit
        super().__init__(folder)
        text = self.config.read_text(encoding="utf-8").replace('tick = "1h"', 'tick = "2s"')
        text = text.replace("[data]\n", f"[data]\n{PERSONS if self.is_of_persons else RECORDS}\n")
        text += f'[ledger]\nurl = "{ledger_url}"\n' if ledger_url else ""
        self.config.write_text(text, encoding="utf-8")

    @property
    def is_of_persons(self) -> bool:
        """Whether a slot holds a person with several rows."""
        return self.unit == "person"

    def write(self, name: str, *, seed: int) -> str:
        """Write rows to a file, whose path is returned.

        Persons have four rows each; some of the newest generation come back with one more.
        """
        path = super().write(name, seed=seed)
        file = self.folder / f"{name}.csv"
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        each = ROWS_EACH if self.is_of_persons else 1
        lines = [f"{name}-{row // each},{text}" for row, text in enumerate(rows)]
        if self.is_of_persons and self.names:
            lines += [f"{self.names[-1]}-{who},0.900000,yes" for who in RETURNING]
            self.returned.append(self.names[-1])
        column = "who" if self.is_of_persons else "record"
        file.write_text("\n".join([f"{column},{header}", *lines, ""]), encoding="utf-8")
        self.names.append(name)
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
        charged: numbers of the generations that were charged an unstable answer, by the budget.

    """

    def __init__(self) -> None:
        """Ask nobody yet."""
        self.seen: dict[float, dict[str, object]] = {}
        self.refused: dict[int, int] = {}
        self.wrong: list[str] = []
        self.may_split = True
        self.charged: set[int] = set()
        self._address = ""
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(number,), daemon=True)
            for number in range(CLIENTS)
        ]
        self._threads.append(threading.Thread(target=self._ask_for_each, daemon=True))

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

    def _ask_for_each(self) -> None:
        """Ask one split query after another while a generation votes that paid for none yet.

        So each comes to an unstable answer, however late it joins, and the last stay within T.
        """
        client, place = httpx.Client(timeout=20, verify=TLS), 0
        while not self._ends.is_set():
            time.sleep(LOOK_SECONDS)
            if self._has_uncharged(client):
                place += 1
                self._one(client, round(SPLIT + CLIENTS * 1e-2 + place * 1e-6, 6))
        client.close()

    def _has_uncharged(self, client: httpx.Client) -> bool:
        """Read the budget; return whether a generation votes without an unstable answer."""
        try:
            known = client.get(f"{self._address}/budget").json()["generations"]
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError):
            return False
        self.charged |= {each["number"] for each in known if each["unstable"]["count"]}
        return any(each["state"] == "active" and not each["unstable"]["count"] for each in known)

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


@pytest.mark.parametrize("unit", ["row", "person"])
def test_nothing_is_lost_or_given_twice_or_uncharged(tmp_path: Path, unit: str) -> None:
    """Every answer that a client saw is in the ledger, once, and each generation within its T."""
    live_through(NamedLife(tmp_path, unit=unit))


@pytest.mark.parametrize("unit", ["row", "person"])
def test_the_same_holds_on_postgresql(
    tmp_path: Path, postgresql: PostgresqlServer, unit: str
) -> None:
    """Servers are killed; the database, which waits for the disk, is not."""
    address = postgresql.create_database()
    live_through(NamedLife(tmp_path, unit=unit, ledger_url=address))
    postgresql.drop_database(address)


def live_through(life: NamedLife) -> None:
    """Append, forget, ask and kill until every generation has an unstable answer; then compare."""
    chance, asking, appended, kills, stops = random.Random(7), Asking(), 1, 0, 0
    started = time.monotonic()
    asking.start()
    while kills < GENERATIONS or len(asking.charged) < GENERATIONS:
        assert time.monotonic() - started < SECONDS_MAX
        with serving(life.config) as process:
            asking.ask_at(process.address)
            time.sleep(chance.uniform(*KILL_SECONDS))
            if appended < GENERATIONS:
                life.now = time.time()
                name = f"further-{appended}"
                appended = life.append(name, seed=appended + 10)
            asking.may_split = appended < GENERATIONS - 1  # the last ones are there at the end
            if kills < KILLS_WITH_ERASURES:
                life.forget(life.names[-1], kills * ERASED_AT_ONCE, now=False)
                life.forget("first", kills * ERASED_AT_ONCE, now=kills % 2 == 1)
            time.sleep(chance.uniform(*KILL_SECONDS))
            asking.ask_at("")
            process.kill()
            kills += 1
            stops += "generation_not_fitted" in process.errors()
    with serving(life.config) as process:
        asking.ask_at(process.address)
        time.sleep(KILL_SECONDS[1])
        asking.ask_at("")
        asking.end()
        process.terminate()
        process.wait()
    # On a busy machine a fit may be later than its tick, which stops its server and no other.
    assert stops or HTTPStatus.INTERNAL_SERVER_ERROR not in asking.refused
    check(life, asking, f"{kills} kills, {stops} stopped by a late fit")


def forgotten_of(ledger: Ledger, life: NamedLife) -> int:
    """Compare the slots that are kept with who was erased; return how many of them are empty."""
    holes, everybody = 0, set[bytes]()
    for each in generations_of(ledger.read_state().generations).kept:
        slots, name = read_slots(ledger, each), life.names[each.number - 1]
        of_this = [whom for whom in life.forgotten if whom.rpartition("-")[0] == name]
        places = slots.places()
        assert places.keys().isdisjoint(identity_of(ledger, whom) for whom in of_this)
        assert int((~slots.is_filled).sum()) == len(of_this)
        assert everybody.isdisjoint(places)
        everybody |= places.keys()
        holes += len(of_this)
        if slots.starts is not None:
            row_counts = np.diff(slots.starts)
            came = {identity_of(ledger, f"{name}-{who}") for who in RETURNING}
            further = name in life.returned
            for identity, place in places.items():
                assert row_counts[place] == ROWS_EACH + (further and identity in came)
    return holes


def check(life: NamedLife, asking: Asking, servers: str) -> None:
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
    assert all(1 <= used <= most for used, most in hits.values())
    told = ", ".join(f"{number}: {used} of {most}" for number, (used, most) in hits.items())
    sys.stdout.write(
        f"{report.answered} answers, {len(asking.seen)} seen, refused {asking.refused}; {told}; "
        f"{len(life.forgotten)} {life.unit}s forgotten, {holes} empty slots, {servers}\n"
    )
