"""A mechanism, a class and a learner that the application does not have: a folder of rows each.

Their rows are put into the tables; the real commands and a real server do the rest.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from app.auditing import audit as auditing
from app.auditing.bounds_by_mechanism import AUDITED
from app.auditing.hypothesis_draws import AUDITED_LEARNERS
from app.cli import run
from app.cli.audit import audited_releases
from app.cli.background_server import BackgroundServer
from app.errors import ConfigurationError, InvariantError
from app.learning.hypothesis import ClassAsked
from app.learning.registry import CLASSES, dichotomy_class
from app.planning.mechanisms.planning_table import PLANNED
from app.privacy.budget import ensemble_size
from app.privacy.learner_properties import AUTO, LEARNERS
from app.privacy.mechanism_registration import own
from app.privacy.mechanisms import MECHANISMS, row_of
from app.release.classifier.learner_table import PUBLISHING
from app.release.classifier.written_hypotheses import WRITTEN
from app.release.progress import no_progress
from app.settings.settings import load_settings
from tests.builders.toys.constants import row as constants
from tests.builders.toys.flipped_label import row as flipped
from tests.builders.toys.majority import row as majority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# At an epsilon of 140 for four answers one is flipped with probability e^-35: none below is,
# but for 1e-14 in all.
CONFIGURATION = """\
[release]
name = "toys"
[data]
source = "rows.csv"
label = "answer"
classes = ["no", "yes"]
rows = 60
[[data.features]]
name = "margin"
kind = "numeric"
bounds = [-50, 50]
thresholds = [0]
threshold_shares = [0.9]
[hypotheses]
class = "{kind}"
depth = 1
[classifier]
learner = "{learner}"
[privacy]
epsilon = 200
delta = 1e-2
[privacy.shares]
relabel = 0.05
answers = 0.7
classifier = 0.05
[answers]
mechanism = "{mechanism}"
queries = 4
cutoff = 2
ensemble = {size}
[server]
port = 0
"""


@pytest.fixture(autouse=True)
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the rows of the toys into the tables, and let audits be short."""
    monkeypatch.setitem(MECHANISMS, flipped.NAME, flipped.FLIPPED)
    monkeypatch.setitem(PLANNED, flipped.NAME, flipped.PLANNED_FLIPPED)
    monkeypatch.setitem(AUDITED, flipped.NAME, flipped.AUDITED_FLIPPED)
    monkeypatch.setitem(CLASSES, constants.NAME, constants.CONSTANTS)
    monkeypatch.setitem(WRITTEN, constants.NAME, constants.write)
    monkeypatch.setitem(LEARNERS, majority.MAJORITY.name, majority.MAJORITY)
    monkeypatch.setitem(PUBLISHING, majority.MAJORITY.name, majority.PUBLISHED_MAJORITY)
    monkeypatch.setitem(AUDITED_LEARNERS, majority.MAJORITY.name, majority.audited)
    for length in ("QUICK", "LONG"):
        monkeypatch.setattr(auditing, f"STEPS_{length}", 20_000)
        monkeypatch.setattr(audited_releases, f"RUNS_{length}", 0)


def written(
    folder: Path,
    *,
    mechanism: str = "stability",
    kind: str = "stumps",
    learner: str = "exponential",
) -> Path:
    """Write a configuration and its rows; return where the configuration is.

    Half of the rows are a yes, so that five chunks of twelve have both, three of them but for
    1e-10; where one label is for everybody nine in ten are, and twenty learners agree.
    """
    size, period = (20, 10) if kind == constants.NAME else (5, 2)
    config = folder / "conclave.toml"
    text = CONFIGURATION.format(mechanism=mechanism, kind=kind, size=size, learner=learner)
    config.write_text(text, encoding="utf-8")
    rows = ["-20,no" if number % period == 0 else "20,yes" for number in range(60)]
    (folder / "rows.csv").write_text("\n".join(["margin,answer", *rows]), encoding="utf-8")
    return config


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run a command that succeeds, and return what it prints."""
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


@contextmanager
def served(config: Path) -> Iterator[httpx.Client]:
    """Serve a configuration over HTTP from a thread of this process."""
    server = BackgroundServer(load_settings(config, {}))
    server.start(no_progress)
    try:
        with httpx.Client(base_url=server.address) as client:
            yield client
    finally:
        server.stop()


def labels(client: httpx.Client, margins: list[float]) -> list[tuple[str, bool]]:
    """Ask one query after another; return labels, and whether they are stable."""
    replies = [client.post("/query", json={"features": {"margin": each}}) for each in margins]
    assert {reply.status_code for reply in replies} == {200}
    return [(reply.json()["label"], reply.json()["stable"]) for reply in replies]


def test_every_table_has_the_same_names() -> None:
    """What serves is planned and audited, every class is published, and learners are audited."""
    assert set(MECHANISMS) == set(PLANNED) == set(AUDITED)
    assert set(CLASSES) == set(WRITTEN)
    assert set(LEARNERS) == set(PUBLISHING) == set(AUDITED_LEARNERS)
    assert AUTO not in LEARNERS


def test_a_class_without_a_private_grid_says_so() -> None:
    """The labellings of private points are those of classes that list them."""
    with pytest.raises(ConfigurationError, match="cells has no private grid"):
        dichotomy_class(
            ClassAsked(kind="cells", columns=(), depth=1, class_count=2), np.zeros((1, 1))
        )


def test_a_row_refuses_what_is_anothers() -> None:
    """Only a stability test has hits, and a value of no mechanism has no row."""
    with pytest.raises(InvariantError, match="a probability of a hit"):
        ensemble_size.tested(MECHANISMS)
    with pytest.raises(InvariantError, match="belongs to a mechanism"):
        row_of(MECHANISMS)
    with pytest.raises(InvariantError, match="its own"):
        own(MECHANISMS, tuple)


def test_a_toy_mechanism_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan weighs it, forecasts it, and compares it with the others at its budget."""
    plan = document(capsys, "plan", "--config", str(written(tmp_path, mechanism=flipped.NAME)))
    assert plan["feasible"]
    assert plan["mechanism"] == flipped.NAME
    assert int(plan["flipped_label"]["kept_words"]) > 0
    assert plan["votes_needed"][flipped.NAME] == 3
    assert plan["prediction"]["labels"] == 4


