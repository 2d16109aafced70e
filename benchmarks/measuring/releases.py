"""Several fresh releases of one data set, each with an order of the test rows of its own."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT
from benchmarks.measuring.trials import read_rows, run_trial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.measuring.trials import Trial

ENSEMBLE = "CONCLAVE_ANSWERS__ENSEMBLE"
RULE = "CONCLAVE_LEARNER__RULE"
RELABEL = "CONCLAVE_PRIVACY__SHARES__RELABEL"
_SOURCE = "CONCLAVE_DATA__SOURCE"


def run_releases(data: str, changes: Mapping[str, str], releases: int) -> list[Trial]:
    """Open, ask and switch that many releases of an example.

    Args:
        data: ``adult`` or ``skin``, the example and the folder of its data in
            what CONCLAVE_TEST_DATA names.
        changes: environment variables that beat the example.
        releases: how many.

    """
    folder = Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data") / data
    example = ROOT / "examples" / f"{data}.toml"
    environ = {_SOURCE: str(folder / "train.csv"), **changes}
    schema = load_settings(example, environ).data.public_schema()
    rows = read_rows(folder / "test.csv", schema)
    order = random.SystemRandom()
    trials = []
    for _ in range(releases):
        order.shuffle(rows)
        trials.append(run_trial(example, environ, rows, with_switch=True))
    return trials
