"""A process of calibration ``svt`` killed between draw and commit, and around its hits."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import Edge, Step
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.crash.killing import kill_at
from tests.builders.ledger.releases import tamper
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import agreed, agreed_label, split
from tests.builders.server.nursery import started
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from tests.builders.server.http_release import SmallRelease
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

# Answers of epsilon 4, delta 1e-5 and T = 60 take the refreshed variant: an agreed query is
# released, and a split one a hit, each but for a probability below 2e-7.
REFRESHED = {"calibration": '"svt"', "epsilon": "40", "delta": "1e-5"}
REFRESHED_CUTOFF = 60
# A kill leaves at most these to rely on; who asks up to T takes a released one as well.
ASKED = Asked(agreed=4, split=4)
DECIDING_POINTS = [
    f"{step.value}:{edge.value}:3"
    for step in (Step.STEP, Step.COMMIT, Step.RESPOND)
    for edge in Edge
]


def svt_release(opened: OpenedRelease, *, cutoff: int, queries: int = 100_000) -> SmallRelease:
    """Return an open release of calibration ``svt``, unasked."""
    return opened(
        asked=ASKED if cutoff == REFRESHED_CUTOFF else Asked(agreed=4, split=0),
        privacy=REFRESHED,
        answers={"cutoff": str(cutoff), "queries": str(queries), "after": '"halt"'},
    )


def noises(release: SmallRelease) -> dict[str, bytes]:
    """Return every threshold noise in the ledger, by its name."""
    query = "SELECT name, body FROM private_state WHERE name LIKE 'threshold-noise-%'"
    with closing(sqlite3.connect(release.ledger)) as connection:
        return dict(connection.execute(query).fetchall())


def kinds(release: SmallRelease) -> list[str]:
    """Return the kind of every entry, in order."""
    with closing(sqlite3.connect(release.ledger)) as connection:
        rows = connection.execute("SELECT kind FROM entries ORDER BY sequence").fetchall()
    return [kind for (kind,) in rows]


@pytest.mark.parametrize("cutoff", [2, REFRESHED_CUTOFF])
def test_the_noise_survives_a_kill(opened: OpenedRelease, cutoff: int) -> None:
    """Killed after an answer and started again, the release has the noise that it had."""
    release = svt_release(opened, cutoff=cutoff)
    before = noises(release)
    assert list(before) == ["threshold-noise-0"]
    clients = Clients()
    kill_at(release, "respond:after:2", clients, vectors=[agreed])
    with serving(release.config) as process, connect(process.address) as http:
        answer = clients.ask_new(http, agreed)
        assert answer is not None
        assert answer["stable"]
        clients.repeat_all(process.address)
    assert noises(release) == before
    assert check_ledger(release, clients).unstable == 0


@pytest.mark.parametrize("edge", ["before", "after"])
def test_a_hit_and_its_noise_are_committed_together(opened: OpenedRelease, edge: str) -> None:
    """Killed before the commit of a hit both are forgotten, after it both are there."""
    release = svt_release(opened, cutoff=REFRESHED_CUTOFF)
    first = noises(release)
    clients = Clients()
    kill_at(release, f"commit:{edge}:1", clients, vectors=[split])
    killed = check_ledger(release, clients)
    assert killed.unstable == (0 if edge == "before" else 1)
    left = noises(release)
    assert list(left) == [f"threshold-noise-{count}" for count in range(killed.unstable + 1)]
    with serving(release.config) as process, connect(process.address) as http:
        clients.ask_the_rest(process.address)
        answer = clients.ask_new(http, agreed)
        assert answer is not None
        assert answer["label"] == agreed_label(1)
    assert first.items() <= left.items() <= noises(release).items()
    assert len(noises(release)) == 2
    state = check_ledger(release, clients)
    assert (state.unstable, state.refreshed_at) == (1, 1)


@pytest.mark.timeout(600)
def test_the_cutoff_is_met_after_kills_around_hits(opened: OpenedRelease) -> None:
    """Killed around deciding and committing, every entry with a hit has its noise, up to T."""
    release = svt_release(opened, cutoff=REFRESHED_CUTOFF)
    clients = Clients()
    known: dict[str, bytes] = {}
    for point in DECIDING_POINTS:
        kill_at(release, point, clients)
        assert known.items() <= noises(release).items()
        known = noises(release)
    before = check_ledger(release, clients)
    assert 0 < before.unstable < REFRESHED_CUTOFF
    with serving(release.config) as process, connect(process.address) as http:
        clients.repeat_all(process.address)
        clients.ask_the_rest(process.address)
        clients.ask_until_the_end(process.address, [split, split])
        assert http.get("/budget").json()["phase"] == "halted"
        clients.repeat_all(process.address)
    state = check_ledger(release, clients)
    assert state.unstable == state.refreshed_at == REFRESHED_CUTOFF
    assert known.items() <= noises(release).items()
    assert kinds(release).count("ThresholdRefreshed") == len(noises(release)) - 1


@pytest.mark.parametrize("cutoff", [2, REFRESHED_CUTOFF])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM private_state WHERE name = 'threshold-noise-0'",
        "UPDATE private_state SET body = zeroblob(15) WHERE name = 'threshold-noise-0'",
    ],
    ids=["missing", "altered"],
)
def test_a_noise_that_is_gone_refuses_to_start(
    opened: OpenedRelease, cutoff: int, statement: str
) -> None:
    """The process ends with one line and draws none in its place."""
    release = svt_release(opened, cutoff=cutoff)
    tamper(release.ledger, statement)
    process = started(release.config)
    assert process.wait() == 1
    assert "threshold-noise-0" in process.errors()
    assert "Traceback" not in process.errors()
    assert len(noises(release)) == statement.startswith("UPDATE")
