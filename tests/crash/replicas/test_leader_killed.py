"""The server that commits for others is killed at every step of a batch that another sent."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx
import pytest

from app.answering.answer_query import Edge, Step
from app.cli import run
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.crash.killing import arm, start_to_kill_at
from tests.builders.crash.killing_server import NOWHERE
from tests.builders.crash.replicas import Replicas
from tests.builders.ledger.postgresql_server import OwnServer, own_server
from tests.builders.server.http_release import split

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.crash

CHANGES = {
    "privacy": {"epsilon": "20", "delta": "1e-12"},
    "answers": {"queries": "200", "cutoff": "20"},
}
STEPS = (Step.REPLAY, Step.VOTE, Step.STEP, Step.COMMIT, Step.RESPOND)
FEW = ("vote:after:1", "commit:before:1", "commit:after:1")
POINTS = [
    pytest.param(point, id=point, marks=() if point in FEW else pytest.mark.long)
    for step in STEPS
    for point in (f"{step.value}:{Edge.BEFORE.value}:1", f"{step.value}:{Edge.AFTER.value}:1")
]


@pytest.fixture(scope="module")
def database() -> Iterator[OwnServer]:
    """Yield a PostgreSQL server of our own."""
    with own_server() as server:
        yield server


@pytest.mark.parametrize("point", POINTS)
def test_what_a_leader_leaves_is_answered_once(
    tmp_path: Path, database: OwnServer, point: str
) -> None:
    """The other server leads by what is committed, and no client is told of a repetition."""
    url = database.create_database()
    replicas = Replicas(tmp_path, database, url, 2, CHANGES)
    leader = start_to_kill_at(replicas.releases[0], point).wait_until_ready()
    other = None
    try:
        replicas._servers[0] = leader
        assert replicas.leader() == 0
        other = start_to_kill_at(replicas.releases[1], NOWHERE).wait_until_ready()
        clients = Clients()
        arm(replicas.releases[0])
        with connect(other.address) as http:
            while leader.is_running():  # this server may not have found it yet
                answer = clients.ask_new(http, split)
                assert answer is not None
                assert answer["replayed"] is False
            assert replicas.leader() == 1
            assert clients.ask_new(http, split) is not None
        clients.repeat_all(other.address)
        budget = httpx.get(f"{other.address}/budget")
        assert budget.status_code == HTTPStatus.OK
        answered = len(clients.seen)
        assert budget.json()["queries"]["answered"] == answered
        assert budget.json()["unstable"]["count"] == answered
    finally:
        for server in (leader, other):
            if server is not None and server.is_running():
                server.kill()
    assert check_ledger(replicas.releases[1], clients).answered == answered
    assert run(["verify", "--config", str(replicas.releases[1].config)]) == 0
    database.drop_database(url)
