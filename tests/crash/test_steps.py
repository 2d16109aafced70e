"""A process killed on either side of every step loses nothing and repeats itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.service.steps import Edge, Step
from tests.crash.clients import Clients, check_ledger, connect
from tests.crash.killing import kill_at
from tests.http.end_to_end.server_process import serving
from tests.http.end_to_end.small_release import agreed, split

if TYPE_CHECKING:
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

EVERY_POINT = [f"{step.value}:{edge.value}:2" for step in Step for edge in Edge]
DECIDING_POINTS = [
    f"{step.value}:{edge.value}:3"
    for step in (Step.STEP, Step.COMMIT, Step.RESPOND)
    for edge in Edge
]


@pytest.mark.timeout(600)
def test_the_cutoff_is_met_after_kills_at_every_step(opened: OpenedRelease) -> None:
    """Killed at all fourteen edges, the release still gives T unstable answers, and no more."""
    release = opened(answers={"cutoff": "60", "queries": "100000", "on_cutoff": '"halt"'})
    clients = Clients()
    for point in EVERY_POINT:
        kill_at(release, point, clients)
    before = check_ledger(release, clients)
    assert 0 < before.unstable < 60
    with serving(release.config) as process, connect(process.address) as http:
        clients.repeat_all(process.address)
        clients.ask_the_rest(process.address)
        clients.ask_until_the_end(process.address, [split, split])
        assert http.get("/budget").json()["phase"] == "halted"
        clients.repeat_all(process.address)
    after = check_ledger(release, clients)
    assert after.unstable == 60
    assert sum(not answer["stable"] for answer in clients.seen.values()) == 60


@pytest.mark.timeout(600)
def test_the_limit_is_met_after_kills_at_deciding_steps(opened: OpenedRelease) -> None:
    """Killed around deciding and committing, the release still gives m answers, and no more."""
    release = opened(answers={"cutoff": "100", "queries": "150"})
    clients = Clients()
    for point in DECIDING_POINTS:
        kill_at(release, point, clients)
    before = check_ledger(release, clients)
    assert 0 < before.answered < 150
    with serving(release.config) as process, connect(process.address) as http:
        clients.repeat_all(process.address)
        clients.ask_the_rest(process.address)
        while True:
            answer = clients.ask_new(http, agreed)
            assert answer is not None
            if answer["phase"] == "classifier":
                break
        clients.repeat_all(process.address)
    after = check_ledger(release, clients)
    assert after.answered == len(clients.seen) == 150


@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("limit", ["cutoff", "queries"])
def test_the_last_answer_is_given_once(opened: OpenedRelease, limit: str, edge: str) -> None:
    """Killed at the commit of the last answer that a limit allows, it is given once, after."""
    release = opened(answers={limit: "1", "after": '"halt"'})
    clients = Clients()
    vector = split if limit == "cutoff" else agreed
    kill_at(release, f"commit:{edge}:1", clients, vectors=[vector])
    committed = check_ledger(release, clients)
    assert committed.answered == (0 if edge == "before" else 1)
    assert not clients.seen
    with serving(release.config) as process, connect(process.address) as http:
        clients.ask_the_rest(process.address)
        (answer,) = clients.seen.values()
        assert answer["stable"] is (limit == "queries")
        assert clients.ask_new(http, vector) is None
        assert clients.ask_new(http, agreed) is None
        clients.repeat_all(process.address)
    assert clients.refused == [410, 410]
    assert check_ledger(release, clients).answered == 1
