"""What benchmark B tries: targets, and for every method the settings it chooses from.

All of it is public and fixed here, before a release is drawn.  Which of a method's
settings serves a target is then read off the measured accuracy, for every method alike.

Cells come from feature rows of the test file without their labels, as many as
``PUBLIC_ROWS``: on Adult by tests in an order that was written down from what is known
of incomes (married, gains, losses, degrees, occupations, age, hours), on Skin at medians.
Three orders were tried on the benchmark's own rows before this one was kept, and on Skin
equal cuts, medians of the numbers in turn, and 1,000 and 5,000 public rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from benchmarks.utility.online_data import data_folder
from examples.public_cells import cells_by_medians, cells_in_order, public_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

CELLS: Final = "CONCLAVE_HYPOTHESES__CELLS"
ADULT_ORDER: Final = (
    "marital_status = Married-civ-spouse",
    "capital_gain >= 5000",
    "capital_loss >= 1800",
    "education_num >= 13",
    "education_num >= 10",
    "occupation = Exec-managerial",
    "occupation = Prof-specialty",
    "age >= 33",
    "hours_per_week >= 40",
    "education_num >= 9",
    "age >= 50",
    "hours_per_week >= 50",
    "age >= 41",
    "sex = Male",
    "age >= 25",
)
ADULT_FEATURES: Final = (
    "age", "workclass", "education_num", "marital_status", "occupation", "relationship", "race",
    "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country",
)  # fmt: skip
SKIN_BOUNDS: Final = {"b": (0.0, 255.0), "g": (0.0, 255.0), "r": (0.0, 255.0)}
PUBLIC_ROWS: Final = {"adult": 1000, "skin": 2000}
ROW_COUNTS: Final = {"adult": 32561, "skin": 220000}
LEAST_SHARES: Final = {
    "adult": (0.1, 0.05, 0.03, 0.02, 0.015, 0.0125, 0.01, 0.008),
    "skin": (0.05, 0.025, 0.012, 0.008, 0.006, 0.0045, 0.004, 0.0035, 0.003, 0.002),
}
TREES: Final = {
    "adult": (("canonical", 2, ""), ("canonical", 2, "few"), ("canonical", 3, "")),
    "skin": (("canonical", 3, ""), ("halving", 3, "")),
}
FEW_TESTS: Final = {
    "marital_status": ["Married-civ-spouse"],
    "education_num": [13],
    "capital_gain": [5000],
}
# With more learners Adult's trees of depth 3 vote as those of depth 2, and take minutes.
DEEP_SIZE_MAX: Final = 1600
TREE_SIZES: Final = {
    "adult": (200, 400, 800, 1600, 3200, 6400),
    "skin": (200, 400, 800, 1200, 2400),
}
TREE_SIZES_UNRELABELLED: Final = {"adult": (200, 400, 800, 1600), "skin": (200, 400, 800, 1200)}
CUTOFFS: Final = (1, 2, 5, 20)


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the table.

    Attributes:
        data: ``adult`` or ``skin``.
        accuracy: the least that counts.
        epsilon: of the whole release.
        without: the issue's best without relabelling, in answers; None where there was none.
        must: answers of one pass that must be shown, and E where one is named.
        goal: the same.
        goal_cutoff: T at which the goal's E counts; None for any.

    """

    data: str
    accuracy: float
    epsilon: str
    without: int | None
    must: tuple[float | None, float | None]
    goal: tuple[float | None, float | None]
    goal_cutoff: int | None = None


