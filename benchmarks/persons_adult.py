"""What do persons with many rows cost on Adult, where each row is split into 1 to 12 of one person?

Every row of the training file becomes r rows of one person, r geometric with mean 4 and 12 at
most, with age and hours moved by up to 2 and the label kept.  Against the file as it is stand
the split rows with ``data.person``, and what one would do without it: the split rows as rows,
at epsilon / 12.  Published: an exact draw of trees with the whole epsilon, 1,000 test rows
without labels as public points; all test rows score it.  Online: the example's trees of depth
2, nine tenths of epsilon for answers, a tenth relabelling or unused, T = 5; every distinct test
vector is asked once, in random orders.

Expected: published within .003 of one row a person, online answers within 10 %.

    python -m benchmarks.persons_adult [--epsilon 1] [--depth 4] [--runs 5] [--releases 3]
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from statistics import fmean, pstdev
from typing import Final

import numpy as np

from app.release.drawing import read_private_rows
from app.release.progress import no_progress
from app.release.terms.configuration import configure
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.trials import read_rows
from benchmarks.utility.online_data import data_folder, test_set
from benchmarks.utility.units import (
    RELABELLED,
    UNRELABELLED,
    online_cell,
    online_settings,
    published_accuracies,
    published_settings,
)

ROWS_MAX: Final = 12
ROWS_MEAN: Final = 4
MOVED: Final = {"age": (17, 90), "hours_per_week": (1, 99)}
MOVED_MAX: Final = 2
POINTS: Final = 1000
ONLINE: Final = {"online": RELABELLED, "unrelabelled": UNRELABELLED}


def main() -> None:
    """Print a line for each way of protecting the rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--depth", default="4")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--releases", type=int, default=3)
    arguments = parser.parse_args()
    print(circumstances())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        persons, rows = _split(folder / "split.csv")
        named = f'person = "person"\npersons = {persons}'
        whole, split = data_folder() / "adult" / "train.csv", folder / "split.csv"
        capped = arguments.epsilon / ROWS_MAX
        print(f"{persons} persons, {rows} rows")
        for title, source, counted, epsilon in (
            ("one row a person", whole, f"rows = {persons}", arguments.epsilon),
            ("persons", split, named, arguments.epsilon),
            ("rows at epsilon / 12", split, f"rows = {rows}", capped),
        ):
            config = _example(folder / "adult.toml", source, counted)
            _print(title, config, epsilon, arguments)


def _split(path: Path) -> tuple[int, int]:
    """Write the training rows as rows of persons; return how many of either there are."""
    generator = np.random.default_rng(1)
    with (data_folder() / "adult" / "train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = np.minimum(generator.geometric(1 / ROWS_MEAN, len(rows)), ROWS_MAX)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["person", *rows[0]])
        writer.writeheader()
        for number, (row, count) in enumerate(zip(rows, counts, strict=True)):
            for _ in range(count):
                writer.writerow({"person": f"p{number}", **row, **_moved(row, generator)})
    return len(rows), int(counts.sum())


def _moved(row: dict[str, str], generator: np.random.Generator) -> dict[str, int]:
    """Return numbers of a row moved a little, within their bounds."""
    found = {}
    for name, (least, most) in MOVED.items():
        number = int(row[name]) + int(generator.integers(-MOVED_MAX, MOVED_MAX, endpoint=True))
        found[name] = min(max(number, least), most)
    return found


def _example(path: Path, source: Path, counted: str) -> Path:
    """Write the example with another source, and what is counted of it."""
    text = (ROOT / "examples" / "adult.toml").read_text(encoding="utf-8")
    text = text.replace('source = "train.csv"', f'source = "{source}"')
    path.write_text(text.replace("rows = 32561", counted), encoding="utf-8")
    return path


def _print(title: str, config: Path, epsilon: float, arguments: argparse.Namespace) -> None:
    classifier = {
        "CONCLAVE_CLASSIFIER__DEPTH": arguments.depth,
        "CONCLAVE_CLASSIFIER__BINS": "5",
        "CONCLAVE_CLASSIFIER__LEARNER": "exponential",
    }
    configuration = configure(published_settings(config, epsilon, classifier))
    rows = read_private_rows(configuration.settings, no_progress)
    accuracies = published_accuracies(
        configuration,
        rows,
        points=test_set("adult").values[:POINTS],
        tests=read_rows(data_folder() / "adult" / "test.csv", configuration.schema),
        runs=arguments.runs,
    )
    print(f"{title:<22}published {fmean(accuracies):.4f} ({pstdev(accuracies):.4f})", flush=True)
    for name, shares in ONLINE.items():
        configuration = configure(online_settings(config, epsilon, shares))
        cell = online_cell(
            configuration, rows, tests=test_set("adult"), releases=arguments.releases
        )
        told = f"{cell.answered:.0f} answers, E {cell.expected:.0f}, {cell.accuracy:.4f} right"
        print(f"{'':<22}{name} {told}", flush=True)


if __name__ == "__main__":
    main()
