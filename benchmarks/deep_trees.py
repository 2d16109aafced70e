"""How long does one exact draw among all trees of a depth take, and how much memory?

Expected: below a second at depth 3, a few at depth 4 and half a minute at depth 5,
for Adult's 32,561 rows, 86 public tests and two processors; some hundred megabytes.
The data set is the one that CONCLAVE_TEST_DATA names.

    python benchmarks/deep_trees.py [--depths 3 4 5] [--epsilons .1 1 2] [--repeats N]
"""

from __future__ import annotations

import os

# As in the command line's programs: threads share regions, not products.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from app.data.feature_tests import classifier_tests
from app.data.sources.sources import read_rows
from app.learning.trees.tree_class import TreeClass
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT, circumstances

if TYPE_CHECKING:
    from app.data.rows import PrivateRows
    from app.learning.encoding.binary_tests import BinaryTest

TEST_COUNT = 86
PUBLIC_POINTS = 1000
HEADING = f"{'depth':>5}{'epsilon':>9}{'seconds':>9}{'processor':>11}{'peak MB':>9}{'eta':>10}"


def main() -> None:
    """Print a line for each depth and epsilon, medians over the repeats."""
    arguments = _arguments()
    rows, tests = _adult()
    print(circumstances())
    print(f"{rows.count} rows, {len(tests)} tests; a draw at epsilon, errors weigh epsilon / 2")
    print(HEADING)
    for depth in arguments.depths:
        for epsilon in arguments.epsilons:
            _print_line(rows, tests, depth, epsilon, arguments.repeats)


def _print_line(
    rows: PrivateRows, tests: tuple[BinaryTest, ...], depth: int, epsilon: float, repeats: int
) -> None:
    """Draw some times; the peak of memory is the process's so far, its rows included."""
    trees = TreeClass(tests=tests, depth=depth, class_count=2)
    bits = trees.encode(rows.values)
    seconds, processor = [], []
    for _ in range(repeats):
        started, used = time.monotonic(), time.process_time()
        trees.draw(bits, rows.labels, epsilon, SystemNoise())
        seconds.append(time.monotonic() - started)
        processor.append(time.process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    eta = trees.log_weight_error(rows.count, epsilon)
    print(
        f"{depth:>5}{epsilon:>9}{median(seconds):>9.2f}{median(processor):>11.2f}"
        f"{peak:>9.0f}{eta:>10.1e}",
        flush=True,
    )


def _adult() -> tuple[PrivateRows, tuple[BinaryTest, ...]]:
    """Return the rows of the example, and tests whose cuts come from public points."""
    folder = Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data") / "adult"
    source = str(folder / "train.csv")
    schema = load_settings(
        ROOT / "examples" / "adult.toml", {"CONCLAVE_DATA__SOURCE": source}
    ).data.public_schema()
    points = read_rows(str(folder / "test.csv"), schema).values[:PUBLIC_POINTS]
    tests = classifier_tests(schema, bins=4, public_values=points)
    return read_rows(source, schema), tests[:TEST_COUNT]


def _arguments() -> argparse.Namespace:
    """Read what to run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 2.0])
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
