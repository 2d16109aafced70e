"""What does one setting of a release on real data answer, as a JSON document?

Expected on Adult with the example's shares: about a thousand answers at k = 800,
above twelve thousand at k = 1600, at an accuracy of .82 to .83, and .85 after
the switch; on Skin 3,500 (canonical, k = 800) to 11,000 (halving, k = 1200) at
.95, and .96 after it.  Without relabelling, under a fifth.  Means over fresh
releases, each with an order of the test rows of its own.

    python benchmarks/figures.py --data adult --ensemble 1600 --releases 10

Adult is judged on the first row of each distinct vector with a stable answer,
Skin on all rows of those vectors; both are printed.
"""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import asdict
from statistics import mean
from typing import TYPE_CHECKING

import structlog

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.releases import ENSEMBLE, RELABEL, RULE, run_releases

if TYPE_CHECKING:
    from benchmarks.measuring.trials import Trial


def main() -> None:
    """Run the releases and print their figures."""
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    trials = run_releases(arguments.data, _changes(arguments), arguments.releases)
    document = {
        "circumstances": circumstances(),
        "setting": vars(arguments),
        "mean": _mean(trials),
        "releases": [asdict(trial) for trial in trials],
    }
    print(json.dumps(document, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", choices=("adult", "skin"), default="adult")
    parser.add_argument("--ensemble", type=int, help="k; the example's by default")
    parser.add_argument("--rule", choices=("canonical", "halving"), help="the example's by default")
    parser.add_argument("--releases", type=int, default=1)
    parser.add_argument(
        "--no-relabelling", action="store_true", help="a relabel share of 0, the others as they are"
    )
    return parser.parse_args()


def _changes(arguments: argparse.Namespace) -> dict[str, str]:
    """Return what the arguments change in the example, as environment variables."""
    changes = {}
    if arguments.ensemble is not None:
        changes[ENSEMBLE] = str(arguments.ensemble)
    if arguments.rule is not None:
        changes[RULE] = arguments.rule
    if arguments.no_relabelling:
        changes[RELABEL] = "0"
    return changes


def _mean(trials: list[Trial]) -> dict[str, float]:
    """Return the mean of every figure over the releases."""
    columns = {name: [asdict(trial)[name] for trial in trials] for name in asdict(trials[0])}
    return {name: round(mean(values), 5) for name, values in columns.items()}


if __name__ == "__main__":
    main()
