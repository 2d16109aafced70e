"""The class of all labellings of a public division's cells, with random draws from it.

A cell is a part of the feature space, given by a public tree of feature tests. A hypothesis gives
one label to each cell. The exponential mechanism draws a hypothesis with a probability in
proportion to its weight ``exp(-epsilon * errors / 2)``, where ``errors`` is the number of rows that
the hypothesis mislabels. This number is a sum over the cells, so the weight is a product over the
cells. Therefore the label of each cell is drawn separately, from the numbers of rows with each
label in this cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.encoding.binary_tests import BinaryTest, PackedTests
from app.learning.encoding.encoded_rows import parts
from app.learning.enumerated.enumerated_class import UNIT_ROUNDOFF, choice_roundoffs, log_sum_exp
from app.learning.trees.lower_level_weights import leaf_terms
from app.noise.exact_choice import draw_index, truncation_variation

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.noise.source import NoiseSource

ROWS_PER_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class CellSplits:
    """A public tree of feature tests that divides the feature space into cells.

    Attributes:
        tests: one yes-or-no test of a feature at each inner node; node 0 is the root. Without tests
            there is one cell.
        branches: where each node leads, first if its test is false and then if it is true: the
            index of a later node, or ``~c`` for the cell with index c.
        cell_count: the number of cells; cell indices start at 0.

    """

    tests: tuple[BinaryTest, ...]
    branches: tuple[tuple[int, int], ...]
    cell_count: int = field(init=False)

    def __post_init__(self) -> None:
        """Check that the branches form a tree, and count its cells."""
        invariant(len(self.tests) == len(self.branches), "every node has a test")
        ends = [end for pair in self.branches for end in pair]
        nodes = sorted(end for end in ends if end >= 0)
        cells = sorted(~end for end in ends if end < 0)
        invariant(nodes == list(range(1, len(self.tests))), "every node but the root hangs once")
        pairs = enumerate(self.branches)
        later = [end < 0 or end > node for node, pair in pairs for end in pair]
        invariant(all(later), "nodes hang below earlier ones")
        invariant(cells == list(range(len(cells))), "every cell is reached once")
        object.__setattr__(self, "cell_count", max(1, len(cells)))

    @property
    def root(self) -> int:
        """Return the root of the tree: node 0, or, without tests, cell 0 (written as ``~0``)."""
        return 0 if self.tests else ~0

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the index of the cell in which each row lies.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            Cell indices, shape ``(rows,)``.

        """
        if not self.tests:
            return np.zeros(len(values), dtype=np.int32)
        packed, branches = PackedTests(self.tests), np.array(self.branches, dtype=np.int32)
        places = np.empty(len(values), dtype=np.int32)
        for start in range(0, len(values), ROWS_PER_BLOCK):
            bits = packed.evaluate(values[start : start + ROWS_PER_BLOCK])
            places[start : start + ROWS_PER_BLOCK] = _descend(bits, branches)
        return places


def _descend(bits: NDArray[np.uint8], branches: NDArray[np.int32]) -> NDArray[np.int32]:
    """Follow every row from the root to its cell, shape ``(n,)``."""
    nodes = np.zeros(len(bits), dtype=np.int32)
    rows = np.arange(len(bits))
    while len(rows):
        here = nodes[rows]
        nodes[rows] = branches[here, bits[rows, here]]
        rows = rows[nodes[rows] >= 0]
    return ~nodes


