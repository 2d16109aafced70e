"""Rivals at their best: the best of a few settings by the test rows' own labels, run anew.

The setting is chosen once by accuracy and once by the area under the curve, so that neither
measure is taken of a model that was tuned for the other.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.measuring.circumstances import ROOT
from benchmarks.panel import rivals
from benchmarks.panel.scoring import Chosen, Reached
from benchmarks.utility.peers import environment

if TYPE_CHECKING:
    from benchmarks.panel.sets import Table

LIBRARIES: Final = ("LogisticRegression", "GaussianNB", "RandomForest", "DP-EBM")
TWO_LABELS: Final = ("DP-EBM",)
CHOICE_SEED: Final = 1000
PROGRAM: Final = ROOT / "benchmarks" / "panel" / "library_models.py"
SECONDS_MAX: Final = 3600


def reached_by(
    name: str, table: Table, epsilon: float, *, runs: int, settings: int
) -> Reached | None:
    """Return what a rival reaches at its best of so many settings; None where it does not apply.

    Args:
        name: of the rival.
        table: of the panel.
        epsilon: its whole budget.
        runs: with the chosen setting, and other seeds.
        settings: how many are tried, in one run each.

    """
    if name in TWO_LABELS and table.class_count > 2:
        return None
    if name in LIBRARIES:
        return _by_library(name, table, epsilon, runs=runs, settings=settings)
    grid = rivals.GRIDS[name][:settings]
    chosen = Chosen.of([rivals.run(name, table, each, epsilon, CHOICE_SEED) for each in grid])
    found = [
        rivals.run(name, table, grid[chosen.by_accuracy], epsilon, seed) for seed in range(runs)
    ]
    reached = Reached.of(found, setting=grid[chosen.by_accuracy])
    if chosen.by_area == chosen.by_accuracy:
        return reached
    ranked = [rivals.run(name, table, grid[chosen.by_area], epsilon, seed) for seed in range(runs)]
    areas = Reached.of(ranked, setting={}).areas
    return replace(reached, areas=areas, area_setting=grid[chosen.by_area])


def _by_library(
    name: str, table: Table, epsilon: float, *, runs: int, settings: int
) -> Reached | None:
    """Run a library's method in its own environment; None where it fails or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        rows, found = Path(folder) / "rows.npz", Path(folder) / "found.json"
        lower, upper = np.array(table.bounds).T
        np.savez(
            rows,
            train=table.rows,
            train_labels=table.labels,
            test=table.test,
            test_labels=table.test_labels,
            category_counts=np.array(table.category_counts),
            lower=lower,
            upper=upper,
            class_count=np.array(table.class_count),
        )
        program = str(environment() / "bin" / "python")
        asked = (name, str(epsilon), str(runs), str(settings))
        command = (program, str(PROGRAM), str(rows), str(found), *asked)
        try:
            subprocess.run(command, check=True, timeout=SECONDS_MAX)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"  {name} gave nothing: {error}", flush=True)
            return None
        document = json.loads(found.read_text(encoding="utf-8"))
    return Reached(
        tuple(document["accuracies"]),
        tuple(document["areas"]),
        document["setting"],
        document["area_setting"],
    )
