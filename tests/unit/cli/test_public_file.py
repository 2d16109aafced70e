"""A public file that is the private one is refused by each command, and nothing is charged."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.cli import logs, run
from app.ledger.ledger import open_ledger

if TYPE_CHECKING:
    from pathlib import Path

HEADER = ("age", "region", "outcome")
TREE = {"tree": {"feature": 0, "at_least": 54, "true": {"label": "yes"}, "false": {"label": "no"}}}
SHARES = '{"relabel": 0.1, "answers": 0.3, "classifier": 0.3, "statistics": 0.3}'


@pytest.fixture(autouse=True)
def _logs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are configured once for a whole process, which here runs other tests too."""
    monkeypatch.setattr(logs, "configure_logs", lambda: None)


@pytest.fixture
def folder(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the example of own data, as docs/start.md says, and 3,000 records."""
    shutil.copy(repository / "examples" / "own-data.toml", tmp_path / "conclave.toml")
    monkeypatch.setenv("CONCLAVE_PRIVACY__SHARES", SHARES)
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(7)
    ages = generator.integers(18, 91, 3000).tolist()
    regions = generator.choice(["north", "south", "east", "west"], len(ages)).tolist()
    rows = [(age, region, "no") for age, region in zip(ages, regions, strict=True)]
    with (tmp_path / "records.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    (tmp_path / "hypotheses.json").write_text(json.dumps({"hypotheses": [TREE]}))
    return tmp_path


def refusal(command: str, public: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command on a public file that it refuses, and return the one line."""
    asked = ["hypotheses.json"] if command == "statistics" else []
    assert run([command, *asked, "--config", "conclave.toml", "--public", public]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = [line for line in printed.err.splitlines() if line]
    return line


def entry_count(folder: Path) -> int:
    """Return how many entries the folder's ledger has."""
    if not (folder / "conclave.db").exists():
        return 0
    ledger = open_ledger(f"sqlite:///{folder / 'conclave.db'}", create=False)
    try:
        return ledger.read_state().head.sequence
    finally:
        ledger.close()


@pytest.mark.parametrize("command", ["plan", "learn", "statistics"])
def test_one_file_for_both_is_refused(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The private file as the public one, by its name or a link, opens nothing."""
    (folder / "public.csv").symlink_to("records.csv")
    for name in ("records.csv", "public.csv"):
        line = refusal(command, name, capsys)
        assert line.startswith(f"conclave: --public: {name} is data.source itself; ")
    assert not (folder / "conclave.db").exists()


@pytest.mark.parametrize("command", ["learn", "statistics"])
def test_a_copy_of_the_source_is_refused(
    command: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bytes, also where the source is their compressed form, and its first half."""
    whole = (folder / "records.csv").read_text()
    (folder / "public.csv").write_text(whole)
    says = "conclave: --public: has the rows of data.source; "
    assert refusal(command, "public.csv", capsys).startswith(says)
    (folder / "records.csv.gz").write_bytes(gzip.compress(whole.encode()))
    monkeypatch.setenv("CONCLAVE_DATA__SOURCE", "records.csv.gz")
    assert refusal(command, "records.csv", capsys).startswith(says)
    (folder / "public.csv").write_text("".join(whole.splitlines(keepends=True)[:1501]))
    says = "conclave: --public: half of its rows or more are rows of data.source, in its order; "
    assert refusal(command, "public.csv", capsys).startswith(says)
    assert entry_count(folder) == 0


def test_equal_points_are_told_on_the_terminal_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The share is in no document and no entry of the ledger."""
    (folder / "public.csv").write_text("age,region\n17,north\n20,abroad\n40,south\n")
    asked = ["learn", "--config", "conclave.toml", "--public", "public.csv"]
    assert run([*asked, "--even-if-hopeless"]) == 0
    printed = capsys.readouterr()
    assert "conclave: 66.7% of the public points have the features of a record; " in printed.err
    assert "66.7" not in printed.out
    for path in folder.glob("conclave.db*"):
        assert b"66.7" not in path.read_bytes()
    assert entry_count(folder) > 0
