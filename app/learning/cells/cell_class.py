"""The class of all labellings of a public partition's cells, with random draws from it.

The errors of a labelling add over its cells, so the weights of all ``L**C`` labellings
are a product, and each cell's label is drawn by itself, from its own counts.

A public partition of all rows into cells, as a tree of tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.encoding.binary_tests import BinaryTest, PackedTests
from app.learning.encoding.encoded_rows import parts
from app.learning.lists.enumerated_class import UNIT_ROUNDOFF, choice_roundoffs, log_sum_exp
from app.learning.trees.tree_terms import leaf_terms
from app.noise.exact_choice import draw_index, truncation_variation

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.learning.lists.hypothesis_list import Encoded
    from app.noise.source import NoiseSource

ROWS_PER_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class CellSplits:
    """A public tree of tests that divides the feature space into cells.

    Attributes:
        tests: one at each inner node; node 0 is the root.  None leaves one cell.
        branches: where each node leads, false side first: the number of a later
            node, or ``~c`` for cell c.
        cell_count: number of cells C, numbered from 0.

    """

    tests: tuple[BinaryTest, ...]
    branches: tuple[tuple[int, int], ...]
    cell_count: int = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what is no tree, and count its cells."""
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
        """Return the tree node at which every row starts: node 0, or the only cell."""
        return 0 if self.tests else ~0

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the index of the cell in which each row lies.

        Args:
            values: encoded by the public schema, shape ``(n, d)``.

        Returns:
            Shape ``(n,)``, from 0 to C - 1.

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
    """A hypothesis that gives one label to every public region (cell).

    Attributes:
        labels: class indices, one a cell.

    """

    labels: tuple[int, ...]

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the class index of every row, given the rows' cell indices, shape ``(n, 1)``."""
        labels: NDArray[np.int64] = np.array(self.labels, dtype=np.int64)
        return labels[encoded[:, 0].astype(np.intp, copy=False)]

    def to_dict(self) -> dict[str, list[int]]:
        """Return the labels as a list, to be stored privately."""
        return {"cell_labels": list(self.labels)}


@dataclass(frozen=True, kw_only=True, slots=True)
class CellClass:
    """The class of all labellings of public cells.

    Attributes:
        splits: the public partition.
        class_count: number of labels, L.

    """

    splits: CellSplits
    class_count: int

    @property
    def size(self) -> int:
        """The number of hypotheses (labellings of C cells with L labels), ``L**C``."""
        size: int = self.class_count**self.splits.cell_count
        return size

    @property
    def dimension(self) -> int:
        """An upper bound on the VC dimension: the base-2 log of the size (C for two labels)."""
        return self.size.bit_length() - 1

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance that rounding causes in a whole draw."""
        return self.splits.cell_count * truncation_variation(self.class_count)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the index of every row's cell, shape ``(n, 1)``."""
        return self.splits.places(values)[:, np.newaxis]

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound (eta) on the rounding errors of labellings' log weights in one draw.

        Numbers of errors are exact, so a cell's log weights lose only what
        :func:`app.learning.lists.enumerated_class.choice_roundoffs` counts; a labelling's
        probability is the product of C.  Doubled, as for trees.
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
        """Return the log of the sum of all hypotheses' weights; secret."""
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
        """Return a labelling drawn with probability proportional to ``exp(-epsilon errors / 2)``.

        Args:
            encoded: cells of private rows, shape ``(n, 1)``.
            labels: private class indices, shape ``(n,)``.
            epsilon: parameter of the weights.
            noise: where the draws come from.
            row_weights: what each row counts for, shape ``(n,)``; None for 1 each.

        Returns:
            The labelling, a private value until it is published.

        """
        return self._drawn(self._counts(encoded, labels, row_weights), epsilon, noise)

    def tally(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the rows of each label in each cell, shape ``(L, C)``."""
        return self._counts(encoded, labels, None).astype(np.int64)

    def draw_tallied(self, tally: Tally, epsilon: float, noise: NoiseSource) -> CellLabels:
        """Draw a labelling as :meth:`draw` does, from label counts per cell in place of rows."""
        return self._drawn(tally.weighed, epsilon, noise)

    def _drawn(self, counts: NDArray[np.float64], epsilon: float, noise: NoiseSource) -> CellLabels:
        """Draw each cell's label from its own counts, shape ``(L, C)``."""
        drawn = [
            draw_index(leaf_terms(counts[:, cell]).relative_logs(epsilon / 2), noise)
            for cell in range(self.splits.cell_count)
        ]
        return CellLabels(tuple(drawn))

    def best(self, encoded: EncodedRows, labels: NDArray[np.int64]) -> CellLabels:
        """Return the labelling that gives each cell its most frequent label (first one if tied)."""
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
