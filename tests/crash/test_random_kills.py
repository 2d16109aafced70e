"""A process killed at random under concurrent clients loses nothing and repeats itself."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.crash.clients import Clients, check_ledger, connect
from tests.crash.killing import check_killed
from tests.http.end_to_end.server_process import ServerProcess, serving
from tests.http.end_to_end.small_release import agreed, split

if TYPE_CHECKING:
    from tests.crash.clients import Vectors
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

SEED = 20240229
DELAY_SECONDS_MAX = 0.25
KILLS_LONG = 40
# More than a life of a quarter of a second answers, so that a limit outlives the kills.
ANSWERS_A_LIFE = 600
CUTOFF_A_LIFE = 40


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
    limits = {
        "queries": {"queries": str(ANSWERS_A_LIFE * kill_count)},
        "cutoff": {"queries": "1000000", "cutoff": str(CUTOFF_A_LIFE * kill_count)},
    }[limit]
    last: Vectors = agreed if limit == "queries" else split
    release = opened(answers={**limits, "after": '"halt"'})
    clients = Clients()
    for delay in np.random.default_rng(SEED).uniform(0, DELAY_SECONDS_MAX, kill_count).tolist():
        process = ServerProcess(release.config).wait_until_ready()
        clients.repeat_all(process.address)
        _ask_until_killed(process, clients, [agreed] * 7 + [last], delay_seconds=delay)
        check_killed(release, process, clients)
    with serving(release.config) as process, connect(process.address) as http:
        clients.repeat_all(process.address)
        clients.ask_the_rest(process.address)
        clients.ask_until_the_end(process.address, [last] * 4)
        assert http.get("/budget").json()["phase"] == "halted"
        clients.repeat_all(process.address)
        clients.ask_the_rest(process.address)
    state = check_ledger(release, clients)
    reached = {"queries": state.answered, "cutoff": state.unstable}
    assert reached[limit] == int(limits[limit])
    assert len(clients.seen) == state.answered


def _ask_until_killed(
    process: ServerProcess, clients: Clients, vectors: list[Vectors], *, delay_seconds: float
) -> None:
    """Let clients ask, and kill the process a while after the first new answer."""
    seen_before = len(clients.seen)
    over = threading.Event()

    def kill() -> None:
        while len(clients.seen) == seen_before and not over.is_set():
            time.sleep(0.001)
        time.sleep(delay_seconds)
        process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        clients.ask_until_the_end(process.address, vectors)
    finally:
        over.set()
        killer.join()
