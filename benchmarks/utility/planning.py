"""Benchmark C: does ``conclave plan`` predict how many labels a release gives?

Expected: of benchmark B's settings over cells nearly all within a factor of 2, with the
public points that made the cells; of trees, which have a cliff, three in four, and no number
that goes by public quantities alone could be right for more than some five in six.  About 30
minutes of one processor; ``--quick`` takes one size of each class, in some three minutes.

    python -m benchmarks.utility.planning [--quick]
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from app.privacy.budget.composition import Mechanism
from app.release.terms.configuration import configure
from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.planning_columns import columns
from benchmarks.utility.planning_followed import followed
from benchmarks.utility.planning_measured import (
    PEOPLE,
    Measured,
    calibrations,
    measure,
    predicted,
    tried,
)
from benchmarks.utility.planning_online import online_cells
from benchmarks.utility.planning_tasks import CUTOFFS, EPSILONS, Case, Task, cases, tasks
from benchmarks.utility.results import keep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from app.planning.trial.agreement import Agreement
    from benchmarks.utility.results import Json

    Tried = dict[tuple[str, str], Agreement | None]

COLUMN_DEPTHS = (1, 2, 3)


def main() -> None:
    """Compare every cell, and every recommendation, and keep them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(circumstances())
    found: dict[str, Json] = {
        "followed": _shown(followed(quick=quick)),
        "online": _shown(online_cells(quick=quick)),
        "columns": _shown(_column_cells(quick=quick)),
        "cells": _shown(_task_cells(quick=quick)),
    }
    keep("planning", found, quick=quick)


def _shown(cells: Iterable[dict[str, Any]]) -> list[Json]:
    """Print each cell as it is found."""
    listed: list[Json] = []
    for cell in cells:
        rounded = {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in cell.items()
        }
        print(rounded, flush=True)
        listed.append(rounded)
    return listed


def _task_cells(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the cells of every column that was looked at when it was chosen how to predict."""
    for task in tasks():
        measured = Measured(task)
        for case in cases(task, quick=quick):
            yield from _cells(measured, case, {})


def _column_cells(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the cells of columns that are learned from the same features: one prediction each."""
    known: Tried = {}
    for task in columns():
        measured = Measured(task)
        for case in cases(task, quick=quick, depths=COLUMN_DEPTHS):
            yield from _cells(measured, case, known)


def _cells(measured: Measured, case: Case, known: Tried) -> Iterator[dict[str, Any]]:
    """Yield prediction and measurement of a case at every budget, by every people."""
    settings = measured.settings(case, EPSILONS[0], CUTOFFS[0])
    for people in PEOPLE:
        if (case.name, people) not in known:
            points = measured.points if people == "points" else None
            known[case.name, people] = tried(settings, measured.rows.count, points)
    for number, epsilon in enumerate(EPSILONS):
        yield from _cells_at(measured, case, known, epsilon, seed=1 + number)


def _cells_at(
    measured: Measured, case: Case, known: Tried, epsilon: str, *, seed: int
) -> Iterator[dict[str, Any]]:
    settings = measured.settings(case, epsilon, CUTOFFS[0])
    distances = measured.votes(settings, seed).distances
    answers = configure(settings).charges[Mechanism.ANSWERS]
    size, limit = int(settings.answers.ensemble), len(measured.vectors)
    for cutoff in CUTOFFS:
        for name, calibration in calibrations(answers, cutoff):
            given = measure(calibration, distances, seed=cutoff)
            for people in PEOPLE:
                agreement = known[case.name, people]
                if agreement is None:
                    continue
                rows = measured.rows.count
                said = predicted(agreement, calibration, size=size, row_count=rows, limit=limit)
                yield {
                    **_where(measured.task, case, people),
                    "epsilon": epsilon,
                    "cutoff": cutoff,
                    "mechanism": name,
                    "m": limit,
                    **given,
                    **said,
                }


def _where(task: Task, case: Case, people: str) -> dict[str, Json]:
    return {"task": task.name, "is_new": task.is_new, "case": case.name, "people": people}


if __name__ == "__main__":
    main()
