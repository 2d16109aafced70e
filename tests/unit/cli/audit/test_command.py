"""``conclave audit``: what it prints, how it ends, and that no record is read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.auditing import audit as auditing
from app.auditing.event_bounds import Bound
from app.auditing.hypothesis_draws import audit_draws
from app.cli import run
from app.cli.audit import audited_releases
from tests.audit.planted.planted_servers import counter_lost_at_restart
from tests.audit.planted.planted_systems import with_printed_gap

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURATION = """
[data]
classes = ["no", "yes"]
source = "nowhere/at-all.csv"
[privacy]
epsilon = 4
delta = 1e-3
{privacy}
[answers]
cutoff = 2
queries = 40
{answers}
"""
KINDS = {
    "profile": ("", "stability test of calibration profile"),
    "svt": ('calibration = "svt"', "sparse vector of one threshold"),
    "noisy": ("", "noisy vote of two labels"),
}
CLAIMS = {"profile": 4.0, "svt": 2.4, "noisy": 4.0}
"""Of the answers: their share, or the whole account that they are in."""


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw so few answers that a test takes a second; what is exact stays whole."""
    monkeypatch.setattr(auditing, "STEPS_QUICK", 20_000)
    monkeypatch.setattr(auditing, "STEPS_LONG", 20_000)
    monkeypatch.setattr(audited_releases, "RUNS_QUICK", 0)
    monkeypatch.setattr(audited_releases, "RUNS_LONG", 0)


def audit(folder: Path, kind: str, *options: str) -> int:
    """Run the command on a configuration whose records do not exist."""
    config = folder / "conclave.toml"
    answers = 'mechanism = "noisy-vote"' if kind == "noisy" else ""
    config.write_text(CONFIGURATION.format(privacy=KINDS[kind][0], answers=answers), "utf-8")
    return run(["audit", "--config", str(config), *options])


@pytest.mark.parametrize("kind", KINDS)
def test_the_document_has_claim_bounds_and_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Stdout is one document: the claim, both bounds, what sampling can see and how surely."""
    assert audit(tmp_path, kind, "--quick", "--json") == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == ""
    assert document["holds"] is True
    assert document["mechanism"] == KINDS[kind][1]
    claim = CLAIMS[kind]
    assert document["claim"] == {"epsilon": claim, "delta": pytest.approx(0.001, rel=1e-5)}
    assert 0 < document["exact"]["epsilon"] <= claim
    assert 0 < document["exact"]["share_of_claim"] <= 1
    sampled = document["sampled"]
    assert 0 <= sampled["epsilon"] <= claim < 2 * sampled["largest_shown"]
    assert sampled["false_alarm_probability"] == 1e-6
    assert sampled["runs"] >= 200
    assert max(one["epsilon"] for one in sampled["adversaries"]) == sampled["epsilon"]
    assert document["broken_conditions"] == []


def test_people_get_a_table_and_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``--json`` each adversary is a row, and the last line is the verdict."""
    assert audit(tmp_path, "profile") == 0
    printed = capsys.readouterr().out
    assert "stability test of calibration profile: epsilon 4, delta 0.001" in printed
    assert "exactly: " in printed
    assert "sampled: one vote decides" in printed
    assert printed.endswith("The claim holds.\n")


def test_a_fault_ends_with_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mechanism with the printed gap exceeds the claim, is called so, and exit is 1."""
    real = auditing.audited_answers
    monkeypatch.setattr(auditing, "audited_answers", lambda given: with_printed_gap(real(given)))
    assert audit(tmp_path, "profile", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["holds"] is False
    assert document["exact"]["epsilon"] > document["claim"]["epsilon"]
    assert "one record moves a distance by 1 at most" in document["broken_conditions"]
    assert audit(tmp_path, "profile") == 1
    printed = capsys.readouterr().out
    assert "Broken: one record moves a distance by 1 at most." in printed
    assert printed.endswith("THE CLAIM IS EXCEEDED.\n")


def test_what_leaves_without_noise_has_no_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An infinite bound is null in the document and a word in the table."""
    monkeypatch.setattr(auditing, "exact_bound", lambda _: Bound(float("inf"), "any"))
    assert audit(tmp_path, "profile", "--json") == 1
    exact = json.loads(capsys.readouterr().out)["exact"]
    assert exact == {"epsilon": None, "share_of_claim": None, "adversary": "any"}
    assert audit(tmp_path, "profile") == 1
    assert "unbounded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("privacy", "answers"),
    [
        ('calibration = "profile"', 'queries = 1, cutoff = 1, unstable = "coin"'),
        ('calibration = "profile"', "queries = 2, cutoff = 3"),
        ('calibration = "svt"', 'queries = 1, cutoff = 1, unstable = "coin"'),
        ('calibration = "svt"', "queries = 2, cutoff = 2"),
        ('calibration = "svt"', "queries = 200, cutoff = 120"),
        ("", 'mechanism = "noisy-vote", queries = 1'),
        ("", 'mechanism = "noisy-vote", queries = 3'),
    ],
)
def test_limits_coins_and_three_classes_are_audited(
    tmp_path: Path, privacy: str, answers: str
) -> None:
    """An unstable answer's coin, a limit below the cutoff and many hits break no audit."""
    config = tmp_path / "conclave.toml"
    text = f"""
    data.classes = ["a", "b", "c"]
    privacy = {{epsilon = 4, delta = 1e-3, {privacy}}}
    answers = {{{answers}}}
    """.replace(", }", "}")
    config.write_text(text, "utf-8")
    assert run(["audit", "--config", str(config), "--quick", "--json"]) == 0


