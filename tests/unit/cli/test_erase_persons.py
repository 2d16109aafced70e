"""``append``, ``erase`` and ``correct`` where persons are named: receipts, and lines of refusal."""

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

GROWING = (
    CONFIGURATION.replace('label = "answer"', 'label = "answer"\nperson = "who"\npersons = 60')
    .replace(
        "[privacy]\n",
        "[generations]\n[privacy]\nshares = { relabel = 0.1, answers = 0.9, classifier = 0 }\n",
    )
    .replace("[answers]\n", '[answers]\nafter = "halt"\non_cutoff = "halt"\n')
)


def write_rows(path: Path, *people: str) -> str:
    """Write three rows a person, in turn, with margins of both signs."""
    lines = ["who,margin,group,answer"]
    for turn in range(3):
        for place, person in enumerate(people):
            margin = (place * 7 + turn) % 60 - 30 + 0.25
            lines.append(f"{person},{margin},a,{'yes' if margin >= 0 else 'no'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def some(prefix: str, count: int) -> list[str]:
    """Return so many persons."""
    return [f"{prefix}{number}" for number in range(count)]


@pytest.fixture(name="config")
def growing_release(tmp_path: Path) -> Path:
    """A release that grows, opened on sixty persons ``a0`` to ``a59``."""
    path = tmp_path / "conclave.toml"
    path.write_text(GROWING, encoding="utf-8")
    write_rows(tmp_path / "rows.csv", *some("a", 60))
    settings = load_settings(path, {})
    open_from_settings(settings, noise=SystemNoise(), even_if_hopeless=True).ledger.close()
    return path


def test_persons_are_appended_forgotten_and_corrected(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a batch came to is said on the operator's terminal; the public count is of persons."""
    given, further = ["--config", str(config)], config.with_name("further.csv")
    assert run(["append", *given, write_rows(further, *some("b", 20), "a1", "a2")]) == 0
    told = capsys.readouterr().out
    assert "generation 2 is appended; it joins at the second tick from now\n" in told
    assert "rows of 2 known persons go into their slots at the next tick\n" in told
    assert run(["append", *given, write_rows(further, "a1", "b3")]) == 0
    assert "nobody in it is new: no generation is appended, and nothing" in capsys.readouterr().out
    assert run(["generations", *given]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["number", "persons"],
        ["1", "60"],
        ["2", "20"],
    ]
    assert run(["erase", *given, "--person", "a1"]) == 0
    assert "1 person to be forgotten at the next tick; " in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("a3\nnobody\na1\n"))
    assert run(["erase", *given, "--from", "-", "--now"]) == 1
    told_both = capsys.readouterr()
    assert "1 person forgotten; the ledger's head before: " in told_both.out
    assert "no person is known by the identifier in place 2" in told_both.err
    assert run(["correct", *given, write_rows(further, "a4", "b5"), "--now"]) == 0
    assert "2 persons corrected; " in capsys.readouterr().out
    assert run(["append", *given, write_rows(further, *some("c", 20), "a3")]) == 2
    assert "row 21 names a person who was forgotten" in capsys.readouterr().err
    assert run(["verify", *given]) == 0
    assert run(["statement", *given]) == 0
    stated = " ".join(capsys.readouterr().out.split())
    assert "A person lies in one generation, that of the first record, with all that come" in stated


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["erase", "--id", "a1"], "data.id: names no column"),
        (["append", "few.csv"], "SOURCE: has 2 new persons, and answers.ensemble makes 5 learners"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    arguments: list[str],
    line: str,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 2, and nothing changes."""
    monkeypatch.chdir(config.parent)
    write_rows(config.with_name("few.csv"), "c1", "c2", "a1")
    assert run([arguments[0], "--config", str(config), *arguments[1:]]) == 2
    assert line in capsys.readouterr().err
