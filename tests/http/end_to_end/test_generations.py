"""A life of several generations over HTTP: appends beside the server, ticks, restarts, retirement.

About one side of the cut all 400 learners of a generation agree, and about the other they were
taught by coins.  At epsilon 1.5 and T = 3 an agreed query is unstable with probability 6e-7, and
a split one more often than not: it is asked until something comes of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from app.cli import run
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from app.main import append_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from tests.builders.ledger.outside_audit import faults_in, hits_between
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.settings.settings import Settings

HOUR = 3600
TEMPLATE = """\
[release]
name = "growing"
[data]
source = "first.csv"
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "a"
kind = "numeric"
bounds = [0, 1]
thresholds = [0.5]
[hypotheses]
class = "thresholds"
[privacy]
epsilon = 1.5
[privacy.shares]
relabel = 0
answers = 1
classifier = 0
[answers]
cutoff = 3
ensemble = 400
after = "halt"
[generations]
quorum = {quorum}
tick = "1h"
[server]
port = 0
"""
AGREED, SPLIT = 0.75, 0.25
TRIES = 200


@dataclass
class Life:
    """A folder with the configuration, rows, and the clock of a server."""

    folder: Path
    quorum: int = 1
    now: float = 1000.0 * HOUR
    asked: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Write the configuration and the first rows."""
        self.config.write_text(TEMPLATE.format(quorum=self.quorum), encoding="utf-8")
        self.write("first", seed=1)

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "conclave.toml"

    @property
    def settings(self) -> Settings:
        """The settings as they are read."""
        return load_settings(self.config, {})

    def write(self, name: str, *, seed: int) -> str:
        """Write rows to a file, whose path is returned."""
        generator = np.random.default_rng(seed)
        values = generator.uniform(0, 1, 4000)
        # A tie goes to the first class: with these coins the majorities of chunks are even.
        coins = generator.uniform(0, 1, 4000) < 0.5492
        labels = np.where(values >= 0.5, 1, coins).astype(np.int64)
        lines = [
            f"{value:.6f},{('no', 'yes')[label]}"
            for value, label in zip(values, labels, strict=True)
        ]
        path = self.folder / f"{name}.csv"
        path.write_text("\n".join(["a,y", *lines, ""]), encoding="utf-8")
        return str(path)

    def serve(self) -> Served:
        """Serve the release by this clock."""
        return Served(self.settings, clock=lambda: self.now)

    def append(self, name: str, *, seed: int) -> int:
        """Append a generation, as the command does, by this clock."""
        source = self.write(name, seed=seed)
        appended = append_from_settings(
            self.settings, source, noise=SystemNoise(), clock=lambda: self.now
        )
        assert appended.number is not None
        return appended.number

    def near(self, place: float) -> list[float]:
        """Return a vector that nobody has asked, on one side of the cut."""
        self.asked += 1
        return [place + self.asked * 1e-4]

    def entries(self) -> list[dict[str, Any]]:
        """Verify the ledger, and return its public entries."""
        ledger = open_ledger(self.settings.ledger_url, create=False, name="growing")
        verify(ledger)
        entries = ledger.public_entries(0, 1000)
        ledger.close()
        return entries


def states(served: Served) -> list[str]:
    """Return whether each generation votes."""
    return [each["state"] for each in served.budget()["generations"]]


async def _until(served: Served, wanted: list[str]) -> None:
    while True:
        reply = await served._client.get("/budget")
        if [each["state"] for each in reply.json()["generations"]] == wanted:
            return
        await asyncio.sleep(0.05)


def wait_for(served: Served, *wanted: str) -> None:
    """Let the server run until its generations stand so."""
    served.run(asyncio.wait_for(_until(served, list(wanted)), 120))


def wait_for_fit(served: Served) -> None:
    """Let the server run until it has fitted what was appended; a tick before that halts it."""
    clock = served.server.slot.service._clock
    assert clock is not None

    async def fitted() -> None:
        while clock._ticker.awaits_fit(clock._answerer.release.state):  # noqa: ASYNC110 -- polled
            await asyncio.sleep(0.05)

    served.run(asyncio.wait_for(fitted(), 120))


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """Return a release that is yet to be opened."""
    return Life(tmp_path)


def used(served: Served) -> list[int]:
    """Return the unstable answers that each generation was charged."""
    return [each["unstable"]["count"] for each in served.budget()["generations"]]


