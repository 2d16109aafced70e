"""A ledger restored from an older copy is refused before anything is charged or served."""

from __future__ import annotations

import json
import shutil
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from app.cli import run
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.server.http_learning import learn
from tests.builders.server.http_release import SmallRelease, agreed
from tests.builders.server.nursery import started
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

NOTED_SECONDS_MAX = 60.0
REFUSED_SECONDS_MAX = 60.0


def head_file(release: SmallRelease) -> Path:
    """Return the head file beside a release's ledger."""
    return release.folder / "conclave.db.head"


def noted(file: Path) -> dict[str, Any]:
    """Return what a head file notes of the one release."""
    (head,) = json.loads(file.read_text(encoding="utf-8"))["releases"]
    return dict(head)


def serve_and_ask(
    release: SmallRelease, clients: Clients, times: int, *options: str
) -> dict[str, Any]:
    """Serve, ask new queries, end by SIGTERM; return the head by then."""
    with (
        serving(release.config, script=("-m", "app", "serve", *options)) as process,
        connect(process.address) as http,
    ):
        clients.repeat_all(process.address)
        for _ in range(times):
            clients.ask_new(http, agreed)
        head: dict[str, Any] = http.get("/ledger/head").json()
        process.terminate()
        assert process.wait() == 0
    return head


def refused(release: SmallRelease, log: Path, options: Sequence[str] = ()) -> str:
    """Return the last line of a server that must not start, after a check of what it left."""
    before = _entries(release)
    process = started(release.config, script=("-m", "app", "serve", *options), log=log)
    try:
        assert process.wait(REFUSED_SECONDS_MAX) == 2
    finally:
        process.kill()
    said = process.errors()
    assert "Traceback" not in said
    assert '"step"' not in said
    assert _entries(release) == before
    return said.splitlines()[-1].removeprefix("conclave: ")


def _entries(release: SmallRelease) -> bytes:
    """Return every byte of the database and its log."""
    log = release.folder / "conclave.db-wal"
    return release.ledger.read_bytes() + (log.read_bytes() if log.exists() else b"")


def restore(copy: Path, release: SmallRelease) -> None:
    """Put a database back as a careless operator does: whole, over the newer one."""
    for suffix in ("-wal", "-shm"):
        (release.folder / f"conclave.db{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, release.ledger)


def test_yesterdays_database_is_refused(
    opened: OpenedRelease, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copy, answer four more, stop, restore: by every command it is refused, by what is missing."""
    release = opened()
    clients = Clients()
    yesterday, newest = tmp_path / "yesterday.db", tmp_path / "newest.db"
    serve_and_ask(release, clients, 2)
    shutil.copy(release.ledger, yesterday)
    before = noted(head_file(release))
    head = serve_and_ask(release, clients, 4)
    assert noted(head_file(release)) == before | head | {"answered": 6}
    shutil.copy(release.ledger, newest)
    restore(yesterday, release)
    missing = "4 entries with 4 answers are missing"
    line = refused(release, tmp_path / "refused.log")
    assert line.startswith(f"ledger.head_file: {head_file(release)} notes entry {head['sequence']}")
    assert missing in line
    learner = learn(release)
    assert learner.returncode == 2
    assert missing in learner.stderr.decode()
    assert run(["verify", "--config", str(release.config)]) == 1
    assert missing in capsys.readouterr().err
    # Without the file, only who noted the head can tell.
    file = head_file(release).rename(tmp_path / "file")
    expected = ("--expect-head", head["hash"])
    assert refused(release, tmp_path / "refused.log", expected).startswith(
        "--expect-head: no entry has this hash"
    )
    file.rename(head_file(release))
    restore(newest, release)
    assert run(["verify", "--config", str(release.config)]) == 0
    serve_and_ask(release, clients, 1, *expected)
    assert check_ledger(release, clients).answered == 7


def test_a_copy_that_went_on_is_refused(opened: OpenedRelease, tmp_path: Path) -> None:
    """With as many answers of its own it is another history, and a lost ledger is no new one."""
    release = opened()
    fork = release.copy_to(tmp_path / "fork")
    serve_and_ask(release, Clients(), 2)
    serve_and_ask(fork, Clients(_numbers=count(100)), 3)  # other queries: another chain
    shutil.copy(head_file(release), head_file(fork))
    line = refused(fork, tmp_path / "refused.log")
    assert "has another entry of that number: it went on from an older copy" in line
    release.ledger.write_bytes(b"")
    assert "notes 2 answers of 'members'" in refused(release, tmp_path / "refused.log")


def test_a_head_file_that_cannot_be_written_stops_no_answer(
    opened: OpenedRelease, tmp_path: Path
) -> None:
    """One warning while its disk is gone, and it is written again when that is back."""
    release = opened()
    disk = tmp_path / "disk"
    disk.mkdir()
    file = disk / "ledger.head"
    environ = {"CONCLAVE_LEDGER__HEAD_FILE": str(file)}
    clients = Clients()
    with serving(release.config, environ=environ) as process, connect(process.address) as http:
        clients.ask_new(http, agreed)
        _wait_for_note(file, 1)
        disk.rename(tmp_path / "gone")
        for _ in range(3):
            assert clients.ask_new(http, agreed) is not None
        _wait_for(lambda: "head_file_not_written" in process.errors())
        time.sleep(2.5)  # two more tries, each a second after the other
        assert process.errors().count("head_file_not_written") == 1
        (tmp_path / "gone").rename(disk)
        _wait_for_note(file, 4)
        _wait_for(lambda: "head_file_written_again" in process.errors())
        said = process.errors()
    assert "no note of this release in" in said  # its path was changed; it went on
    assert str(disk) not in said.split("no note of this release in")[1].split("\n", 1)[1]
    assert said.count("head_file_written_again") == 1


def test_a_killed_server_is_at_most_ahead_of_its_file(opened: OpenedRelease) -> None:
    """A file that notes an earlier entry is no refusal, and is brought up to date at the start."""
    release = opened()
    clients = Clients()
    with serving(release.config) as process, connect(process.address) as http:
        clients.ask_new(http, agreed)
        _wait_for_note(head_file(release), 1)
        for _ in range(5):
            clients.ask_new(http, agreed)
        process.kill()
    assert 1 <= noted(head_file(release))["answered"] <= 6
    with serving(release.config) as process:
        _wait_for_note(head_file(release), 6)
        clients.repeat_all(process.address)
        assert "warning" not in process.errors()


def _wait_for_note(file: Path, answered: int) -> None:
    """Wait until a file notes so many answers."""
    _wait_for(lambda: file.exists() and noted(file)["answered"] == answered)


def _wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + NOTED_SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
