"""``conclave ledger copy``: three lines, an exit code, and one ledger that goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.engine import make_url

from app.cli import run
from app.ledger.ledger import open_ledger
from app.ledger.server_lock import take_server_lock
from tests.builders.ledger.postgresql_server import postgresql_server
from tests.builders.ledger.releases import answer, middle_of_life, open_release, record, tamper
from tests.unit.cli.test_verify_export import CONFIGURATION

if TYPE_CHECKING:
    from app.ledger.entries.chain import Head

HERE, THERE = "sqlite:///here.db", "sqlite:///there/there.db"
COPY = ["ledger", "copy", "--from", HERE, "--to", THERE]
HASH = "[0-9a-f]{64}"


@pytest.fixture(autouse=True)
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a ledger to the working directory; return its newest hash."""
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    ledger = middle_of_life(Path("here.db"))
    ledger.close()
    return head_of(HERE).hash


def head_of(url: str) -> Head:
    """Return the head of a ledger."""
    ledger = open_ledger(url, create=False)
    try:
        return ledger.read_state().head
    finally:
        ledger.close()


def test_a_copy_is_told_in_three_lines(head: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both heads, and where to serve from now on; the same command again says the same."""
    assert run(COPY) == 0
    told = capsys.readouterr()
    lines = (
        rf"copied: sequence 11, head ({HASH}), open: it goes on where the copy ended\n"
        rf"retired: sequence 10, head ({HASH})\n"
        r"serve from now on: there/there\.db\n"
    )
    matched = re.fullmatch(lines, told.out)
    assert (matched is not None, told.err) == (True, "")
    assert (head_of(THERE).hash, head_of(HERE).hash) == matched.groups() if matched else ()
    assert run(COPY) == 0
    assert capsys.readouterr() == told
    Path("conclave.toml").write_text(
        CONFIGURATION.replace("life.db", "there/there.db"), encoding="utf-8"
    )
    assert run(["verify", "--config", "conclave.toml", "--expect-head", head]) == 0


def test_both_heads_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    """The head files beside both say where each ends, so that neither is brought back older."""
    before = Path("here.db").read_bytes()
    assert run(COPY) == 0
    for url, path in ((HERE, Path("here.db.head")), (THERE, Path("there/there.db.head"))):
        (noted,) = json.loads(path.read_text(encoding="utf-8"))["releases"]
        assert noted["hash"] == head_of(url).hash
    for name in ("here.db", "here.db-wal", "here.db-shm"):
        Path(name).unlink(missing_ok=True)
    Path("here.db").write_bytes(before)
    capsys.readouterr()
    again = ["ledger", "copy", "--from", HERE, "--to", "sqlite:///again.db"]
    assert run(again) == 2
    said = capsys.readouterr().err
    assert "notes entry 10 of" in said
    assert said.count("\n") == 1
    assert not Path("again.db").exists()


def test_a_head_file_elsewhere_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """With --head-file the note is looked for, and kept, there."""
    assert run([*COPY, "--head-file", "nowhere/a.head"]) == 2
    assert "ledger.head_file: there is no folder" in capsys.readouterr().err
    assert run([*COPY, "--head-file", "noted.head"]) == 0
    assert Path("noted.head").exists()
    assert not Path("here.db.head").exists()


def test_a_ledger_that_is_served_is_not_moved(capsys: pytest.CaptureFixture[str]) -> None:
    """While a server has it open, nothing is made and nothing is retired."""
    lock = take_server_lock(HERE)
    assert run(COPY) == 2
    lock.release()
    said = capsys.readouterr().err
    assert said.startswith("conclave: --from: another server has ")
    assert list(Path("there").iterdir()) == []


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (["--from", HERE, "--to", HERE], 2, "--to: is the ledger that is to be copied"),
        (["--from", HERE, "--to", "mysql://h/d"], 2, "--to: a ledger is kept in"),
        (["--from", "sqlite:///absent.db", "--to", THERE], 2, "--from: there is no ledger at"),
        (["--from", HERE], 2, "Missing option"),
        (["--from", HERE, "--to", "sqlite:///no/where.db"], 2, "ledger.head_file: there is no"),
    ],
)
def test_bad_usage_is_one_line(
    command: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each problem names its option, and ends with 2."""
    assert run(["ledger", "copy", *command]) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert told in said


def test_a_ledger_that_does_not_verify_is_not_moved(capsys: pytest.CaptureFixture[str]) -> None:
    """What is damaged is told with exit code 1."""
    tamper(Path("here.db"), "DELETE FROM answers WHERE query_id = 9")
    assert run(COPY) == 1
    assert capsys.readouterr().err.endswith("is missing from the answers table\n")


def test_to_postgresql_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    """The two kinds of address, and a backup of either, by the commands alone."""
    with postgresql_server() as server:
        address = server.create_database()
        assert run(["ledger", "copy", "--from", HERE, "--to", address]) == 0
        assert capsys.readouterr().err == ""
        Path("shared.toml").write_text(
            CONFIGURATION.replace("sqlite:///life.db", address), encoding="utf-8"
        )
        assert run(["ledger", "backup", "--config", "shared.toml", "-o", "copy.db"]) == 0
        assert run(["verify", "--config", "shared.toml"]) == 0
        assert run(["ledger", "copy", "--from", address, "--to", THERE]) == 0
        restored = server.create_database()
        Path("restored.toml").write_text(
            CONFIGURATION.replace("sqlite:///life.db", restored), encoding="utf-8"
        )
        assert run(["ledger", "restore", "--config", "restored.toml", "copy.db"]) == 0
        assert "closed: recorded answers" in capsys.readouterr().out
        for each in (address, restored):
            server.drop_database(each)
    ledger = open_ledger(THERE, create=True)
    record(ledger, [answer(ledger, 10)])
    ledger.close()


def test_preparing_grants_what_a_server_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """The role reads and adds rows and may change none; it need not exist in a file."""
    with postgresql_server() as server:
        address = server.create_database()
        role = f"server_of_{make_url(address).database}"
        server.run(f"CREATE ROLE {role} LOGIN")
        Path("shared.toml").write_text(
            CONFIGURATION.replace("sqlite:///life.db", address), encoding="utf-8"
        )
        prepare = ["ledger", "prepare", "--config", "shared.toml", "--grant"]
        assert run([*prepare, role]) == 0
        assert run([*prepare, role]) == 0
        for refused in ("absent", 'x"; DROP TABLE answers'):
            capsys.readouterr()
            assert run([*prepare, refused]) == 2
            told = f'conclave: --grant: role "{refused}" does not exist\n'
            assert capsys.readouterr().err == told
        served = make_url(address).set(username=role).render_as_string(hide_password=False)
        ledger = open_ledger(served, create=True)
        open_release(ledger)
        record(ledger, [answer(ledger, 1)])
        ledger.close()
        server.drop_database(address)
        server.run(f"DROP ROLE {role}")
    Path("file.toml").write_text(CONFIGURATION, encoding="utf-8")
    assert run(["ledger", "prepare", "--config", "file.toml", "--grant", "anybody"]) == 2
    assert "a ledger in a file has no roles" in capsys.readouterr().err