def ask_until(served: Served, life: Life, is_enough: Callable[[], bool]) -> None:
    """Stream a split query and two others, until enough were unstable."""
    for _ in range(TRIES):
        if is_enough():
            return
        served.stream([life.near(SPLIT), life.near(AGREED), life.near(AGREED)])
    raise AssertionError("split votes come to unstable answers")


def test_generations_come_and_go_beside_a_server_that_restarts(life: Life) -> None:
    """Each is charged from its join on, retires at its T, and the answers go on without it."""
    with life.serve() as served:
        assert states(served) == ["active"]
        assert served.answer(life.near(AGREED))["stable"]
        first = served.answer([SPLIT])
        ask_until(served, life, lambda: used(served)[0] > 0)
        assert life.append("second", seed=2) == 2
        wait_for(served, "active", "waiting")
        wait_for_fit(served)
        life.now += 2 * HOUR
        wait_for(served, "active", "active")
        assert served.budget()["ensemble"] == {"size": 800}
        ask_until(served, life, lambda: states(served)[0] == "retired")
    (life.folder / "first.csv").unlink()
    life.append("third", seed=3)
    life.now += 3 * HOUR
    with life.serve() as served:
        assert states(served)[2] == "active"
        ask_until(served, life, lambda: states(served)[1] == "retired" and used(served)[2] > 0)
        assert served.answer([SPLIT]) == {**first, "replayed": True}
        budget = served.budget()
    assert budget["queries"]["left"] is None
    assert [each["unstable"]["left"] for each in budget["generations"]][:2] == [0, 0]
    entries = life.entries()
    assert faults_in(entries) == []
    hits = hits_between(entries)
    assert (hits[1], hits[2]) == ((3, 3), (3, 3))
    assert hits[3][0] >= 1


def test_below_the_quorum_new_queries_get_waiting(tmp_path: Path) -> None:
    """503 says so with a time to come back, and nothing is charged."""
    life = Life(tmp_path, quorum=2)
    with life.serve() as served:
        refused = served.query(life.near(AGREED))
        assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert refused.json()["type"] == "urn:conclave:problem:waiting"
        assert refused.headers["retry-after"] == "60"
        assert served.budget()["phase"] == "waiting"
        assert served.get("/readyz").status_code == httpx.codes.OK
        assert 'conclave_phase{phase="waiting"} 1.0' in served.get("/metrics").text
        assert served.get("/budget/outlook").status_code == httpx.codes.OK
    assert [entry["kind"] for entry in life.entries()].count("AnswersReleased") == 0


def test_a_row_that_does_not_fit_appends_nothing(
    life: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and one line with the row's number; the server and its ledger are undisturbed."""
    with life.serve() as served:
        bad = life.folder / "bad.csv"
        bad.write_text("a,y\n0.5,yes\nhalf,no\n", encoding="utf-8")
        head = served.get("/ledger/head").json()
        assert run(["append", "--config", str(life.config), str(bad)]) == 2
        told = capsys.readouterr()
        line = 'conclave: data.source: column "a", row 2: is not a number'
        assert (told.out, told.err.strip().splitlines()[-1]) == ("", line)
        same = life.folder / "first.csv"
        assert run(["append", "--config", str(life.config), str(same)]) == 2
        assert "the very rows of generation 1" in capsys.readouterr().err
        assert served.get("/ledger/head").json() == head
        assert run(["generations", "--config", str(life.config), "--json"]) == 0
        assert '"state": "active"' in capsys.readouterr().out
        assert run(["generations", "--config", str(life.config)]) == 0
        assert "active" in capsys.readouterr().out


def test_a_fixed_release_takes_no_further_rows(
    life: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what to open instead, and so does a ledger that is not there."""
    second = life.write("second", seed=2)
    assert run(["append", "--config", str(life.config), second]) == 2
    assert "start the server" in capsys.readouterr().err
    assert not (life.folder / "conclave.db").exists()
    text = life.config.read_text(encoding="utf-8")
    fixed = text.replace('[generations]\nquorum = 1\ntick = "1h"\n', "")
    life.config.write_text(fixed, encoding="utf-8")
    with life.serve():
        assert run(["append", "--config", str(life.config), second]) == 2
        assert "is fixed, and takes no further rows" in capsys.readouterr().err
