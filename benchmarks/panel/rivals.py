"""Private methods of papers, as they are known, and gradient boosting without privacy.

*Noisy descent on whitened public tests* is the strongest known on Adult: softmax regression on
cuts at quantiles of public points, whitened by their covariance, every row's gradient cut to a
length, Gaussian noise in every step, by Renyi divergence.  *A forest with public splits* draws
random cuts between public bounds, and counts labels in its leaves with Laplace noise: Jagannathan,
Pillaipakkamnatt and Wright (2009).  *Guessing* gives everybody the label that most rows have,
which costs nothing here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from app.privacy.noisy_vote.calibration import least_variance
from benchmarks.panel.scoring import scored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.panel.sets import Table

DELTA: Final = Fraction(1, 10**6)
SETTINGS: Final = 24
GRID_SEED: Final = 7


def _some(**choices: tuple[float, ...]) -> list[dict[str, float]]:
    """Return at most :data:`SETTINGS` of all combinations, which a seed picks."""
    whole = [dict(zip(choices, each, strict=True)) for each in product(*choices.values())]
    return Random(GRID_SEED).sample(whole, min(SETTINGS, len(whole)))


GRIDS: Final[dict[str, list[dict[str, float]]]] = {
    "descent": _some(
        bins=(4, 8, 16, 32),
        ridge=(0.003, 0.03, 0.1, 0.3),
        steps=(16, 48),
        length=(0.5, 1.0),
        rate=(1.0, 4.0),
    ),
    "forest": _some(trees=(1, 2, 4, 8, 16, 32), depth=(2, 4, 6, 8)),
}


def run(
    name: str, table: Table, setting: dict[str, float], epsilon: float, seed: int
) -> tuple[float, float | None]:
    """Return the accuracy and the area of one run."""
    return {"descent": _descent, "forest": _forest}[name](table, setting, epsilon, seed)


def _descent(
    table: Table, setting: dict[str, float], epsilon: float, seed: int
) -> tuple[float, float | None]:
    """Descend, and average the later half of the iterates."""
    rows, test = _whitened(table, seed // 4, int(setting["bins"]), setting["ridge"])
    generator, steps = np.random.default_rng(seed), int(setting["steps"])
    lengths = np.sqrt((rows * rows).sum(axis=1))
    limit = setting["length"] * float(np.median(lengths))
    deviation = 2 * limit * math.sqrt(_ratio(epsilon, steps)) / len(rows)
    wanted = np.eye(table.class_count)[table.labels]
    weights = np.zeros((rows.shape[1], table.class_count))
    total = np.zeros_like(weights)
    for step in range(steps):
        missed = _softmax(rows @ weights) - wanted
        size = np.sqrt((missed**2).sum(axis=1)) * lengths
        missed *= np.minimum(1, limit / np.maximum(size, 1e-9))[:, None]
        noise = generator.standard_normal(weights.shape) * deviation
        weights -= setting["rate"] * (rows.T @ missed / len(rows) + noise)
        total += weights if step >= steps // 2 else 0.0
    scores = test @ total
    return scored(table, scores.argmax(axis=1), scores[:, 1] - scores[:, 0])


@cache
def _ratio(epsilon: float, steps: int) -> float:
    least = least_variance(epsilon=Fraction(str(epsilon)), delta=DELTA, squared_shift=steps)
    return float(least[1])


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _whitened(
    table: Table, seed: int, bins: int, ridge: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows and test rows in coordinates that the public points make uncorrelated."""
    points = table.points(seed)
    cuts: list[tuple[int, float, bool]] = []
    for index, count in enumerate(table.category_counts):
        if count:
            cuts += [(index, float(code), True) for code in range(count)]
            continue
        known = points[:, index][~np.isnan(points[:, index])]
        shares = np.arange(1, bins) / bins
        quantiles = np.unique(np.quantile(known, shares, method="lower")) if len(known) else ()
        cuts += [(index, float(cut), False) for cut in quantiles]
    bits = _tests(points, cuts)
    kept = np.flatnonzero((bits.sum(axis=0) >= 5) & (bits.sum(axis=0) < len(bits)))
    bits = bits[:, kept]
    variances, directions = np.linalg.eigh(np.atleast_2d(np.cov(bits.T)))
    matrix = directions / np.sqrt(np.maximum(variances, 0) + ridge)
    mean = bits.mean(axis=0)
    mapped = [(_tests(each, cuts)[:, kept] - mean) @ matrix for each in (table.rows, table.test)]
    rows, test = (np.column_stack([each, np.ones(len(each))]) for each in mapped)
    return rows, test


