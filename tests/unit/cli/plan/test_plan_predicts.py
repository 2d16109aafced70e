"""``conclave plan`` tried out on made-up people: predictions, recommendations, refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from tests.unit.cli.plan.test_command import CONFIGURATION, plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="configuration")
def configuration_file(tmp_path: Path) -> Path:
    """A configuration whose data do not exist."""
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION)
    return path


def test_a_plan_predicts_and_recommends(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels, the cliff and a recommendation are in the document, by shares and by points."""
    public = tmp_path / "public.csv"
    public.write_text("x\n" + "".join(f"{index / 100}\n" for index in range(100)))
    for options, people in (([], "shares"), (["--public", str(public)], "points")):
        assert run(plan("--config", str(configuration), *options, "--json")) == 0
        document = json.loads(capsys.readouterr().out)
        found, best = document["prediction"], document["recommendation"]
        assert (found["people"], found["hypotheses"]) == (people, 2)
        assert 0 < found["labels_low"] <= found["labels"] <= found["labels_high"] <= document["m"]
        assert set(found["by_mechanism"]) == {*document["votes_needed"], "paper"}
        assert best["publish_at_once"] is True
        assert best["labels"] >= 0.9 * found["labels"]
        assert document["unpredicted"] is None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PRIVACY__SHARES", '{"relabel": 0, "answers": 1, "classifier": 0}', "no share"),
        ("ANSWERS__OUTPUT", "score", "only labels"),
        ("LEARNER__ESTIMATOR", "sklearn.naive_bayes.GaussianNB", "nobody knows how long"),
    ],
)
def test_what_cannot_be_predicted_is_said(
    name: str,
    value: str,
    reason: str,
    configuration: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan without a prediction says why, and one that was not asked for says nothing."""
    monkeypatch.setenv(f"CONCLAVE_{name}", value)
    if value.startswith("{"):
        monkeypatch.setenv("CONCLAVE_ANSWERS__AFTER", "halt")
    for options, told in (([], True), (["--populations", "0"], False)):
        assert run(plan("--config", str(configuration), *options, "--json")) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["prediction"] is None
        assert document["recommendation"] is None
        assert document["cliff"] is None
        assert (reason in (document["unpredicted"] or "")) is told


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--populations", "-1"], "--populations: must be a whole number of at least 1"),
        (["--populations", "1001"], "--populations: must be at most 1000"),
        (["--public", "absent.csv"], "--public: cannot read absent.csv: no such file or directory"),
    ],
)
def test_bad_ways_of_trying_out_are_refused(
    options: list[str], line: str, configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the option, and nothing else is printed."""
    assert run(plan("--config", str(configuration), *options)) == 2
    assert capsys.readouterr().err.endswith(f"conclave: {line}\n")
