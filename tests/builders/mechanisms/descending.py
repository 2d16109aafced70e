"""A small noisy descent, for every test of one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.learning.linear.whitening import PublicMap, Shrinkage, whitened
from app.privacy.noisy_gradient.calibration import calibrate
from app.privacy.noisy_gradient.mechanism import Parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW_COUNT = 60
TERM_COUNT = 5
STEP_WEIGHTS = (1, 2, 3)
STEPS = len(STEP_WEIGHTS)
DELTA = Fraction(1, 10**6)


def public_bits(seed: int = 3) -> NDArray[np.uint8]:
    """Return which of five terms hold at 40 public points."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, 2, (40, TERM_COUNT)).astype(np.uint8)


def descent_parameters(
    *, class_count: int = 2, row_count: int = ROW_COUNT, epsilon: int = 1, length: float = 1.6
) -> Parameters:
    """Return the parameters of three steps over five terms."""
    shrinkage = Shrinkage(noise=0.001, ridge=400.0, length=length)
    found = whitened(PublicMap.of_points(public_bits()), shrinkage)
    return Parameters(
        features=found.features,
        rate=1.5,
        class_count=class_count,
        row_count=row_count,
        calibration=calibrate(epsilon=Fraction(epsilon), delta=DELTA, step_weights=STEP_WEIGHTS),
    )


def descent_rows(
    *, class_count: int = 2, row_count: int = ROW_COUNT, seed: int = 1
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return bits (n, 5) and labels (n,) that the first term tells something of, frozen."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, (row_count, TERM_COUNT)).astype(np.uint8)
    labels = bits[:, 0].astype(np.int64) + (generator.random(row_count) < 0.2)
    labels = labels % class_count
    bits.flags.writeable = False
    labels.flags.writeable = False
    return bits, labels
