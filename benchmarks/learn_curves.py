"""How right is a classifier that is learned at once where labels curve, as `auto` chooses it?

Expected: with the whole epsilon, Skin to .996 at epsilon .1 and .998 at 1, rings to .99 at 1,
balls in 5 and 8 numbers and waves in 4 to .98, .96 and .91 there, and ten seconds of a processor
for a draw from 220,000 rows.  `--learner linear` and the others show what was not chosen, and
`--rows` and `--epsilons` when that would be right.  Skin's public points are rows of the test
file, without their labels, and the other test rows score it.  Made-up rows lie anywhere between
the bounds and are drawn anew for each run, one label in twenty flipped, and scored by labels that
are not: rings (`benchmarks/prediction_or_model.py`), balls that hold half of all people, and the
sign of a wave along each diagonal of two neighbouring numbers, summed.  The data set is the one
that CONCLAVE_TEST_DATA names.

    python -m benchmarks.learn_curves [--data skin rings ball5 ball8 waves4] [--learner auto]
        [--epsilons .1 .5 1 2] [--runs 3] [--rows 200000] [--points 1000] [--bins 8] [--seed 0]
"""

from __future__ import annotations

import os

# As in the command line's programs: threads share regions, not products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import math
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.rows import PrivateRows
from app.noise.system import SystemNoise
from app.privacy.learner_properties import AUTO, LEARNERS
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.terms.configuration import configure
from app.settings.settings import Settings
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.prediction_or_model import FLIPPED, rings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DATA = Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data")
TESTS: Final = 20_000
SKIN_UPPER: Final = 255
DEPTH: Final = 4
DELTA: Final = Decimal("0.000001")
HEADING: Final = (
    f"{'data':>6}{'epsilon':>9}{'accuracy':>10}{'spread':>8}{'seconds':>9}{'of a processor':>16}"
)


@dataclass(frozen=True, slots=True)
class Set:
    """Rows to learn from, public points, and rows to be scored by."""

    rows: PrivateRows
    points: NDArray[np.float64]
    asked: NDArray[np.float64]
    labels: NDArray[np.int64]


def skin(arguments: argparse.Namespace, generator: np.random.Generator) -> Set:
    """Return Skin, with rows of its test file as points and the others to score."""
    (values, labels), (asked, right) = (
        _read(DATA / "skin" / f"{part}.csv") for part in ("train", "test")
    )
    order = generator.permutation(len(asked))
    known, scored = order[: arguments.points], order[arguments.points :]
    kept = generator.permutation(len(values))[: arguments.rows]
    rows = PrivateRows(values=values[kept], labels=labels[kept])
    return Set(rows, asked[known], asked[scored], right[scored])


def ball(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Label points by a ball that holds half of all, or nearly."""
    squares: NDArray[np.float64] = ((points - 0.5) ** 2).sum(axis=1)
    return np.asarray(squares < points.shape[1] / 12, dtype=np.int64)


def waves(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Label points by the sign of waves along the diagonals of neighbouring numbers."""
    summed = np.sin(math.tau * (points[:, 1:] + points[:, :-1])).sum(axis=1)
    return np.asarray(summed > 0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class MadeUp:
    """Rows anywhere between the bounds, by the rule that labels them."""

    rule: Callable[[NDArray[np.float64]], NDArray[np.int64]]
    dimension: int

    def __call__(self, arguments: argparse.Namespace, generator: np.random.Generator) -> Set:
        """Return rows of which one label in twenty is flipped."""
        values, known, asked = (
            generator.random((count, self.dimension))
            for count in (arguments.rows, arguments.points, TESTS)
        )
        flipped = generator.random(arguments.rows) < FLIPPED
        labels = np.where(flipped, 1 - self.rule(values), self.rule(values))
        return Set(PrivateRows(values=values, labels=labels), known, asked, self.rule(asked))


SETS: Final[dict[str, Callable[[argparse.Namespace, np.random.Generator], Set]]] = {
    "skin": skin,
    "rings": MadeUp(rings, 2),
    "ball5": MadeUp(ball, 5),
    "ball8": MadeUp(ball, 8),
    "waves4": MadeUp(waves, 4),
}


def main() -> None:
    """Print a line for each set and epsilon."""
    arguments = _arguments()
    print(circumstances())
    print(
        f"learner {arguments.learner}, {arguments.rows} rows or all there are, "
        f"{arguments.points} points, bins {arguments.bins or 'by the rule'}"
    )
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
    given = SETS[name](arguments, np.random.default_rng(seed))
    configuration = configure(
        settings_of(
            name,
            learner=arguments.learner,
            bins=arguments.bins,
            epsilon=epsilon,
            dimension=given.asked.shape[1],
        )
    )
    started, busy = time.monotonic(), time.process_time()
    draw = classifier_draw(configuration, given.points, row_count=given.rows.count)
    learned = draw_published(configuration, draw, given.rows, SystemNoise())
    taken = time.monotonic() - started, time.process_time() - busy
    answers = learned.predict_many([tuple(row) for row in given.asked.tolist()])
    right = np.array(configuration.schema.classes)[given.labels]
    return float((np.array(answers) == right).mean()), *taken


def settings_of(
    name: str, *, learner: str, bins: int | None, epsilon: float, dimension: int
) -> Settings:
    """Return a release whose whole epsilon is its classifier's."""
    upper = SKIN_UPPER if name == "skin" else 1
    return Settings.read(
        {
            "release": {"name": name},
            "data": {
                "source": "unused.csv",
                "label": "label",
                "classes": ["no", "yes"],
                "features": [
                    {"name": f"x{index}", "kind": "numeric", "bounds": [0, upper]}
                    for index in range(dimension)
                ],
            },
            "hypotheses": {"class": "trees"},
            "classifier": {
                "learner": learner,
                "depth": DEPTH,
                **({} if bins is None else {"bins": bins}),
            },
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
    parser.add_argument("--learner", choices=(*LEARNERS, AUTO), default=AUTO)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200_000, help="of Skin as many as it has")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--bins", type=int, help="of a number; by the public rule without it")
    parser.add_argument("--seed", type=int, default=0, help="of the points and of rings")
    return parser.parse_args()


if __name__ == "__main__":
    main()
