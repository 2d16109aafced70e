"""What predictions of plan are compared on: data sets, labels to learn, classes and sizes.

All of these were looked at when the way of predicting was chosen, the other labels of
Adult, columns that the example takes for features, as well;
``benchmarks/utility/planning_columns.py`` has columns that were not.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import ROOT
from benchmarks.utility.online_settings import LEAST_SHARES, cell_changes, tree_changes

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES: Final = (200, 400, 800, 1600, 3200)
EPSILONS: Final = ("0.5", "1", "2")
CUTOFFS: Final = (1, 5, 20, 50)
# Learners of several labels and three levels take minutes.
DEPTHS: Final = {"income": (1, 2, 3), "skin": (1, 2, 3), "sex": (1, 2, 3)}
DEPTHS_OF_MORE_LABELS: Final = (1, 2)
# Tasks that the cells of benchmark B part the rows of.
LEAST_SHARES_OF: Final = ("income", "skin")


@dataclass(frozen=True, slots=True)
class Task:
    """A column to learn.

    Attributes:
        name: of the column.
        data: ``adult`` or ``skin``.
        is_new: whether no choice of the way of predicting was made on it.
        changes: what beats the example, as environment variables.

    """

    name: str
    data: str
    is_new: bool
    changes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """A class and a number of learners.

    Attributes:
        task: what is learned.
        name: for the table.
        changes: what beats the task's.

    """

    task: Task
    name: str
    changes: Mapping[str, str]


def tasks() -> list[Task]:
    """Return all columns to learn."""
    skin = {"CONCLAVE_LEARNER__RULE": "canonical"}
    others = [_relabelled(name) for name in ("sex", "race", "relationship")]
    return [
        Task("income", "adult", is_new=False, changes={}),
        Task("skin", "skin", is_new=False, changes=skin),
        *others,
    ]


def cases(task: Task, *, quick: bool, depths: tuple[int, ...] = ()) -> list[Case]:
    """Return the classes and sizes of a task."""
    found = []
    depths = depths or DEPTHS.get(task.name, DEPTHS_OF_MORE_LABELS)
    for depth in depths[:1] if quick else depths:
        for size in SIZES[1:2] if quick else SIZES:
            changes = tree_changes("canonical", depth, size, few=False)
            found.append(Case(task, f"trees of depth {depth}, k = {size}", changes))
    if task.name not in LEAST_SHARES_OF:
        return found
    shares = LEAST_SHARES[task.data][: 1 if quick else None : 2]
    cells = [Case(task, f"cells of {share:g}", cell_changes(task.data, share)) for share in shares]
    return found + cells


def budget(epsilon: str, *, cutoff: int, limit: int) -> dict[str, str]:
    """Return the shares of benchmark B at one epsilon, a cutoff, and m."""
    shares = "CONCLAVE_PRIVACY__SHARES__"
    return {
        "CONCLAVE_PRIVACY__EPSILON": epsilon,
        f"{shares}RELABEL": "0.1",
        f"{shares}ANSWERS": "0.9",
        f"{shares}CLASSIFIER": "0",
        "CONCLAVE_ANSWERS__AFTER": "halt",
        "CONCLAVE_ANSWERS__ON_CUTOFF": "halt",
        "CONCLAVE_ANSWERS__CUTOFF": str(cutoff),
        "CONCLAVE_ANSWERS__QUERIES": str(limit),
    }


def _relabelled(column: str) -> Task:
    """Return Adult with one of its features to learn."""
    example = tomllib.loads((ROOT / "examples" / "adult.toml").read_text(encoding="utf-8"))
    features = example["data"]["features"]
    (learned,) = (feature for feature in features if feature["name"] == column)
    tests = dict(example["hypotheses"]["tests"])
    tests.pop(column, None)
    changes = {
        "CONCLAVE_DATA__LABEL": column,
        "CONCLAVE_DATA__CLASSES": json.dumps(learned["categories"]),
        "CONCLAVE_DATA__FEATURES": json.dumps([each for each in features if each != learned]),
        "CONCLAVE_HYPOTHESES__TESTS": json.dumps(tests),
        "CONCLAVE_CLASSIFIER__DEPTH": "2",
    }
    return Task(column, "adult", is_new=False, changes=changes)
