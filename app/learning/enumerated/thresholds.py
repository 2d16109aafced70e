"""The class of thresholds ``x >= cut`` on one numeric feature; two labels only.

The exponential mechanism draws a hypothesis with a probability in proportion to its weight
``exp(-epsilon * errors / 2)``, where ``errors`` is the number of rows that it mislabels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import distinct_cuts, evaluate
from app.learning.encoding.encoded_rows import weighed_parts
from app.learning.enumerated.boxes import box_dimension
from app.learning.enumerated.enumerated_class import FUNCTION_ROUNDOFFS, UNIT_ROUNDOFF, log_sum_exp
from app.learning.trees.regions import Region
from app.learning.trees.tree import Tree
from app.noise.exact_choice import draw_index, truncation_variation

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.noise.source import NoiseSource

CLASS_COUNT = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdClass:
    """The class of rules that give label 1 if ``x_j >= cut`` for a feature j, and else label 0.

    The class also has the two hypotheses that give every row label 0 or label 1.

    Attributes:
        tests: the public tests ``x_j >= cut`` of numeric features. Without tests, only the two
            hypotheses that give every row the same label are left.

    """

    tests: tuple[BinaryTest, ...]

    def __post_init__(self) -> None:
        """Refuse a test of a categorical feature."""
        if any(test.cut is None for test in self.tests):
            raise ConfigurationError("hypotheses.class", "thresholds take numeric tests only")

    @property
    def depth(self) -> int:
        """The depth of every rule as a decision tree: 1, or 0 without feature tests."""
        return 1 if self.tests else 0

    @property
    def class_count(self) -> int:
        """The number of labels, which is two."""
        return CLASS_COUNT

    @property
    def size(self) -> int:
        """The number of hypotheses: the number of feature tests, plus two."""
        return len(self.tests) + CLASS_COUNT

    @property
    def hypotheses(self) -> tuple[Tree, ...]:
        """All hypotheses as trees: one per feature test in order, then label 0, then label 1."""
        cuts = [Tree(test_indices=(index,), leaf_labels=(0, 1)) for index in range(len(self.tests))]
        constants = [
            Tree(test_indices=(0,) * self.depth, leaf_labels=(label,) * 2**self.depth)
            for label in range(CLASS_COUNT)
        ]
        return (*cuts, *constants)

    @property
    def dimension(self) -> int:
        """The VC dimension of thresholds on one feature, or an upper bound for several features."""
        features = {test.feature_index for test in self.tests}
        return box_dimension("thresholds", len(features), size=self.size)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the outcome of every feature test on every row, 0 or 1.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            Outcomes, shape ``(rows, tests)``.

        """
        return evaluate(self.tests, values)

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of errors of every hypothesis, in the order of :attr:`hypotheses`.

        Args:
            encoded: outcomes of :attr:`tests` on the rows, shape ``(rows, tests)``.
            labels: class indices 0 or 1, shape ``(rows,)``.

        Returns:
            Numbers of errors, shape ``(tests + 2,)``.

        """
        bits = encoded.astype(np.uint8, copy=False)
        region = Region.packed(bits, labels, CLASS_COUNT)
        negative_count, positive_count = region.counts
        above = region.single_counts()
        errors = above[0] + (positive_count - above[1])
        return np.append(errors, [positive_count, negative_count]).astype(np.int64)

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance by which rounded weights change a random draw."""
        return truncation_variation(self.size)

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound on the rounding errors of the hypotheses' log weights in one random draw.

        With a bound ``eta``, a draw is ``(epsilon + 4 eta)``-DP up to a total variation distance of
        :attr:`truncation_variation`.

        Args:
            row_count: the public number of rows.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``, or an upper bound
                on it.

        """
        # The numbers of errors and epsilon / 2 are exact.  With u = 2**-53 and B = epsilon *
        # row_count / 2, the product of epsilon / 2 and errors, and the subtraction of the largest
        # log weight, have a rounding error of at most u * B each, and exp has one of at most
        # 8 * u.  Doubling the sum covers second-order terms.
        largest = 0.5 * epsilon * row_count
        return 2 * UNIT_ROUNDOFF * (2 * largest + FUNCTION_ROUNDOFFS)

    def log_normaliser(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the log of the sum of all hypotheses' weights; the result is secret.

        Args:
            encoded: outcomes of :attr:`tests` on the private rows, shape ``(rows, tests)``.
            labels: private class indices 0 or 1, shape ``(rows,)``.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
        return float(log_sum_exp(self._log_weights(encoded, labels, epsilon, row_weights)))

    def draw(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
        row_weights: NDArray[np.float64] | None = None,
    ) -> Tree:
        """Return a hypothesis drawn with probability proportional to its weight.

        The weight is ``exp(-epsilon * errors / 2)``.

        Args:
            encoded: outcomes of :attr:`tests` on the private rows, shape ``(rows, tests)``.
            labels: private class indices 0 or 1, shape ``(rows,)``.
            epsilon: the parameter of the weights.
            noise: the source of randomness.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
        log_weights = self._log_weights(encoded, labels, epsilon, row_weights)
        return self.hypotheses[draw_index(log_weights, noise)]

    def tally(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each hypothesis's number of errors on the rows, shape ``(tests + 2,)``.

        Args:
            encoded: outcomes of :attr:`tests` on the private rows, shape ``(rows, tests)``.
            labels: private class indices 0 or 1, shape ``(rows,)``.

        """
        return self.error_counts(encoded, labels)

    def draw_tallied(self, tally: Tally, epsilon: float, noise: NoiseSource) -> Tree:
        """Draw a hypothesis as :meth:`draw` does, from each hypothesis's number of errors.

        Args:
            tally: the numbers of errors that :meth:`tally` returns.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            noise: the source of randomness.

        """
        log_weights = np.multiply(tally.weighed, -0.5 * epsilon)
        return self.hypotheses[draw_index(log_weights, noise)]

    def restricted_to(self, public_points: Encoded) -> ThresholdClass:
        """Return the class with one threshold for each distinct labelling of public points.

        Of the feature tests with the same outcome on every point, the first is kept, and tests that
        do not divide the points are left out. Without points, the class is returned unchanged.

        Args:
            public_points: outcomes of :attr:`tests` on the points, shape ``(points, tests)``.

        """
        if not len(public_points):
            return self
        bits = public_points.astype(np.uint8, copy=False)
        kept = distinct_cuts(bits, complements=False)
        parting = [index for index in kept if bits[:, index].min() != bits[:, index].max()]
        return ThresholdClass(tests=tuple(self.tests[index] for index in parting))

    def _log_weights(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        errors = np.zeros(self.size)
        for weight, rows, row_labels in weighed_parts(encoded, labels, row_weights):
            errors += weight * self.error_counts(rows, row_labels)
        return np.multiply(errors, -0.5 * epsilon)
