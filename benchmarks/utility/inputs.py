"""What are the inputs of a score worth that public numbers and points give it by the newest rule?

Expected: beside tests of 8 bins, which is the first rule, the linear score gains one to three
points where numbers are many or rules are sharp and rows times epsilon are 20,000, half a point on
bank, and loses little where they are few; the kernel score gains up to three points where numbers
are five or more and rows few.  Rows are of no benchmark's test file: two halves of bank's and of
shoppers' training rows, and made-up people, log-odds of six numbers of twenty, sharp rules of nine,
and balls, waves and rings as in `benchmarks/learn_curves.py`.  Some ten minutes of a processor.

    python -m benchmarks.utility.inputs [--seeds 2] [--sets bank ...]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from dataclasses import replace
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from app.data.rows import PrivateRows
from app.privacy.budget.composition import Mechanism
from app.release.classifier.learner_registration import FIRST_INPUTS, NEWEST_INPUTS, ClassifierAsked
from app.release.classifier.learner_table import PUBLISHING
from app.release.terms.configuration import configure
from app.settings.settings import Settings
from benchmarks.learn_curves import ball, waves
from benchmarks.measuring.circumstances import circumstances
from benchmarks.panel.ours import settings_of
from benchmarks.panel.scoring import scored
from benchmarks.panel.sets import Table, made_up, shared, sharp
from benchmarks.prediction_or_model import rings
from benchmarks.utility.populations import CATEGORY_COUNTS, population
from benchmarks.utility.seeded_noise import SeededNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.release.classifier.kernel import KernelDraw
    from app.release.classifier.linear import LinearDraw

    Rule = Callable[[NDArray[np.float64]], NDArray[np.int64]]

ROWS: Final = 10_000
TESTS: Final = 10_000
NUMBER_COUNT: Final = 20
TOLD_BY: Final = 6
PRODUCTS: Final = (1000, 5000, 20_000, 80_000)
EARLIER_BINS: Final = 8


def half(name: str) -> Table:
    """Return a shared table's training rows alone, in two halves."""
    table = shared(name)
    count = len(table.rows) // 2
    return replace(
        table,
        rows=table.rows[:count],
        labels=table.labels[:count],
        test=table.rows[count:],
        test_labels=table.labels[count:],
    )


def people(seed: int) -> Table:
    """Return made-up people, every other population with rare strong effects."""
    found = population(seed, row_count=ROWS + TESTS, rare=bool(seed % 2))
    lower, upper = found.values.min(axis=0).tolist(), found.values.max(axis=0).tolist()
    counts = (0,) * (found.values.shape[1] - len(CATEGORY_COUNTS)) + CATEGORY_COUNTS
    return _first(found.values, found.labels, counts, tuple(zip(lower, upper, strict=True)))


def log_odds() -> Table:
    """Return rows whose log-odds are linear in six of twenty numbers that go together."""
    generator = np.random.default_rng(2)
    mixed = generator.standard_normal((NUMBER_COUNT,) * 2) * 0.3 + np.eye(NUMBER_COUNT)
    values = np.clip(generator.standard_normal((ROWS + TESTS, NUMBER_COUNT)) @ mixed, -6, 6)
    odds = values[:, :TOLD_BY] @ generator.normal(0, 1.2, TOLD_BY)
    labels = (generator.random(len(values)) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    return _first(values, labels, (0,) * NUMBER_COUNT, ((-6.0, 6.0),) * NUMBER_COUNT)


def _first(
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    counts: tuple[int, ...],
    bounds: tuple[tuple[float, float], ...],
) -> Table:
    """Return the first rows as private ones."""
    return Table(
        values[:ROWS], labels[:ROWS], values[ROWS:], labels[ROWS:], tuple(counts), bounds, 2
    )


def _made(rule: Rule, dimension: int) -> Table:
    return made_up(rule, dimension).cut_to(ROWS)


SETS: Final[dict[str, tuple[str, Callable[[], Table]]]] = {
    "bank": ("linear", partial(half, "bank")),
    "shoppers": ("linear", partial(half, "shoppers")),
    "people": ("linear", partial(people, 20)),
    "people, rare effects": ("linear", partial(people, 21)),
    "log-odds, 20 numbers": ("linear", log_odds),
    "sharp rules": ("linear", partial(_made, sharp, 9)),
    "ball, 5 numbers": ("kernel", partial(_made, ball, 5)),
    "waves, 4 numbers": ("kernel", partial(_made, waves, 4)),
    "rings": ("kernel", partial(_made, rings, 2)),
}


def main() -> None:
    """Print accuracy and area by each rule."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    arguments = parser.parse_args()
    print(circumstances())
    print(f"{'rows * epsilon':>32} " + " ".join(f"{each:>11}" for each in PRODUCTS))
    for name in arguments.sets:
        learner, of = SETS[name]
        table = of()
        for rule in (FIRST_INPUTS, NEWEST_INPUTS):
            cells = []
            for product in PRODUCTS:
                runs = [
                    _run(table, learner, product, rule, seed) for seed in range(arguments.seeds)
                ]
                areas = mean(area for _, area in runs if area is not None)
                cells.append(f"{mean(one for one, _ in runs):.4f} {areas:.3f}")
            print(f"{name:>24} {rule:>7} " + "  ".join(cells), flush=True)


def _run(
    table: Table, learner: str, product: int, rule: int, seed: int
) -> tuple[float, float | None]:
    """Learn once by a rule of inputs, and score all test rows."""
    given = settings_of(table, round(product / len(table.rows), 6), wanted="labels")
    bins = {"bins": EARLIER_BINS} if rule == FIRST_INPUTS else {}
    configuration = configure(Settings.read({**given, "classifier": {"learner": learner, **bins}}))
    charge = configuration.charges[Mechanism.CLASSIFIER]
    points = table.points(100 + seed)
    asked = ClassifierAsked(
        configuration.settings, charge, points, len(table.rows), is_first=False, inputs=rule
    )
    draw = cast("LinearDraw | KernelDraw", PUBLISHING[learner].prepare(asked))
    scores = draw.draw(PrivateRows(table.rows.copy(), table.labels.copy()), SeededNoise(seed))
    encoded = (scores.terms if hasattr(scores, "terms") else scores.inputs).encode(table.test)
    values = scores.scores(encoded)[:, 0].astype(np.float64)
    return scored(table, (values > 0).astype(np.int64), values)


if __name__ == "__main__":
    main()
