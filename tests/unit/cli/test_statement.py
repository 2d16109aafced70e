"""``conclave statement``: what is promised, from configuration and ledger, and no record."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from app.cli import run
from app.cli.statement import PAGE_COLUMNS, STATING
from app.release.terms.answer_terms import answering_registration
from tests.builders.release.svt_release import NOISY_VOTE, SVT, changed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.release.small_release import SmallRelease

PAGE_LINES_MAX = 66
CLASSIFIER_ALONE = {"privacy__shares__answers": "0", "privacy__shares__relabel": "0"}
WITH_STATISTICS = {"privacy__shares__answers": "0.5", "privacy__shares__statistics": "0.1"}


def configured(release: SmallRelease, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a release's configuration, put its changes into the environment; return the path."""
    release.settings()
    for name, value in release.changes.items():
        monkeypatch.setenv(f"CONCLAVE_{name}".upper(), value)
    return str(release.folder / "conclave.toml")


def stated(config: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Return the document of a statement that is made."""
    capsys.readouterr()
    assert run(["statement", "--config", config, "--json", *options]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_a_sample_of_each_chunk_is_stated(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With its number, and that it makes no answer cheaper; a release without one says nothing."""
    config = configured(small_release, monkeypatch)
    assert "learner" not in stated(config, capsys)
    bayes = {"learner__estimator": "sklearn.naive_bayes.GaussianNB", "learner__rows_max": "20"}
    config = configured(changed(small_release, bayes), monkeypatch)
    assert stated(config, capsys)["learner"] == {"rows_max": 20}
    assert run(["statement", "--config", config]) == 0
    assert "20 rows of its chunk at most" in " ".join(capsys.readouterr().out.split())


def test_a_terminal_shows_that_a_statement_is_worked_out(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A bar on standard error, where that is a terminal; the document is the same."""
    config = configured(small_release, monkeypatch)
    document = stated(config, capsys)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["statement", "--config", config, "--json"]) == 0
    shown = capsys.readouterr()
    assert STATING in shown.err
    assert json.loads(shown.out) == document


def test_a_release_that_is_not_open_is_stated_by_its_configuration(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Unit, budget and mechanisms are there, no ledger is, and nothing is made or read."""
    document = stated(configured(small_release, monkeypatch), capsys)
    deployment = document["deployment"]
    assert deployment["privacy_loss"]["privacy_unit"] == "row"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 20.0, "delta": 0.01}
    assert deployment["dp_flavor"]["input_metric"] == "replace one record"
    mechanisms = deployment["implementation"]["mechanisms"]
    assert [(each["mechanism"], each["epsilon"], each["status"]) for each in mechanisms] == [
        ("relabel", 2.0, "configured"),
        ("answers", 12.0, "configured"),
        ("classifier", 6.0, "configured"),
    ]
    assert sum(each["delta"] for each in mechanisms) == pytest.approx(0.01)
    assert document["accounting"] == "joint"
    assert document["release"] == {"is_open": False}
    assert document["ledger"] is document["audit"] is document["composed"] is None
    assert [path.name for path in small_release.folder.iterdir()] == ["conclave.toml"]


def test_a_release_that_is_open_is_stated_by_its_ledger(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Head, charges and k are the ledger's; the table is the one that serves, known before."""
    config = configured(small_release, monkeypatch)
    before = stated(config, capsys)["answers_table"]
    release = small_release.open()
    document = stated(config, capsys)
    head = release.state.head
    assert document["release"] == {"is_open": True}
    assert document["ledger"] == {"sequence": head.sequence, "head": head.hash}
    mechanisms = document["deployment"]["implementation"]["mechanisms"]
    assert [each["status"] for each in mechanisms] == ["charged", "charged", "reserved"]
    assert document["answers"] == {"queries": 4, "cutoff": 2, "ensemble": 5}
    piece = release.ledger.private(answering_registration(release.configuration.settings).piece)
    assert piece is not None
    assert document["answers_table"]["sha256"] == sha256(piece).hexdigest()
    assert document["answers_table"] == before
    release.ledger.close()


def test_other_terms_than_the_ledgers_are_not_stated(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a ledger's release was not opened with is refused by its name."""
    small_release.open().ledger.close()
    config = configured(changed(small_release, {"privacy__epsilon": "21"}), monkeypatch)
    assert run(["statement", "--config", config]) == 2
    assert "privacy.epsilon: the ledger's release was opened with 20" in capsys.readouterr().err


def test_a_release_beside_others_is_stated_with_them(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a further release promises, and all together, is told before it opens."""
    small_release.open().ledger.close()
    further = changed(small_release, {"release__name": "further", "privacy__epsilon": "3"})
    document = stated(configured(further, monkeypatch), capsys)
    assert document["release"] == {"is_open": False}
    assert document["ledger"] is None
    assert document["composed"] == {"epsilon": 23.0, "delta": 0.02, "releases": 2}


def test_a_ledger_that_is_gone_is_no_release_that_never_opened(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where the head file notes a release, a missing ledger is refused."""
    head_file = {"ledger__head_file": str(small_release.folder / "conclave.head")}
    release = changed(small_release, head_file)
    opened = release.open()
    settings = release.settings()
    from app.ledger.head.head_file import head_file_of
    from app.ledger.head.rollback import keep_newest

    kept = head_file_of(settings.ledger_url, settings.ledger.head_file)
    assert kept is not None
    keep_newest(opened.ledger, kept)
    opened.ledger.close()
    for path in release.folder.glob("conclave.db*"):
        path.unlink()
    assert run(["statement", "--config", configured(release, monkeypatch)]) == 2
    assert "which the ledger does not hold" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "there", "absent"),
    [
        ({}, "Theorem A", "sparse vector"),
        (SVT, "the sparse vector with exact scales", "Theorem A"),
        (NOISY_VOTE, "a table of one bit over the votes", "unstable ones"),
        (CLASSIFIER_ALONE, "Answers have no share", "Fresh answers end"),
        ({"answers__output": "score"}, "soft labels", "unstable ones"),
        ({"hypotheses__grid": "private", "privacy__sampling": "0.01"}, "Lemma L", "Theorem B"),
        ({"privacy__sampling": "0.5"}, "a random part of the rows", "Lemma L"),
        ({"classifier__learner": "linear"}, "noisy gradient descent", "tree is drawn"),
        (WITH_STATISTICS, "multiplicative weights", "Lemma L"),
    ],
)
def test_the_page_has_what_this_release_runs(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
    there: str,
    absent: str,
) -> None:
    """Every theorem in force is named, and no other; it stays one page."""
    config = configured(changed(small_release, changes), monkeypatch)
    assert run(["statement", "--config", config]) == 0
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert len(lines) <= PAGE_LINES_MAX
    assert max(map(len, lines)) <= PAGE_COLUMNS
    whole = " ".join(page.split())
    assert there in whole
    assert absent not in whole


REPORT = {
    "holds": True,
    "broken_conditions": [],
    "mechanism": "profile",
    "claim": {"epsilon": 20.0, "delta": None},
    "exact": {"epsilon": 15.0, "share_of_claim": 0.75, "adversary": "one"},
    "sampled": {"epsilon": None, "share_of_claim": None, "runs": 7},
}


def report(
    path: Path, document: dict[str, Any], *, delta: float, **changes: object
) -> tuple[str, str]:
    """Write a report for these answers, and return the option that gives it."""
    claim = {"claim": {"epsilon": 20.0, "delta": delta}}
    path.write_text(json.dumps(document | claim | changes), encoding="utf-8")
    return "--audit", str(path)


def test_an_audit_is_stated_and_one_that_refutes_exits_with_one(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was found stands in the statement, in numbers and in words."""
    config, path = configured(small_release, monkeypatch), small_release.folder / "report.json"
    mechanisms = stated(config, capsys)["deployment"]["implementation"]["mechanisms"]
    delta = mechanisms[1]["delta"]
    found = stated(config, capsys, *report(path, REPORT, delta=delta))["audit"]
    assert found["exact"] == {"epsilon": 15.0, "share_of_claim": 0.75}
    refuted = report(path, REPORT, delta=delta, holds=False)
    assert run(["statement", "--config", config, *refuted]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "WAS REFUTED: the lower bounds found are 75% of it exactly and beyond every" in said


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "--audit: is no report of `conclave audit --json`"),
        ("{}", "--audit: is no report of `conclave audit --json`"),
        (json.dumps(REPORT | {"claim": {"epsilon": 1.0, "delta": 1e-6}}), "--audit: is of epsilon"),
        (None, "--audit: cannot read"),
    ],
)
def test_a_report_of_something_else_is_refused(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    problem: str,
) -> None:
    """No report, or one of another claim, is one line and exit code 2."""
    config, path = configured(small_release, monkeypatch), small_release.folder / "report.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert run(["statement", "--config", config, "--audit", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"conclave: {problem}")
    assert printed.err.count("\n") == 1
