"""Every command of the page on operations is run, in its order, on a real release."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from typing import TYPE_CHECKING

import httpx
import pytest

from app import cli
from app.errors import ReleaseMismatchError
from app.release.views.budget import budget_view
from app.settings.settings import load_settings
from tests.builders.ledger.postgresql_server import postgresql_server
from tests.builders.release.small_release import SmallRelease as ChosenRelease
from tests.builders.server.http_release import SmallRelease, agreed
from tests.builders.server.server_process import serving
from tests.builders.server.serving import Served
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE = ROOT / "docs" / "operations.md"
SEVERAL = "Several releases on the same rows"
SECTIONS = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
CONFIGURATIONS = ("restored.toml", "elsewhere.toml")


def blocks(section: str, language: str) -> list[str]:
    """Return the blocks of a section that are in a language."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(section: str) -> list[str]:
    """Return the commands of a section, in their order."""
    return re.findall(r"^\$ (.+)$", "".join(blocks(section, "console")), re.MULTILINE)


class Operator:
    """Somebody who works through the page in a folder of releases.

    Attributes:
        release: whose ledger it is; asked once before the page begins.
        said: what each command printed.
        given: the answers of the servers that a command started.

    """

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Open a release, ask it once, and write the other configurations of the page."""
        self.release = SmallRelease(folder).write()
        self.said: list[str] = []
        self.given: list[dict[str, object]] = []
        self._capsys = capsys
        with Served(self.release.settings()) as served:
            self.first = served.answer(agreed(1))
        text = self.release.config.read_text(encoding="utf-8")
        for name in CONFIGURATIONS:
            own = f'\n[ledger]\nurl = "sqlite:///{name}.db"\n'
            (folder / name).write_text(text + own, encoding="utf-8")

    def lose(self) -> None:
        """Move the ledger away, the files beside it included."""
        lost = self.release.folder / "lost"
        lost.mkdir()
        for path in self.release.folder.glob("conclave.db*"):
            shutil.move(path, lost)

    def follow(self, command: str) -> None:
        """Run one command, which must end well."""
        for placeholder, pattern in (("HASH", r"head ([0-9a-f]{64})"), ("CODE", r"code: (\w+)")):
            if placeholder in command:
                command = command.replace(placeholder, re.findall(pattern, "".join(self.said))[0])
        words = shlex.split(command)
        assert words[0] == "conclave"
        if words[1] == "serve":
            self._serve(words[-1], words[2:-2])
            return
        self._capsys.readouterr()
        assert cli.run(words[1:]) == 0, self._capsys.readouterr()
        self.said.append(self._capsys.readouterr().out)

    def ask(self, config: str) -> None:
        """Ask what is recorded and what is not of a server in this process."""
        with Served(load_settings(self.release.folder / config, {})) as served:
            for number in (1, 2):
                reply = served.query(agreed(number))
                self.given.append({"status": reply.status_code, **reply.json()})

    def _serve(self, config: str, options: Sequence[str]) -> None:
        """Start a server as the page says, ask what is recorded and what is not, and end it."""
        path = self.release.folder / config
        with serving(path, script=("-m", "app", "serve", *options)) as server:
            for number in (1, 2):
                body = {"features": agreed(number)}
                reply = httpx.post(f"{server.address}/query", json=body, timeout=60)
                self.given.append({"status": reply.status_code, **reply.json()})


@pytest.fixture(name="operator")
def operator_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Operator:
    """Return an operator who works where the configurations are."""
    monkeypatch.chdir(tmp_path)
    return Operator(tmp_path, capsys)


def test_a_backup_is_made_and_restored_as_the_page_says(operator: Operator) -> None:
    """The backup is restored elsewhere, closed, and in its ledger's place once that is lost."""
    operator.follow(*commands("Backing up"))
    *elsewhere, going_on = commands("Restoring")
    for command in elsewhere:
        operator.follow(command)
    assert "closed: recorded answers are given again" in operator.said[1]
    operator.lose()
    operator.follow(going_on)
    assert operator.said[-1].endswith("open: it goes on where the copy ended\n")
    operator.ask("restored.toml")
    operator.ask("conclave.toml")
    repeated = {"status": 200, **operator.first, "replayed": True}
    closed, refused, again, fresh = operator.given
    assert (closed, again) == (repeated, repeated)
    assert (refused["status"], fresh["status"], fresh["query_id"]) == (410, 200, 2)


