"""Benchmark B: how many answers do learners of chunks give before the cutoff, how right?

Expected: cells with a learner a row answer every distinct test vector at all targets but
the last of the table, and E passes its goals; trees with hundreds of learners reach the
easier ones; without relabelling fewer.  About 20 minutes of one processor; ``--quick``
takes one tree and one release of each setting, in some five minutes.  Cells that are each
decided once, as new releases do, come last (``online_decided.py``).

    python -m benchmarks.utility.online [--quick] [--only adult|skin]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.online_constants import constants
from benchmarks.utility.online_data import test_set
from benchmarks.utility.online_decided import decided
from benchmarks.utility.online_page import draw_plot
from benchmarks.utility.online_papers import papers
from benchmarks.utility.online_passes import (
    Cell,
    check_served,
    noisy_vote_cell,
    profile_cell,
    svt_cell,
)
from benchmarks.utility.online_served import served
from benchmarks.utility.online_settings import CELLS, CUTOFFS, TARGETS, Setting, settings_of
from benchmarks.utility.online_votes import Votes, draw_votes
from benchmarks.utility.results import keep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.utility.results import Json

RELEASES = 3
NOISY_COUNTS = (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)
HISTOGRAM_STEP = 50
HISTOGRAM_LAST = 40


def main() -> None:
    """Measure every setting under every mechanism, and keep all of it."""
    arguments = _arguments()
    print(circumstances())
    budgets = dict.fromkeys((target.data, target.epsilon) for target in TARGETS)
    measured: list[Json] = [
        _measured(setting, 1 if arguments.quick else RELEASES)
        for data, epsilon in budgets
        if arguments.only in (None, data)
        for setting in settings_of(data, epsilon, quick=arguments.quick)
    ]
    found: dict[str, Json] = {
        "settings": measured,
        "papers": papers(),
        "constants": constants(),
        "served": served(),
        **decided(1 if arguments.quick else RELEASES, only=arguments.only),
    }
    is_whole = arguments.only is None and not arguments.quick
    keep("online", found, quick=not is_whole)
    if is_whole:
        draw_plot(found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("adult", "skin"))
    return parser.parse_args()


def _measured(setting: Setting, release_count: int) -> dict[str, Json]:
    """Return what a setting gives, by mechanism and cutoff."""
    started = time.process_time()
    releases = [draw_votes(setting, release=number) for number in range(release_count)]
    seconds = (time.process_time() - started) / release_count
    cells: list[Json] = []
    for mechanism, cell in _cells(setting, releases):
        figures = {name: float(f"{value:.6g}") for name, value in asdict(cell).items()}
        cells.append({"mechanism": mechanism, **figures, "cutoff": cell.cutoff})
        print(_line(setting, mechanism, cell), flush=True)
    # A list of cells is made again from public rows; it would fill the file.
    kept = {name: value for name, value in setting.changes.items() if name != CELLS}
    changes: dict[str, Json] = dict(kept)
    return {
        "setting": setting.name,
        "method": setting.method,
        "data": setting.data,
        "epsilon": setting.epsilon,
        "ensemble": releases[0].ensemble_size,
        "seconds": round(seconds, 2),
        "changes": changes,
        "cell_count": setting.cell_count,
        "distances_of_50": _histogram(releases[0]),
        "cells": cells,
    }


def _cells(setting: Setting, releases: Sequence[Votes]) -> Iterator[tuple[str, Cell]]:
    tests = test_set(setting.data)
    for cutoff in CUTOFFS:
        check_served(releases[0], cutoff=cutoff, seed=cutoff)
        yield "profile", profile_cell(releases, tests, cutoff=cutoff)
        yield "svt", svt_cell(releases, tests, cutoff=cutoff)
    for count in NOISY_COUNTS:
        if count <= len(tests.values):
            yield "noisy vote", noisy_vote_cell(releases, tests, count)


def _histogram(votes: Votes) -> list[Json]:
    """Return how many vectors lie at distances of each 50 votes, the last open."""
    places = np.minimum(votes.distance // HISTOGRAM_STEP, HISTOGRAM_LAST)
    return [int(count) for count in np.bincount(places)]


def _line(setting: Setting, mechanism: str, cell: Cell) -> str:
    return (
        f"{setting.data:<6}{setting.epsilon:>2} {setting.name:<60}{mechanism:<11}"
        f"{cell.cutoff:>6}{cell.answered:>8.0f} ±{cell.answered_deviation:<6.0f}"
        f"{cell.expected:>10.3g}{cell.accuracy:>8.4f} ±{cell.accuracy_deviation:.4f}"
    )


if __name__ == "__main__":
    main()