TARGETS: Final = (
    Target("adult", 0.82, "1", 884, (15_000, 1e5), (None, 1e6)),
    Target("adult", 0.83, "1", 600, (3_200, None), (10_000, None)),
    Target("adult", 0.835, "1", None, (2_800, None), (6_000, None)),
    Target("adult", 0.835, "2", 1_368, (12_000, None), (None, 1e5), goal_cutoff=5),
    Target("adult", 0.845, "2", None, (None, None), (5_000, None)),
    Target("adult", 0.845, "1", None, (None, None), (None, None)),
    Target("skin", 0.95, "1", 3_541, (11_200, 4e5), (None, 1e7)),
    Target("skin", 0.96, "1", 3_541, (11_200, 4e4), (None, 1e5), goal_cutoff=5),
    Target("skin", 0.975, "1", None, (None, None), (11_000, None)),
    Target("skin", 0.98, "1", None, (None, None), (None, None)),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One choice of class, learner and size; T is chosen later.

    Attributes:
        name: for the table.
        method: ``cells``, ``trees``, with `` unrelabelled`` behind where rows keep their labels.
        data: ``adult`` or ``skin``.
        epsilon: of the whole release.
        changes: what beats the example, as environment variables.

    """

    name: str
    method: str
    data: str
    epsilon: str
    changes: Mapping[str, str] = field(hash=False)

    @property
    def cell_count(self) -> int:
        """Number of cells, which have an empty text each; 0 without."""
        listed: list[str] = json.loads(self.changes.get(CELLS, "[]"))
        return listed.count("")


def settings_of(data: str, epsilon: str, *, quick: bool = False) -> list[Setting]:
    """Return all settings that are tried on one data set at one budget."""
    found = []
    for relabels in (True, False):
        suffix = "" if relabels else " unrelabelled"
        changes = _shares(epsilon, relabels=relabels)
        for share in LEAST_SHARES[data]:
            name, more = f"cells of {share:g}{suffix}", cell_changes(data, share)
            found.append(Setting(name, f"cells{suffix}", data, epsilon, {**changes, **more}))
        sizes = TREE_SIZES if relabels else TREE_SIZES_UNRELABELLED
        for rule, depth, tests in TREES[data][: 1 if quick else None]:
            for size in sizes[data][-1 if quick else None :]:
                if (depth, data) == (3, "adult") and size > DEEP_SIZE_MAX:
                    continue
                more = tree_changes(rule, depth, size, few=bool(tests))
                few = ", few tests" if tests else ""
                name = f"{rule} trees of depth {depth}{few}, k = {size}{suffix}"
                found.append(Setting(name, f"trees{suffix}", data, epsilon, {**changes, **more}))
    return found


def cell_changes(data: str, least_share: float) -> dict[str, str]:
    """Return the class cells with one row a learner."""
    cells = json.dumps(public_cells(data, least_share))
    return {
        "CONCLAVE_HYPOTHESES__CLASS": "cells",
        CELLS: cells,
        "CONCLAVE_HYPOTHESES__TESTS": "{}",
        "CONCLAVE_CLASSIFIER__TESTS": "{}",
        "CONCLAVE_LEARNER__RULE": "canonical",
        "CONCLAVE_ANSWERS__ENSEMBLE": str(ROW_COUNTS[data]),
    }


def tree_changes(rule: str, depth: int, size: int, *, few: bool) -> dict[str, str]:
    """Return the example's trees at a depth, a rule and a number of learners."""
    left_out = dict.fromkeys(ADULT_FEATURES, ())
    tests = {"CONCLAVE_HYPOTHESES__TESTS": json.dumps({**left_out, **FEW_TESTS})} if few else {}
    return {
        **tests,
        "CONCLAVE_HYPOTHESES__DEPTH": str(depth),
        "CONCLAVE_LEARNER__RULE": rule,
        "CONCLAVE_ANSWERS__ENSEMBLE": str(size),
    }


@cache
def public_cells(data: str, least_share: float) -> tuple[str, ...]:
    """Return the public cells of a data set whose sides keep a least share of public rows."""
    rows = public_rows(data_folder() / data / "test.csv", count=PUBLIC_ROWS[data])
    if data == "adult":
        return tuple(cells_in_order(rows, ADULT_ORDER, least_share=least_share))
    return tuple(cells_by_medians(rows, SKIN_BOUNDS, least_share=least_share))


def _shares(epsilon: str, *, relabels: bool) -> dict[str, str]:
    """Return the budget: relabelling a tenth, answers nine tenths, nothing published."""
    shares = "CONCLAVE_PRIVACY__SHARES__"
    return {
        "CONCLAVE_PRIVACY__EPSILON": epsilon,
        "CONCLAVE_PRIVACY__DELTA": "1e-6",
        f"{shares}RELABEL": "0.1" if relabels else "0",
        f"{shares}ANSWERS": "0.9",
        f"{shares}CLASSIFIER": "0",
        "CONCLAVE_ANSWERS__AFTER": "halt",
        "CONCLAVE_ANSWERS__ON_CUTOFF": "halt",
        "CONCLAVE_ANSWERS__CUTOFF": "5",
        "CONCLAVE_ANSWERS__QUERIES": "1000000",
    }
