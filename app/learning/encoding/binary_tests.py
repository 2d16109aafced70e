"""Public yes-or-no tests of one feature each: ``x >= cut`` or ``x == category``.

The public schema encodes every feature value as a float64 number. A numeric value is clipped to its
public bounds, and is NaN if it is missing. A categorical value is a code: ``0 .. C-1`` for the C
listed categories, ``C`` for any other category, and ``C + 1`` if it is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Rows evaluated at once, so that the gathered doubles stay near 6 MB for 100 tests.
ROWS_PER_BLOCK = 8192


@dataclass(frozen=True, kw_only=True, slots=True)
class BinaryTest:
    """A public yes-or-no test of one feature, for example age >= 40.

    Attributes:
        feature_index: the index of the feature in the schema.
        cut: the test is true if the value is at least ``cut``; None for a categorical test.
        category_code: the test is true if the value's code equals ``category_code``; None for a
            numeric test.
        public_frequency: a public estimate of the share of people for whom the test is true, in
            [0, 1]. Of equally good tests, learners take the one whose share is nearest to one half.

    """

    feature_index: int
    cut: float | None
    category_code: int | None
    public_frequency: float

    def __post_init__(self) -> None:
        """Check that the feature test has one kind, and that the share is in [0, 1]."""
        invariant((self.cut is None) != (self.category_code is None), "a test has one kind")
        invariant(0.0 <= self.public_frequency <= 1.0, "a public frequency lies in [0, 1]")


class PackedTests:
    """Yes-or-no tests of features, stored as arrays for fast evaluation of small batches of rows.

    Args:
        tests: the public tests.

    """

    def __init__(self, tests: Sequence[BinaryTest]) -> None:
        """Store the feature tests as three arrays of shape ``(tests,)``."""
        self._feature_indices = np.array([test.feature_index for test in tests], dtype=np.intp)
        self._is_cut = np.array([test.cut is not None for test in tests], dtype=np.bool_)
        self._references = np.array([_reference(test) for test in tests], dtype=np.float64)

    def evaluate(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the outcome of every test on every row.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            1 if the row satisfies the test and else 0, shape ``(rows, tests)``. A missing number
            (NaN) satisfies no test ``x >= cut``.

        """
        bits = np.empty((len(values), len(self._references)), dtype=np.uint8)
        for start in range(0, len(values), ROWS_PER_BLOCK):
            block = values[start : start + ROWS_PER_BLOCK].take(self._feature_indices, axis=1)
            above = block >= self._references
            bits[start : start + ROWS_PER_BLOCK] = np.where(
                self._is_cut, above, block == self._references
            )
        return bits


def evaluate(tests: Sequence[BinaryTest], values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the outcome of every feature test on every row, 1 for true and 0 for false.

    Args:
        tests: the public tests.
        values: feature values encoded by the public schema, shape ``(rows, features)``.

    Returns:
        Outcomes, shape ``(rows, tests)``.

    """
    return PackedTests(tests).evaluate(values)


def distinct_cuts(bits: NDArray[np.uint8], *, complements: bool) -> tuple[int, ...]:
    """Return the indices of feature tests that split the given rows in different ways.

    Of tests that split the rows in the same way, the first is kept. Without rows, all tests are
    kept.

    Args:
        bits: outcomes of the tests on the rows, shape ``(rows, tests)``.
        complements: whether two tests with opposite outcomes on every row count as the same split.
            They do for a hypothesis class that may give any label to either side.

    """
    row_count, test_count = bits.shape
    if row_count == 0:
        return tuple(range(test_count))
    columns = np.packbits(bits ^ bits[:1] if complements else bits, axis=0).T
    seen: dict[bytes, int] = {}
    for index in range(test_count):
        seen.setdefault(columns[index].tobytes(), index)
    return tuple(seen.values())


def _reference(test: BinaryTest) -> float:
    """Return the number that a value is compared with: the cut, or the category's code."""
    if test.cut is not None:
        return test.cut
    return float(test.category_code if test.category_code is not None else 0)
