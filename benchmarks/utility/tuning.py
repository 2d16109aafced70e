"""Which constants would the linear score have, judged on made-up people alone?

Expected: the constants of app/privacy/noisy_gradient/descent_choices.py are within .003 of the best
variant at every epsilon, on people who are neither a benchmark's rows nor like each other; the
line of gradient boosting, without privacy, says how far there is to go.  Some minutes of one
processor for two populations; the app's own learner runs under every variant of its choices.

    python -m benchmarks.utility.tuning [--populations 2] [--seeds 2]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dataclasses import replace
from decimal import Decimal
from statistics import mean
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import numpy as np

from app.data.rows import PrivateRows
from app.privacy.noisy_gradient.descent_choices import descent_choice
from app.release.classifier import linear as linear_learner
from app.release.classifier.learner_table import classifier_draw
from app.release.terms.configuration import configure
from app.settings.settings import Settings
from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.populations import CATEGORY_COUNTS, ROWS, population
from benchmarks.utility.published_split import POINT_COUNT
from benchmarks.utility.seeded_noise import SeededNoise

if TYPE_CHECKING:
    from app.privacy.noisy_gradient.descent_choices import DescentChoice
    from benchmarks.utility.populations import Population

EPSILONS: Final = (0.1, 0.5, 1.0, 2.0)
NUMBER_COUNT: Final = 6


def main() -> None:
    """Print the mean accuracy of every variant at every epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--populations", type=int, default=2, help="half have rare strong effects")
    parser.add_argument("--seeds", type=int, default=2, help="runs on each")
    arguments = parser.parse_args()
    print(circumstances())
    people = [population(seed, rare=bool(seed % 2)) for seed in range(arguments.populations)]
    print(f"{'guessing':>24}  {mean(guessing(each, row_count=ROWS) for each in people):.4f}")
    print(f"{'boosting, not private':>24}  {mean(_boosting(each) for each in people):.4f}")
    print(f"{'':>24}  " + " ".join(f"{epsilon:>6g}" for epsilon in EPSILONS))
    for name in variants(descent_choice(row_count=ROWS, epsilon=1.0)):
        cells = [
            mean(
                accuracy
                for each in people
                for accuracy in _accuracies(each, name, epsilon, arguments.seeds)
            )
            for epsilon in EPSILONS
        ]
        print(f"{name:>24}  " + " ".join(f"{cell:.4f}" for cell in cells), flush=True)


def variants(choice: DescentChoice) -> dict[str, DescentChoice]:
    """Return what is tried beside a choice, one constant at a time."""
    return {
        "as chosen": choice,
        "length * 0.6": replace(choice, length=choice.length * 0.6),
        "length * 1.5": replace(choice, length=choice.length * 1.5),
        "ridge / 4": replace(choice, ridge=choice.ridge / 4),
        "ridge * 4": replace(choice, ridge=choice.ridge * 4),
        "rate / 2": replace(choice, rate=choice.rate / 2),
        "rate * 2": replace(choice, rate=choice.rate * 2),
        "half the steps": replace(choice, step_count=choice.step_count // 2),
        "twice the steps": replace(choice, step_count=choice.step_count * 2),
    }


def _accuracies(people: Population, name: str, epsilon: float, seeds: int) -> list[float]:
    """Learn from the first rows under a variant, and score the others."""

    def varied(*, row_count: int, epsilon: float) -> DescentChoice:
        return variants(descent_choice(row_count=row_count, epsilon=epsilon))[name]

    configuration = configure(Settings.read(tables(people, epsilon, row_count=ROWS)))
    values = people.values.copy()
    rows = PrivateRows(values[:ROWS], people.labels[:ROWS].copy())
    points = np.random.default_rng(0).choice(np.arange(ROWS, len(values)), POINT_COUNT)
    with mock.patch.object(linear_learner, "descent_choice", varied):
        drawn = classifier_draw(configuration, values[points], row_count=ROWS)
    if not isinstance(drawn, linear_learner.LinearDraw):
        raise TypeError(name)
    encoded = drawn.inputs.encode(values[ROWS:])
    predictions = (drawn.draw(rows, SeededNoise(seed)).predict(encoded) for seed in range(seeds))
    return [float((each == people.labels[ROWS:]).mean()) for each in predictions]


def tables(people: Population, epsilon: float, *, row_count: int) -> dict[str, Any]:
    """Return the settings of a release on a population: bounds and codes are public.

    Args:
        people: of whom the first are private rows.
        epsilon: all of it for a linear score.
        row_count: of the private rows.

    """
    numbers = [
        {
            "name": f"number{index}",
            "kind": "numeric",
            "bounds": [float(column.min()), float(column.max())],
        }
        for index, column in enumerate(people.values.T[:NUMBER_COUNT])
    ]
    categories = [
        {"name": f"of{count}", "kind": "categorical", "categories": [f"c{i}" for i in range(count)]}
        for count in CATEGORY_COUNTS
    ]
    return {
        "release": {"name": "people"},
        "data": {
            "source": "unused.csv",
            "rows": row_count,
            "label": "label",
            "classes": ["no", "yes"],
            "features": [*numbers, *categories],
        },
        "hypotheses": {"class": "trees", "depth": 1},
        "classifier": {"learner": "linear", "bins": 8},
        "privacy": {
            "epsilon": Decimal(str(epsilon)),
            "delta": Decimal("1e-6"),
            "shares": {"relabel": 0, "answers": 0, "classifier": 1},
        },
        "ledger": {"url": "sqlite:///unused.db"},
    }


def guessing(people: Population, *, row_count: int) -> float:
    """Return how many of the rows after the private ones have the label that most have."""
    share = float(people.labels[row_count:].mean())
    return max(share, 1 - share)


def _boosting(people: Population) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 -- slow to import

    kinds = np.arange(people.values.shape[1]) >= NUMBER_COUNT
    model = HistGradientBoostingClassifier(random_state=0, categorical_features=kinds)
    model.fit(people.values[:ROWS], people.labels[:ROWS])
    return float(model.score(people.values[ROWS:], people.labels[ROWS:]))


if __name__ == "__main__":
    main()
