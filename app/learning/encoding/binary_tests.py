"""Binary tests of one public feature each: ``x >= cut`` or ``x == category``.

Values are encoded as float64: a numeric feature is its clipped value, NaN
where missing; a categorical feature is its code (``0 .. C-1`` the categories,
``C`` other, ``C + 1`` missing).
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
    """A public binary test of one feature.

    Attributes:
        feature_index: which feature, in schema order.
        cut: true iff the value is at or above it; None for a categorical test.
        category_code: true iff the value's code equals it; None for a cut.
        public_frequency: public share of people for whom the test is true, in
            [0, 1]; it orders tests in the canonical learner.

    """

    feature_index: int
    cut: float | None
    category_code: int | None
    public_frequency: float

    def __post_init__(self) -> None:
        """Refuse a test that is both or neither kind, or a share outside [0, 1]."""
        invariant((self.cut is None) != (self.category_code is None), "a test has one kind")
        invariant(0.0 <= self.public_frequency <= 1.0, "a public frequency lies in [0, 1]")


class PackedTests:
    """Binary tests as arrays, for fast evaluation of small batches.

    Args:
        tests: the public tests, one column of bits each.

    """

    def __init__(self, tests: Sequence[BinaryTest]) -> None:
        """Store the tests as three arrays of shape ``(t,)``."""
        self._feature_indices = np.array([test.feature_index for test in tests], dtype=np.intp)
        self._is_cut = np.array([test.cut is not None for test in tests], dtype=np.bool_)
        self._references = np.array([_reference(test) for test in tests], dtype=np.float64)

    def evaluate(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the outcomes of all tests as bits, 1 where a row satisfies a test.

        Args:
            values: encoded rows, shape ``(n, d)``.

        Returns:
            Shape ``(n, t)``, 0 or 1.  A missing number (NaN) satisfies no cut.

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
    """Return an array of bits of shape ``(n, t)`` for encoded ``values`` of shape ``(n, d)``."""
    return PackedTests(tests).evaluate(values)


def distinct_cuts(bits: NDArray[np.uint8], *, complements: bool) -> tuple[int, ...]:
    """Return test indices: one for each distinct way in which a test splits the given rows.

    Without rows nothing can be told apart and every test stays.

    Args:
        bits: outcomes of the tests, shape ``(m, t)``.
        complements: whether tests with complementary outcomes cut rows alike,
            as they do for a class that may label either side in any way.

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