def test_a_toy_mechanism_is_served_and_explained(tmp_path: Path) -> None:
    """A server answers by it until its last answer, and says what its parameters mean."""
    config = written(tmp_path, mechanism=flipped.NAME)
    with served(config) as client:
        assert labels(client, [-30.0, 30.0]) == [("no", True), ("yes", True)]
        assert "flipped label" in client.get("/parameters").text


def test_a_toy_mechanism_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The step that serves answers made-up votes."""
    config, votes = written(tmp_path, mechanism=flipped.NAME), tmp_path / "votes.csv"
    votes.write_text("9,1\n0,10\n", encoding="utf-8")
    arguments = ("--config", str(config), "--votes", str(votes), "--trials", "3")
    assert document(capsys, "simulate", *arguments)["outcomes"] == {"0,1": 3}


def test_a_toy_mechanism_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its exact adversary shows nearly all of what it claims, and no more."""
    config = written(tmp_path, mechanism=flipped.NAME)
    config.write_text(config.read_text("utf-8").replace("epsilon = 200", "epsilon = 10"), "utf-8")
    audit = document(capsys, "audit", "--config", str(config))
    assert audit["holds"]
    assert audit["mechanism"] == "flipped label"
    assert 0.2 < audit["exact"]["share_of_claim"] <= 1


def test_a_toy_class_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its size counts, and its learners are tried out."""
    plan = document(capsys, "plan", "--config", str(written(tmp_path, kind=constants.NAME)))
    assert plan["hypotheses"] == "2"
    assert plan["prediction"] is not None


def test_a_toy_class_is_served_published_and_exported(tmp_path: Path) -> None:
    """It relabels, its learners answer, and what is drawn of it is exported as a document."""
    config = written(tmp_path, kind=constants.NAME)
    with served(config) as client:
        assert labels(client, [-30.0, 30.0]) == [("yes", True), ("yes", True)]
        assert "a label for everybody" in client.get("/parameters").text
        labels(client, [1.0, 2.0])  # the last of four answers
        assert labels(client, [-40.0]) == [("yes", True)]
    out = tmp_path / "classifier.json"
    assert run(["export", "--config", str(config), "--format", "json", "--output", str(out)]) == 0
    assert json.loads(out.read_text("utf-8"))["tree"] == {"label": "yes"}


def test_a_toy_learner_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan names it, charges it next to no delta, and bounds no draw from a class."""
    plan = document(
        capsys,
        "plan",
        "--config",
        str(written(tmp_path, mechanism=flipped.NAME, learner="majority")),
    )
    assert plan["feasible"]
    assert plan["learner"] == "majority"
    charge = next(each for each in plan["charges"] if each["mechanism"] == "classifier")
    assert charge["epsilon"] == 10
    assert charge["delta"] < 1e-8
    assert "classifier" not in plan["excess_error"]


def test_a_toy_learner_publishes_at_once_and_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It learns for one command, says what it spends, and is written as JSON and as ONNX."""
    config = written(tmp_path, mechanism=flipped.NAME, learner="majority")
    out = tmp_path / "classifier.json"
    assert run(["learn", "--config", str(config), "--output", str(out)]) == 0
    assert "counting the labels that the schema fixes of 60 rows" in capsys.readouterr().err
    assert json.loads(out.read_text("utf-8"))["tree"]["label"] in ("no", "yes")
    model = tmp_path / "classifier.onnx"
    exported = ["export", "--config", str(config), "--format", "onnx", "--output", str(model)]
    assert run(exported) == 0
    assert model.stat().st_size > 0
    with served(config) as client:
        assert "a label for everybody" in client.get("/parameters").text


def test_a_toy_learner_draws_at_the_switch(tmp_path: Path) -> None:
    """After the last answer of the ensemble every query gets its label."""
    with served(written(tmp_path, mechanism=flipped.NAME, learner="majority")) as client:
        labels(client, [-30.0, 30.0, 1.0, 2.0])
        (first, _), (second, _) = labels(client, [-40.0, 40.0])
        assert first == second


def test_a_toy_learner_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bound of its draw is all of its share."""
    config = written(tmp_path, mechanism=flipped.NAME, learner="majority")
    config.write_text(config.read_text("utf-8").replace("epsilon = 200", "epsilon = 10"), "utf-8")
    audit = document(capsys, "audit", "--config", str(config))
    drawn = next(each for each in audit["draws"] if each["mechanism"] == "published classifier")
    assert audit["holds"]
    assert drawn["exact"]["epsilon"] == pytest.approx(0.5)
