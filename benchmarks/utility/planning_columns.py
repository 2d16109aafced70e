"""Six columns of Adult to learn from the same six features: one public configuration.

Of all of them the public knows the same, but for the name of what is learned: n, the
features, their shares and points, and that there are two labels.  So ``plan`` says the same
of all six, and so must whatever goes by public quantities alone: where their releases
differ, no one number is right for all.
"""

from __future__ import annotations

import csv
import json
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import ROOT
from benchmarks.utility.online_data import data_folder
from benchmarks.utility.planning_tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Row = Mapping[str, str]

FEATURES: Final = (
    "workclass", "marital_status", "occupation", "capital_gain", "capital_loss", "native_country",
)  # fmt: skip
LABEL: Final = "learned"
CLASSES: Final = ("no", "yes")
# Name, what it asks of a row, and whether the column was never learned before.
COLUMNS: Final[dict[str, tuple[Callable[[Row], bool], bool]]] = {
    "income above 50K": (lambda row: row["income"] == ">50K", False),
    "male": (lambda row: row["sex"] == "Male", False),
    "white": (lambda row: row["race"] == "White", False),
    "own child": (lambda row: row["relationship"] == "Own-child", True),
    "long hours": (lambda row: float(row["hours_per_week"]) > 40, True),
    "degree": (lambda row: float(row["education_num"]) >= 13, True),
}
PAIR: Final = ("income above 50K", "degree")
"""Two columns of which even the share of either label is the same: 24.1 % and 24.8 %."""


def columns() -> list[Task]:
    """Return the six, each as Adult with a column of its own in place of the label."""
    example = tomllib.loads((ROOT / "examples" / "adult.toml").read_text(encoding="utf-8"))
    features = [each for each in example["data"]["features"] if each["name"] in FEATURES]
    left_out = [name for name in example["hypotheses"]["tests"] if name not in FEATURES]
    tests = {
        name: listed
        for name, listed in example["hypotheses"]["tests"].items()
        if name not in left_out
    }
    changes = {
        "CONCLAVE_DATA__LABEL": LABEL,
        "CONCLAVE_DATA__CLASSES": json.dumps(CLASSES),
        "CONCLAVE_DATA__FEATURES": json.dumps(features),
        "CONCLAVE_HYPOTHESES__TESTS": json.dumps(tests),
        "CONCLAVE_CLASSIFIER__DEPTH": "2",
        "CONCLAVE_CLASSIFIER__TESTS": "{}",
    }
    return [
        Task(name, "adult", is_new, {**changes, "CONCLAVE_DATA__SOURCE": str(_source(name))})
        for name, (_, is_new) in COLUMNS.items()
    ]


@cache
def _source(name: str) -> Path:
    """Write the private rows with a column as label, once a run, and return where."""
    asks, _ = COLUMNS[name]
    folder = Path(tempfile.mkdtemp(prefix="conclave-columns-"))
    path = folder / "train.csv"
    given = data_folder() / "adult" / "train.csv"
    with (
        given.open(encoding="utf-8-sig", newline="") as lines,
        path.open("w", encoding="utf-8", newline="") as written,
    ):
        writer = csv.DictWriter(written, [*FEATURES, LABEL])
        writer.writeheader()
        for row in csv.DictReader(lines):
            kept = {feature: row[feature] for feature in FEATURES}
            writer.writerow({**kept, LABEL: CLASSES[int(asks(row))]})
    return path
