"""When is private prediction better than a privately trained model, at the same epsilon?

Expected: where the concept is a short tree, the model, by a point or so and for any number
of queries; where no small public class holds it, prediction by learners that need none, by
many points, for as many queries as the budget lasts.  Takes about four minutes.

Two made-up concepts on the unit square, one label in twenty flipped.  *Tree*: two cuts.
*Rings*: inside, outside and between three circles.  On each the whole budget goes

* to a model: a tree drawn by the exponential mechanism, over a public grid;
* to prediction: answers of learners of any kind, k chunks of rows, until the budget ends.

Where CONCLAVE_TEST_DATA names the public data sets, a model of the Skin example is drawn with
the whole budget as well, beside which docs/performance.md has its ensemble.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.sources.sources import read_rows
from app.errors import BudgetExhaustedError
from app.estimator.classifier import PrivateQueryClassifier
from app.estimator.memory_release import MemoryRelease
from app.noise.system import SystemNoise
from app.release.terms.configuration import configure
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import circumstances

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

ROWS: Final = 200_000
QUERIES: Final = 2000
LEARNERS: Final = 800
FLIPPED: Final = 0.05
DELTA: Final = 1e-6
EPSILONS: Final = (0.5, 1.0, 2.0)
RUNS: Final = 2
SEED: Final = 20_261
RINGS: Final = (0.15, 0.3, 0.45)
PUBLIC = {"delta": DELTA, "bounds": (0, 1), "classes": [0, 1]}
MODEL = {"shares": {"classifier": 1.0}, "depth": 4, "bins": 16}
TREES = {"shares": {"relabel": 0.1, "answers": 0.9}, "depth": 2, "bins": 16}
NEIGHBOURS = {
    "shares": {"answers": 1.0},
    "learner": "sklearn.neighbors.KNeighborsClassifier",
    "learner_params": {"n_neighbors": 5},
}
PREDICTION = {
    "queries": QUERIES,
    "cutoff": 20,
    "ensemble": LEARNERS,
    "after": "halt",
    "on_cutoff": "halt",
}


EXAMPLE = Path(__file__).parents[1] / "examples" / "skin.toml"
ALL_FOR_THE_MODEL = {"relabel": 0, "answers": 0, "classifier": 1, "statistics": 0}


@dataclass(frozen=True, slots=True)
class Found:
    """What one release gave.

    Attributes:
        answered: queries that were answered, of 2,000; a model answers all there are.
        accuracy: of the stable answers, against labels without flips.

    """

    answered: int
    accuracy: float


def tree(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Label points by two cuts."""
    return ((points[:, 0] > 0.4) & (points[:, 1] > 0.3)).astype(np.int64)


def rings(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Label points by how many of three circles they are in, odd or even."""
    radius = np.hypot(points[:, 0] - 0.5, points[:, 1] - 0.5)
    return (np.searchsorted(RINGS, radius) % 2).astype(np.int64)


def main() -> None:
    """Print a row a concept, an epsilon and a way to spend it."""
    print(circumstances())
    print(f"{ROWS:,} rows, k = {LEARNERS}, {QUERIES:,} queries, means of {RUNS} releases")
    print("concept  epsilon  spent on                answered  accuracy")
    for concept in (tree, rings):
        for epsilon in EPSILONS:
            for name, settings in _ways().items():
                found = [_release(concept, epsilon, settings, run=run) for run in range(RUNS)]
                answered = np.mean([each.answered for each in found])
                accuracy = np.mean([each.accuracy for each in found])
                shown = "all" if settings is MODEL else f"{answered:,.0f}"
                print(
                    f"{concept.__name__:7}  {epsilon:7g}  {name:22}  {shown:>8}  {accuracy:.4f}",
                    flush=True,
                )
    folder = os.environ.get("CONCLAVE_TEST_DATA")
    if folder:
        for epsilon in EPSILONS:
            accuracy = np.mean([skin(Path(folder), epsilon) for _ in range(RUNS)])
            print(f"Skin     {epsilon:7g}  model of the example         all  {accuracy:.4f}")


def skin(folder: Path, epsilon: float) -> float:
    """Draw the model of the Skin example and return its accuracy on the test rows."""
    settings = load_settings(
        EXAMPLE,
        {
            "CONCLAVE_DATA__SOURCE": str(folder / "skin" / "train.csv"),
            "CONCLAVE_PRIVACY__EPSILON": str(epsilon),
            "CONCLAVE_PRIVACY__SHARES": json.dumps(ALL_FOR_THE_MODEL),
        },
    )
    configuration = configure(settings)
    rows = read_rows(settings.source, configuration.schema, rows_expected=settings.data.rows)
    release = MemoryRelease(configuration, rows=rows, noise=SystemNoise())
    asked = read_rows(str(folder / "skin" / "test.csv"), configuration.schema, rows_expected=None)
    answers = release.answer([tuple(row) for row in asked.values.tolist()])
    labels = [None if isinstance(each, BudgetExhaustedError) else each.label for each in answers]
    classes = configuration.schema.classes
    return float(
        np.mean([classes[at] == label for at, label in zip(asked.labels, labels, strict=True)])
    )


def _ways() -> dict[str, dict[str, object]]:
    return {
        "model: tree, depth 4": MODEL,
        "prediction: trees": {**PREDICTION, **TREES},
        "prediction: neighbours": {**PREDICTION, **NEIGHBOURS},
    }


def _release(
    concept: Callable[[NDArray[np.float64]], NDArray[np.int64]],
    epsilon: float,
    settings: dict[str, object],
    *,
    run: int,
) -> Found:
    """Open one release on rows of its own and ask it."""
    generator = np.random.default_rng([SEED, run])
    rows = generator.random((ROWS, 2))
    labels = concept(rows) ^ (generator.random(ROWS) < FLIPPED)
    queries = generator.random((QUERIES, 2))
    private = PrivateQueryClassifier(epsilon=epsilon, **PUBLIC, **settings)  # type: ignore[arg-type]  # tables
    private.fit(rows, labels)
    try:
        answers = private.answer(queries)
    except BudgetExhaustedError:  # what was answered before is recorded, and given again
        answers = private.answer(queries[: private.budget_["queries"]["answered"]])
    stable = [answer.stable for answer in answers]
    truth = concept(queries)[: len(answers)][stable]
    given = np.array([answer.label for answer in answers])[stable]
    return Found(len(answers), float((truth == given).mean()) if len(given) else float("nan"))


if __name__ == "__main__":
    main()
