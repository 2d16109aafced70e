"""``conclave erase`` and ``conclave correct``: receipts, exit codes, and one line for a refusal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from tests.builders.release.small_release import CONFIGURATION

if TYPE_CHECKING:
    from pathlib import Path

GROWING = CONFIGURATION.replace('label = "answer"', 'label = "answer"\nid = "record"').replace(
    "[privacy]\n",
    "[generations]\n[privacy]\nshares = { relabel = 0.1, answers = 0.9, classifier = 0 }\n",
)


def write_rows(path: Path, prefix: str, *, flipped: bool = False) -> None:
    """Write sixty rows, each with an identifier."""
    lines = ["record,margin,group,answer"]
    for index in range(60):
        margin = (index - 30) * (-1 if flipped else 1) + 0.25
        lines.append(f"{prefix}{index},{margin},a,{'yes' if margin >= 0 else 'no'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(name="config")
def growing_release(tmp_path: Path) -> Path:
    """A release that grows, opened on sixty records ``a0`` to ``a59``."""
    path = tmp_path / "conclave.toml"
    text = GROWING.replace("[answers]\n", '[answers]\nafter = "halt"\non_cutoff = "halt"\n')
    path.write_text(text, encoding="utf-8")
    write_rows(tmp_path / "rows.csv", "a")
    release = open_from_settings(
        load_settings(path, {}), noise=SystemNoise(), even_if_hopeless=True
    )
    release.ledger.close()
    return path


def test_records_are_forgotten_at_the_next_tick_or_at_once(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receipt names the head, or both heads; what is not known is named by its place."""
    given = ["--config", str(config)]
    assert run(["erase", *given, "--id", "a1"]) == 0
    assert "1 record to be forgotten at the next tick; the ledger's head now: " in _out(capsys)
    names = config.with_name("names.txt")
    names.write_text("a2\nnobody\na3\n", encoding="utf-8")
    assert run(["erase", *given, "--from", str(names), "--now"]) == 1
    told = capsys.readouterr()
    assert "2 records forgotten; the ledger's head before: " in told.out
    assert told.err == "conclave: no record is known by the identifier in place 2\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("a1\n"))
    assert run(["erase", *given, "--from", "-"]) == 1
    assert "place 1" in capsys.readouterr().err
    # A tick comes of a record that nobody has too: else it would tell who is known.
    assert run(["erase", *given, "--id", "nobody", "--now"]) == 1
    assert "0 records forgotten; the ledger's head before: " in _out(capsys)
    assert run(["verify", *given]) == 0


def test_identifiers_of_a_file_are_the_cells_of_a_source(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mark before the first is no part of it, and a cell ends where a line of a CSV does."""
    names = config.with_name("names.txt")
    names.write_text("\ufeffa2\r\na3\u2028a4\r\n", encoding="utf-8")
    assert run(["erase", "--config", str(config), "--from", str(names)]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("1 record to be forgotten")
    assert told.err == "conclave: no record is known by the identifier in place 2\n"


def test_records_are_corrected_by_a_file(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of known identifiers replace them; a row that does not fit changes nothing."""
    rows = config.with_name("corrected.csv")
    write_rows(rows, "a", flipped=True)
    given = ["--config", str(config)]
    assert run(["correct", *given, str(rows), "--now"]) == 0
    assert "60 records corrected; " in _out(capsys)
    rows.write_text("record,margin,group,answer\na1,x,a,yes\n", encoding="utf-8")
    assert run(["correct", *given, str(rows)]) == 2
    assert "row 1" in capsys.readouterr().err
    rows.write_text("record,margin,group,answer\nb1,1,a,yes\n", encoding="utf-8")
    assert run(["correct", *given, str(rows)]) == 1
    write_rows(rows, "a", flipped=True)
    assert run(["append", *given, str(rows)]) == 2
    assert "row 1 names a record that generation 1 holds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], "erase: takes one of --id ID, --person ID and --from FILE"),
        (["--id", "a1", "--from", "x"], "erase: takes one of"),
        (["--person", "a1"], "data.person: names no column, so that nobody is known"),
        (["--from", "absent.txt"], "--from: cannot read absent.txt"),
    ],
)
def test_bad_usage_is_refused(
    options: list[str], line: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2."""
    assert run(["erase", "--config", str(config), *options]) == 2
    assert line in capsys.readouterr().err


def test_two_rows_of_one_identifier_are_refused(tmp_path: Path, config: Path) -> None:
    """A record has one row; of two with its name the second is complained of by its number."""
    rows = tmp_path / "twice.csv"
    rows.write_text("record,margin,group,answer\nb1,1,a,yes\nb1,2,a,yes\n", encoding="utf-8")
    assert run(["append", "--config", str(config), str(rows)]) == 2


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[generations]\n", "", "data.id: is for a release with [generations]"),
        ('id = "record"', 'id = "margin"', "data.id: is the label or a feature too"),
    ],
)
def test_a_column_of_identifiers_is_checked(
    old: str, new: str, line: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no feature and no label, and only releases that grow have one."""
    config.write_text(config.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert run(["erase", "--config", str(config), "--id", "a1"]) == 2
    assert line in capsys.readouterr().err


def _out(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out
