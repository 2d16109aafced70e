"""How many queries does a release of real data answer, and how well?

Expected: thousands of answers on Adult with k = 1600 and a thousand with k = 800,
a tenth of that without relabelling; thousands on Skin.  The figures are means
over fresh releases, each with an order of the test rows of its own, each distinct
vector asked once.  The data sets are those that CONCLAVE_TEST_DATA names.

    python benchmarks/answers_on_data.py [--releases N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

import structlog

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.releases import ENSEMBLE, RELABEL, RULE, run_releases

if TYPE_CHECKING:
    from benchmarks.measuring.trials import Trial

HEADING = (
    f"{'case':<30}{'answered':>10}{'unstable':>10}{'first':>8}{'rows':>8}"
    f"{'switched':>10}{'open s':>8}{'draw s':>8}"
)


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the table: an example, and what is set otherwise."""

    name: str
    data: str
    changes: dict[str, str]


CASES = (
    Case("adult, canonical, k = 800", "adult", {ENSEMBLE: "800"}),
    Case("adult, canonical, k = 1600", "adult", {ENSEMBLE: "1600"}),
    Case("adult, k = 800, unrelabelled", "adult", {ENSEMBLE: "800", RELABEL: "0"}),
    Case("adult, k = 1600, unrelabelled", "adult", {ENSEMBLE: "1600", RELABEL: "0"}),
    Case("skin, canonical, k = 800", "skin", {ENSEMBLE: "800", RULE: "canonical"}),
    Case("skin, halving, k = 1200", "skin", {ENSEMBLE: "1200", RULE: "halving"}),
)


def main() -> None:
    """Print a line for each case."""
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    print(circumstances())
    print(
        f"mean of {arguments.releases} releases; accuracy on the first row, on all rows, switched"
    )
    print(HEADING)
    for case in CASES:
        if arguments.only in case.name:
            trials = run_releases(case.data, case.changes, arguments.releases)
            print(_line(case, trials), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    return parser.parse_args()


def _line(case: Case, trials: list[Trial]) -> str:
    switched = mean(trial.classifier_accuracy or 0.0 for trial in trials)
    return (
        f"{case.name:<30}{mean(trial.answered for trial in trials):>10.0f}"
        f"{mean(trial.unstable for trial in trials):>10.1f}"
        f"{mean(trial.accuracy_first for trial in trials):>8.3f}"
        f"{mean(trial.accuracy_rows for trial in trials):>8.3f}{switched:>10.4f}"
        f"{mean(trial.opening_seconds for trial in trials):>8.1f}"
        f"{mean(trial.switch_seconds for trial in trials):>8.1f}"
    )


if __name__ == "__main__":
    main()
