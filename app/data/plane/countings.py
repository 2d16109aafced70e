"""The counts over parts of the rows: a function of each part, summed over all parts.

Each is sent to whoever holds parts, and holds no row itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.learning.trees.cell_counts import cell_tables, merged_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.plane.placed_rows import PlacedRows
    from app.data.plane.summaries import PackedRows, Summary
    from app.learning.encoding.cell_codes import CellCodes
    from app.learning.trees.cell_counts import Tables
    from app.learning.trees.counted_fit import CountedTrees


@dataclass(frozen=True, slots=True)
class Summaries:
    """The count that gives the summary (sizes, ranges, fingerprint) of all parts."""

    def of(self, part: PackedRows) -> Summary:
        """Return the summary of one part."""
        return part.summary

    def merged(self, first: Summary, second: Summary) -> Summary:
        """Return the joint summary of two parts."""
        return first.merged(second)

    def finished(self, total: Summary) -> Summary:
        """Return the total summary unchanged."""
        return total


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Counts of rows by label and feature cells, from which a relabelling tree is drawn.

    Attributes:
        coding: of the tests.
        class_count: number of labels, L.
        depth: levels of the trees that are weighed.

    """

    coding: CellCodes
    class_count: int
    depth: int

    def of(self, part: PackedRows) -> Tables:
        """Return the counts of one part's rows."""
        labels = part.labels.astype(np.int64)
        return cell_tables(
            self.coding, part.codes, labels, group_count=self.class_count, size=self.depth
        )

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Return the sum of two counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> Tables:
        """Return the total counts unchanged."""
        return total


@dataclass(frozen=True, slots=True)
class UpperLevels:
    """Counts that determine all but the last level of each chunk's tree.

    Attributes:
        trees: that are fitted.
        chunks: which, from start to stop.
        rows_max: rows of the largest chunk, at least; public.

    """

    trees: CountedTrees
    chunks: slice
    rows_max: int

    def of(self, part: PlacedRows) -> Tables:
        """Return the counts of one part's rows, by chunk."""
        rows = part.of_chunks(self.chunks)
        return self.trees.upper_counts(*rows, chunk_count=self.chunks.stop - self.chunks.start)

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Return the sum of two counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> NDArray[np.int64]:
        """Return the chosen tests, shape ``(chunks, 2**(depth - 1) - 1)``."""
        count = self.chunks.stop - self.chunks.start
        return self.trees.upper_tests(total, chunk_count=count, rows_max=self.rows_max)


@dataclass(frozen=True, slots=True)
class LowerLevels:
    """Counts that determine the last level and the leaves of each chunk's tree.

    Attributes:
        trees: that are fitted.
        chunks: which, from start to stop.
        upper: the tests above the last level; secret.

    """

    trees: CountedTrees
    chunks: slice
    upper: NDArray[np.int64] = field(repr=False)

    def of(self, part: PlacedRows) -> Tables:
        """Return the counts of one part's rows, by chunk and by region of the upper tests."""
        return self.trees.lower_counts(self.upper, *part.of_chunks(self.chunks))

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Return the sum of two counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> NDArray[np.int64]:
        """Return the complete trees, shape ``(chunks, 2**(depth + 1) - 1)``."""
        return self.trees.trees(self.upper, total)
