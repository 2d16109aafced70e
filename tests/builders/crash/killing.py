"""Serve until a chosen point, die there, and check what is left."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from app.cli import run
from tests.builders.crash.clients import check_ledger
from tests.builders.crash.marks import Marks
from tests.builders.server.http_release import agreed, split
from tests.builders.server.nursery import ForkedServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.builders.crash.clients import Clients, Vectors
    from tests.builders.release.parts_release import PartsRelease
    from tests.builders.server.server_process import ServerProcess
from tests.builders.server.http_release import SmallRelease

THREE_CLIENTS = (agreed, agreed, split)


def marks_of(release: SmallRelease | PartsRelease) -> Marks:
    """Return the marks that the servers of a release share with their killers."""
    return Marks(release.folder / "marks")


def start_to_kill_at(
    release: SmallRelease | PartsRelease, point: str, *, plant: Sequence[str] = ()
) -> ServerProcess:
    """Start a server that dies at ``point``; its steps count once ``arm`` was called."""
    marks_of(release).clear()
    marks = str(release.folder / "marks")
    order = {"serve": str(release.config), "at": point, "marks": marks, "plant": [*plant]}
    return ForkedServer(release.config, order=order)


def arm(release: SmallRelease) -> None:
    """Let the steps of a server to be killed count from now on."""
    marks_of(release).arm()


def kill_at(
    release: SmallRelease,
    point: str,
    clients: Clients,
    *,
    vectors: Sequence[Vectors] = THREE_CLIENTS,
) -> None:
    """Let one client a vector ask until the server dies at ``point``; check what it left."""
    process = start_to_kill_at(release, point).wait_until_ready()
    clients.repeat_all(process.address)
    arm(release)
    clients.ask_until_the_end(process.address, vectors)
    check_killed(release, process, clients)


def check_killed(release: SmallRelease, process: ServerProcess, clients: Clients) -> None:
    """Check that the process died as it was meant to, and that its ledger is whole."""
    assert process.wait() == -signal.SIGKILL, process.errors()
    assert run(["verify", "--config", str(release.config)]) == 0
    check_ledger(release, clients)
