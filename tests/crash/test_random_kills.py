"""A process killed at random under concurrent clients loses nothing and repeats itself."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.crash.clients import Clients, check_ledger, connect
from tests.crash.killing import check_killed
from tests.http.end_to_end.server_process import ServerProcess, serving
from tests.http.end_to_end.small_release import agreed, split

if TYPE_CHECKING:
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

SEED = 20240229
CLIENTS = [agreed] * 7 + [split]
DELAY_SECONDS_MAX = 0.5
KILLS_LONG = 40


@pytest.mark.parametrize(
    ("limit", "kill_count"),
    [
        pytest.param("queries", 3, id="a few, then the limit"),
        pytest.param("cutoff", 2, id="a few, then the cutoff"),
        pytest.param("queries", KILLS_LONG, marks=pytest.mark.long, id="many, then the limit"),
        pytest.param("cutoff", KILLS_LONG, marks=pytest.mark.long, id="many, then the cutoff"),
    ],
)
@pytest.mark.timeout(1200)
def test_random_kills_under_load_lose_nothing(
    opened: OpenedRelease, limit: str, kill_count: int
) -> None:
    """After kills at random moments every answer seen is repeated, and the limit met exactly."""
    most = {"queries": 300 * kill_count, "cutoff": 40 * kill_count}[limit]
    others = {"queries": "1000000", "cutoff": "1000"} | {limit: str(most)}
    release = opened(answers={**others, "after": '"halt"'})
    clients = Clients()
    for delay in np.random.default_rng(SEED).uniform(0, DELAY_SECONDS_MAX, kill_count).tolist():
        process = ServerProcess(release.config).wait_until_ready()
        clients.repeat_all(process.address)
        killer = threading.Timer(delay, process.kill)
        killer.start()
        clients.ask_until_the_end(process.address, CLIENTS)
        killer.join()
        check_killed(release, process, clients)
    with serving(release.config) as process, connect(process.address) as http:
        clients.repeat_all(process.address)
        clients.ask_the_rest(process.address)
        clients.ask_until_the_end(process.address, [agreed if limit == "queries" else split] * 4)
        assert http.get("/budget").json()["phase"] == "halted"
        clients.repeat_all(process.address)
        clients.ask_the_rest(process.address)
    state = check_ledger(release, clients)
    assert {"queries": state.answered, "cutoff": state.unstable}[limit] == most
    assert len(clients.seen) == state.answered
