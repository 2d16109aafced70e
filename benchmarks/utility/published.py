"""Benchmark A: how accurate is a private classifier that is published at once, by method?

Expected on Adult, at epsilon .1, .5, 1 and 2: our linear score .850 to .867, ahead of noisy
descent as it is known (.849 to .863), of our exact tree (.847 to .860) and of the peers (DP-EBM
.858 at most, diffprivlib .843).  About 25 minutes of one processor, of which the exact trees
and the peers are most; ``--quick`` takes few draws, seeds and settings, in some three minutes.

    python -m benchmarks.utility.published [--quick] [--only METHOD ...]

``--only`` measures the methods named and keeps the others as they were found before.
"""

from __future__ import annotations

import argparse
import os

# Threads share regions, not products; the peers' processes follow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from benchmarks.measuring.circumstances import circumstances, commit
from benchmarks.utility.peers import peer_accuracies
from benchmarks.utility.plain_descent import descent_accuracies
from benchmarks.utility.published_ours import LINEAR, TREE, our_accuracies
from benchmarks.utility.published_page import draw_plot, means
from benchmarks.utility.published_references import reference_accuracies
from benchmarks.utility.published_split import adult
from benchmarks.utility.results import keep, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.utility.published_split import Split
    from benchmarks.utility.results import Json

EPSILONS: Final = (0.1, 0.5, 1.0, 2.0)
DELTA: Final = 1e-6
DRAWS: Final = 5
SEEDS: Final = 4


def main() -> None:
    """Measure every method, keep what was found, and draw it."""
    arguments = _arguments()
    print(circumstances())
    methods = _methods(adult(), quick=arguments.quick)
    found: dict[str, Json] = {}
    if arguments.only and not arguments.quick:
        found = cast("dict[str, Json]", (read("published") or {}).get("methods", {}))
    for name in arguments.only or methods:
        print(f"{name} ...", flush=True)
        started = time.process_time()
        measured = methods[name]()
        found[name] = {
            "commit": commit(),
            "seconds": round(time.process_time() - started, 1),
            "found": measured,
        }
        print(f"{name}: {means(measured)}", flush=True)
        # After each, so that a run that is cut off has kept the methods before.
        keep("published", {"methods": found}, quick=arguments.quick)
    if not arguments.quick:
        draw_plot(found)


def _methods(split: Split, *, quick: bool) -> dict[str, Callable[[], dict[str, Json]]]:
    """Return what measures each method."""
    draws, seeds = (1, 2) if quick else (DRAWS, SEEDS)
    ours = partial(our_accuracies, split, draws=draws, seeds=seeds)
    return {
        "references": partial(reference_accuracies, split),
        "peers": partial(peer_accuracies, split, quick=quick),
        "descent": partial(
            descent_accuracies,
            split,
            EPSILONS,
            draws=draws,
            seeds=seeds,
            delta=DELTA,
            quick=quick,
        ),
        "linear": partial(ours, LINEAR, EPSILONS),
        "tree": partial(ours, TREE, EPSILONS[:1] if quick else EPSILONS),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few draws; keeps no page")
    names = ("references", "peers", "descent", "linear", "tree")
    parser.add_argument("--only", nargs="+", choices=names, metavar="METHOD", help=", ".join(names))
    return parser.parse_args()


if __name__ == "__main__":
    main()
