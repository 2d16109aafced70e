"""Computations on one part of the rows: counts, which are added up, and training of models.

A part is a file of the source, or a section of a file. A computation is sent to the process that
has the part, and contains no row itself. The summary of a part has its number of rows, the values
that occur in each feature, and the sum of the rows' keyed hashes.

Rows have weights if a column names persons: the weights of a person's rows add up to at most 1.
Every weight is a multiple of ``1 / u`` for a public integer u, so weights are added up exactly, as
integers, in units of ``1 / u``. Without weights a row is one unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from app.data.checks.public_overlap import row_numbers
from app.data.streaming.engine import CountsT, ResultT
from app.data.streaming.person_numbers import PersonRows
from app.errors import InvariantError
from app.learning.encoding.encoded_rows import Tally, parts
from app.learning.encoding.feature_codes import CellCodes
from app.learning.ensemble import fit_encoded
from app.learning.hypothesis import TalliedClass
from app.learning.trees.cell_counts import CountedRows, cell_tables, merged_tables
from app.learning.trees.tree_class import TreeClass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.data.checks.public_overlap import Overlap, PublicRuns
    from app.data.sources.parts import Part
    from app.data.streaming.engine import Counting, Summing
    from app.data.streaming.part_summaries import PackedRows, Reading, SummarisedPart, Summary
    from app.data.streaming.person_numbers import DistinctPersons, NamedRows
    from app.data.streaming.placed_rows import PlacedRows
    from app.learning.encoding.row_codes import RowCodes
    from app.learning.ensemble import Learner
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.learning.hypothesis import FittedEnsemble, HypothesisClass
    from app.learning.trees.cell_counts import Tables
    from app.learning.trees.counted_fit import CountedTrees

    TotalOfVectors = Callable[
        [NDArray[np.int16], NDArray[np.int64], NDArray[np.int64] | None], NDArray[np.int64]
    ]
    """A sum over rows of what their vectors, labels, and persons' numbers of rows give."""


class HasSummary(Protocol):
    """The interface of a part of the rows with a summary, whether or not its rows are kept."""

    @property
    def summary(self) -> Summary:
        """The summary of the part; secret."""
        ...


@dataclass(frozen=True, slots=True)
class Summaries:
    """The computation that combines the summaries (sizes, ranges, fingerprint) of all parts."""

    def of(self, part: HasSummary) -> Summary:
        """Return the summary of one part of the rows."""
        return part.summary

    def merged(self, first: Summary, second: Summary) -> Summary:
        """Return the joint summary of two parts of the rows, from the summary of each."""
        return first.merged(second)

    def finished(self, total: Summary) -> Summary:
        """Return the summary of all rows unchanged."""
        return total


def distinct_persons(part: PackedRows | Vectors) -> DistinctPersons:
    """Return the persons of the rows of one part, each person once."""
    return _named(part).distinct


def numbered_persons(part: SummarisedPart) -> tuple[int, DistinctPersons]:
    """Return the number of a part in the public order of parts, and its persons, each once."""
    (number,) = part.summary.row_counts
    if part.distinct is None:
        raise InvariantError("rows of persons are summarised with them")
    return number, part.distinct


NamedT = TypeVar("NamedT", "PackedRows", "Vectors")


def with_numbers(part: NamedT, known: tuple[NDArray[np.int64], NDArray[np.int64]]) -> NamedT:
    """Return a part of the rows in which numbers replace the digests of persons.

    Args:
        part: the part as it was read.
        known: for each distinct person of the part, the person's number and number of rows.

    """
    return replace(part, named=None, persons=PersonRows(_named(part).codes, *known))


