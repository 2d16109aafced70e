"""What an engine counts of parts: a function of one part, a sum, and what follows from the sum.

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
    """The summary of all parts."""

    def of(self, part: PackedRows) -> Summary:
        """Return the summary of a part."""
        return part.summary

    def merged(self, first: Summary, second: Summary) -> Summary:
        """Return the summary of both."""
        return first.merged(second)

    def finished(self, total: Summary) -> Summary:
        """Return it."""
        return total


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Rows by label and cells, for the mechanism that draws what relabels.

    Attributes:
        coding: of the tests.
        class_count: number of labels, L.
        depth: levels of the trees that are weighed.

    """

    coding: CellCodes
    class_count: int
    depth: int

    def of(self, part: PackedRows) -> Tables:
        """Count the rows of a part."""
        labels = part.labels.astype(np.int64)
        return cell_tables(
            self.coding, part.codes, labels, group_count=self.class_count, size=self.depth
        )

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Add counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> Tables:
        """Return the counts."""
        return total


@dataclass(frozen=True, slots=True)
class UpperLevels:
    """The tests of all levels but the last of the trees of some chunks.

    Attributes:
        trees: that are fitted.
        chunks: which, from start to stop.
        rows_max: rows of the largest chunk, at least; public.

    """

    trees: CountedTrees
    chunks: slice
    rows_max: int

    def of(self, part: PlacedRows) -> Tables:
        """Count the rows of the chunks that a part has."""
        rows = part.of_chunks(self.chunks)
        return self.trees.upper_counts(*rows, chunk_count=self.chunks.stop - self.chunks.start)

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Add counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> NDArray[np.int64]:
        """Return the tests, shape ``(chunks, 2**(depth - 1) - 1)``."""
        count = self.chunks.stop - self.chunks.start
        return self.trees.upper_tests(total, chunk_count=count, rows_max=self.rows_max)


@dataclass(frozen=True, slots=True)
class LowerLevels:
    """The last level and the leaves of the trees of some chunks.

    Attributes:
        trees: that are fitted.
        chunks: which, from start to stop.
        upper: the tests above the last level; secret.

    """

    trees: CountedTrees
    chunks: slice
    upper: NDArray[np.int64] = field(repr=False)

    def of(self, part: PlacedRows) -> Tables:
        """Count a part's rows of the chunks, by the regions that the upper tests make."""
        return self.trees.lower_counts(self.upper, *part.of_chunks(self.chunks))

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Add counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> NDArray[np.int64]:
        """Return the trees, shape ``(chunks, 2**(depth + 1) - 1)``."""
        return self.trees.trees(self.upper, total)
