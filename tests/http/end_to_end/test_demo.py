"""``conclave demo --exit --json``: the whole way on public data, by the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SECONDS_MAX = 300
QUERY_COUNT = 3000
ACCURACY_MIN = 0.8  # one label in ten is noise: the best there is has 0.9


def test_the_demos_report_has_both_phases(tmp_path: Path, repository: Path) -> None:
    """Ensemble and classifier answered, figures and budget agree, and no folder is left."""
    report_path = tmp_path / "report.json"
    own = {name: value for name, value in os.environ.items() if not name.startswith("CONCLAVE_")}
    ended = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--exit", "--json", str(report_path)],
        cwd=repository,
        env=own | {"TMPDIR": str(tmp_path), "CONCLAVE_SERVER__PORT": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    report = json.loads(report_path.read_text(encoding="utf-8"))
    ensemble, classifier, budget = report["ensemble"], report["classifier"], report["budget"]
    assert report.keys() == {"ensemble", "classifier", "without_relabelling", "budget", "seconds"}
    assert ensemble.keys() == {"answered", "unstable", "accuracy"}
    assert classifier.keys() == {"answered", "accuracy"}
    assert report["without_relabelling"].keys() == {"answered"}
    assert ensemble["answered"] + classifier["answered"] == QUERY_COUNT
    assert min(ensemble["answered"], classifier["answered"]) > 0
    assert min(ensemble["accuracy"], classifier["accuracy"]) > ACCURACY_MIN
    assert 0 < report["without_relabelling"]["answered"] <= QUERY_COUNT
    assert 0 < report["seconds"] < SECONDS_MAX
    assert budget["phase"] == "classifier"
    assert budget["queries"]["answered"] == ensemble["answered"]
    assert budget["unstable"]["count"] == ensemble["unstable"]
    charged = sum(share["epsilon"] for share in budget["charged"])
    assert abs(charged - budget["epsilon"]) < 1e-9
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
