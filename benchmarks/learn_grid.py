"""How accurate is a grid that `conclave learn` publishes on Skin, with the whole epsilon?

Expected: .985 at epsilon .1, .995 at .5, .996 at 1 and .997 at 2, a spread of .003 to .0001, and
half a second a run for 37,376 noisy counts over 220,000 rows.  All test rows score it, by the
document.  The data set is the one that CONCLAVE_TEST_DATA names.

    python -m benchmarks.learn_grid [--epsilons .1 .5 1 2] [--runs 5]
"""

from __future__ import annotations

import argparse
import time
from statistics import mean, pstdev
from typing import Final

from app.noise.system import SystemNoise
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.terms.configuration import configure, no_points
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.trials import read_rows
from benchmarks.utility.online_data import data_folder, loaded, private_rows

SHARES: Final = '{"relabel": 0, "answers": 0, "classifier": 1}'


def main() -> None:
    """Print a line for each epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilons", nargs="+", default=["0.1", "0.5", "1", "2"])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print(circumstances())
    print(f"{'epsilon':>7}{'accuracy':>10}{'spread':>8}{'seconds':>9}  each run")
    for epsilon in arguments.epsilons:
        accuracies, seconds = _measured(epsilon, arguments.runs)
        listed = " ".join(f"{each:.4f}" for each in accuracies)
        spread = pstdev(accuracies)
        print(f"{epsilon:>7}{mean(accuracies):10.4f}{spread:8.4f}{seconds:9.2f}  {listed}")


def _measured(epsilon: str, runs: int) -> tuple[list[float], float]:
    """Return the accuracy of each run, and the seconds of one draw and its document."""
    changes = {
        "CONCLAVE_CLASSIFIER__LEARNER": "grid",
        "CONCLAVE_PRIVACY__EPSILON": epsilon,
        "CONCLAVE_PRIVACY__SHARES": SHARES,
        "CONCLAVE_LEDGER__URL": "sqlite:///unused.db",
    }
    configuration = configure(loaded("skin", changes))
    rows = private_rows("skin")
    tests = read_rows(data_folder() / "skin" / "test.csv", configuration.schema)
    points = no_points(configuration.settings)
    accuracies, started = [], time.monotonic()
    drawn = []
    for _ in range(runs):
        prepared = classifier_draw(configuration, points, row_count=rows.count)
        drawn.append(draw_published(configuration, prepared, rows, SystemNoise()))
    seconds = (time.monotonic() - started) / runs
    for classifier in drawn:
        labels = classifier.predict_many([row.vector for row in tests])
        accuracies.append(
            mean(label == row.label for label, row in zip(labels, tests, strict=True))
        )
    return accuracies, seconds


if __name__ == "__main__":
    main()
