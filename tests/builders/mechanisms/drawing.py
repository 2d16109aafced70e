"""A small class of trees and a few rows, for every test of a drawn hypothesis."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.trees.tree_class import TreeClass
from app.privacy.exponential import mechanism as exponential

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW_COUNT = 40
DELTA = Fraction(1, 10**9)


def small_class(test_count: int = 3, *, depth: int = 1, class_count: int = 2) -> TreeClass:
    """Return all trees of a depth over cuts of one feature."""
    tests = [
        BinaryTest(feature_index=0, cut=float(cut), category_code=None, public_frequency=0.5)
        for cut in range(test_count)
    ]
    return TreeClass(tests=tuple(tests), depth=depth, class_count=class_count)


def parameters(
    epsilon: Fraction = Fraction(1), *, row_count: int = ROW_COUNT
) -> exponential.Parameters:
    """Return the parameters of a draw from the small class."""
    return exponential.Parameters(
        epsilon=epsilon,
        delta_truncation=DELTA,
        row_count=row_count,
        hypotheses=small_class(),
    )


def private_rows(seed: int = 1) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return bits (n, 3) of nested cuts and labels (n,), frozen."""
    generator = np.random.default_rng(seed)
    level = generator.integers(0, 4, ROW_COUNT)
    bits = (level[:, None] > np.arange(3)).astype(np.uint8)
    labels = (level > 1).astype(np.int64)
    labels[:4] = 1 - labels[:4]
    bits.flags.writeable = False
    labels.flags.writeable = False
    return bits, labels