def _named(part: PackedRows | Vectors) -> NamedRows:
    """Return the persons of a part's rows as they were read."""
    if part.named is None:
        raise InvariantError("persons have names until they have numbers")
    return part.named


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Counts of rows by label and by the feature tests that they pass, from which a tree is drawn.

    Attributes:
        coding: the encoding of each feature value by an integer code, made from the feature tests.
        class_count: the number of labels.
        depth: the depth of the trees.
        unit_count: the number u of units in a row of weight 1; 1 if rows have no weights.

    """

    coding: CellCodes
    class_count: int
    depth: int
    unit_count: int = 1

    def of(self, part: PackedRows) -> Tables:
        """Return the counts of one part's rows by label and by encoded feature values."""
        total: Tables = {}
        for rows in parts(len(part.labels)):
            counted = cell_tables(
                self.coding,
                part.codes(rows),
                part.labels[rows].astype("int64"),
                group_count=self.class_count,
                size=self.depth,
                weights=part.weights(rows),
            )
            total = merged_tables(total, counted) if total else counted
        return total

    def merged(self, first: Tables, second: Tables) -> Tables:
        """Return the sum of the counts of two parts of the rows."""
        return merged_tables(first, second)

    def finished(self, total: Tables) -> CountedRows:
        """Return counts of all rows by label and by the feature tests that they pass.

        Args:
            total: the counts by label and by encoded feature values, added over all parts.

        """
        return CountedRows.of(self.coding, total, depth=self.depth, unit_count=self.unit_count)