def test_whole_releases_are_run_over_http(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--http`` adds what releases told, what they could have told, and their promises."""
    assert audit(tmp_path, "profile", "--http", "12", "--json") == 0
    told = json.loads(capsys.readouterr().out)["http"]
    assert told["holds"] is True
    assert told["claim"] == {"epsilon": 4, "delta": 1e-3}
    assert told["runs"] == 12
    assert told["tested_on_each_side"] == 1
    assert told["detection_limit"] is None
    assert told["largest_shown"] == 0
    assert told["false_alarm_probability"] == 1e-6
    assert told["broken_promises"] == {}
    assert [pair["epsilon"] for pair in told["pairs"]] == [0, 0, 0]


def test_a_promise_that_whole_releases_break_ends_with_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a restart forgets is counted, said in words, and refutes the claim."""
    counter_lost_at_restart(monkeypatch)
    assert audit(tmp_path, "profile", "--http", "12") == 1
    printed = capsys.readouterr().out
    assert "over HTTP, one vote decides the" in printed
    assert "12 whole releases ran over HTTP, each with a restart" in " ".join(printed.split())
    assert "releases: no answer is unstable beyond the cutoff, across restarts." in printed
    assert printed.endswith("THE CLAIM IS EXCEEDED.\n")


def test_calibration_paper_is_not_run_over_http(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its chunks need more rows than can be run often, and the document says that none ran."""
    config = tmp_path / "conclave.toml"
    privacy = '[privacy]\nepsilon = 4\ndelta = 1e-3\ncalibration = "paper"\n'
    config.write_text(f'[data]\nclasses = ["a", "b"]\n{privacy}[answers]\nqueries = 1\n', "utf-8")
    assert run(["audit", "--config", str(config), "--http", "12", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["http"] is None


WHOLE = """
[release]
name = "whole"
[data]
label = "answer"
classes = ["no", "yes"]
source = "nowhere/at-all.csv"
[[data.features]]
name = "margin"
kind = "numeric"
bounds = [-50, 50]
[hypotheses]
class = "trees"
depth = 1
[privacy]
epsilon = 20
delta = 1e-2
[answers]
cutoff = 1
queries = 4
"""


def test_a_whole_configuration_has_its_draws_audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relabelling and the classifier are in the document, and one that costs more is exit 1."""
    config = tmp_path / "conclave.toml"
    config.write_text(WHOLE, "utf-8")
    assert run(["audit", "--config", str(config), "--json"]) == 0
    draws = json.loads(capsys.readouterr().out)["draws"]
    assert [(draw["mechanism"], draw["claim"]["epsilon"]) for draw in draws] == [
        ("relabelling", 2.0),
        ("published classifier", 6.0),
    ]
    assert all(draw["exact"]["share_of_claim"] > 0.98 for draw in draws)
    real = audit_draws
    monkeypatch.setattr(
        auditing,
        "audit_draws",
        lambda given: tuple(replace(draw, epsilon=draw.epsilon / 2) for draw in real(given)),
    )
    assert run(["audit", "--config", str(config), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False


@pytest.mark.parametrize("learner", ["exponential", "linear", "grid", "scored-tree"])
def test_without_answers_the_published_classifier_is_audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], learner: str
) -> None:
    """The draw is all that such a release makes, and no server is run for answers."""
    config = tmp_path / "conclave.toml"
    shares = "[privacy.shares]\nanswers = 0\nrelabel = 0\nclassifier = 1\n"
    config.write_text(f'{WHOLE}{shares}[classifier]\nlearner = "{learner}"\n', "utf-8")
    assert run(["audit", "--config", str(config), "--http", "12", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["exact"], document["sampled"], document["http"]) == (None, None, None)
    (draw,) = document["draws"]
    assert draw["claim"]["epsilon"] == 20
    assert draw["exact"]["share_of_claim"] > 0.9
    assert run(["audit", "--config", str(config)]) == 0
    printed = capsys.readouterr().out
    assert "exactly, published classifier: " in printed
    assert "sampled" not in printed
    assert printed.endswith("The claim holds.\n")


def test_nothing_to_audit_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a share for answers there is nothing to audit, and the key is named."""
    config = tmp_path / "conclave.toml"
    shares = "[privacy.shares]\nanswers = 0\nrelabel = 0\nclassifier = 1\n"
    config.write_text(f'[data]\nclasses = ["a", "b"]\n{shares}', "utf-8")
    assert run(["audit", "--config", str(config)]) == 2
    assert capsys.readouterr().err.startswith("conclave: privacy.shares.answers: ")


def test_scores_are_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the auditor does not know is refused in one line, and nothing is said to hold."""
    config = tmp_path / "conclave.toml"
    config.write_text('[data]\nclasses = ["a", "b"]\n[answers]\noutput = "score"\n', "utf-8")
    assert run(["audit", "--config", str(config)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("conclave: answers.output: ")
