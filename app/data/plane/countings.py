"""Computations on parts of the rows: counts, which are added up, and fits of learners.

Each is sent to whoever holds parts, and holds no row itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

import numpy as np

from app.data.checks.public_overlap import row_numbers
from app.data.plane.engine import CountsT, ResultT
from app.learning.encoding.cell_codes import CellCodes
from app.learning.encoding.encoded_rows import Tally, parts
from app.learning.ensemble import fit_encoded
from app.learning.hypothesis import TalliedClass
from app.learning.trees.cell_counts import CountedRows, cell_tables, merged_tables
from app.learning.trees.tree_class import TreeClass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.data.checks.public_overlap import Overlap, PublicRuns
    from app.data.plane.engine import Counting, Summing
    from app.data.plane.placed_rows import PlacedRows
    from app.data.plane.summaries import PackedRows, Reading, Summary
    from app.data.sources.parts import Part
    from app.learning.encoding.row_codes import RowCodes
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import FittedEnsemble, HypothesisClass
    from app.learning.lists.hypothesis_list import Encoded
    from app.learning.trees.cell_counts import Tables
    from app.learning.trees.counted_fit import CountedTrees


@dataclass(frozen=True, slots=True)
class Summaries:
    """The count that gives the summary (sizes, ranges, fingerprint) of all parts."""

    def of(self, part: PackedRows | Vectors) -> Summary:
        """Return the summary of a part."""
        return part.summary

    def merged(self, first: Summary, second: Summary) -> Summary:
        """Return the joint summary of two parts."""
        return first.merged(second)

    def finished(self, total: Summary) -> Summary:
        """Return the total summary unchanged."""
        return total


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Counts of rows by label and by the tests that they pass, from which a tree is drawn.

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
        """Return the sum of two counts."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> CountedRows:
        """Return the counts of rows, grouped by the tests that they satisfy."""
        return CountedRows.of(self.coding, total, depth=self.depth)


@dataclass(frozen=True, slots=True)
class Tallying:
    """Sums of a per-row function (a tally) over the rows, from which a hypothesis is drawn.

    Attributes:
        tally: whole numbers of encoded rows and their labels; those of parts add up.
        coding: what the bytes of a row are.

    """

    tally: Callable[[Encoded, NDArray[np.int64]], NDArray[np.int64]]
    coding: RowCodes

    def of(self, part: PackedRows) -> Tally:
        """Count the rows of a part."""
        found = [self._counted(part, rows) for rows in parts(len(part.labels))]
        return Tally(sum(found[1:], start=found[0]), len(part.labels))

    def _counted(self, part: PackedRows, rows: slice) -> NDArray[np.int64]:
        encoded = self.coding.encoded(part.codes(rows))
        return self.tally(encoded, part.labels[rows].astype("int64"))

    def merged(self, first: Tally, second: Tally) -> Tally:
        """Add counts."""
        return Tally(first.counts + second.counts, first.row_count + second.row_count)

    def finished(self, total: Tally) -> Tally:
        """Return the counts."""
        return total


@dataclass(frozen=True, slots=True)
class Verified(Generic[CountsT, ResultT]):
    """A count over rows read a second time, with the summary that shows they are the same rows.

    Attributes:
        counting: of parts.

    """

    counting: Summing[CountsT, ResultT]

    def of(self, counted: tuple[Summary, CountsT]) -> tuple[Summary, CountsT]:
        """Return what was counted of a part."""
        return counted

    def merged(
        self, first: tuple[Summary, CountsT], second: tuple[Summary, CountsT]
    ) -> tuple[Summary, CountsT]:
        """Add counts, and merge summaries."""
        return first[0].merged(second[0]), self.counting.merged(first[1], second[1])

    def finished(self, total: tuple[Summary, CountsT]) -> tuple[Summary, ResultT]:
        """Return the summary of all rows, and what follows from the counts."""
        return total[0], self.counting.finished(total[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPart(Generic[CountsT, ResultT]):
    """A computation that reads one part, counts its rows and frees their memory.

    Attributes:
        reading: of parts.
        counting: of their rows.

    """

    reading: Reading
    counting: Counting[PackedRows, CountsT, ResultT]

    def of(self, numbered: tuple[int, Part]) -> tuple[Summary, CountsT]:
        """Return the summary and the counts of a part."""
        part = self.reading.packed(numbered)
        return part.summary, self.counting.of(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapReading:
    """A computation that reads one part and compares its rows with public points.

    Attributes:
        reading: of parts.
        runs: the points.

    """

    reading: Reading
    runs: PublicRuns

    def of(self, numbered: tuple[int, Part]) -> tuple[Summary, Overlap]:
        """Return the summary of a part, and its overlap with the points."""
        numbers, _, summary = self.reading.taken(numbered, row_numbers)
        return summary, self.runs.among(numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The rows of a part as vectors of whole numbers; secret.

    Attributes:
        vectors: int16 (m, p).
        labels: int64 (m,).
        summary: of the part.

    """

    vectors: NDArray[np.int16] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    summary: Summary = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorReading:
    """A computation that reads one part of the rows as integer vectors.

    Attributes:
        reading: of parts.
        vectors: of rows that the public schema encodes, int16 (m, p).

    """

    reading: Reading
    vectors: Callable[[NDArray[np.float64]], NDArray[np.int16]]

    def of(self, numbered: tuple[int, Part]) -> Vectors:
        """Return the vectors of a part."""
        found, labels, summary = self.reading.taken(numbered, self.vectors)
        return Vectors(np.concatenate(found), labels.astype(np.int64), summary)


@dataclass(frozen=True, slots=True)
class VectorSum:
    """The sum of a function of vectors and labels over all rows.

    Attributes:
        total: of some rows; whole numbers, and those of parts add up.

    """

    total: Callable[[NDArray[np.int16], NDArray[np.int64]], NDArray[np.int64]]

    def of(self, part: Vectors) -> NDArray[np.int64]:
        """Return the sum over a part."""
        return self.total(part.vectors, part.labels)

    def merged(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add sums."""
        return first + second

    def finished(self, total: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum."""
        return total


def draw_counting(searched: HypothesisClass, coding: RowCodes) -> LabelCounts | Tallying | None:
    """Return how rows are counted to draw from a class; None if the draw needs the rows themselves.

    Args:
        searched: the class.
        coding: what the bytes of a row are.

    """
    if isinstance(searched, TreeClass):
        if not isinstance(coding, CellCodes) or not searched.is_counted:
            return None
        return LabelCounts(coding, searched.class_count, searched.depth)
    return Tallying(searched.tally, coding) if isinstance(searched, TalliedClass) else None


@dataclass(frozen=True, slots=True)
class PlacedCodes:
    """The rows of some chunks (one chunk per learner), encoded for a class when they are needed.

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
    """The fitting of the learners of some chunks (sets of rows, one per learner).

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
        """Return one tree or learner per chunk, fitted on a part that holds these chunks whole."""
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
