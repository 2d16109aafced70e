"""Backups of a ledger that a server writes to: each is whole, closed and serves what it has."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import httpx

from app.ledger.copies.copies import back_up, restore
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.server.http_release import agreed
from tests.builders.server.server_process import serving
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from tests.http.end_to_end.conftest import OpenedRelease

BACKUPS = 6
QUERIES = 400
SECONDS_MAX = 60


class Client(threading.Thread):
    """Asks one new vector after another until it is stopped.

    Attributes:
        answers: what it was given, by the vector's number.

    """

    def __init__(self, address: str) -> None:
        """Ask a server."""
        super().__init__()
        self.answers: dict[int, dict[str, object]] = {}
        self._address = address
        self._stopped = threading.Event()

    def run(self) -> None:
        """Ask until all is asked, or it is enough."""
        with httpx.Client(base_url=self._address, timeout=SECONDS_MAX) as client:
            for number in range(QUERIES):
                if self._stopped.is_set():
                    return
                reply = client.post("/query", json={"features": agreed(number)})
                self.answers[number] = reply.raise_for_status().json()

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()
        self.join()


def test_backups_under_load_have_every_answer_from_before(opened: OpenedRelease) -> None:
    """Each copy has what was acknowledged before it began, verifies, and repeats it, closed."""
    release = opened(answers={"queries": str(QUERIES + 1)})
    url = release.settings().ledger_url
    with serving(release.config) as server:
        client = Client(server.address)
        client.start()
        known = []
        for number in range(BACKUPS):
            given = len(client.answers)
            copied = back_up(url, release.folder / f"backup-{number}.db")
            known.append((given, copied))
        client.stop()
        budget = httpx.get(f"{server.address}/budget", timeout=SECONDS_MAX).json()
    assert budget["queries"]["answered"] == len(client.answers)
    for number, (given, copied) in enumerate(known):
        ledger = open_ledger(f"sqlite:///{release.folder / f'backup-{number}.db'}", create=False)
        report = verify(ledger, copied.head.hash)
        ledger.close()
        assert given <= report.answered <= len(client.answers)
    assert known[-1][0] > 0
    for path in map(release.folder.joinpath, ("conclave.db", "conclave.db-wal", "conclave.db-shm")):
        path.rename(path.with_name(f"lost-{path.name}"))
    restore(release.folder / f"backup-{BACKUPS - 1}.db", url)
    with Served(release.settings()) as served:
        for vector in range(known[-1][0]):
            assert served.answer(agreed(vector)) == client.answers[vector] | {"replayed": True}
        assert served.query(agreed(QUERIES + 5)).status_code == 410
