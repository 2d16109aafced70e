"""From how many rows times epsilon on is a linear score better than the exact tree?

Expected: the trees ahead by .02 at some hundreds, the linear score ahead from about a thousand on,
and by .01 and more from three thousand; on made-up people, half of them with rare strong effects.
`learner = "auto"` takes the linear score from what this shows on
(`app/privacy/noisy_gradient/descent_choices.py`).  Some ten minutes of one processor; no
benchmark's data.

    python -m benchmarks.utility.choosing [--populations 4] [--seeds 4]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from statistics import mean
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from app.data.rows import PrivateRows
from app.release.classifier.exponential import ExponentialDraw
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.linear import LinearDraw
from app.release.terms.configuration import configure
from app.settings.settings import Settings
from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.populations import LABELLED, population
from benchmarks.utility.published_split import POINT_COUNT
from benchmarks.utility.seeded_noise import SeededNoise
from benchmarks.utility.tuning import guessing, tables

if TYPE_CHECKING:
    from app.learning.trees.tree_class import TreeClass
    from benchmarks.utility.populations import Population

ROWS: Final = 8000
# Rows times epsilon.
PRODUCTS: Final = (300, 600, 1000, 1500, 2000, 3000, 6000, 12_000)
LEARNERS: Final[dict[str, dict[str, Any]]] = {
    "linear score": {"learner": "linear", "bins": 8},
    "tree of depth 2": {"learner": "exponential", "class": "trees", "depth": 2, "bins": 5},
    "tree of depth 3": {"learner": "exponential", "class": "trees", "depth": 3, "bins": 5},
    "tree of depth 4": {"learner": "exponential", "class": "trees", "depth": 4, "bins": 5},
}


def main() -> None:
    """Print the mean accuracy of every learner at every product."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--populations", type=int, default=4, help="half have rare strong effects")
    parser.add_argument("--seeds", type=int, default=4, help="runs on each")
    arguments = parser.parse_args()
    print(circumstances())
    people = [
        population(seed, row_count=ROWS + LABELLED, rare=bool(seed % 2))
        for seed in range(arguments.populations)
    ]
    share = mean(guessing(each, row_count=ROWS) for each in people)
    print(f"{'guessing':>16}  {share:.4f}")
    print(f"{'rows * epsilon':>16}  " + " ".join(f"{product:>6g}" for product in PRODUCTS))
    for name, chosen in LEARNERS.items():
        print(f"{name:>16} ", end="", flush=True)
        for product in PRODUCTS:
            each = [_accuracy(one, chosen, product / ROWS, arguments.seeds) for one in people]
            print(f" {mean(each):.4f}", end="", flush=True)
        print()


def _accuracy(people: Population, chosen: dict[str, Any], epsilon: float, seeds: int) -> float:
    """Learn from the first rows, once a seed, and score the others."""
    given = tables(people, epsilon, row_count=ROWS) | {"classifier": chosen}
    rows = PrivateRows(people.values[:ROWS].copy(), people.labels[:ROWS].copy())
    picked = np.random.default_rng(0).choice(np.arange(ROWS, len(people.values)), POINT_COUNT)
    prepared = classifier_draw(
        configure(Settings.read(given)), people.values[picked], row_count=ROWS
    )
    labels = people.labels[ROWS:]
    if isinstance(prepared, LinearDraw):
        encoded = prepared.inputs.encode(people.values[ROWS:])
        found = [prepared.draw(rows, SeededNoise(seed)) for seed in range(seeds)]
        return mean(float((each.predict(encoded) == labels).mean()) for each in found)
    parameters = cast("ExponentialDraw", prepared).parameters
    trees = cast("TreeClass", parameters.hypotheses)
    # The sums over trees are most of the time, and the runs share them.
    weights = trees.weights(trees.encode(rows.values), rows.labels, parameters.mechanism_epsilon)
    encoded = trees.encode(people.values[ROWS:])
    drawn = [weights.draw(SeededNoise(seed)) for seed in range(seeds)]
    return mean(float((each.predict(encoded) == labels).mean()) for each in drawn)


if __name__ == "__main__":
    main()
