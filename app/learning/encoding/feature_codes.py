"""Encoding of each feature value by one integer: the interval or category of the value.

The cuts in the tests ``x >= cut`` of a numeric feature divide its values into intervals. The tests
``x == category`` of a categorical feature distinguish the tested categories, and treat all others
as one. Therefore one small integer per feature determines the outcomes of all tests on a row. It
takes one byte, and rows can be counted by this integer, which is faster than counting by tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

CELLS_MAX: Final = 256
"""Cells of a feature whose number fits in a byte."""


@dataclass(frozen=True, slots=True, eq=False)
class CodedFeature:
    """The tests of one feature, and the intervals or categories that they distinguish.

    A value's code is the index of its interval or category.

    Attributes:
        feature_index: the index of the feature in the schema.
        test_indices: the indices of the feature's tests, by ascending cut or category code, shape
            ``(tests,)``.
        references: the cuts or category codes of these tests, in the same order.
        is_cut: whether the tests are ``x >= cut``. If so, a value with code j satisfies the first j
            tests. If not, a value with code j satisfies only test number j, and code 0 satisfies
            none.

    """

    feature_index: int
    test_indices: NDArray[np.int64]
    references: NDArray[np.float64]
    is_cut: bool

    @property
    def cell_count(self) -> int:
        """The number of possible codes: one more than the number of feature tests."""
        return len(self.references) + 1

    def codes(self, column: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the code of each value, shape ``(values,)``; a missing number has code 0.

        Args:
            column: values of this feature, encoded by the public schema.

        """
        if self.is_cut:
            cells = np.searchsorted(self.references, column, side="right")
            cells[np.isnan(column)] = 0
            return cells.astype(np.uint8)
        table = np.zeros(int(self.references.max()) + 2, dtype=np.uint8)
        table[self.references.astype(np.intp)] = np.arange(1, self.cell_count)
        # Categories that no test asks for share the last place, which is cell 0.
        return table[np.minimum(column, len(table) - 1).astype(np.intp)]

    def holds(self) -> NDArray[np.bool_]:
        """Return for each code whether values with this code satisfy each feature test.

        Returns:
            Outcomes, shape ``(codes, tests)``.

        """
        cells, tests = np.arange(self.cell_count)[:, np.newaxis], np.arange(len(self.references))
        held: NDArray[np.bool_] = tests < cells if self.is_cut else tests == cells - 1
        return held

    def meets(self) -> NDArray[np.int64]:
        """Return, for every two feature tests, the one test that is true exactly if both are true.

        For ``x >= 2`` and ``x >= 5`` this is ``x >= 5``. For two different categories there is no
        such test, and the entry is the number of tests.

        Returns:
            Positions in :attr:`test_indices`, shape ``(tests, tests)``.

        """
        tests = np.arange(len(self.references))
        first, second = tests[:, np.newaxis], tests[np.newaxis]
        if self.is_cut:
            return np.maximum(first, second)
        return np.where(first == second, first, len(tests))


class CellCodes:
    """The encoding of rows by one integer code per feature, made from a list of feature tests.

    Args:
        features: all features that have a test, each with all its tests.

    """

    def __init__(self, features: Sequence[CodedFeature]) -> None:
        """Store the outcome of every feature test on every code in one table."""
        self.features = tuple(features)
        self.test_count = sum(len(feature.test_indices) for feature in features)
        self._table = np.zeros((self.test_count, CELLS_MAX), dtype=np.uint8)
        self._places = np.zeros(self.test_count, dtype=np.intp)
        for place, feature in enumerate(self.features):
            self._table[feature.test_indices, : feature.cell_count] = feature.holds().T
            self._places[feature.test_indices] = place

    @classmethod
    def of(cls, tests: Sequence[BinaryTest]) -> CellCodes | None:
        """Return the encoding that a list of feature tests defines, or None if there is none.

        Returns:
            None if a test is repeated, if a feature has more than 256 codes, or if a feature has
            both numeric and categorical tests.

        """
        by_feature: dict[int, list[int]] = {}
        for index, test in enumerate(tests):
            by_feature.setdefault(test.feature_index, []).append(index)
        found = [_coded(feature, indices, tests) for feature, indices in by_feature.items()]
        known = [feature for feature in found if feature is not None]
        return cls(known) if known and len(known) == len(found) else None

    @property
    def width(self) -> int:
        """The number of bytes per row: one for each feature that has a yes-or-no test."""
        return len(self.features)

    def encoded(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the outcomes of all feature tests on each row, from the row's integer codes.

        Args:
            codes: integer codes, shape ``(tested features, rows)``.

        Returns:
            Outcomes 0 or 1, shape ``(rows, tests)``.

        """
        return self.bits(codes)

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the integer codes of rows, feature by feature.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            Codes, shape ``(tested features, rows)``.

        """
        cells = np.empty((len(self.features), len(values)), dtype=np.uint8)
        for place, feature in enumerate(self.features):
            cells[place] = feature.codes(values[:, feature.feature_index])
        return cells

    def codes_of_bits(self, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the integer codes of rows, from the outcomes of all feature tests on the rows.

        Args:
            bits: outcomes 0 or 1, shape ``(rows, tests)``.

        Returns:
            Codes, shape ``(tested features, rows)``.

        """
        cells = np.empty((len(self.features), len(bits)), dtype=np.uint8)
        for place, feature in enumerate(self.features):
            met = bits[:, feature.test_indices]
            # Of cuts as many are met as the cell says; of categories one at most.
            names = np.ones(met.shape[1]) if feature.is_cut else np.arange(1, met.shape[1] + 1)
            cells[place] = met @ names.astype(np.uint8)
        return cells

    def bits(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the outcomes of all feature tests on each row, from the row's integer codes.

        Args:
            codes: integer codes, shape ``(tested features, rows)``.

        Returns:
            Outcomes 0 or 1, shape ``(rows, tests)``.

        """
        outcomes = np.empty((codes.shape[1], self.test_count), dtype=np.uint8)
        for place, feature in enumerate(self.features):
            outcomes[:, feature.test_indices] = feature.holds()[codes[place]]
        return outcomes

    def outcomes(self, codes: NDArray[np.uint8], tests: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return for each row the outcome of one given feature test, shape ``(rows,)``.

        Args:
            codes: integer codes, shape ``(tested features, rows)``.
            tests: the index of the test that is evaluated on each row, shape ``(rows,)``.

        """
        invariant(len(tests) == codes.shape[1], "every row is asked one test")
        cells = codes[self._places[tests], np.arange(len(tests))]
        asked: NDArray[np.uint8] = self._table[tests, cells]
        return asked


def _coded(
    feature_index: int, indices: Sequence[int], tests: Sequence[BinaryTest]
) -> CodedFeature | None:
    """Return a feature's tests in the order of their cells; None where a code cannot tell them."""
    kinds = {tests[index].cut is None for index in indices}
    references = [_reference(tests[index]) for index in indices]
    if len(kinds) > 1 or len(set(references)) < len(references) or len(references) >= CELLS_MAX:
        return None
    order = np.argsort(references)
    return CodedFeature(
        feature_index=feature_index,
        test_indices=np.array(indices, dtype=np.int64)[order],
        references=np.array(references, dtype=np.float64)[order],
        is_cut=kinds == {False},
    )


def _reference(test: BinaryTest) -> float:
    """Return the cut, or the category's code."""
    return test.cut if test.cut is not None else float(test.category_code or 0)