def test_a_release_is_moved_as_the_page_says(operator: Operator) -> None:
    """After the move it goes on there with the next number, and never where it was."""
    for command in commands("Moving a release to another machine"):
        operator.follow(command)
    operator.ask("conclave.toml")
    repeated = {"status": 200, **operator.first, "replayed": True}
    there, fresh, here, refused = operator.given
    assert (there, here) == (repeated, repeated)
    assert (fresh["status"], fresh["query_id"], refused["status"]) == (200, 2, 410)


def test_a_ledger_is_moved_to_another_database_as_the_page_says(operator: Operator) -> None:
    """One command, the page's but for the address; it is served there, and retired here."""
    (command,) = commands("Moving a ledger to another database")
    with postgresql_server() as server:
        address = server.create_database()
        operator.follow(re.sub(r"postgresql\S+", address, command))
        told = [re.sub(r"\W.*", "", line) for line in operator.said[-1].splitlines()]
        (shown,) = blocks("Moving a ledger to another database", "console")
        assert told == [re.sub(r"\W.*", "", line) for line in shown.splitlines()[1:]]
        settings = operator.release.settings({"CONCLAVE_LEDGER__URL": address})
        with Served(settings) as served:
            assert served.answer(agreed(1)) == {**operator.first, "replayed": True}
            assert served.answer(agreed(2))["query_id"] == 2
        server.drop_database(address)
    operator.ask("conclave.toml")
    assert [given["status"] for given in operator.given] == [200, 410]


def test_a_release_is_retired_as_the_page_says(operator: Operator) -> None:
    """After its end it repeats what it recorded and answers nothing new."""
    operator.follow(*commands("Retiring a release"))
    operator.ask("conclave.toml")
    repeated, refused = operator.given
    assert repeated == {"status": 200, **operator.first, "replayed": True}
    assert refused["status"] == 410


def test_a_noted_head_is_checked_as_the_page_says(operator: Operator) -> None:
    """A ledger that has the head verifies and goes on."""
    with Served(operator.release.settings()) as served:
        operator.said.append("head " + served.get("/ledger/head").json()["hash"])
    for command in commands("The head, and who watches it"):
        operator.follow(command)
    assert operator.said[-1].startswith("verified: ")
    assert [given["status"] for given in operator.given] == [200, 200]


def test_every_command_of_the_page_is_run() -> None:
    """No section but those above has commands of these, so that none goes unrun."""
    run = {
        "Backing up",
        "Restoring",
        "Moving a release to another machine",
        "Moving a ledger to another database",
        "Retiring a release",
        "The head, and who watches it",
    }
    assert {section for section in SECTIONS if commands(section)} == run


def test_a_second_release_is_refused_and_opened_as_the_page_says(tmp_path: Path) -> None:
    """The line is the one printed, and the tables of the page are what it asks for."""
    (table,) = blocks(SEVERAL, "toml")
    (line,) = blocks(SEVERAL, "text")
    given = tomllib.loads(table, parse_float=str)
    budget = {f"privacy__{name}": given["privacy"][name] for name in ("epsilon", "delta")}
    small = ChosenRelease(tmp_path, {"release__name": "adult-income", **budget})
    small.open().ledger.close()
    second = ChosenRelease(tmp_path, {"release__name": given["release"]["name"], **budget})
    with pytest.raises(ReleaseMismatchError) as refused:
        second.open()
    assert line == f"conclave: {refused.value}\n"
    composed = given["privacy"]["composed"]
    stated = {f"privacy__composed__{name}": text for name, text in composed.items()}
    opened = ChosenRelease(tmp_path, {**second.changes, **stated}).open()
    assert budget_view(opened).model_dump()["composed"] == {
        "epsilon": 2.0,
        "delta": 2e-6,
        "releases": 2,
    }
    opened.ledger.close()
