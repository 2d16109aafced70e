"""How accurate is a classifier that is learned at once, with the whole epsilon, on Adult?

Expected: .847 at epsilon .1, .857 at .5 and .860 at 1 and 2, for trees of depth 5
and `bins` 5, a spread of .001, and some twenty seconds of a processor for the weights
of one set of points.  `conclave learn` is given rows of the test file, without their
labels, as public points, and all test rows score it, those included.  Five draws of a
set share its weights, which are most of the time; their law is the command's, and with
`--whole` every run is the command's own call, ledger and all.  With `--plain` the grid
has neither finer cuts at spikes nor fewer categories: half a point less at depth 4.
`--learner linear --bins 8`, which `auto` comes to here, descends by noisy sums in a second or two.
The data set is the one that CONCLAVE_TEST_DATA names.

    python benchmarks/learn_adult.py [--learner linear] [--epsilons .1 .5 1 2] [--depth 5]
        [--bins 5] [--sets 3] [--seed 0] [--runs 5] [--points 1000] [--plain] [--whole]
"""

from __future__ import annotations

import os

# As in the command line's programs: threads share regions, not products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import csv
import random
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, pstdev
from typing import TYPE_CHECKING, cast

from app.data.feature_tests import classifier_tests
from app.data.public_points import read_public_points
from app.data.sources.sources import read_rows as read_private_rows
from app.main import learn_from_settings
from app.noise.system import SystemNoise
from app.privacy.learner_properties import AUTO, LEARNERS
from app.release.classifier.exponential import ExponentialDraw
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published_classifier import draw_published, publish_drawn
from app.release.terms.configuration import configure
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.trials import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.learning.trees.tree_class import TreeClass
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.settings.settings import Settings
    from benchmarks.measuring.trials import TestRow

DATA = Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data") / "adult"
EXAMPLE = ROOT / "examples" / "adult.toml"
SHARES = '{"relabel": 0, "answers": 0, "classifier": 1}'
TARGETS = {0.1: 0.845, 0.5: 0.856, 1.0: 0.858, 2.0: 0.859}
HEADING = (
    f"{'epsilon':>7}{'accuracy':>10}{'spread':>8}{'target':>8}{'seconds':>9}  by set of points"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The accuracies of the runs on one set of points, and what the set took."""

    accuracies: tuple[float, ...]
    seconds: float


def main() -> None:
    """Print a line for each epsilon."""
    arguments = _arguments()
    rows = read_rows(DATA / "test.csv", _settings(arguments, 1.0, "unused.db").data.public_schema())
    seeds = range(arguments.seed, arguments.seed + arguments.sets)
    print(circumstances())
    print(
        f"depth {arguments.depth}, bins {arguments.bins}: {arguments.sets} sets of "
        f"{arguments.points} points (seeds {seeds[0]} to {seeds[-1]}), {arguments.runs} runs each"
    )
    print(HEADING)
    for epsilon in arguments.epsilons:
        measured = [_measured(arguments, epsilon, seed, rows) for seed in seeds]
        print(_line(epsilon, measured), flush=True)


def _measured(
    arguments: argparse.Namespace, epsilon: float, seed: int, rows: list[TestRow]
) -> Measured:
    """Learn several times from the points that a seed picks."""
    with tempfile.TemporaryDirectory() as folder:
        public = _write_points(Path(folder) / "public.csv", seed, arguments.points)
        started = time.monotonic()
        if arguments.whole:
            learned = [
                learn_from_settings(
                    _settings(arguments, epsilon, str(Path(folder) / f"{run}.db")),
                    public=public,
                    noise=SystemNoise(),
                )
                for run in range(arguments.runs)
            ]
        else:
            settings = _settings(arguments, epsilon, "unused.db")
            learned = list(_drawn(settings, public, runs=arguments.runs, plain=arguments.plain))
        seconds = time.monotonic() - started
    accuracies = tuple(
        mean(classifier.predict(row.vector) == row.label for row in rows) for classifier in learned
    )
    return Measured(accuracies, seconds)


def _drawn(
    settings: Settings, public: Path, *, runs: int, plain: bool
) -> Iterator[PublishedClassifier]:
    """Draw as the command does, all runs from the weights of one class, or of the plain grid's."""
    configuration = configure(settings)
    schema = configuration.schema
    rows = read_private_rows(str(DATA / "train.csv"), schema)
    points = read_public_points(public, schema)
    prepared = classifier_draw(configuration, points, row_count=rows.count)
    if not isinstance(prepared, ExponentialDraw):
        for _ in range(runs):
            yield draw_published(configuration, prepared, rows, SystemNoise())
        return
    parameters = prepared.parameters
    trees = cast("TreeClass", parameters.hypotheses)
    if plain:
        tests = classifier_tests(schema, bins=settings.published.bins, public_values=points)
        trees = replace(trees, tests=tests)
        trees = trees.restricted_to(trees.encode(points))
    encoded = trees.encode(rows.values)
    weights = trees.weights(encoded, rows.labels, parameters.mechanism_epsilon)
    for _ in range(runs):
        tree = weights.draw(SystemNoise())
        yield publish_drawn(release=configuration.name, schema=schema, hypotheses=trees, drawn=tree)


def _settings(arguments: argparse.Namespace, epsilon: float, ledger: str) -> Settings:
    """Return the example with the whole of an epsilon for its classifier."""
    return load_settings(
        EXAMPLE,
        {
            "CONCLAVE_DATA__SOURCE": str(DATA / "train.csv"),
            "CONCLAVE_PRIVACY__EPSILON": str(epsilon),
            "CONCLAVE_PRIVACY__SHARES": SHARES,
            "CONCLAVE_CLASSIFIER__LEARNER": arguments.learner,
            "CONCLAVE_CLASSIFIER__DEPTH": str(arguments.depth),
            "CONCLAVE_CLASSIFIER__BINS": str(arguments.bins),
            "CONCLAVE_LEDGER__URL": f"sqlite:///{ledger}",
        },
    )


def _write_points(path: Path, seed: int, count: int) -> Path:
    """Write rows of the test file that a seed picks, without their labels."""
    with (DATA / "test.csv").open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    label = header.index("income")
    picked = random.Random(seed).sample(lines, count)  # public rows: the same ones each time
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for cells in (header, *picked):
            writer.writerow(cells[:label] + cells[label + 1 :])
    return path


def _line(epsilon: float, measured: list[Measured]) -> str:
    """Write the figures of one epsilon."""
    accuracies = [accuracy for each in measured for accuracy in each.accuracies]
    by_set = " ".join(f"{mean(each.accuracies):.4f}" for each in measured)
    target = f"{TARGETS[epsilon]:.3f}" if epsilon in TARGETS else "-"
    return (
        f"{epsilon:>7g}{mean(accuracies):>10.4f}{pstdev(accuracies):>8.4f}{target:>8}"
        f"{sum(each.seconds for each in measured):>9.0f}  {by_set}"
    )


def _arguments() -> argparse.Namespace:
    """Read what to run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(TARGETS))
    parser.add_argument("--learner", choices=(*LEARNERS, AUTO), default="exponential")
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--bins", type=int, default=5)
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the first set of points")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--plain", action="store_true", help="quantiles alone, all categories")
    parser.add_argument("--whole", action="store_true", help="every run is the command's call")
    return parser.parse_args()


if __name__ == "__main__":
    main()
