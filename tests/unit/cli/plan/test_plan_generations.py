"""``conclave plan --generations``: a table, a document, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from tests.unit.cli.plan.test_command import CONFIGURATION, plan

if TYPE_CHECKING:
    from pathlib import Path

LIVING = CONFIGURATION.replace(
    "[privacy]\n",
    '[answers]\nafter = "halt"\non_cutoff = "halt"\n'
    "[privacy.shares]\nrelabel = 0.1\nanswers = 0.9\nclassifier = 0\n[generations]\n[privacy]\n",
)


@pytest.fixture(name="living")
def living_file(tmp_path: Path) -> Path:
    """A release that grows, whose data do not exist."""
    path = tmp_path / "conclave.toml"
    path.write_text(LIVING)
    return path


def test_the_quorum_is_advised(living: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The demand is the one given, or answers.queries; the exit code says whether it is met."""
    assert run(plan("--config", str(living), "--generations", "--demand", "10", "--json")) == 0
    found = json.loads(capsys.readouterr().out)["generations"]
    assert (found["demand"], found["quorum"], found["cutoff"]) == (10, 1, 5)
    assert run(plan("--config", str(living), "--generations")) == 0
    assert "1,000 answers for every generation" in capsys.readouterr().out
    far = ["--demand", "1" + "0" * 17]
    assert run(plan("--config", str(living), "--generations", *far)) == 1
    assert "Quorum: none" in capsys.readouterr().out


def test_a_growing_release_is_not_advised_to_learn(
    living: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes no ``conclave learn``; the same release without generations is advised to."""
    for text, takes in ((LIVING, False), (LIVING.replace("[generations]\n", ""), True)):
        living.write_text(text)
        assert run(plan("--config", str(living))) == 0
        assert ("conclave learn" in capsys.readouterr().out) is takes
        assert run(plan("--config", str(living), "--json")) == 0
        recommended = json.loads(capsys.readouterr().out)["recommendation"]
        assert recommended["publish_at_once"] is takes
        assert (recommended["classifier_learner"] is not None) is takes
        assert run(plan("--config", str(living), "--verbose")) == 0
        assert ("takes no conclave learn" in capsys.readouterr().out) is not takes


@pytest.mark.parametrize(("learner", "steps"), [("linear", 30), ("kernel", 32)])
def test_what_a_generation_publishes_is_told(
    living: Path, capsys: pytest.CaptureFixture[str], learner: str, steps: int
) -> None:
    """Its steps and its charge, where the classifier has a share; null and no line without one."""
    options = ("--config", str(living), "--generations", "--demand", "10")
    assert run(plan(*options, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["generations"]["published"] is None
    shares = f"answers = 0.3\nclassifier = 0.6\n[classifier]\nlearner = '{learner}'\n"
    living.write_text(LIVING.replace("answers = 0.9\nclassifier = 0\n", shares))
    assert run(plan(*options, "--json")) == 0
    part = json.loads(capsys.readouterr().out)["generations"]["published"]
    assert part["steps"] == steps
    assert 0 < part["smallest_share"] < 0.1
    assert run(plan(*options)) == 0
    line = f"Published: each generation adds {steps} steps on its own rows"
    assert line in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "options", "line"),
    [
        ({}, ["--demand", "5"], "--demand: goes with --generations"),
        ({"[generations]\n": ""}, ["--generations"], "needs a section [generations]"),
        ({"rows = 20000\n": ""}, ["--generations"], "the number of rows is not given"),
    ],
)
def test_what_cannot_be_told_is_refused(
    changes: dict[str, str],
    options: list[str],
    line: str,
    living: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line names the option or the section."""
    text = LIVING
    for old, new in changes.items():
        text = text.replace(old, new)
    living.write_text(text)
    assert run(plan("--config", str(living), *options)) == 2
    assert line in capsys.readouterr().err


def test_a_generation_of_persons_is_planned_by_their_number(
    living: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of as many rows, and it says which."""
    told = []
    for named in ("rows = 20000\n", 'person = "who"\npersons = 20000\n'):
        living.write_text(LIVING.replace("rows = 20000\n", named))
        options = ("--config", str(living), "--generations", "--demand", "10")
        assert run(plan(*options, "--json")) == 0
        told.append(json.loads(capsys.readouterr().out)["generations"])
    units = [(each.pop("unit"), each.pop("size")) for each in told]
    assert units == [("row", 20_000), ("person", 20_000)]
    assert told[0] == told[1]
    assert run(plan(*options)) == 0
    assert "10 answers for every generation of 20,000 persons" in capsys.readouterr().out
