"""``conclave ledger``: one line, an exit code, and no file but the one asked for."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from app.cli import ledger as ledger_commands
from app.cli import run
from app.ledger.head.replaced_file import ReplacedFile
from app.ledger.ledger import open_ledger
from app.ledger.server_lock import take_server_lock
from tests.builders.ledger.releases import answer, middle_of_life, record, tamper, url_of
from tests.unit.cli.test_verify_export import CONFIGURATION

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ledger.entries.fold import LedgerState


@pytest.fixture(name="head")
def live_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a configuration and its ledger to the working directory; return the newest hash."""
    monkeypatch.chdir(tmp_path)
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "conclave.toml").write_text(CONFIGURATION, encoding="utf-8")
    ledger = middle_of_life(tmp_path / "here" / "life.db")
    newest = ledger.read_state().head.hash
    ledger.close()
    return newest


def state_of(folder: str) -> LedgerState:
    """Return what the ledger of a folder says."""
    ledger = open_ledger(url_of(Path(folder) / "life.db"), create=False)
    try:
        return ledger.read_state()
    finally:
        ledger.close()


def test_a_backup_is_told_in_a_line_and_restored(
    head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Backup and restoring tell the head at which the copy was made, and what it serves."""
    assert run(["ledger", "backup", "--config", "here/conclave.toml", "-o", "copy.db"]) == 0
    assert capsys.readouterr() == (f"copied: sequence 9, head {head}\n", "")
    assert run(["ledger", "restore", "--config", "there/conclave.toml", "copy.db"]) == 0
    said = f"restored: sequence 9, head {head}, {ledger_commands.STAYS_CLOSED}\n"
    assert capsys.readouterr() == (said, "")
    assert state_of("there").closed is not None
    assert run(["verify", "--config", "there/conclave.toml", "--expect-head", head]) == 0
    assert capsys.readouterr().out.endswith(", closed: backup\n")


def test_a_lost_ledger_goes_on_at_its_newest_head(
    head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the head that was noted the copy goes on; with any other nothing is put there."""
    run(["ledger", "backup", "--config", "here/conclave.toml", "-o", "copy.db"])
    restore = ["ledger", "restore", "copy.db", "--config", "there/conclave.toml", "--expect-head"]
    assert run([*restore, "ab" * 32]) == 1
    assert not Path("there/life.db").exists()
    capsys.readouterr()
    assert run([*restore, head]) == 0
    said = f"restored: sequence 9, head {head}, {ledger_commands.GOES_ON}\n"
    assert capsys.readouterr() == (said, "")
    assert state_of("there").closed is None


def test_a_retired_ledger_moves_by_the_code_that_is_told(
    head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Retire, copy, restore: three commands, and the other ledger goes on with the next number."""
    assert run(["ledger", "retire", "--move", "--config", "here/conclave.toml"]) == 0
    said = capsys.readouterr().out
    told = re.fullmatch(r"retired: sequence 10, head ([0-9a-f]{64})\ncode: ([0-9a-f]{64})\n", said)
    assert told is not None
    assert run(["ledger", "backup", "--config", "here/conclave.toml", "-o", "copy.db"]) == 0
    restore = ["ledger", "restore", "--config", "there/conclave.toml", "copy.db", "--code"]
    assert run([*restore, head]) == 1
    assert run([*restore, told[2]]) == 0
    assert run(["verify", "--config", "there/conclave.toml", "--expect-head", head]) == 0
    moved = open_ledger(url_of(Path("there/life.db")), create=True)
    record(moved, [answer(moved, 10)])
    moved.close()


def test_retiring_for_good_tells_no_code(head: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without ``--move`` one line is told, and a second retirement is refused."""
    retire = ["ledger", "retire", "--config", "here/conclave.toml"]
    assert run(retire) == 0
    told = capsys.readouterr().out
    assert told == f"retired: sequence 10, head {state_of('here').head.hash}\n"
    assert head not in told
    assert run(["verify", "--config", "here/conclave.toml", "--expect-head", head]) == 0
    assert capsys.readouterr().out.endswith(", closed: retired\n")
    assert run(retire) == 1
    said = "conclave: the ledger is closed already, by entry 10 (retired)\n"
    assert capsys.readouterr() == ("", said)


@pytest.mark.usefixtures("head")
def test_a_ledger_that_is_served_is_not_retired(capsys: pytest.CaptureFixture[str]) -> None:
    """While a server has it open, retiring is refused in a line and nothing is written."""
    lock = take_server_lock(url_of(Path("here/life.db")))
    assert run(["ledger", "retire", "--config", "here/conclave.toml"]) == 2
    lock.release()
    assert "another server has" in capsys.readouterr().err
    assert state_of("here").closed is None


def _refuses(*_: object, **__: object) -> bool:
    return False


def _interrupts(*_: object, **__: object) -> bool:
    raise typer.Abort


def test_nothing_is_restored_under_a_server(head: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A server whose file was moved away still has the ledger, and answers from it."""
    assert run(["ledger", "backup", "--config", "here/conclave.toml", "-o", "copy.db"]) == 0
    place = Path("here") / "life.db"
    lock = take_server_lock(url_of(place))
    place.rename("lost.db")
    restore = ["ledger", "restore", "--config", "here/conclave.toml", "copy.db"]
    capsys.readouterr()
    assert run([*restore, "--expect-head", head]) == 2
    assert "another server has" in capsys.readouterr().err
    assert not place.exists()
    lock.release()
    assert run([*restore, "--expect-head", head]) == 0


@pytest.mark.usefixtures("head")
@pytest.mark.parametrize("answered", [_refuses, _interrupts])
def test_whoever_sits_at_a_terminal_is_asked(
    answered: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At a terminal the name is asked back, and anything but yes retires nothing."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", answered)
    assert run(["ledger", "retire", "--config", "here/conclave.toml"]) == 1
    assert capsys.readouterr() == ("", "conclave: nothing was retired\n")
    assert state_of("here").closed is None


@pytest.mark.parametrize("command", [["backup", "-o", "copy.db"], ["retire"]])
@pytest.mark.usefixtures("head")
def test_a_ledger_that_is_not_there_is_not_made(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A configuration without a ledger is told, and has none afterwards."""
    assert run(["ledger", *command, "--config", "there/conclave.toml"]) == 2
    assert "ledger.url: there is no ledger at" in capsys.readouterr().err
    assert [each.name for each in Path("there").iterdir()] == ["conclave.toml"]


@pytest.mark.usefixtures("head")
def test_a_ledger_that_does_not_verify_is_not_copied(capsys: pytest.CaptureFixture[str]) -> None:
    """A tampered ledger is told in a line, and no copy is left."""
    tamper(Path("here/life.db"), "DELETE FROM answers WHERE query_id = 9")
    assert run(["ledger", "backup", "--config", "here/conclave.toml", "-o", "copy.db"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("conclave: answer 9 ")
    assert said.endswith("is missing from the answers table\n")
    assert not Path("copy.db").exists()


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (["--code", "ab", "--expect-head", "cd"], "--code"),
        (["--url"], "No such option"),
        ([], "ledger.url"),
    ],
)
@pytest.mark.usefixtures("head")
def test_bad_usage_is_one_line(
    options: list[str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options that exclude each other, unknown ones and a copy that is not there end with 2."""
    command = ["ledger", "restore", "--config", "there/conclave.toml", "absent.db"]
    assert run([*command, *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert key in said


@pytest.mark.usefixtures("head")
def test_a_retirement_is_noted_outside_the_ledger() -> None:
    """A copy made by hand before it is behind the head file, although nothing was answered."""
    here = Path("here")
    body = (here / "life.db").read_bytes()
    assert run(["ledger", "retire", "--config", "here/conclave.toml"]) == 0
    (noted,) = json.loads((here / "life.db.head").read_text(encoding="utf-8"))["releases"]
    assert (noted["sequence"], noted["hash"]) == (10, state_of("here").head.hash)
    (here / "life.db").write_bytes(body)
    assert run(["verify", "--config", "here/conclave.toml"]) == 1


@pytest.mark.usefixtures("head")
def test_a_ledger_that_is_behind_may_be_retired(capsys: pytest.CaptureFixture[str]) -> None:
    """An older copy that was brought back is ended with a warning, and its file is left alone."""
    here = Path("here")
    older = (here / "life.db").read_bytes()
    assert run(["ledger", "retire", "--config", "here/conclave.toml"]) == 0
    noted = (here / "life.db.head").read_bytes()
    (here / "life.db").write_bytes(older)
    capsys.readouterr()
    assert run(["ledger", "retire", "--move", "--config", "here/conclave.toml"]) == 0
    assert "conclave: warning: ledger.head_file: " in capsys.readouterr().err
    assert (here / "life.db.head").read_bytes() == noted


@pytest.mark.usefixtures("head")
def test_a_head_file_on_a_full_disk_undoes_no_retirement(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be noted is one warning; the ledger is retired, and says so."""

    def full(self: ReplacedFile, body: bytes, folder: int) -> None:
        del self, body, folder
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ReplacedFile, "replace", full)
    assert run(["ledger", "retire", "--config", "here/conclave.toml"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("retired: sequence 10")
    assert printed.err == (
        f"conclave: warning: {Path('here').resolve() / 'life.db.head'} is not written: "
        "No space left on device\n"
    )
    assert state_of("here").closed is not None