def _tests(values: NDArray[np.float64], cuts: list[tuple[int, float, bool]]) -> NDArray[np.float64]:
    outcomes = [
        values[:, index] == cut if is_category else values[:, index] >= cut
        for index, cut, is_category in cuts
    ]
    return np.column_stack(outcomes).astype(np.float64)


def _forest(
    table: Table, setting: dict[str, float], epsilon: float, seed: int
) -> tuple[float, float | None]:
    """Count labels in the leaves of random trees, which the rows of one tree each share."""
    generator, trees = np.random.default_rng(seed), int(setting["trees"])
    parts = generator.integers(0, trees, len(table.rows))  # a row is in one tree: no epsilon shared
    shares = np.zeros((len(table.test), table.class_count))
    for tree in range(trees):
        splits = _random_splits(table, int(setting["depth"]), generator)
        mine = parts == tree
        leaves, asked = _leaves(table.rows[mine], splits), _leaves(table.test, splits)
        counts = np.zeros((len(splits) + 1, table.class_count))
        np.add.at(counts, (leaves, table.labels[mine]), 1.0)
        # A replaced row moves two counts by one.
        counts += generator.laplace(0, 2 / epsilon, counts.shape)
        counts = np.maximum(counts, 0) + 1e-9
        shares += (counts / counts.sum(axis=1, keepdims=True))[asked]
    return scored(table, shares.argmax(axis=1), shares[:, 1])


def _random_splits(
    table: Table, depth: int, generator: np.random.Generator
) -> list[tuple[int, float, bool]]:
    """Return a test for each inner node of a full tree, in the order of a heap."""
    splits = []
    for _ in range(2**depth - 1):
        index = int(generator.integers(len(table.bounds)))
        lower, upper = table.bounds[index]
        count = table.category_counts[index]
        cut = float(generator.integers(count)) if count else float(generator.uniform(lower, upper))
        splits.append((index, cut, count > 0))
    return splits


def _leaves(
    values: NDArray[np.float64], splits: list[tuple[int, float, bool]]
) -> NDArray[np.int64]:
    """Return the leaf of each row, counted from 0."""
    features = np.array([index for index, _, _ in splits])
    cuts = np.array([cut for _, cut, _ in splits])
    are_categories = np.array([is_category for _, _, is_category in splits])
    nodes = np.zeros(len(values), dtype=np.int64)
    rows = np.arange(len(values))
    for _ in range((len(splits) + 1).bit_length() - 1):
        found = values[rows, features[nodes]]
        holds = np.where(are_categories[nodes], found == cuts[nodes], found >= cuts[nodes])
        nodes = 2 * nodes + 1 + holds
    return nodes - len(splits)


def guessing(table: Table) -> tuple[float, float | None]:
    """Return how right the label of most rows is."""
    most = int(np.bincount(table.labels).argmax())
    return scored(table, np.full(len(table.test), most), None)


def boosting(table: Table) -> tuple[float, float | None]:
    """Return what gradient boosting reaches without privacy."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 -- slow to import

    kinds: Any = np.array(table.category_counts) > 0
    few = np.array(table.category_counts) <= 255
    model = HistGradientBoostingClassifier(random_state=0, categorical_features=kinds & few)
    model.fit(table.rows, table.labels)
    shares = model.predict_proba(table.test)
    return scored(table, shares.argmax(axis=1), shares[:, 1])
