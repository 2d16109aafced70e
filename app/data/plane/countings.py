"""What an engine computes of parts: counts, which add up, and the learners of some chunks.

Each is sent to whoever holds parts, and holds no row itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.learning.encoding.cell_codes import CellCodes
from app.learning.encoding.encoded_rows import parts
from app.learning.ensemble import fit_encoded
from app.learning.hypothesis import TalliedClass, Tally
from app.learning.trees.cell_counts import CountedRows, cell_tables, merged_tables
from app.learning.trees.tree_class import TreeClass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.data.plane.engine import Counting
    from app.data.plane.placed_rows import PlacedRows
    from app.data.plane.summaries import PackedRows, Summary
    from app.learning.encoding.row_codes import RowCodes
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import FittedEnsemble, HypothesisClass
    from app.learning.lists.hypothesis_list import Encoded
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
    """Rows by label and cells, for a mechanism that draws a tree.

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
        total: Tables = {}
        for rows in parts(len(part.labels)):
            counted = cell_tables(
                self.coding,
                part.codes(rows),
                part.labels[rows].astype("int64"),
                group_count=self.class_count,
                size=self.depth,
            )
            total = merged_tables(total, counted) if total else counted
        return total

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Add counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> CountedRows:
        """Return the rows by the tests that they satisfy."""
        return CountedRows.of(self.coding, total, depth=self.depth)


@dataclass(frozen=True, slots=True)
class Tallying:
    """What a class counts of rows, for a mechanism that draws from it.

    Attributes:
        searched: the class.
        coding: what the bytes of a row are.

    """

    searched: TalliedClass
    coding: RowCodes

    def of(self, part: PackedRows) -> Tally:
        """Count the rows of a part."""
        found = [self._counted(part, rows) for rows in parts(len(part.labels))]
        return Tally(sum(found[1:], start=found[0]), len(part.labels))

    def _counted(self, part: PackedRows, rows: slice) -> NDArray[np.int64]:
        encoded = self.coding.encoded(part.codes(rows))
        return self.searched.tally(encoded, part.labels[rows].astype("int64"))

    def merged(self, first: Tally, second: Tally) -> Tally:
        """Add counts."""
        return Tally(first.counts + second.counts, first.row_count + second.row_count)

    def finished(self, total: Tally) -> Tally:
        """Return the counts."""
        return total


def draw_counting(
    searched: HypothesisClass, coding: RowCodes
) -> Counting[PackedRows, Any, CountedRows | Tally] | None:
    """Return what counts rows for a draw from a class; None where a draw reads rows.

    Args:
        searched: the class.
        coding: what the bytes of a row are.

    """
    if isinstance(searched, TreeClass):
        if not isinstance(coding, CellCodes) or not searched.is_counted:
            return None
        return LabelCounts(coding, searched.class_count, searched.depth)
    return Tallying(searched, coding) if isinstance(searched, TalliedClass) else None


@dataclass(frozen=True, slots=True)
class PlacedCodes:
    """The rows of some chunks as a class encodes them, on request.

    Attributes:
        placed: the rows.
        coding: what their bytes are.
        first: the first row.
        count: how many.

    """

    placed: PlacedRows
    coding: RowCodes
    first: int
    count: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count

    def __getitem__(self, rows: slice, /) -> Encoded:
        """Return the rows of a slice, encoded."""
        start, stop, _ = rows.indices(self.count)
        return self.coding.encoded(self.placed.codes(slice(self.first + start, self.first + stop)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFit:
    """The learners of some chunks.

    Attributes:
        learner: the public choice.
        coding: what the bytes of a row are.
        trees: what fits the learners from counts; None where rows are read.
        chunks: which, from start to stop.
        secret: of the release.

    """

    learner: Learner
    coding: RowCodes
    trees: CountedTrees | None
    chunks: slice
    secret: bytes = field(repr=False)

    def of(self, placed: PlacedRows) -> NDArray[np.int64] | FittedEnsemble:
        """Return the trees that were counted, or the learners; placed rows have all chunks."""
        offsets = placed.offsets_of(self.chunks)
        if self.trees is not None:
            codes, labels, numbers = placed.of_chunks(self.chunks)
            return self.trees.fitted(codes, labels, numbers, sizes=offsets[1:] - offsets[:-1])
        first, end = int(offsets[0]), int(offsets[-1])
        return fit_encoded(
            self.learner,
            PlacedCodes(placed, self.coding, first, end - first),
            placed.labels[first:end].astype("int64"),
            offsets=offsets - first,
            secret=self.secret,
            first_chunk=self.chunks.start,
        )