@dataclass(frozen=True, slots=True)
class Tallying:
    """The sum, over all rows, of a given function of a row; a hypothesis is drawn from the sum.

    Attributes:
        tally: returns the sum of the function over some encoded rows with their labels, as
            integers.
        coding: the encoding of rows as bytes.
        unit_count: the number u of units in a row of weight 1; 1 if rows have no weights.

    """

    tally: Callable[[Encoded, NDArray[np.int64]], NDArray[np.int64]]
    coding: RowCodes
    unit_count: int = 1

    def of(self, part: PackedRows) -> Tally:
        """Return the weighted sum of this object's function of a row, over the rows of one part.

        The weight of a row is an integer, in units of ``1 / unit_count``.
        """
        found, total = [], 0
        for weight, rows in part.weighed():
            found.append(weight * self._counted(part, rows))
            total += weight * len(rows)
        return Tally(sum(found[1:], start=found[0]), total, self.unit_count)

    def _counted(self, part: PackedRows, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        encoded = self.coding.encoded(part.codes(rows))
        return self.tally(encoded, part.labels[rows].astype("int64"))

    def merged(self, first: Tally, second: Tally) -> Tally:
        """Return the sum over two parts of the rows, from the sum over each."""
        total = first.row_count + second.row_count
        return Tally(first.counts + second.counts, total, self.unit_count)

    def finished(self, total: Tally) -> Tally:
        """Return the sum over all rows unchanged."""
        return total


@dataclass(frozen=True, slots=True)
class Verified(Generic[CountsT, ResultT]):
    """A count over rows that are read again, with a summary that shows whether they changed.

    Attributes:
        counting: the computation that counts the rows of each part.

    """

    counting: Summing[CountsT, ResultT]

    def of(self, counted: tuple[Summary, CountsT]) -> tuple[Summary, CountsT]:
        """Return the count and the summary of one part of the rows unchanged."""
        return counted

    def merged(
        self, first: tuple[Summary, CountsT], second: tuple[Summary, CountsT]
    ) -> tuple[Summary, CountsT]:
        """Return the joint count and the joint summary of two parts of the rows."""
        return first[0].merged(second[0]), self.counting.merged(first[1], second[1])

    def finished(self, total: tuple[Summary, CountsT]) -> tuple[Summary, ResultT]:
        """Return the summary of all rows, and the result of the count."""
        return total[0], self.counting.finished(total[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPart(Generic[CountsT, ResultT]):
    """A computation that reads one part of the rows, counts them and frees their memory.

    Attributes:
        reading: the settings by which a part is read.
        counting: the count over the rows of the part.

    """

    reading: Reading
    counting: Counting[PackedRows, CountsT, ResultT]

    def of(self, numbered: tuple[int, Part]) -> tuple[Summary, CountsT]:
        """Return the summary and the counts of one part of the rows.

        Args:
            numbered: the number of the part, and its file or section of a file.

        """
        part = self.reading.packed(numbered)
        return part.summary, self.counting.of(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapReading:
    """A computation that reads one part of the rows and compares them with public points.

    Attributes:
        reading: the settings by which a part is read.
        runs: the public points (feature vectors), and the sequences of consecutive points.

    """

    reading: Reading
    runs: PublicRuns

    def of(self, numbered: tuple[int, Part]) -> tuple[Summary, Overlap]:
        """Return the summary of one part of the rows, and its overlap with the public points.

        Args:
            numbered: the number of the part, and its file or section of a file.

        """
        taken = self.reading.taken(numbered, row_numbers)
        return taken.summary, self.runs.among(taken.blocks)


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The rows of one part as vectors of integers, the inputs of a linear classifier; secret.

    Attributes:
        vectors: one vector per row, int16, shape ``(rows, coordinates)``.
        labels: class indices, int64, shape ``(rows,)``.
        summary: the summary of the part.
        named: the person of each row, before persons have numbers; None if a row is the unit of
            privacy, or if persons have numbers.
        persons: the person of each row by number, once persons have numbers.

    """

    vectors: NDArray[np.int16] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    summary: Summary = field(repr=False)
    named: NamedRows | None = field(repr=False, default=None)
    persons: PersonRows | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorReading:
    """A computation that reads one part of the rows as integer vectors.

    Attributes:
        reading: the settings by which a part is read.
        vectors: a function that maps rows, encoded by the public schema, to integer vectors, int16,
            shape ``(rows, coordinates)``.

    """

    reading: Reading
    vectors: Callable[[NDArray[np.float64]], NDArray[np.int16]]

    def of(self, numbered: tuple[int, Part]) -> Vectors:
        """Return the rows of one part as vectors.

        Args:
            numbered: the number of the part, and its file or section of a file.

        """
        taken = self.reading.taken(numbered, self.vectors)
        vectors, labels = np.concatenate(taken.blocks), taken.labels.astype(np.int64)
        return Vectors(vectors, labels, taken.summary, taken.named)


@dataclass(frozen=True, slots=True)
class VectorSum:
    """The sum, over all rows, of a given function of a row's integer vector and label.

    If a column names persons, the function also depends on the number of rows of the row's person.

    Attributes:
        total: returns the sum of the function over some rows, as integers.

    """

    total: TotalOfVectors

    def of(self, part: Vectors) -> NDArray[np.int64]:
        """Return the sum of this object's function of a row, over the rows of one part."""
        persons = part.persons
        row_counts = None if persons is None else persons.row_counts(slice(None))
        return self.total(part.vectors, part.labels, row_counts)

    def merged(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over two parts of the rows, from the sum over each."""
        return first + second

    def finished(self, total: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over all rows unchanged."""
        return total


def draw_counting(
    searched: HypothesisClass, coding: RowCodes, unit_count: int = 1
) -> LabelCounts | Tallying | None:
    """Return the count from which a hypothesis is drawn; None if no count is enough for the draw.

    Args:
        searched: the hypothesis class.
        coding: the encoding of rows as bytes.
        unit_count: the number u of units in a row of weight 1; 1 if rows have no weights.

    """
    if isinstance(searched, TreeClass):
        if not isinstance(coding, CellCodes) or not searched.is_counted:
            return None
        return LabelCounts(coding, searched.class_count, searched.depth, unit_count)
    if not isinstance(searched, TalliedClass):
        return None
    return Tallying(searched.tally, coding, unit_count)


@dataclass(frozen=True, slots=True)
class PlacedCodes:
    """A sequence of rows as bytes; a slice is encoded for a hypothesis class when it is taken.

    Attributes:
        placed: rows as bytes, sorted by chunk, which include the rows of the sequence.
        coding: the encoding of rows as bytes.
        first: the index in ``placed`` of the first row of the sequence.
        count: the number of rows.

    """

    placed: PlacedRows
    coding: RowCodes
    first: int
    count: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count

    def __getitem__(self, rows: slice, /) -> Encoded:
        """Return the rows of a slice in the encoding of the hypothesis class."""
        start, stop, _ = rows.indices(self.count)
        return self.coding.encoded(self.placed.codes(slice(self.first + start, self.first + stop)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFit:
    """The training of the models of some chunks (disjoint sets of rows, one model for each).

    Attributes:
        learner: the public choice of the learner.
        coding: the encoding of rows as bytes.
        trees: the method that trains trees from counts; None if the rows are needed.
        chunks: the consecutive indices of the chunks.
        secret: the release's secret, from which the random seed of each chunk is derived.

    """

    learner: Learner
    coding: RowCodes
    trees: CountedTrees | None
    chunks: slice
    secret: bytes = field(repr=False)

    def of(self, placed: PlacedRows) -> NDArray[np.int64] | FittedEnsemble:
        """Return one trained model per chunk, from a part of the rows that has these chunks."""
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
