"""How well does a tree with noisy counts in its leaves rank, beside a linear score?

Expected: an area under the curve of .7 to .9 for both; the linear score ahead by some hundredths
where rows times epsilon are many, and the scored tree where a label is rare and they are few.  A
tree without scores, whose labels are all there is to rank by, is near one half where a label is
rare.  Ten minutes of one processor on the shared tables, `thinned` being Adult with one row in 38
of the rarer label.

    python -m benchmarks.ranking [--tables adult bank] [--rows 30000] [--runs 4]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dataclasses import replace
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.metrics import roc_auc_score

from app.release.terms.configuration import configure
from app.settings.settings import Settings
from benchmarks.measuring.circumstances import circumstances
from benchmarks.panel.ours import predicted, settings_of
from benchmarks.panel.sets import SETS, shared

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.panel.sets import Table

EPSILONS: Final = (0.1, 0.5, 1.0, 2.0)
RARE: Final = 1 / 38
TESTS: Final = 5000
LEARNERS: Final[dict[str, dict[str, Any]]] = {
    "tree without scores": {"learner": "exponential", "depth": 3, "bins": 5},
    "scored tree": {"learner": "scored-tree", "depth": 3, "bins": 5},
    "linear": {"learner": "linear"},
}


def main() -> None:
    """Print the mean area under the curve of every learner, with its spread, by table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    names = ("adult", "bank", "shoppers", "skin", "thinned")
    parser.add_argument("--tables", nargs="+", choices=names, default=names)
    parser.add_argument("--rows", type=int, default=30_000, help="private rows at most")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    arguments = parser.parse_args()
    print(circumstances())
    for name in arguments.tables:
        table = thinned(shared("adult")) if name == "thinned" else SETS[name]()
        table = cut(table, arguments.rows)
        print(f"{name}: {len(table.rows)} rows, {table.labels.mean():.1%} of the second label")
        for learner, chosen in LEARNERS.items():
            found = [
                _areas(table, epsilon, chosen, runs=arguments.runs)
                for epsilon in arguments.epsilons
            ]
            told = " ".join(f"{mean(each):.3f} ± {pstdev(each):.3f}" for each in found)
            print(f"{learner:>20}  {told}", flush=True)


def thinned(table: Table) -> Table:
    """Return a table without most rows of its second label."""
    generator = np.random.default_rng(0)
    (rows, labels), (test, test_labels) = (
        _without_most(values, labels, generator)
        for values, labels in ((table.rows, table.labels), (table.test, table.test_labels))
    )
    return replace(table, rows=rows, labels=labels, test=test, test_labels=test_labels)


def _without_most(
    values: NDArray[np.float64], labels: NDArray[np.int64], generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    frequent = np.flatnonzero(labels == 0)
    count = round(len(frequent) * RARE / (1 - RARE))
    rare = generator.choice(np.flatnonzero(labels == 1), count, replace=False)
    kept = np.sort(np.concatenate([frequent, rare]))
    return values[kept], labels[kept]


def cut(table: Table, row_count: int) -> Table:
    """Return a table with so many private rows at most, and few test rows."""
    order = np.random.default_rng(1).permutation(len(table.rows))[:row_count]
    return replace(
        table,
        rows=table.rows[order],
        labels=table.labels[order],
        test=table.test[:TESTS],
        test_labels=table.test_labels[:TESTS],
    )


def _areas(table: Table, epsilon: float, chosen: dict[str, Any], *, runs: int) -> list[float]:
    """Return the area under the curve of each run, by labels where there are no scores."""
    tables = settings_of(table, epsilon, wanted="labels") | {"classifier": chosen}
    configuration = configure(Settings.read(tables))
    found = []
    for run in range(runs):
        labels, scores = predicted(table, configuration, table.points(run), seed=run)
        by = labels if scores is None else scores
        found.append(float(roc_auc_score(table.test_labels, by)))
    return found


if __name__ == "__main__":
    main()
