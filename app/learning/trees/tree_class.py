"""The class of all complete decision trees of a fixed depth over a public list of feature tests.

The exponential mechanism draws a tree with a probability in proportion to its weight
``exp(-epsilon * errors / 2)``, where ``errors`` is the number of rows that the tree mislabels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import log10
from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import distinct_cuts, evaluate
from app.learning.encoding.encoded_rows import parts
from app.learning.encoding.feature_codes import CellCodes
from app.learning.trees.cell_counts import (
    COUNTED_DEPTH_MAX,
    COUNTERS_MAX,
    SETS_MAX,
    CountedRows,
    cell_tables,
    counters,
    feature_sets,
    merged_tables,
)
from app.learning.trees.tree_distribution import (
    DEPTH_MAX,
    MEMORY_BYTES_MAX,
    WEIGHT_COUNT_MAX,
    TreeSize,
    TreeWeights,
    draw_log_error,
)
from app.learning.trees.upper_level_weights import Told, excluded_literals, tell_nobody
from app.noise.exact_choice import truncation_variation

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.learning.hypothesis import HypothesisClass
    from app.learning.trees.cell_counts import Tables
    from app.learning.trees.tree import Tree
    from app.noise.source import NoiseSource


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeClass:
    """The class of all complete decision trees of a fixed depth over a list of feature tests.

    Any leaf may have any label. With depth D, t tests and L labels, the class has
    ``t**(2**D - 1) * L**(2**D)`` trees. Two trees with different tests or labels count as two, even
    if they label all rows equally, so the number of trees is public.

    Attributes:
        tests: the public tests; may be empty if the depth is 0.
        depth: the number of tests between the root and a leaf, 0 or more.
        class_count: the number of labels.
        told: a function that is called with the progress of a random draw: the number of finished
            steps and the number of all steps, both public.

    """

    tests: tuple[BinaryTest, ...]
    depth: int
    class_count: int
    told: Told = field(default=tell_nobody, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a class that is too large for exact weights."""
        if self.depth > 0 and not self.tests:
            raise ConfigurationError("hypotheses", "trees need at least one test")
        if not 0 <= self.depth <= DEPTH_MAX or not self._size.is_within_reach():
            raise ConfigurationError("hypotheses.depth", self._too_large())

    @property
    def size(self) -> int:
        """The number of trees in the class."""
        return self._size.tree_count

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance by which rounded weights change a random draw."""
        leaf_count = 1 << self.depth
        nodes = (leaf_count - 1) * truncation_variation(len(self.tests))
        return nodes + leaf_count * truncation_variation(self.class_count)

    @property
    def dimension(self) -> int:
        """An upper bound on the VC dimension: the base-2 log of the number of trees.

        For depth 1, only different functions are counted: for each feature test every pair of two
        different labels, and the functions that give every row the same label.
        """
        if self.depth == 1:
            pairs = len(self.tests) * self.class_count * (self.class_count - 1)
            return (pairs + self.class_count).bit_length() - 1
        return self.size.bit_length() - 1

    @property
    def is_counted(self) -> bool:
        """Whether a tree can be drawn from counts of rows alone, without the rows."""
        return self._coding is not None

    @property
    def _coding(self) -> CellCodes | None:
        """The cells by which rows are counted for a draw; None where there are too many."""
        if not 1 <= self.depth <= COUNTED_DEPTH_MAX:
            return None
        coding = CellCodes.of(self.tests)
        if coding is None or len(feature_sets(coding, self.depth)) > SETS_MAX:
            return None
        total = counters(coding, self.depth) * self.class_count
        return coding if total <= COUNTERS_MAX else None

    def refuse_rows(self, row_count: int, *, is_weighed: bool = False) -> None:
        """Refuse a number of rows for which a random draw would take longer than some minutes.

        Args:
            row_count: the public number of rows.
            is_weighed: whether rows have weights below 1, since a person may have several rows.

        Raises:
            ConfigurationError: a draw would take too long; the error names ``hypotheses.depth``.

        """
        weight_count = self._row_weight_count(row_count)
        if weight_count > WEIGHT_COUNT_MAX and (is_weighed or not self.is_counted):
            problem = (
                f"counting {row_count} rows for trees of depth {self.depth} over "
                f"{len(self.tests)} tests takes about {weight_count:.0e} steps, and at most "
                f"{WEIGHT_COUNT_MAX:.0e} are taken: lower the depth or list fewer tests"
            )
            raise ConfigurationError("hypotheses.depth", problem)

    def _row_weight_count(self, row_count: int) -> float:
        """Estimate the steps of counting rows region by region, from public numbers."""
        shares = [test.public_frequency for test in self.tests]
        spread = sum(min(share, 1.0 - share) for share in shares)
        return self._size.row_weight_count(row_count, spread)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the outcome of every feature test on every row, 0 or 1.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            Outcomes, shape ``(rows, tests)``.

        """
        return evaluate(self.tests, values)

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound on the rounding errors of the trees' log weights in one random draw.

        :func:`app.learning.trees.tree_distribution.draw_log_error` derives the bound. With a bound
        ``eta``, a draw is ``(epsilon + 4 eta)``-DP up to a total variation distance of
        :attr:`truncation_variation`.
        """
        del row_count, epsilon
        return draw_log_error(self._size)

    def log_normaliser(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the log of the sum of all trees' weights; the result is secret.

        Args:
            encoded: outcomes of :attr:`tests` on the private rows, shape ``(rows, tests)``.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
        return self.weights(encoded, labels, epsilon, row_weights).log_normaliser()

    def draw(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
        row_weights: NDArray[np.float64] | None = None,
    ) -> Tree:
        """Return a tree drawn with probability proportional to ``exp(-epsilon * errors / 2)``.

        Args:
            encoded: outcomes of :attr:`tests` on the private rows, shape ``(rows, tests)``.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter of the weights.
            noise: the source of randomness.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        Returns:
            The drawn tree, which is private until it is published.

        """
        coding = self._coding
        are_many = self._row_weight_count(len(labels)) > WEIGHT_COUNT_MAX
        if are_many and coding is not None and row_weights is None:
            return self.draw_counted(self._counted(coding, encoded, labels), epsilon, noise)
        return self.weights(encoded, labels, epsilon, row_weights).draw(noise)

    def _counted(
        self, coding: CellCodes, encoded: EncodedRows, labels: NDArray[np.int64]
    ) -> CountedRows:
        """Count rows by label and cells, part by part."""
        total: Tables = {}
        for rows in parts(len(labels)):
            bits = encoded[rows].astype(np.uint8, copy=False)
            counted = cell_tables(
                coding,
                coding.codes_of_bits(bits),
                labels[rows],
                group_count=self.class_count,
                size=self.depth,
            )
            total = merged_tables(total, counted) if total else counted
        return CountedRows.of(coding, total, depth=self.depth)

    def draw_counted(self, counted: CountedRows, epsilon: float, noise: NoiseSource) -> Tree:
        """Return a tree drawn as :meth:`draw` does, from counts of the rows only.

        Args:
            counted: the numbers of private rows that pass up to ``depth`` feature tests at once.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            noise: the source of randomness.

        """
        excluded = excluded_literals(self.tests)
        weighed = TreeWeights.over(
            counted, depth=self.depth, epsilon=epsilon, excluded=excluded, told=self.told
        )
        return weighed.draw(noise)

    def weights(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> TreeWeights:
        """Return sums of trees' weights, one for each set of rows that can reach a node; secret.

        Args:
            encoded: outcomes of :attr:`tests` on the private rows, shape ``(rows, tests)``.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
        return TreeWeights.of(
            encoded,
            labels,
            depth=self.depth,
            class_count=self.class_count,
            epsilon=epsilon,
            excluded=excluded_literals(self.tests),
            row_weights=row_weights,
            told=self.told,
        )

    def restricted_to(self, public_points: Encoded) -> TreeClass:
        """Return the class of trees with one feature test for each division of public points.

        Two tests with opposite outcomes on every point count as the same division, and only the
        first of them is kept.

        Args:
            public_points: outcomes of :attr:`tests` on the points, shape ``(points, tests)``.

        """
        kept = distinct_cuts(public_points.astype(np.uint8, copy=False), complements=True)
        return replace(self, tests=tuple(self.tests[index] for index in kept))

    @property
    def _size(self) -> TreeSize:
        return TreeSize(test_count=len(self.tests), depth=self.depth, class_count=self.class_count)

    def _too_large(self) -> str:
        """Say how large the class is, from public numbers only."""
        node_count = (1 << max(self.depth, 0)) - 1
        digits = node_count * log10(max(len(self.tests), 1))
        digits += (node_count + 1) * log10(self.class_count)
        return (
            f"trees of depth {self.depth} over {len(self.tests)} tests number about "
            f"10^{digits:.0f}; exact weights take at most {WEIGHT_COUNT_MAX:.0e} terms, "
            f"{MEMORY_BYTES_MAX:.0e} bytes, a depth of {DEPTH_MAX} and sums in the range of "
            "doubles: lower the depth or list fewer tests"
        )


def telling(hypotheses: HypothesisClass, told: Told) -> HypothesisClass:
    """Return the given class; if it is a class of trees, its random draw reports its progress.

    Args:
        hypotheses: the hypothesis class. A class without trees is returned unchanged.
        told: a function that is called with the number of finished steps and the number of all
            steps, both public.

    """
    return replace(hypotheses, told=told) if isinstance(hypotheses, TreeClass) else hypotheses
