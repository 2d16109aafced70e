"""``conclave simulate``: what it reads, what it prints, what it refuses."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from app.cli import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIGURATION = """
[data]
classes = ["no", "maybe", "yes"]
[privacy]
epsilon = 1
[answers]
cutoff = 2
"""
# Unanimous votes of so many learners are never a hit, to one in 10^11.
UNANIMOUS = "2000,0,0"
SPLIT = "700,700,600"


def simulate(folder: Path, votes: bytes, *options: str) -> int:
    """Run the command on a minimal configuration and a file of votes."""
    config, path = folder / "conclave.toml", folder / "votes.csv"
    config.write_text(CONFIGURATION, encoding="utf-8")
    path.write_bytes(votes)
    arguments = ["simulate", "--config", str(config), "--votes", str(path), "--trials", "3"]
    return run([*arguments, *options])


@pytest.mark.parametrize(
    "votes",
    [
        f"{UNANIMOUS}\n0,2000,0\n0,0,2000\n".encode(),
        f"\ufeff{UNANIMOUS}\r\n0, 2000, 0\r\n\r\n0,0,2000".encode(),
    ],
    ids=["plain", "as a spreadsheet saves it"],
)
def test_prints_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], votes: bytes
) -> None:
    """Only classes, privacy and answers are needed; stdout holds the outcomes and no more."""
    assert simulate(tmp_path, votes, "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"trials": 3, "outcomes": {"0,1,2": 3}}
    assert printed.err == ""


def test_shows_a_table_to_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without ``--json`` an outcome is a row with its share."""
    assert simulate(tmp_path, f"{UNANIMOUS}\n{SPLIT}\n{SPLIT}\n{UNANIMOUS}\n".encode()) == 0
    assert "0,-,-,. │ 3     │ 1.000000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("votes", "problem"),
    [
        (b"", "{path} has no line"),
        (b"1,2\n", "line 1 has 2 columns, there are 3 classes"),
        (b"1,2,3\n1,2,4\n", "line 2 sums to 7, line 1 to 6: both are k"),
        (b"\n1,2,3\n\n1,2,4\n", "line 4 sums to 7, line 2 to 6: both are k"),
        (b"0,0,0\n", "line 1 sums to 0: there is no vote"),
        (b"1,2,3\n-1,4,3\n", "line 2 has a cell that is no vote count"),
        (b"1,2,0.5\n", "line 1 has a cell that is no vote count"),
        (b"a,b,c\n", "line 1 has a cell that is no vote count"),
        (b"9" * 5000 + b",0,0\n", "line 1 has a cell that is no vote count"),
        (b"\xff,1,2\n", "cannot read {path}"),
    ],
    ids=lambda part: str(part)[:20],
)
def test_bad_votes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], votes: bytes, problem: str
) -> None:
    """A file that holds no vote counts is refused by its line."""
    assert simulate(tmp_path, votes, "--json") == 2
    printed = capsys.readouterr()
    line = problem.format(path=tmp_path / "votes.csv")
    assert (printed.out, printed.err) == ("", f"conclave: --votes: {line}\n")


def test_an_absent_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Votes that are not there are named."""
    config = tmp_path / "conclave.toml"
    config.write_text(CONFIGURATION, encoding="utf-8")
    absent = str(tmp_path / "absent.csv")
    arguments = ["simulate", "--config", str(config), "--votes", absent, "--trials", "1"]
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"conclave: --votes: cannot read {absent}\n"


def test_says_how_many_steps_a_second_it_takes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    """The promise is 100,000 steps a second; it is stated in the report and fails no run."""
    lines, trials = 1000, 200
    config, path = tmp_path / "conclave.toml", tmp_path / "votes.csv"
    config.write_text(CONFIGURATION, encoding="utf-8")
    path.write_text(f"{UNANIMOUS}\n" * lines, encoding="utf-8")
    arguments = ["simulate", "--config", str(config), "--votes", str(path), "--json"]
    started = time.perf_counter()
    assert run([*arguments, "--trials", "1"]) == 0
    opened = time.perf_counter()
    assert run([*arguments, "--trials", str(trials)]) == 0
    taken = time.perf_counter() - opened - (opened - started)
    capsys.readouterr()
    record_property("steps_per_second", round(lines * trials / max(taken, 1e-9)))


def test_scores_are_not_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Votes say nothing of scores: one line names the setting."""
    text = CONFIGURATION.replace('"maybe", ', "") + 'output = "score"\n'
    config, votes = tmp_path / "scores.toml", tmp_path / "votes.csv"
    config.write_text(text, encoding="utf-8")
    votes.write_text("3,4\n", encoding="utf-8")
    arguments = ["--config", str(config), "--votes", str(votes), "--trials", "1"]
    assert run(["simulate", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("conclave: answers.output: ")
    assert error.count("\n") == 1
