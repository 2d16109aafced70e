"""The strongest private learner known on this table: noisy descent on whitened public tests.

Logistic regression by full-batch gradient descent, after Bassily, Smith and Thakurta
(2014) and Abadi et al. (2016): the tests' cuts and their covariance come from the public
points, every row's gradient is cut to a length and every step adds Gaussian noise,
accounted by Renyi divergence.  Noise is real and drawn from a seeded generator: what is
measured is accuracy.  Its settings are chosen for each epsilon on the first draw of points,
by accuracy on the test rows with their labels, in its favour.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from app.data.feature_tests import classifier_tests
from app.learning.encoding.binary_tests import evaluate
from app.privacy.noisy_vote.calibration import least_variance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.utility.published_split import Split
    from benchmarks.utility.results import Json

BINS: Final = 16
LEAST_HELD: Final = 5
RIDGES: Final = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
STEPS: Final = (16, 48)
LENGTHS: Final = (0.25, 0.5, 1.0)
RATES: Final = (0.5, 1.0, 2.0, 4.0)
CHOICE_SEED: Final = 1000


def descent_accuracies(
    split: Split, epsilons: Sequence[float], *, draws: int, seeds: int, delta: float, quick: bool
) -> dict[str, Json]:
    """Return, by epsilon, the setting chosen and the accuracies of its runs."""
    ridges, steps = (RIDGES[2:4], STEPS[:1]) if quick else (RIDGES, STEPS)
    chosen: dict[float, tuple[float, dict[str, Any]]] = {}
    for ridge, count in product(ridges, steps):
        train, test = _whitened(split, seed=0, ridge=ridge)
        settings = [
            {"ridge": ridge, "steps": count, "length": length, "rate": rate}
            for length, rate in product(LENGTHS, RATES)
        ]
        for epsilon in epsilons:
            columns = [(setting, CHOICE_SEED) for setting in settings]
            weights = _descend(train, split.train_labels, columns, epsilon, delta)
            for setting, each in zip(settings, _accuracies(split, test, weights), strict=True):
                chosen[epsilon] = max(
                    chosen.get(epsilon, (0.0, {})), (each, setting), key=lambda pair: pair[0]
                )
    tried = len(ridges) * len(steps) * len(LENGTHS) * len(RATES)
    return {
        str(epsilon): {
            "setting": chosen[epsilon][1],
            "tried": tried,
            "accuracies": _runs(
                split, chosen[epsilon][1], epsilon, draws=draws, seeds=seeds, delta=delta
            ),
        }
        for epsilon in epsilons
    }


def _runs(
    split: Split, setting: dict[str, Any], epsilon: float, *, draws: int, seeds: int, delta: float
) -> list[Json]:
    """Return the accuracies of a setting, over draws of points and seeds."""
    found: list[Json] = []
    for draw in range(draws):
        train, test = _whitened(split, seed=draw, ridge=setting["ridge"])
        columns = [(setting, seed) for seed in range(seeds)]
        weights = _descend(train, split.train_labels, columns, epsilon, delta)
        found += _accuracies(split, test, weights)
    return found


def _accuracies(
    split: Split, test: NDArray[np.float32], weights: NDArray[np.float32]
) -> list[float]:
    predicted = (test @ weights > 0).astype(np.int64)
    return [split.accuracy(predicted[:, column]) for column in range(predicted.shape[1])]


def _whitened(
    split: Split, *, seed: int, ridge: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return rows and test rows in coordinates that the public points make uncorrelated."""
    points = split.points(seed)
    tests = classifier_tests(split.schema, bins=BINS, public_values=points)
    counts = evaluate(tests, points).sum(axis=0)
    kept = [
        test for test, count in zip(tests, counts, strict=True) if LEAST_HELD <= count < len(points)
    ]
    bits = evaluate(kept, points).astype(np.float64)
    variances, directions = np.linalg.eigh(np.cov(bits.T))
    matrix = directions / np.sqrt(np.maximum(variances, 0) + ridge)
    return _mapped(evaluate(kept, split.train), bits, matrix), _mapped(
        evaluate(kept, split.test), bits, matrix
    )


def _mapped(
    rows: NDArray[np.uint8], points: NDArray[np.float64], matrix: NDArray[np.float64]
) -> NDArray[np.float32]:
    mapped = (rows - points.mean(axis=0)) @ matrix
    return np.column_stack([mapped, np.ones(len(rows))]).astype(np.float32)


def _descend(
    rows: NDArray[np.float32],
    labels: NDArray[np.int64],
    columns: Sequence[tuple[dict[str, Any], int]],
    epsilon: float,
    delta: float,
) -> NDArray[np.float32]:
    """Return the mean of the last half of the iterates, a column for each setting and seed."""
    steps = columns[0][0]["steps"]
    shift = least_variance(
        epsilon=Fraction(str(epsilon)), delta=Fraction(str(delta)), squared_shift=steps
    )[1]
    lengths = np.sqrt((rows * rows).sum(axis=1))
    limits = np.array([each["length"] for each, _ in columns]) * np.median(lengths)
    deviations = 2 * limits * math.sqrt(shift) / len(rows)
    rates = np.array([each["rate"] for each, _ in columns])
    generators = [np.random.default_rng(seed) for _, seed in columns]
    weights = np.zeros((rows.shape[1], len(columns)))
    total = np.zeros_like(weights)
    for step in range(steps):
        scores = np.clip(rows @ weights.astype(np.float32), -40, 40)
        missed = 1 / (1 + np.exp(-scores)) - labels[:, None]
        missed *= np.minimum(1, limits / np.maximum(np.abs(missed) * lengths[:, None], 1e-9))
        gradient = rows.T @ missed.astype(np.float32) / len(rows)
        noise = np.column_stack([each.standard_normal(len(weights)) for each in generators])
        weights -= rates * (gradient + noise * deviations)
        if step >= steps // 2:
            total += weights
    return total.astype(np.float32)