@dataclass(frozen=True, slots=True)
class CellLabels:
    """A hypothesis that gives one label to every public cell (part of the feature space).

    Attributes:
        labels: one class index per cell.

    """

    labels: tuple[int, ...]

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the class index of every row, shape ``(rows,)``.

        Args:
            encoded: the index of each row's cell, shape ``(rows, 1)``.

        """
        labels: NDArray[np.int64] = np.array(self.labels, dtype=np.int64)
        return labels[encoded[:, 0].astype(np.intp, copy=False)]

    def to_dict(self) -> dict[str, list[int]]:
        """Return the labels as a list, for private storage."""
        return {"cell_labels": list(self.labels)}


@dataclass(frozen=True, kw_only=True, slots=True)
class CellClass:
    """The class of all labellings of public cells (parts of the feature space).

    Attributes:
        splits: the public tree of feature tests that divides the feature space into the cells.
        class_count: the number of labels.

    """

    splits: CellSplits
    class_count: int

    @property
    def size(self) -> int:
        """The number of hypotheses: ``labels ** cells``."""
        size: int = self.class_count**self.splits.cell_count
        return size

    @property
    def dimension(self) -> int:
        """An upper bound on the VC dimension: the base-2 log of the number of hypotheses."""
        return self.size.bit_length() - 1

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance by which rounded weights change a random draw."""
        return self.splits.cell_count * truncation_variation(self.class_count)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the index of every row's cell, shape ``(rows, 1)``."""
        return self.splits.places(values)[:, np.newaxis]

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound on the rounding errors of the hypotheses' log weights in one random draw.

        With a bound ``eta``, a draw is ``(epsilon + 4 eta)``-DP up to a total variation distance of
        :attr:`truncation_variation`. The numbers of errors are exact. The rounding errors of one
        cell's log weights are bounded by
        :func:`app.learning.enumerated.enumerated_class.choice_roundoffs`, and the bound for a
        hypothesis is the sum over all cells, doubled for safety.
        """
        del row_count, epsilon
        return 2 * UNIT_ROUNDOFF * self.splits.cell_count * choice_roundoffs(0.0)

    def log_normaliser(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the log of the sum of all hypotheses' weights; the result is secret.

        Args:
            encoded: the index of each private row's cell, shape ``(rows, 1)``.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
        errors = leaf_terms(self._counts(encoded, labels, row_weights)).errors
        return float(log_sum_exp(errors * (-epsilon / 2)).sum())

    def draw(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
        row_weights: NDArray[np.float64] | None = None,
    ) -> CellLabels:
        """Return a labelling of the cells drawn with probability proportional to its weight.

        The weight is ``exp(-epsilon * errors / 2)``, where ``errors`` is the number of mislabelled
        rows.

        Args:
            encoded: the index of each private row's cell, shape ``(rows, 1)``.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter of the weights.
            noise: the source of randomness.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        Returns:
            The labelling, which is private until it is published.

        """
        return self._drawn(self._counts(encoded, labels, row_weights), epsilon, noise)

    def tally(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of rows of each label in each cell, shape ``(labels, cells)``.

        Args:
            encoded: the index of each private row's cell, shape ``(rows, 1)``.
            labels: private class indices, shape ``(rows,)``.

        """
        return self._counts(encoded, labels, None).astype(np.int64)

    def draw_tallied(self, tally: Tally, epsilon: float, noise: NoiseSource) -> CellLabels:
        """Draw a labelling as :meth:`draw` does, from counts of rows in place of rows.

        Args:
            tally: the numbers that :meth:`tally` returns.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            noise: the source of randomness.

        """
        return self._drawn(tally.weighed, epsilon, noise)

    def _drawn(self, counts: NDArray[np.float64], epsilon: float, noise: NoiseSource) -> CellLabels:
        """Draw each cell's label from its own counts, shape ``(L, C)``."""
        drawn = [
            draw_index(leaf_terms(counts[:, cell]).relative_logs(epsilon / 2), noise)
            for cell in range(self.splits.cell_count)
        ]
        return CellLabels(tuple(drawn))

    def best(self, encoded: EncodedRows, labels: NDArray[np.int64]) -> CellLabels:
        """Return the labelling that gives each cell its most frequent label.

        Of equally frequent labels, the first one is taken.

        Args:
            encoded: the index of each row's cell, shape ``(rows, 1)``.
            labels: class indices, shape ``(rows,)``.

        """
        return CellLabels(tuple(self._counts(encoded, labels, None).argmax(axis=0).tolist()))

    def restricted_to(self, public_points: Encoded) -> CellClass:
        """Return the class unchanged, because its cells do not depend on public points."""
        del public_points
        return self

    def _counts(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        row_weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Add what the rows of each label in each cell count for, shape ``(L, C)``, exactly."""
        shape = (self.class_count, self.splits.cell_count)
        counts = np.zeros(shape[0] * shape[1])
        for rows in parts(len(encoded)):
            cells = encoded[rows][:, 0].astype(np.int64)
            flat = labels[rows] * shape[1] + cells
            weights = None if row_weights is None else row_weights[rows]
            counts += np.bincount(flat, weights=weights, minlength=len(counts))
        return counts.reshape(shape)
