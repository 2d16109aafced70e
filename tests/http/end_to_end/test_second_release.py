"""Two releases in one database, by the commands and routes that an operator and clients use."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from app.errors import ConfigurationError, ReleaseMismatchError
from tests.builders.ledger.releases import tamper
from tests.builders.server.asking_statistics import COMMAND, question
from tests.builders.server.http_learning import learn, learned, public_points
from tests.builders.server.http_release import SmallRelease, agreed, agreed_label, split
from tests.builders.server.nursery import started
from tests.builders.server.serving import Served
from tests.docs.verify_exported_ledger import check

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

OPENED = 5  # entries of a release that has just opened
# Each release here promises epsilon 6 and delta 1e-12.
BOTH = ("12", "2e-12")
WANTED = (
    'release.name: no release "second" in the ledger, which holds "members" on the same rows; '
    "correct the name, or open a second release by stating in [privacy.composed] what all "
    "promise together: at least epsilon = 12, delta = 2e-12"
)
COME_TO = "the releases of this ledger come to"
HELD = 'with this one: "members" epsilon 6, delta 1e-12; state at least that'


@dataclass(frozen=True)
class FurtherRelease(SmallRelease):
    """A release in the database of another, on its rows, with a configuration beside its.

    Attributes:
        name: of the release.
        composed: epsilon and delta that it states, as TOML.

    """

    name: str = "second"
    composed: tuple[str, str] | None = None

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / f"{self.name}.toml"

    def text(self) -> str:
        """Return the configuration."""
        text = super().text().replace('name = "members"', f'name = "{self.name}"', 1)
        if self.composed is None:
            return text
        epsilon, delta = self.composed
        return f"{text}\n[privacy.composed]\nepsilon = {epsilon}\ndelta = {delta}\n"


def further(
    release: SmallRelease, composed: tuple[str, str] | None = BOTH, *, name: str = "second"
) -> FurtherRelease:
    """Write the configuration of a further release in a database, and return it."""
    other = FurtherRelease(release.folder, release.changes, name, composed)
    other.config.write_text(other.text(), encoding="utf-8")
    return other


def verified(release: SmallRelease, capsys: pytest.CaptureFixture[str]) -> str:
    """Verify by the command line, which must succeed, and return what it says."""
    capsys.readouterr()
    assert run(["verify", "--config", str(release.config)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("composed", "line"),
    [
        (None, WANTED),
        (
            ("11.999999999999", "2e-12"),
            f"privacy.composed.epsilon: is 11.999999999999, and {COME_TO} 12 {HELD}",
        ),
        (
            ("12", "1.999999999999e-12"),
            f"privacy.composed.delta: is 1.999999999999e-12, and {COME_TO} 2e-12 {HELD}",
        ),
    ],
)
def test_a_second_release_that_states_too_little_is_refused(
    opened: OpenedRelease, composed: tuple[str, str] | None, line: str
) -> None:
    """``serve`` ends with exit code 2 and one line; the first release goes on as it was."""
    first = opened()
    with (
        pytest.raises(ReleaseMismatchError) as refused,
        Served(further(first, composed).settings()),
    ):
        pass
    assert str(refused.value) == line
    with Served(first.settings()) as served:
        assert served.get("/ledger/head").json()["sequence"] == OPENED
        assert served.budget()["composed"] is None
        assert served.answer(agreed(0))["query_id"] == 1


def test_every_command_that_opens_refuses_in_one_line(opened: OpenedRelease) -> None:
    """``serve``, ``learn`` and ``statistics`` say the same, with exit code 2."""
    first = opened(shares={"relabel": "0.2", "classifier": "0.2", "statistics": "0.2"})
    second = further(first, None)
    process = started(second.config)
    points = public_points(first)
    for ended in (
        learn(second, "--public", points),
        learn(second, "--public", points, question(second), script=COMMAND),
    ):
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert ended.stderr.decode().splitlines()[-1] == f"conclave: {WANTED}"
    assert process.wait() == 2
    assert process.errors().splitlines()[1:] == [f"conclave: {WANTED}"]


@pytest.mark.parametrize("command", ["verify", "export"])
def test_what_only_reads_names_the_releases_that_are_there(
    opened: OpenedRelease, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped name ends a command that reads with exit code 2 and the right one."""
    arguments = [command, "--config", str(further(opened(), None, name="membres").config)]
    assert run(arguments + (["--format", "json"] if command == "export" else [])) == 2
    assert capsys.readouterr().err == (
        'conclave: release.name: no release "membres" in the ledger: "members"\n'
    )


