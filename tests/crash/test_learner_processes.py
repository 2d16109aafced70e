"""Processes of learners beside a real server: replaced where they end, gone with it however."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest

from app.cli.web_server import END_SECONDS
from tests.builders.server.server_process import ServerProcess, serving

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.crash, pytest.mark.long]

END_SECONDS_MAX = 10.0
GONE_SECONDS_MAX = 60.0
OPENING_SECONDS_MAX = 120.0
# Their fits take half a minute, from when they have imported what they need.
FITTING_SECONDS = 4.0
JOBS = 2
CONFIG = f"""\
[release]
name = "apart"
[data]
source = "records.csv"
label = "approved"
classes = ["no", "yes"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [0, 100]
thresholds = [50]
[hypotheses]
class = "thresholds"
[learner]
estimator = "sklearn.naive_bayes.GaussianNB"
jobs = {JOBS}
[privacy]
epsilon = 20
delta = 1e-6
[privacy.shares]
relabel = 0
answers = 0.7
[answers]
queries = 100
cutoff = 3
ensemble = 200
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration on rows that a threshold labels."""
    ages = np.random.default_rng(6).uniform(0, 100, 4000)
    lines = (f"{age},{'yes' if age >= 50 else 'no'}" for age in ages)
    (tmp_path / "records.csv").write_text("age,approved\n" + "\n".join(lines) + "\n")
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIG)
    return path


def learner_processes(server: ServerProcess) -> set[int]:
    """Return the processes of joblib that a server has."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == server.pid and b"popen_loky" in said:
            found.add(int(folder.name))
    return found


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(holds: Callable[[], bool], seconds_max: float = GONE_SECONDS_MAX) -> None:
    """Wait a while until something holds; fail where it does not."""
    end = time.monotonic() + seconds_max
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def ask(server: ServerProcess, age: float) -> dict[str, object]:
    """Ask a query, which must be answered."""
    reply = httpx.post(f"{server.address}/query", json={"features": [age]}, timeout=60)
    assert reply.status_code == 200, reply.text
    answer: dict[str, object] = reply.json()
    return answer


def test_a_process_that_was_ended_is_replaced_and_nobody_sees_it(config: Path) -> None:
    """Ended while idle or by a signal to all, learners answer on; the opening tells of them."""
    with serving(config) as server:
        assert f"one learner after the other in each of {JOBS} processes" in server.errors()
        before = learner_processes(server)
        assert len(before) == JOBS
        assert ask(server, 80)["label"] == "yes"
        os.kill(min(before), signal.SIGKILL)
        wait_until(lambda: is_gone(min(before)))
        assert (ask(server, 20)["label"], ask(server, 20)["replayed"]) == ("no", True)
        after = learner_processes(server)
        assert max(before) in after
        assert len(after) == JOBS
        server.terminate()
        assert server.wait() == 0
        assert "Traceback" not in server.errors()


@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_server(config: Path, wish: signal.Signals) -> None:
    """Asked to end, the server ends in time and in silence; killed, its learners end too."""
    server = ServerProcess(config).wait_until_ready()
    ask(server, 80)
    learners, asked = learner_processes(server), time.monotonic()
    assert len(learners) == JOBS
    for pid in {*learners, server.pid} if wish is signal.SIGTERM else {server.pid}:
        os.kill(pid, wish)
    code = server.wait()
    if wish is signal.SIGTERM:
        assert code == 0
        assert time.monotonic() - asked < END_SECONDS_MAX
        assert "Traceback" not in server.errors()
        assert "resource_tracker" not in server.errors()
    wait_until(lambda: all(map(is_gone, learners)))


def test_a_server_that_is_ended_while_learners_are_fitted_does_not_wait_for_them(
    config: Path,
) -> None:
    """Neither for the forests that were begun nor for those that are due; they end as well."""
    forests = '"sklearn.ensemble.RandomForestClassifier"\nparams = { n_estimators = 300 }'
    slow = CONFIG.replace('"sklearn.naive_bayes.GaussianNB"', forests)
    config.write_text(slow + "query_seconds_max = 600\n")
    server = ServerProcess(config).wait_until_alive()
    wait_until(lambda: "answer_time_measured" in server.errors(), OPENING_SECONDS_MAX)
    wait_until(lambda: len(learner_processes(server)) == JOBS)
    time.sleep(FITTING_SECONDS)
    learners, asked = learner_processes(server), time.monotonic()
    server.terminate()
    assert server.wait() == 0
    assert time.monotonic() - asked < END_SECONDS
    assert "Traceback" not in server.errors()
    wait_until(lambda: all(map(is_gone, learners)))
