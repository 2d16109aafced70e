"""One server a ledger: a second is refused, a killed one leaves nothing behind."""

from __future__ import annotations

import multiprocessing
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.crash.opening_at_once import RACE_SECONDS_MAX, RACES, open_in_turn
from tests.builders.server.http_learning import learned
from tests.builders.server.http_release import SmallRelease, agreed
from tests.builders.server.nursery import started
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

PROCESSES = 4


def refused(config: Path, beside: Path) -> str:
    """Return the last line of a server that must not start, and which listens elsewhere."""
    process = started(config, log=beside)
    assert process.wait() == 2
    return process.errors().splitlines()[-1]


def test_a_second_server_is_refused_until_the_first_is_killed(
    opened: OpenedRelease, tmp_path: Path
) -> None:
    """By its own path or by a link the second ends with 2; after a SIGKILL it goes on."""
    release = opened()
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in ("conclave.toml", "members.csv"):
        shutil.copy(release.folder / name, linked)
    (linked / "conclave.db").symlink_to(release.ledger)
    clients = Clients()
    with serving(release.config) as process, connect(process.address) as http:
        clients.ask_new(http, agreed)
        for config in (release.config, linked / "conclave.toml"):
            line = refused(config, tmp_path / "second.log")
            assert line.startswith(
                f"conclave: ledger.url: another server has {release.ledger} open"
            )
        clients.ask_new(http, agreed)
        process.kill()
    with serving(linked / "conclave.toml") as process, connect(process.address) as http:
        clients.repeat_all(process.address)
        clients.ask_new(http, agreed)
    assert check_ledger(release, clients).answered == 3
    assert run(["verify", "--config", str(release.config)]) == 0


def test_a_server_and_a_learner_open_one_release(tmp_path: Path) -> None:
    """Started at once on a ledger that is yet to be made, they open it once, and both go on."""
    release = SmallRelease(tmp_path).write()
    clients = Clients()
    with ThreadPoolExecutor(1) as pool:
        learning = pool.submit(learned, release)
        with serving(release.config) as process, connect(process.address) as http:
            document = learning.result(timeout=120)
            clients.ask_new(http, agreed)
            assert http.get("/classifier").content == document
    state = check_ledger(release, clients)
    assert [share.mechanism for share in state.charged] == ["relabel", "answers", "classifier"]
    assert (state.answered, state.reserved) == (1, ())
    assert run(["verify", "--config", str(release.config)]) == 0


def test_whoever_creates_the_database_creates_it_for_all(tmp_path: Path) -> None:
    """Processes that find no database, all at once, end up with one that has one secret."""
    context = multiprocessing.get_context("spawn")
    start, said = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=open_in_turn, args=(tmp_path, start, said), daemon=True)
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    secrets = [said.get(timeout=RACE_SECONDS_MAX) for _ in processes]
    for process in processes:
        process.join()
    assert all(each == secrets[0] for each in secrets)
    assert len(set(secrets[0])) == RACES
