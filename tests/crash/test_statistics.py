"""A process killed while it opens a statistics table charges once, and publishes one table."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import httpx
import pytest

from app.cli import run
from tests.builders.crash.clients import Clients, check_ledger
from tests.builders.crash.killing import check_killed, start_to_kill_at
from tests.builders.server.asking_statistics import SHARES, asked, question
from tests.builders.server.http_learning import learn, public_points
from tests.builders.server.http_release import SmallRelease, agreed
from tests.http.end_to_end.publishing.test_statistics import opened_table, post, served

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.entries.fold import LedgerState
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

OPENED = ["relabel", "answers"]
CHARGED = [*OPENED, "statistics"]


def charged(state: LedgerState) -> list[str]:
    """Return the mechanisms that were charged, in order."""
    return [share.mechanism for share in state.charged]


def killed_at(release: SmallRelease, point: str) -> LedgerState:
    """Let ``conclave statistics`` die at a point; its ledger must verify."""
    script = ("-m", "tests.builders.crash.killing_statistics", "--at", point)
    points = ("--public", public_points(release))
    ended = learn(release, *points, question(release), script=script)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b""), ended.stderr
    assert run(["verify", "--config", str(release.config)]) == 0
    return check_ledger(release, Clients())


@pytest.mark.parametrize(
    ("point", "shares"), [("opened", OPENED), ("charged", CHARGED), ("drawn", CHARGED)]
)
def test_what_was_charged_and_not_published_is_drawn_again(
    tmp_path: Path, point: str, shares: list[str]
) -> None:
    """The next try charges nothing twice, and everybody gets the table that it published."""
    release = SmallRelease(tmp_path, {"shares": SHARES}).write()
    killed = killed_at(release, point)
    assert (charged(killed), killed.statistics) == (shares, None)
    answer = asked(release, "--public", public_points(release))
    assert charged(check_ledger(release, Clients())) == CHARGED
    assert asked(release) == answer


def test_a_published_table_outlives_its_process(tmp_path: Path) -> None:
    """Killed before the values are written, it answers the next time without a draw."""
    release = SmallRelease(tmp_path, {"shares": SHARES}).write()
    published = killed_at(release, "published")
    assert published.statistics is not None
    asked(release)
    assert check_ledger(release, Clients()).head == published.head


@pytest.mark.parametrize("point", ["statistics:charged", "statistics:drawn"])
def test_a_server_that_was_killed_draws_again_at_its_start(
    opened: OpenedRelease, point: str
) -> None:
    """After the last answer the next start opens the table at once, under one charge."""
    release = opened(shares=SHARES, answers={"queries": "3", "after": '"halt"'})
    clients = Clients()
    process = start_to_kill_at(release, point).wait_until_ready()
    with httpx.Client(base_url=process.address, timeout=60.0) as http:
        for _ in range(3):
            clients.ask_new(http, agreed)
    check_killed(release, process, clients)
    killed = check_ledger(release, clients)
    assert (charged(killed), killed.statistics) == (CHARGED, None)
    with served(release) as http:
        answer = opened_table(http)
        clients.repeat_all(str(http.base_url))
    restarted = check_ledger(release, clients)
    assert charged(restarted) == CHARGED
    with served(release) as http:
        assert post(http).json() == answer
    assert check_ledger(release, clients).head == restarted.head


def test_what_was_charged_before_waits_for_the_last_answer(opened: OpenedRelease) -> None:
    """Killed before its publication, and a server has answered since: not now, but at the end."""
    release = opened(shares=SHARES, answers={"queries": "3", "after": '"halt"'})
    killed_at(release, "drawn")
    clients = Clients()
    with served(release) as http:
        clients.ask_new(http, agreed)
        ended = learn(release, question(release), script=("-m", "app", "statistics"))
        assert ended.returncode == 1
        assert post(http).status_code == 409
        clients.ask_new(http, agreed)
        clients.ask_new(http, agreed)
        opened_table(http)
    assert charged(check_ledger(release, clients)) == CHARGED
