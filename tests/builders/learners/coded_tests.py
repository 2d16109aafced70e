"""Public tests of a few features at random, and rows that they ask of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.learning.encoding.binary_tests import BinaryTest

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBERS = (0.0, 0.1, 0.2, 0.5, 0.7, 0.9, np.nan)
FREQUENCIES = (0.25, 0.3, 0.5)


def random_tests(generator: np.random.Generator, *, features: int) -> tuple[BinaryTest, ...]:
    """Return cuts of every even feature and categories of every odd one, in any order."""
    tests = []
    for feature in range(features):
        for reference in generator.permutation(5)[: generator.integers(1, 5)]:
            is_cut = feature % 2 == 0
            tests.append(
                BinaryTest(
                    feature_index=feature,
                    cut=reference / 5 if is_cut else None,
                    category_code=None if is_cut else int(reference),
                    public_frequency=float(generator.choice(FREQUENCIES)),
                )
            )
    return tuple(tests[index] for index in generator.permutation(len(tests)))


def random_rows(
    generator: np.random.Generator, *, features: int, count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return encoded rows, with missing numbers and categories nobody asks for, and labels."""
    values = np.empty((count, features))
    values[:, ::2] = generator.choice(NUMBERS, (count, len(range(0, features, 2))))
    values[:, 1::2] = generator.integers(0, 8, (count, features // 2))
    wrong = generator.random(count) < generator.choice((0.0, 0.1, 0.5))
    labels = (np.nan_to_num(values[:, 0]) >= 0.2) ^ wrong
    return values, labels.astype(np.int64)
