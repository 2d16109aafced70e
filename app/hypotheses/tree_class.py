"""All complete decision trees of a fixed depth over a public list of tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, log10
from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError
from app.hypotheses.binary_tests import distinct_cuts, evaluate
from app.hypotheses.regions import Region
from app.hypotheses.tree_weights import (
    draw_log_error,
    leaf_log_weights,
    log_partition,
    node_log_weights,
)
from app.hypotheses.trees import Tree
from app.noise.choice import draw_index, truncation_variation

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.hypotheses.binary_tests import BinaryTest
    from app.hypotheses.hypothesis_list import Encoded
    from app.noise.source import NoiseSource

DEPTH_MAX = 3
# Terms of the factorised sum, t**depth, one integer each in memory: below 1 GB
# and about a minute of work for two labels.
TERM_COUNT_MAX = 10**8


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeClass:
    """Depth-D trees over ``t`` tests with any label in any leaf.

    Its ``t**(2**D - 1) * L**(2**D)`` parametrised trees are a public multiset:
    two that predict alike both count, whatever the rows.

    Attributes:
        tests: the public tests; may be empty where the depth is 0.
        depth: levels of tests, 0 to 3.
        class_count: number of labels, L.

    """

    tests: tuple[BinaryTest, ...]
    depth: int
    class_count: int

    def __post_init__(self) -> None:
        """Refuse a class whose exact weights are out of reach, with its size."""
        if not 0 <= self.depth <= DEPTH_MAX or len(self.tests) ** self.depth > TERM_COUNT_MAX:
            raise ConfigurationError("hypotheses.depth", self._too_large())
        if self.depth > 0 and not self.tests:
            raise ConfigurationError("hypotheses", "trees need at least one test")

    @property
    def size(self) -> int:
        """Number of parametrised trees."""
        leaf_count = 1 << self.depth
        return int(len(self.tests) ** (leaf_count - 1) * self.class_count**leaf_count)

    @property
    def truncation_variation(self) -> Fraction:
        """Total variation of a whole draw: it adds over the tree's nodes and leaves."""
        leaf_count = 1 << self.depth
        nodes = (leaf_count - 1) * truncation_variation(len(self.tests))
        return nodes + leaf_count * truncation_variation(self.class_count)

    @property
    def dimension(self) -> int:
        """Bound the VC dimension by the logarithm to base 2 of the number of trees.

        Stumps are counted as functions: per test every pair of two different
        labels, and the constants.
        """
        if self.depth == 1:
            pairs = len(self.tests) * self.class_count * (self.class_count - 1)
            return (pairs + self.class_count).bit_length() - 1
        return self.size.bit_length() - 1

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the outcomes of :attr:`tests`, shape ``(n, t)``."""
        return evaluate(self.tests, values)

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Bound eta for one draw; see :func:`app.hypotheses.tree_weights.draw_log_error`."""
        return draw_log_error(
            row_count=row_count,
            epsilon=epsilon,
            depth=self.depth,
            test_count=len(self.tests),
            class_count=self.class_count,
            log_size=log(self.size),
        )

    def log_normaliser(self, encoded: Encoded, labels: NDArray[np.int64], epsilon: float) -> float:
        """Return the log of the sum of the weights of all trees.  Secret."""
        bits = encoded.astype(np.uint8, copy=False)
        return log_partition(Region.packed(bits, labels, self.class_count), self.depth, epsilon)

    def draw(
        self,
        encoded: Encoded,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
    ) -> Tree:
        """Draw a tree with probability proportional to ``exp(-epsilon errors / 2)``.

        The root comes from its marginal, then each side alone, so only the
        tables of the drawn sides are computed again.

        Args:
            encoded: outcomes of :attr:`tests` on private rows, shape ``(n, t)``.
            labels: private class indices, shape ``(n,)``.
            epsilon: parameter of the weights.
            noise: where the draws come from.

        Returns:
            The drawn tree, a private value until it is published.

        """
        bits = encoded.astype(np.uint8, copy=False)
        level = [Region.packed(bits, labels, self.class_count)]
        tests: list[int] = []
        for levels_left in range(self.depth, 0, -1):
            drawn = [
                draw_index(node_log_weights(region, levels_left, epsilon), noise)
                for region in level
            ]
            level = [
                region.restricted(test, outcome)
                for region, test in zip(level, drawn, strict=True)
                for outcome in (0, 1)
            ]
            tests += drawn
        leaves = [draw_index(leaf_log_weights(region.counts, epsilon), noise) for region in level]
        return Tree(test_indices=tuple(tests), leaf_labels=tuple(leaves))

    def restricted_to(self, public_points: Encoded) -> TreeClass:
        """Return all trees over one test for every distinct cut of the public points.

        Tests with complementary outcomes cut alike: a tree over one is a tree
        over the other with the branches exchanged.
        """
        kept = distinct_cuts(public_points.astype(np.uint8, copy=False), complements=True)
        return replace(self, tests=tuple(self.tests[index] for index in kept))

    def _too_large(self) -> str:
        """Say how large the class is, from public numbers only."""
        node_count = (1 << max(self.depth, 0)) - 1
        digits = node_count * log10(max(len(self.tests), 1))
        digits += (node_count + 1) * log10(self.class_count)
        return (
            f"trees of depth {self.depth} over {len(self.tests)} tests number about "
            f"10^{digits:.0f}; exact weights need a depth of 0 to {DEPTH_MAX} and at most "
            f"{TERM_COUNT_MAX:.0e} terms: lower the depth or list fewer tests"
        )
