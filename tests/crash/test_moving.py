"""A ledger that is moved while it is asked, its mover killed at every step: one answers."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from app.ledger.ledger import open_ledger
from app.ledger.move_database import MoveStep, move
from app.ledger.verification import verify
from app.noise.system import SystemNoise
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease, agreed, split
from tests.builders.server.serving import Served
from tests.crash.replicas.test_replicas import shared_release, start

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.ledger.postgresql_server import PostgresqlServer
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

# A process of its own for every mover, which need not import everything anew.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["__main__", "tests.crash.test_moving"])
# Of a commit that is under way the outcome is the database's; these are the moments between.
BEFORE_RETIRED = (
    MoveStep.VERIFY,
    MoveStep.RESERVE,
    MoveStep.COPY,
    MoveStep.COMPARE,
    MoveStep.RETIRE,
)
SECONDS_MAX = 60


def kill_at(source: str, target: str, step: MoveStep) -> None:
    """Move a ledger in a process that is killed before a step."""
    process = CONTEXT.Process(target=_move_until, args=(source, target, step))
    process.start()
    process.join(SECONDS_MAX)
    assert process.exitcode == -signal.SIGKILL


def _move_until(source: str, target: str, step: MoveStep) -> None:
    def observe(reached: MoveStep) -> None:
        if reached is step:
            os.kill(os.getpid(), signal.SIGKILL)

    move(source, target, noise=SystemNoise(), observe=observe)


def is_open(url: str) -> bool:
    """Return whether a ledger that is one would answer afresh."""
    ledger = open_ledger(url, create=False)
    try:
        return verify(ledger).closed is None
    finally:
        ledger.close()


def test_servers_of_a_ledger_that_is_moved_away_answer_nothing_afresh(
    tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    """Two servers answer on until it is retired, and what they gave is repeated where it went."""
    address = postgresql.create_database()
    (tmp_path / "moved").mkdir()
    release, target = shared_release(tmp_path, address), tmp_path / "moved" / "conclave.db"
    clients = Clients()
    with ExitStack() as ending:
        servers = [start(release, name) for name in ("one", "two")]
        for server in servers:
            ending.callback(server.kill)
        for step in BEFORE_RETIRED:
            kill_at_and_ask(address, f"sqlite:///{target}", step, clients, servers)
        given = len(clients.seen)
        kill_at(address, f"sqlite:///{target}", MoveStep.GO_ON)
        for server in servers:
            with connect(server.address) as http:
                clients.ask_new(http, agreed)
            clients.repeat_all(server.address)
        assert clients.refused == [410, 410]
        move(address, f"sqlite:///{target}", noise=SystemNoise())
    assert (len(clients.seen), given) == (given, 2 * len(BEFORE_RETIRED))
    assert not is_open(address)
    moved = SmallRelease(tmp_path / "moved", {"answers": {"queries": "200", "cutoff": "5"}})
    moved.write(asked=Asked(20, 0))
    server = start(moved, "moved").wait_until_ready()
    clients.repeat_all(server.address)
    with connect(server.address) as http:
        assert clients.ask_new(http, agreed) is not None
    server.kill()
    assert check_ledger(moved, clients).answered == given + 1
    postgresql.drop_database(address)


def kill_at_and_ask(
    source: str, target: str, step: MoveStep, clients: Clients, servers: list[Any]
) -> None:
    """Let every server answer once after a mover was killed that had retired nothing."""
    addresses = [server.wait_until_ready().address for server in servers]
    kill_at(source, target, step)
    for address in addresses:
        with connect(address) as http:
            assert clients.ask_new(http, agreed) is not None


def test_a_mover_is_killed_at_every_step(
    opened: OpenedRelease, postgresql: PostgresqlServer
) -> None:
    """Out of SQLite it is open here until it is retired, then nowhere, and then there alone."""
    release, target = opened(), postgresql.create_database()
    source = release.settings().ledger_url
    for step in BEFORE_RETIRED:
        kill_at(source, target, step)
        assert is_open(source)
        if step is not BEFORE_RETIRED[0]:
            with pytest.raises(Exception, match=r"no ledger at|was being copied to"):
                is_open(target)
    kill_at(source, target, MoveStep.GO_ON)
    assert not is_open(source)
    kill_at(source, target, MoveStep.END)
    assert (is_open(source), is_open(target)) == (False, True)
    postgresql.drop_database(target)


CONFIGURATIONS: dict[str, dict[str, dict[str, str]]] = {
    "profile": {"answers": {"queries": "9", "after": '"classifier"'}},
    "svt": {
        "privacy": {"epsilon": "40", "delta": "1e-12", "calibration": '"svt"'},
        "answers": {"queries": "9", "cutoff": "9"},
    },
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(CONFIGURATIONS["svt"], id="svt"),
        pytest.param(CONFIGURATIONS["profile"], id="profile", marks=pytest.mark.long),
    ],
)
def test_a_release_is_the_same_wherever_it_is(
    opened: OpenedRelease, postgresql: PostgresqlServer, changes: dict[str, dict[str, str]]
) -> None:
    """Answers, keys, numbers and budget stay, over two moves and a switch between them."""
    # What is asked, and under which key, is drawn by a fixed seed: the claim holds of any.
    release, generator = opened(**changes), random.Random(9)
    places = [release.settings().ledger_url, postgresql.create_database()]
    places.append(f"sqlite:///{release.folder / 'back.db'}")
    asked: dict[int, tuple[dict[str, Any], str | None]] = {}
    budgets: list[dict[str, Any]] = []
    for before, place in zip([None, *places[:-1]], places, strict=True):
        if before is not None:
            move(before, place, noise=SystemNoise())
        with Served(release.settings({"CONCLAVE_LEDGER__URL": place})) as served:
            check_same(served, asked, budgets)
            for _ in range(generator.randint(5, 8)):
                number = generator.randrange(100)
                key = f"key-{number}" if generator.random() < 0.5 else None
                reply = served.query((split if number % 7 == 0 else agreed)(number), key)
                if reply.status_code == httpx.codes.OK and reply.json()["phase"] == "ensemble":
                    asked.setdefault(number, (reply.json(), key))
            budgets.append(served.budget())
    ledger = open_ledger(places[-1], create=False)
    assert verify(ledger).answered == budgets[-1]["queries"]["answered"] == len(asked)
    assert {budget["phase"] for budget in budgets} == {"ensemble", "classifier"}
    ledger.close()
    postgresql.drop_database(places[1])


def check_same(
    served: Served,
    asked: dict[int, tuple[dict[str, Any], str | None]],
    budgets: list[dict[str, Any]],
) -> None:
    """Check that a server says what the one before it said."""
    if budgets:
        now, before = served.budget(), budgets[-1]
        differing = {name for name in now if now[name] != before[name]}
        assert differing <= {"ledger"}
    for number, (answer, key) in asked.items():
        vector = (split if number % 7 == 0 else agreed)(number)
        if served.budget()["phase"] == "ensemble" or key is not None:
            assert served.answer(vector, key) == answer | {"replayed": True}
