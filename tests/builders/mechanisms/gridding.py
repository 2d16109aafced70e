"""A small grid of two levels over two numbers, for every test of noisy counts."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.learning.cells.nested_grid import Grid, equal_cuts
from app.privacy.noisy_grid.mechanism import Parameters, divided

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW_COUNT = 40
SIDES = (2, 4)
GRID = Grid(features=(0, 1), cuts=(equal_cuts(0.0, 1.0, parts=4),) * 2, sides=SIDES)


def grid_parameters(
    *, class_count: int = 2, row_count: int = ROW_COUNT, epsilon: Fraction = Fraction(1)
) -> Parameters:
    """Return the parameters of counts on the small grid."""
    return Parameters(
        grid=GRID,
        class_count=class_count,
        row_count=row_count,
        epsilon=epsilon,
        level_epsilons=divided(epsilon, len(SIDES)),
    )


def grid_rows(
    *, class_count: int = 2, seed: int = 1
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return ranks (n, 2) and labels (n,), frozen."""
    generator = np.random.default_rng(seed)
    ranks = generator.integers(0, SIDES[-1], (ROW_COUNT, 2)).astype(np.uint8)
    labels = generator.integers(0, class_count, ROW_COUNT)
    ranks.flags.writeable = False
    labels.flags.writeable = False
    return ranks, labels
