"""Public data of many classes, shipped with scikit-learn, as the private rows of a release.

Epsilon is far beyond any use, so that a hundred or two thousand rows are
enough for a few dozen answers: what is tested is the way, not the utility.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from sklearn.datasets import load_digits, load_wine

from app.settings.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from app.settings.settings import Settings

ANSWERS_MAX = 40
TEMPLATE = """\
[release]
name = "many-classes"

[data]
source = "{source}"
rows = {rows}
label = "kind"
classes = {classes}
# Corners of the digits are white in every picture.
dead_features = "allow"
{features}

[hypotheses]
class = "trees"
depth = {depth}
bins = {bins}

[classifier]
depth = 2

[learner]
{learner}

[privacy]
epsilon = 300
delta = 1e-6

[privacy.shares]
relabel = {relabel}
answers = 0.5
classifier = 0.3

[answers]
queries = {queries}
cutoff = 25
ensemble = {ensemble}
on_cutoff = "classifier"

[server]
port = 0
"""
FEATURE = """
[[data.features]]
name = {name}
kind = "numeric"
bounds = [{lower}, {upper}]
"""


@dataclass(frozen=True, eq=False)
class PublicData:
    """A data set, shuffled by a fixed seed.

    Attributes:
        classes: the names of its labels.
        bounds: public bounds of each feature, by its name.
        values: float64 (n, d).
        labels: the name of each row's class.

    """

    classes: tuple[str, ...]
    bounds: dict[str, tuple[float, float]]
    values: NDArray[np.float64]
    labels: NDArray[np.str_]

    def columns(self, first: int) -> dict[str, NDArray[np.generic]]:
        """Return the rows from one on as the columns of a source."""
        numbers = {name: self.values[first:, i] for i, name in enumerate(self.bounds)}
        return {**numbers, "kind": self.labels[first:]}

    def queries(self, count: int) -> list[list[float]]:
        """Return the first rows as vectors to be posted."""
        vectors: list[list[float]] = self.values[:count].tolist()
        return vectors


@dataclass(frozen=True)
class ManyClasses:
    """A release on such data; the first rows are kept for queries.

    Attributes:
        data: the data set.
        source: name of the file that the rows are written to.
        learner: the lines of ``[learner]``.
        depth: of the trees that relabel, and that a rule fits.
        bins: of each feature.
        ensemble: number of learners, k.
        relabel: share of epsilon that relabels.

    """

    data: PublicData
    source: str
    learner: str = 'rule = "canonical"'
    depth: int = 2
    bins: int = 8
    ensemble: int = 15
    relabel: float = 0.2

    def open_in(self, folder: Path, *, held_out: int) -> Settings:
        """Write rows and configuration into a folder, and return the settings."""
        columns = self.data.columns(held_out)
        if self.source.endswith(".npz"):
            np.savez_compressed(folder / self.source, allow_pickle=False, **columns)
        else:
            parquet.write_table(pa.table(columns), folder / self.source)
        text = TEMPLATE.format(
            source=self.source,
            rows=len(self.data.labels) - held_out,
            classes=json.dumps(self.data.classes),
            features="".join(map(_feature, self.data.bounds, self.data.bounds.values())),
            depth=self.depth,
            bins=self.bins,
            learner=self.learner,
            relabel=self.relabel,
            queries=ANSWERS_MAX,
            ensemble=self.ensemble,
        )
        path = folder / "conclave.toml"
        path.write_text(text, encoding="utf-8")
        return load_settings(path, {})


@cache
def wine() -> PublicData:
    """Return 178 wines of three cultivars, by four of their measurements."""
    loaded = load_wine()
    bounds = {
        "alcohol": (11.0, 15.0),
        "flavanoids": (0.0, 5.0),
        "color_intensity": (1.0, 13.0),
        "proline": (250.0, 1700.0),
    }
    indices = [loaded.feature_names.index(name) for name in bounds]
    names = tuple(f"cultivar {number}" for number in (1, 2, 3))
    return _shuffled(names, bounds, loaded.data[:, indices], loaded.target)


@cache
def digits(*, pixels: tuple[int, ...] = tuple(range(64))) -> PublicData:
    """Return 1,797 handwritten digits by some of their 64 pixels, each from 0 to 16."""
    loaded = load_digits()
    bounds = {f"pixel {pixel}": (0.0, 16.0) for pixel in pixels}
    names = tuple(f"digit-{digit}" for digit in range(10))
    return _shuffled(names, bounds, loaded.data[:, list(pixels)], loaded.target)


def _shuffled(
    names: tuple[str, ...],
    bounds: dict[str, tuple[float, float]],
    values: NDArray[np.float64],
    targets: NDArray[np.int64],
) -> PublicData:
    """Shuffle rows, which come sorted by class, and name their labels."""
    order = np.random.default_rng(0).permutation(len(targets))
    return PublicData(names, bounds, values[order], np.array(names)[targets[order]])


def _feature(name: str, bounds: tuple[float, float]) -> str:
    """Return the table of a feature."""
    return FEATURE.format(name=json.dumps(name), lower=bounds[0], upper=bounds[1])
