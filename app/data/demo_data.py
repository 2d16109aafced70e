"""The built-in demonstration data: public rows generated at start from a fixed seed.

Eight features are uniform on [0, 1]. The label follows a tree of depth three, whose cuts
(thresholds) are deliberately not at equally spaced values, and one label in ten is flipped. The
random generator is numpy's, since the rows are public and no privacy claim depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.data.rows import PrivateRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEMO_SOURCE = "embedded:demo"
DEMO_LABEL = "label"
DEMO_CLASSES = ("no", "yes")
DEMO_FEATURE_NAMES = tuple(f"x{index}" for index in range(8))
DEMO_ROW_COUNT = 200_000
DEMO_QUERY_COUNT = 3_000
DEMO_SEED = 20_200_713
DEMO_LABEL_NOISE = 0.1
DEMO_CUTS = (0.47, 0.3, 0.55, 0.8)
DEMO_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class DemoQueries:
    """The held-out rows of the demonstration data, used as queries; they are public.

    Attributes:
        vectors: a list of eight numbers for each query, in the form in which a client sends it.
        labels: the label of each query; one in ten is flipped, as in the private rows.
        concept_labels: the label of each query by the tree, without flips.

    """

    vectors: tuple[tuple[float, ...], ...]
    labels: tuple[str, ...]
    concept_labels: tuple[str, ...]


def demo_rows() -> PrivateRows:
    """Return the 200,000 rows of the demonstration data, the same rows at every call."""
    values, _, labels = _draw(DEMO_ROW_COUNT, stream=0)
    return PrivateRows(values=values, labels=labels)


def demo_queries() -> DemoQueries:
    """Return the 3,000 held-out rows of the demonstration data, the same rows at every call."""
    values, concept, labels = _draw(DEMO_QUERY_COUNT, stream=1)
    return DemoQueries(
        vectors=tuple(tuple(row) for row in values.tolist()),
        labels=tuple(DEMO_CLASSES[label] for label in labels),
        concept_labels=tuple(DEMO_CLASSES[label] for label in concept),
    )


def concept_labels(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the true labels of demonstration rows, before random label errors.

    The label is ``x0 >= .47 ? (x1 >= .3 ? 1 : x2 >= .55) : (x3 >= .8 ? x2 >= .55 : 0)``.

    Args:
        values: the features in [0, 1], float64, shape ``(rows, 8)``.

    Returns:
        Labels 0 or 1, int64, shape ``(rows,)``.

    """
    x0, x1, x2, x3 = values[:, 0], values[:, 1], values[:, 2], values[:, 3]
    right = (x1 >= DEMO_CUTS[1]) | (x2 >= DEMO_CUTS[2])
    left = (x3 >= DEMO_CUTS[3]) & (x2 >= DEMO_CUTS[2])
    return np.where(x0 >= DEMO_CUTS[0], right, left).astype(np.int64)


def _draw(
    count: int, *, stream: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Draw rows of one stream of the public seed: values, concept labels, labels."""
    generator = np.random.default_rng([DEMO_SEED, stream])
    values = generator.random((count, len(DEMO_FEATURE_NAMES))).round(DEMO_DECIMALS)
    flipped = generator.random(count) < DEMO_LABEL_NOISE
    concept = concept_labels(values)
    return values, concept, np.where(flipped, 1 - concept, concept)
