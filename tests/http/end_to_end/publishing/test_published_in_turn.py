"""The classifier of a release that grows, over HTTP: the newest is served, beside the votes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import httpx
import numpy as np

from app.cli import run
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from app.main import append_from_settings
from app.noise.system import SystemNoise
from app.release.classifier.classifier_document import read_document
from app.settings.settings import load_settings
from tests.builders.ledger.outside_audit import faults_in
from tests.builders.server.serving import Served
from tests.http.end_to_end.test_generations import HOUR, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONFIGURATION = """\
[release]
name = "growing"
[data]
source = "first.csv"
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "a"
kind = "numeric"
bounds = [0, 1]
thresholds = [0.25, 0.5, 0.75]
[hypotheses]
class = "thresholds"
[classifier]
learner = "linear"
public = "public.csv"
[privacy]
epsilon = 3
[privacy.shares]
relabel = 0
answers = 0.5
classifier = 0.5
[answers]
cutoff = 3
ensemble = 400
after = "halt"
[generations]
tick = "1h"
[server]
port = 0
"""
ROWS = 4000


def write(path: Path, seed: int) -> str:
    """Write rows whose label is whether their number is at least a half; return the path."""
    values = np.random.default_rng(seed).uniform(0, 1, ROWS)
    lines = [f"{value:.6f},{'yes' if value >= 0.5 else 'no'}" for value in values]
    path.write_text("\n".join(["a,y", *lines, ""]), encoding="utf-8")
    return str(path)


def configured(folder: Path) -> Path:
    """Write the configuration, the first rows and public points; return the first's path."""
    config = folder / "conclave.toml"
    config.write_text(CONFIGURATION, encoding="utf-8")
    write(folder / "first.csv", 1)
    values = np.random.default_rng(9).uniform(0, 1, 200)
    points = "\n".join(["a", *(f"{value:.6f}" for value in values), ""])
    (folder / "public.csv").write_text(points, encoding="utf-8")
    return config


def test_the_newest_classifier_is_served_beside_the_votes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is there before anybody asks, another at the next join, and the same after a restart."""
    config = configured(tmp_path)
    now = [1000.0 * HOUR]
    settings = load_settings(config, {})
    with Served(settings, clock=lambda: now[0]) as served:
        first = served.get("/classifier")
        assert first.status_code == httpx.codes.OK
        assert read_document(first.content).scores is not None
        assert served.answer([0.9])["label"] == "yes"
        source = write(tmp_path / "second.csv", 2)
        for options, line in (
            (["--epsilon", "4"], "--epsilon: must be above 0, and at most what the release"),
            (["--epsilon", "1/2"], "--epsilon: must be a decimal"),
        ):
            assert run(["append", "--config", str(config), source, *options]) == 2
            assert line in capsys.readouterr().err
        budget = Fraction("2.9"), None
        append_from_settings(
            settings, source, noise=SystemNoise(), clock=lambda: now[0], budget=budget
        )
        now[0] += 2 * HOUR
        wait_for(served, "active", "active")
        second = served.get("/classifier")
        assert second.content != first.content
        shown = served.budget()["generations"]
        assert [each["published"] for each in shown] == [True, True]
        assert [each["epsilon"] for each in shown] == [3.0, 2.9]
        model = served.get("/classifier", headers={"accept": "application/onnx"})
        assert model.headers["content-type"] == "application/onnx"
    (tmp_path / "public.csv").unlink()
    (tmp_path / "first.csv").unlink()
    with Served(settings, clock=lambda: now[0]) as served:
        assert served.get("/classifier").content == second.content
    assert run(["export", "--config", str(config), "--format", "json"]) == 0
    assert capsys.readouterr().out.encode().strip() == second.content.strip()
    assert run(["verify", "--config", str(config)]) == 0
    ledger = open_ledger(settings.ledger_url, create=False, name="growing")
    verify(ledger)
    assert faults_in(ledger.public_entries(0, 1000)) == []
    ledger.close()
