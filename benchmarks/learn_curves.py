"""How right is a classifier that is learned at once where labels curve: a kernel score's?

Expected: with the whole epsilon, Skin to .996 at epsilon .1 and .998 at 1, rings to .99 at 1,
and ten seconds of a processor for a draw from 220,000 rows.  `--learner linear` shows the linear
score on the same rows.  Skin's public points are rows of the test file, without their labels,
and the other test rows score it; rings (`benchmarks/prediction_or_model.py`) are drawn anew for
each run, one label in twenty flipped, and scored by labels that are not.  The data set is the
one that CONCLAVE_TEST_DATA names.

    python benchmarks/learn_curves.py [--data skin rings] [--learner kernel]
        [--epsilons .1 .5 1 2] [--runs 3] [--points 1000] [--bins 8] [--seed 0]
"""

from __future__ import annotations

import os

# As in the command line's programs: threads share regions, not products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.rows import PrivateRows
from app.noise.system import SystemNoise
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published import draw_published
from app.release.terms.configuration import configure
from app.settings.settings import Settings
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.prediction_or_model import FLIPPED, rings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DATA = Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data")
RING_ROWS: Final = 200_000
RING_TESTS: Final = 20_000
DELTA: Final = Decimal("0.000001")
HEADING: Final = (
    f"{'data':>6}{'epsilon':>9}{'accuracy':>10}{'spread':>8}{'seconds':>9}{'of a processor':>16}"
)
BOUNDS: Final = {"skin": (("b", "g", "r"), 255), "rings": (("x", "y"), 1)}


@dataclass(frozen=True, slots=True)
class Set:
    """Rows to learn from, public points, and rows to be scored by."""

    rows: PrivateRows
    points: NDArray[np.float64]
    asked: NDArray[np.float64]
    labels: NDArray[np.int64]


def skin(points: int, generator: np.random.Generator) -> Set:
    """Return Skin, with rows of its test file as points and the others to score."""
    (values, labels), (asked, right) = (
        _read(DATA / "skin" / f"{part}.csv") for part in ("train", "test")
    )
    order = generator.permutation(len(asked))
    known, scored = order[:points], order[points:]
    return Set(
        PrivateRows(values=values, labels=labels), asked[known], asked[scored], right[scored]
    )


def made_rings(points: int, generator: np.random.Generator) -> Set:
    """Return rings, of which one label in twenty is flipped."""
    values, known, asked = (
        generator.random((count, 2)) for count in (RING_ROWS, points, RING_TESTS)
    )
    flipped = generator.random(RING_ROWS) < FLIPPED
    labels = np.where(flipped, 1 - rings(values), rings(values))
    return Set(PrivateRows(values=values, labels=labels), known, asked, rings(asked))


SETS: Final[dict[str, Callable[[int, np.random.Generator], Set]]] = {
    "skin": skin,
    "rings": made_rings,
}


def main() -> None:
    """Print a line for each set and epsilon."""
    arguments = _arguments()
    print(circumstances())
    print(f"learner {arguments.learner}, {arguments.points} points, bins {arguments.bins}")
    print(HEADING)
    for name in arguments.data:
        for epsilon in arguments.epsilons:
            found = [
                _run(arguments, name, epsilon, arguments.seed + run)
                for run in range(arguments.runs)
            ]
            accuracies, seconds, busy = zip(*found, strict=True)
            print(
                f"{name:>6}{epsilon:>9g}{mean(accuracies):>10.4f}{pstdev(accuracies):>8.4f}"
                f"{mean(seconds):>9.1f}{mean(busy):>16.1f}",
                flush=True,
            )


def _run(
    arguments: argparse.Namespace, name: str, epsilon: float, seed: int
) -> tuple[float, float, float]:
    """Return the accuracy of one draw, and how long it took, by the clock and of a processor."""
    given = SETS[name](arguments.points, np.random.default_rng(seed))
    configuration = configure(
        settings_of(name, learner=arguments.learner, bins=arguments.bins, epsilon=epsilon)
    )
    started, busy = time.monotonic(), time.process_time()
    draw = classifier_draw(configuration, given.points, row_count=given.rows.count)
    learned = draw_published(configuration, draw, given.rows, SystemNoise())
    taken = time.monotonic() - started, time.process_time() - busy
    answers = learned.predict_many([tuple(row) for row in given.asked.tolist()])
    right = np.array(configuration.schema.classes)[given.labels]
    return float((np.array(answers) == right).mean()), *taken


def settings_of(name: str, *, learner: str, bins: int, epsilon: float) -> Settings:
    """Return a release whose whole epsilon is its classifier's."""
    columns, upper = BOUNDS[name]
    return Settings.read(
        {
            "release": {"name": name},
            "data": {
                "source": "unused.csv",
                "label": "label",
                "classes": ["no", "yes"],
                "features": [
                    {"name": column, "kind": "numeric", "bounds": [0, upper]} for column in columns
                ],
            },
            "hypotheses": {"class": "trees"},
            "classifier": {"learner": learner, "bins": bins},
            "privacy": {
                "epsilon": Decimal(str(epsilon)),
                "delta": DELTA,
                "shares": {"relabel": 0, "answers": 0, "classifier": 1},
            },
            "ledger": {"url": "sqlite:///unused.db"},
        }
    )


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the numbers of a file, and whether its label is yes."""
    cells = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.str_)
    return cells[:, :-1].astype(np.float64), (cells[:, -1] == "yes").astype(np.int64)


def _arguments() -> argparse.Namespace:
    """Read what to run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", choices=tuple(SETS), nargs="+", default=list(SETS))
    parser.add_argument("--learner", choices=("kernel", "linear"), default="kernel")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--bins", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0, help="of the points and of rings")
    return parser.parse_args()


if __name__ == "__main__":
    main()
