"""One release of each data set through the whole app: ledger, batches, answers, as served."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING

import structlog

from benchmarks.measuring.circumstances import ROOT
from benchmarks.measuring.trials import read_rows, run_trial
from benchmarks.utility.online_data import data_folder, loaded
from benchmarks.utility.online_settings import settings_of

if TYPE_CHECKING:
    from benchmarks.utility.results import Json

# Data, cells' least share, calibration, T.
SERVED = (("adult", "0.02", "profile", 5), ("skin", "0.0035", "svt", 1))


def served() -> list[Json]:
    """Open a release of each, ask it every distinct test vector once, and count."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    found: list[Json] = []
    for data, share, calibration, cutoff in SERVED:
        (setting,) = [each for each in settings_of(data, "1") if each.name == f"cells of {share}"]
        changes = {
            **setting.changes,
            "CONCLAVE_DATA__SOURCE": str(data_folder() / data / "train.csv"),
            "CONCLAVE_PRIVACY__CALIBRATION": calibration,
            "CONCLAVE_ANSWERS__CUTOFF": str(cutoff),
        }
        schema = loaded(data, {}).data.public_schema()
        rows = read_rows(data_folder() / data / "test.csv", schema)
        random.SystemRandom().shuffle(rows)
        trial = run_trial(ROOT / "examples" / f"{data}.toml", changes, rows, with_switch=False)
        found.append(
            {
                "data": data,
                "setting": setting.name,
                "mechanism": calibration,
                "cutoff": cutoff,
                "stable": trial.answered - trial.unstable,
                "unstable": trial.unstable,
                "accuracy": trial.accuracy_rows,
            }
        )
    return found
