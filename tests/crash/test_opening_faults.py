"""What an opening or a draw could not write is one line, and the next try charges it once."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.crash.killing import start_to_kill_at
from tests.builders.crash.killing_server import NOWHERE
from tests.builders.crash.near_the_limit import BLOCK_BYTES, FIT_ROOM
from tests.builders.server.http_learning import learn, learned
from tests.builders.server.http_release import SmallRelease, agreed, private_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.crash

OPENED = ["relabel", "answers"]
LIMITED = ("-m", "tests.builders.crash.limited")
# What this release's write-ahead log has come to when its tables are there: 49,472 bytes;
# when its shares are charged: 70,072; when its ensemble is there: 127,752.
SERVE_BYTES = {"no file": 1, "the tables": 20_000, "the charge": 60_000, "the ensemble": 100_000}
# The same where `conclave learn` charges and publishes, which draws no ensemble.
LEARN_BYTES = [
    pytest.param(20_000, marks=pytest.mark.long, id="the tables"),
    pytest.param(60_000, marks=pytest.mark.long, id="the opening"),
    pytest.param(72_000, id="the charge"),
]
SERVE_AND_LEARN = ["serve", pytest.param("learn", marks=pytest.mark.long)]


def refused(release: SmallRelease, *script: str, environ: Mapping[str, str] | None = None) -> str:
    """Run a command that must end in one line, after what it tells, and return the line."""
    ended = learn(release, script=script, environ=environ)
    assert ended.returncode in (1, 2)
    assert ended.stdout == b"" or script[-1] == "serve"
    *_, line = ended.stderr.decode().splitlines()
    assert line.startswith("conclave: ")
    assert b"Traceback" not in ended.stderr
    return line


def serve_and_answer(release: SmallRelease) -> None:
    """Serve without a fault; the release answers, and its shares are charged once."""
    clients = Clients()
    process = start_to_kill_at(release, NOWHERE).wait_until_ready()
    with connect(process.address) as http:
        assert clients.ask_new(http, agreed) is not None
    process.kill()
    state = check_ledger(release, clients)
    assert [share.mechanism for share in state.charged] == OPENED
    assert run(["verify", "--config", str(release.config)]) == 0


@pytest.mark.parametrize("stage", SERVE_BYTES)
def test_a_disk_that_fills_up_in_an_opening_costs_nothing_twice(tmp_path: Path, stage: str) -> None:
    """The start ends in one line; with room again, the release opens under one charge."""
    release = SmallRelease(tmp_path).write()
    line = refused(release, *LIMITED, "--bytes", str(SERVE_BYTES[stage]), "serve")
    assert "disk I/O error" in line or "the ledger took no entry" in line
    serve_and_answer(release)


def test_memory_that_runs_out_in_an_opening_costs_nothing_twice(tmp_path: Path) -> None:
    """Learners that take more address space than there is end the start in one plain line."""
    changes = {
        "learner": {"estimator": '"tests.builders.crash.near_the_limit:Hoarder"'},
        # So few votes decide nothing but a noisy vote, which nothing calls hopeless.
        "answers": {"ensemble": "40", "mechanism": '"noisy-vote"'},
    }
    release = SmallRelease(tmp_path, changes).write(private_rows())
    room = {FIT_ROOM: str(4 * BLOCK_BYTES)}
    line = refused(release, *LIMITED, "--bytes", str(1 << 40), "serve", environ=room)
    assert line.startswith("conclave: the machine refused memory, a file, a thread")
    serve_and_answer(release)


@pytest.mark.parametrize("size", LEARN_BYTES)
def test_a_disk_that_fills_up_in_a_draw_costs_nothing_twice(tmp_path: Path, size: int) -> None:
    """``conclave learn`` publishes nothing and says so; the next publishes under one charge."""
    release = SmallRelease(tmp_path).write()
    refused(release, *LIMITED, "--bytes", str(size), "learn")
    learned(release)
    charged = [share.mechanism for share in check_ledger(release, Clients()).charged]
    assert charged == [*OPENED, "classifier"]


@pytest.mark.parametrize("command", SERVE_AND_LEARN)
def test_a_ledger_that_is_locked_ends_a_start(tmp_path: Path, command: str) -> None:
    """While another process holds the database nothing starts; then it does, as if never tried."""
    release = SmallRelease(tmp_path).write()
    serve_and_answer(release)
    with closing(sqlite3.connect(release.ledger, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert "database is locked" in refused(release, "-m", "app", command)
        assert run(["verify", "--config", str(release.config)]) == 0
    serve_and_answer(release)


@pytest.mark.parametrize("command", SERVE_AND_LEARN)
def test_a_ledger_that_may_not_be_written_ends_a_start(tmp_path: Path, command: str) -> None:
    """Its modes refuse even root without powers: one line; it is still verified and exported."""
    release = SmallRelease(tmp_path / "release")
    release.folder.mkdir()
    learned(release.write())
    with read_only(release.folder):
        line = refused(release, *LIMITED, "--powerless", "0", command)
        assert "Permission denied" in line
        for reading in (["verify"], ["export", "--format", "json"]):
            ended = learn(release, script=(*LIMITED, "--powerless", "0", *reading))
            assert ended.returncode == 0, ended.stderr


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Take every right to write from a folder and its files."""
    modes = {path: path.stat().st_mode for path in (*folder.iterdir(), folder)}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    yield
    for path, mode in modes.items():
        path.chmod(mode)