def test_two_releases_answer_by_turns(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each numbers, counts, replays and shows what is its own, across restarts of both."""
    first, warnings = opened(), list[str]()
    second = further(first)
    with Served(first.settings()) as served:
        kept = [served.query(agreed(0), "key").json(), served.query(split(0)).json()]
        head = served.get("/ledger/head").json()
    with Served(second.settings(), warn=warnings.append) as served:
        # A vector and a key of the other release are new here, and so is a vector on a key.
        assert served.answer(agreed(1), "key")["query_id"] == 1
        assert served.answer(agreed(0))["replayed"] is False
        assert served.budget()["unstable"]["count"] == 0
        assert served.budget()["composed"] == {"epsilon": 12.0, "delta": 2e-12, "releases": 2}
        entries = served.get("/ledger?after=0&limit=1000").json()["entries"]
        assert "answered 2, unstable 0" in check(entries)
        assert entries[0]["body"]["name"] == "second"
        assert entries[0]["body"]["parameters"]["privacy.composed.epsilon"] == "12"
    (warning,) = [line for line in warnings if "share this ledger" in line]
    assert warning.endswith("they promise epsilon 12, delta 2e-12")
    with Served(first.settings()) as served:
        assert served.get("/ledger/head").json() == head
        again = [served.query(agreed(0), "key").json(), served.query(split(0)).json()]
        assert again == [{**answer, "replayed": True} for answer in kept]
        assert served.query(agreed(1), "key").status_code == HTTPStatus.CONFLICT
        assert served.answer(agreed(1)) == {
            "query_id": 3,
            "label": agreed_label(1),
            "stable": True,
            "phase": "ensemble",
            "replayed": False,
        }
        assert served.budget()["unstable"]["count"] == 1
        assert served.budget()["composed"] == {"epsilon": 12.0, "delta": 2e-12, "releases": 2}
        entries = served.get("/ledger?after=0&limit=1000").json()["entries"]
        assert "answered 3, unstable 1" in check(entries)
    with Served(second.settings()) as served:
        assert served.answer(agreed(0))["replayed"] is True
        assert served.answer(agreed(1), "key")["query_id"] == 1
    assert "answered 3, unstable 1" in verified(first, capsys)
    assert "answered 2, unstable 0" in verified(second, capsys)


def test_what_one_release_publishes_the_other_does_not(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    """A classifier learned in the second, beside a server of the first, is the second's alone."""
    first = opened()
    second = further(first)
    with Served(first.settings()):
        document = learned(second, "--public", public_points(first))
    assert run(["export", "--config", str(second.config), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(document)
    assert run(["export", "--config", str(first.config), "--format", "json"]) == 1
    with Served(first.settings()) as served:
        assert served.get("/classifier").status_code == HTTPStatus.NOT_FOUND
        assert served.answer(agreed(0))["phase"] == "ensemble"
        assert [charge["mechanism"] for charge in served.budget()["charged"]] == [
            "relabel",
            "answers",
        ]
    assert "charged epsilon 2.4," in verified(first, capsys)
    assert "charged epsilon 6," in verified(second, capsys)


def test_a_server_that_runs_shows_a_release_opened_beside_it(opened: OpenedRelease) -> None:
    """From its next answer on: what is promised about its people has grown."""
    first = opened()
    with Served(first.settings()) as served:
        assert served.budget()["composed"] is None
        learned(further(first), "--public", public_points(first))
        served.answer(agreed(0))
        assert served.budget()["composed"] == {"epsilon": 12.0, "delta": 2e-12, "releases": 2}


def test_of_two_further_releases_at_one_moment_one_opens(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two processes whose statements each cover one further release cannot both open theirs."""
    first = opened()
    both = [further(first, name=name) for name in ("left", "right")]
    points = public_points(first)
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(lambda release: learn(release, "--public", points), both))
    codes = [process.returncode for process in ended]
    refused = ended[codes.index(max(codes))].stderr.decode()
    if sorted(codes) == [0, 2]:
        assert f"is 12, and {COME_TO} 18 with this one" in refused
    else:  # it lost the race for the write lock, and is told to start again
        assert sorted(codes) == [0, 1]
    winner = both[codes.index(0)]
    assert "charged epsilon 6," in verified(winner, capsys)
    assert run(["verify", "--config", str(both[1 - codes.index(0)].config)]) == 2
    assert verified(first, capsys).startswith("verified: sequence 5,")


def test_releases_of_one_database_have_one_server_at_a_time(opened: OpenedRelease) -> None:
    """The lock is the database's: the second release is served when the first is not."""
    first = opened()
    second = further(first)
    with (
        Served(first.settings()),
        pytest.raises(ConfigurationError, match="another server has"),
        Served(second.settings()),
    ):
        pass
    with Served(second.settings()) as served:
        assert served.answer(agreed(0))["query_id"] == 1


def test_a_tampered_release_does_not_stop_the_other(opened: OpenedRelease) -> None:
    """What is altered in the second stops the second alone."""
    first = opened()
    second = further(first)
    for release in (first, second):
        with Served(release.settings()) as served:
            served.answer(agreed(0))
    tamper(
        first.ledger,
        "UPDATE private_state SET body = x'00' WHERE release_number = 2 AND name = 'ensemble'",
        "UPDATE answers SET label = 1 - label WHERE release_number = 2",
    )
    assert run(["verify", "--config", str(first.config)]) == 0
    assert run(["verify", "--config", str(second.config)]) == 1
    with Served(first.settings()) as served:
        assert served.answer(agreed(0))["replayed"] is True
