"""Is what ``auto`` publishes as good as the best private method, on sixteen data sets?

Expected: on ten of twelve sets or more, at every epsilon, ``auto`` is first or within two standard
errors of the first private method, by accuracy and by the area under the curve; where it is not,
the page says by how much and what would win.  Nobody steers ``auto``; every rival is at its best of
24 settings, chosen by the test rows' own labels, once for accuracy and once for the area.  Some
eight hours of two processors, one cell on each, resumable: what was measured under the same program
is kept and not measured again.  `--quick` takes a quarter of an hour, of 5,000 rows a table, two
runs and three settings.

    python -m benchmarks.utility.panel [--quick] [--sets NAME ...] [--methods NAME ...] [--anew]
        [--processes 2]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from benchmarks.measuring.circumstances import circumstances, commit
from benchmarks.panel.ours import learned_by_auto, ranks_as_it_labels
from benchmarks.panel.rivals import boosting, guessing
from benchmarks.panel.scoring import Reached
from benchmarks.panel.sets import ASIDE, SETS
from benchmarks.panel.tuned import LIBRARIES, reached_by
from benchmarks.utility.page import kept as kept_document
from benchmarks.utility.page import write
from benchmarks.utility.panel_page import draw_plot
from benchmarks.utility.results import keep, read

if TYPE_CHECKING:
    from benchmarks.panel.sets import Table

EPSILONS: Final = (0.1, 0.5, 1.0, 2.0)
LABELS: Final = "auto"
RANKING: Final = "auto for ranking"
OURS: Final = {LABELS: "labels", RANKING: "ranking"}
REFERENCES: Final = ("guessing", "boosting")
METHODS: Final = (*REFERENCES, *OURS, "descent", "forest", *LIBRARIES)
ROWS_MAX: Final = 50_000
RUNS: Final = 20
SETTINGS: Final = 24
QUICK_ROWS: Final = 5000
QUICK_RUNS: Final = 2
QUICK_SETTINGS: Final = 3


def main() -> None:
    """Measure what is not measured yet, keep it after every cell, and print the page."""
    arguments = _arguments()
    print(circumstances())
    name = "panel-quick" if arguments.quick else "panel"
    kept = cast("dict[str, Any]", (read(name) or {}).get("cells", {}))
    asked = [(name, method) for method in arguments.methods for name in arguments.sets]
    if arguments.anew:
        kept = {
            cell: each for cell, each in kept.items() if tuple(cell.split("/")[:2]) not in asked
        }
    wanted = [
        (set_name, method, epsilon)
        for set_name, method in asked
        for epsilon in (EPSILONS[:1] if method in REFERENCES else EPSILONS)
        if _name(set_name, method, epsilon) not in kept
    ]
    same = _same_draws(wanted, asked, quick=arguments.quick)
    with ProcessPoolExecutor(arguments.processes) as pool:
        running = {
            pool.submit(_measured, *cell, quick=arguments.quick): cell
            for cell in wanted
            if _name(*cell) not in same
        }
        for done in as_completed(running):
            cell = _name(*running[done])
            found, seconds = done.result()
            kept[cell] = None if found is None else {"commit": commit(), **found.document()}
            mean = 0.0 if found is None else sum(found.accuracies) / len(found.accuracies)
            print(f"{cell:>40} {mean:.4f} in {seconds:.0f} s", flush=True)
            _keep(kept, same, quick=arguments.quick)
    _keep(kept, same, quick=arguments.quick)
    write("panel")
    draw_plot(kept_document("panel") or {"cells": kept})


def _same_draws(
    wanted: list[tuple[str, str, float]], asked: list[tuple[str, str]], *, quick: bool
) -> dict[str, str]:
    """Return the cells of ranking whose draws are those of labels, by those: measured once.

    The same learner by the same seeds draws the same models.
    """
    return {
        _name(set_name, RANKING, epsilon): _name(set_name, LABELS, epsilon)
        for set_name, method, epsilon in wanted
        if method == RANKING
        and (set_name, LABELS) in asked
        and ranks_as_it_labels(_table(set_name, quick=quick), epsilon)
    }


def _keep(kept: dict[str, Any], same: dict[str, str], *, quick: bool) -> None:
    """Write what is measured, and cells of the same draws."""
    kept.update({one: kept[other] for one, other in same.items() if other in kept})
    keep("panel", {"aside": list(ASIDE), "cells": kept}, quick=quick, tell=False)


def _name(set_name: str, method: str, epsilon: float) -> str:
    """Return the name of a cell."""
    return f"{set_name}/{method}/{epsilon:g}"


def _measured(
    set_name: str, method: str, epsilon: float, *, quick: bool
) -> tuple[Reached | None, float]:
    """Return what a method reaches on a table at an epsilon, and the seconds that it took."""
    started = time.monotonic()
    found = _reached(_table(set_name, quick=quick), method, epsilon, quick=quick)
    return found, time.monotonic() - started


@cache
def _table(set_name: str, *, quick: bool) -> Table:
    """Return a table of the panel, read once in each process."""
    return SETS[set_name]().cut_to(QUICK_ROWS if quick else ROWS_MAX)


def _reached(table: Table, method: str, epsilon: float, *, quick: bool) -> Reached | None:
    """Return what a method reaches, by the runs and settings of a quick or of a whole panel."""
    if method in REFERENCES:
        run = guessing if method == "guessing" else boosting
        return Reached.of([run(table)], setting={})
    runs, settings = (QUICK_RUNS, QUICK_SETTINGS) if quick else (RUNS, SETTINGS)
    if method in OURS:
        return learned_by_auto(table, epsilon, runs=runs, wanted=OURS[method])
    return reached_by(method, table, epsilon, runs=runs, settings=settings)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few rows and runs; keeps no page")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="cells at a time")
    parser.add_argument("--anew", action="store_true", help="measure again what was kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
