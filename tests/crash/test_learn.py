"""A process killed while it learns charges once, and whoever comes next draws under that charge."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.server.http_learning import learn, learned, public_points
from tests.builders.server.http_release import SmallRelease, agreed, agreed_label
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.entries.fold import LedgerState

pytestmark = pytest.mark.crash

OPENED = ["relabel", "answers"]
CHARGED = [*OPENED, "classifier"]


def killed_at(release: SmallRelease, point: str) -> LedgerState:
    """Let ``conclave learn`` die at a point; its ledger must verify."""
    ended = learn(release, script=("-m", "tests.builders.crash.killing_learn", "--at", point))
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b""), ended.stderr
    assert run(["verify", "--config", str(release.config)]) == 0
    return check_ledger(release, Clients())


def charged(state: LedgerState) -> list[str]:
    """Return the mechanisms that were charged, in order."""
    return [share.mechanism for share in state.charged]


@pytest.mark.parametrize(
    ("point", "shares"), [("opened", OPENED), ("charged", CHARGED), ("drawn", CHARGED)]
)
def test_what_was_charged_and_not_published_is_drawn_again(
    tmp_path: Path, point: str, shares: list[str]
) -> None:
    """The next try charges nothing twice, publishes, and a server serves its document."""
    release = SmallRelease(tmp_path).write()
    killed = killed_at(release, point)
    assert (charged(killed), killed.classifier) == (shares, None)
    document = learned(release, "--public", public_points(release))
    state = check_ledger(release, Clients())
    assert charged(state) == CHARGED
    assert state.release == killed.release
    with serving(release.config) as process, connect(process.address) as http:
        assert http.get("/classifier").content == document
    assert charged(check_ledger(release, Clients())) == CHARGED
    assert run(["verify", "--config", str(release.config)]) == 0


def test_a_server_draws_at_the_switch_what_a_killed_process_charged(tmp_path: Path) -> None:
    """The ensemble answers, and the switch draws under the charge that is there."""
    release = SmallRelease(tmp_path, {"answers": {"queries": "2"}}).write()
    killed_at(release, "drawn")
    clients = Clients()
    with serving(release.config) as process, connect(process.address) as http:
        for number in range(2):
            answer = clients.ask_new(http, agreed)
            assert answer is not None
            assert answer["label"] == agreed_label(number)
        answer = clients.ask_new(http, agreed)
        assert answer is not None
        assert answer["phase"] == "classifier"
    state = check_ledger(release, clients)
    assert charged(state) == CHARGED
    assert state.classifier is not None


def test_a_killed_descent_is_made_again_under_its_charge(tmp_path: Path) -> None:
    """Killed after all its noise was drawn: the charge stays as it was, delta included."""
    changes = {"classifier": {"learner": '"linear"'}, "privacy": {"accounting": '"sum"'}}
    release = SmallRelease(tmp_path, changes).write()
    killed = killed_at(release, "drawn")
    document = learned(release, "--public", public_points(release))
    state = check_ledger(release, Clients())
    assert (charged(killed), state.charged) == (CHARGED, killed.charged)
    assert state.classifier is not None
    assert state.classifier.classifier.encode() == document.rstrip(b"\n")


def test_a_document_that_was_not_written_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed between publication and output, it is published: not again, and not lost."""
    release = SmallRelease(tmp_path).write()
    published = killed_at(release, "published").classifier
    assert published is not None
    again = learn(release)
    assert (again.returncode, again.stdout) == (1, b"")
    assert b"published already" in again.stderr
    capsys.readouterr()
    assert run(["export", "--config", str(release.config), "--format", "json"]) == 0
    assert capsys.readouterr().out == published.classifier
