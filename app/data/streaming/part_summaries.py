"""One part of the private rows: read once, packed into bytes, and summarised.

A part is a file of the source, or a section of a file. The summary of a part has its number of
rows, the values that occur in each feature, and the sum of the rows' keyed hashes, from which the
fingerprint (a keyed digest) of all rows is computed. Summaries can be combined in any order, and
the result is exact.

If a column names persons, a row has a weight in sums, about 1 / (number of rows of its person).
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from app.data.checks.dead_features import merged_summary, summary_of
from app.data.sources.csv_dialect import PLAIN_CSV
from app.data.sources.encoded_parts import read_part
from app.data.streaming.fingerprint_sums import MODULUS, WORDS_A_BLOCK, sum_of_rows
from app.data.streaming.person_numbers import NamedRows, PersonRows
from app.learning.encoding.encoded_rows import parts
from app.learning.encoding.row_codes import NO_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.checks.dead_features import FeatureSummary
    from app.data.persons import PersonColumn
    from app.data.schema import Schema
    from app.data.sources.csv_dialect import CsvDialect
    from app.data.sources.parts import Part
    from app.data.streaming.person_numbers import DistinctPersons
    from app.learning.encoding.row_codes import RowCodes


PAGES_BYTES_MIN: Final = 1 << 15
TakenT = TypeVar("TakenT", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Summary:
    """The facts about some parts of the rows that the opening of a release needs; secret.

    Attributes:
        row_counts: the number of rows of each part, by the part's number.
        row_sum: the sum of the keyed hashes of the rows.
        features: for each feature the values that occur, to find features without information.

    """

    row_counts: Mapping[int, int]
    row_sum: int = field(repr=False)
    features: tuple[FeatureSummary, ...] = field(repr=False)

    @property
    def row_count(self) -> int:
        """The number of rows of all summarised parts together."""
        return sum(self.row_counts.values())

    def merged(self, other: Summary) -> Summary:
        """Return one summary for the parts of this summary and of another one."""
        return Summary(
            {**self.row_counts, **other.row_counts},
            (self.row_sum + other.row_sum) % MODULUS,
            tuple(
                merged_summary(first, second)
                for first, second in zip(self.features, other.features, strict=True)
            ),
        )

    def firsts(self) -> dict[int, int]:
        """Return the index of each part's first row among all rows, by the part's number."""
        positions, count = {}, 0
        for number in sorted(self.row_counts):
            positions[number] = count
            count += self.row_counts[number]
        return positions


@dataclass(frozen=True, slots=True, eq=False)
class PackedRows:
    """The rows of one part as bytes; secret, and never shown by ``repr``.

    Attributes:
        number: the number of the part in the public order of parts.
        columns: for each byte that encodes a row, the bytes of all rows, uint8, shape ``(rows,)``.
        labels: class indices, of the narrowest type for all classes, shape ``(rows,)``.
        summary: the summary of the part.
        named: the person of each row, before persons have numbers; None if a row is the unit of
            privacy, or if persons have numbers.
        persons: the person of each row by number, once persons have numbers.

    """

    number: int
    columns: Sequence[NDArray[np.uint8]] = field(repr=False)
    labels: NDArray[np.unsignedinteger] = field(repr=False)
    summary: Summary = field(repr=False)
    named: NamedRows | None = field(repr=False, default=None)
    persons: PersonRows | None = field(repr=False, default=None)

    def codes(self, rows: slice | NDArray[np.intp]) -> NDArray[np.uint8]:
        """Return the bytes that encode some rows, shape ``(bytes per row, rows)``."""
        return np.stack([column[rows] for column in self.columns])

    def weights(self, rows: slice) -> NDArray[np.float64] | None:
        """Return the weights of some rows as integers; None if every weight is 1.

        Returns:
            Weights times ``2**20``, shape ``(rows,)``.

        """
        persons = self.persons
        if persons is None:
            return None
        weights: NDArray[np.float64] = persons.weight_units.astype(np.float64)[persons.codes[rows]]
        return weights

    def weighed(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield each weight of rows as an integer, with the indices of rows of this weight.

        If a column names persons, the integer is the weight times ``2**20``. Otherwise it is 1. The
        indices of one weight come in blocks of some ten thousand.
        """
        every = np.arange(len(self.labels))
        alike = [(1, every)]
        if self.persons is not None and len(every):
            units, codes = self.persons.weight_units, self.persons.codes
            alike = [
                (int(each), np.flatnonzero((units == each)[codes])) for each in np.unique(units)
            ]
        for weight, places in alike:
            for rows in parts(len(places)):
                yield weight, places[rows]


@dataclass(frozen=True, slots=True)
class SummarisedPart:
    """A part of the rows that was read, and of which no row is kept; secret.

    Attributes:
        summary: the summary of the part.
        distinct: the persons of the rows of the part, each once; None if a row is the unit of
            privacy.

    """

    summary: Summary = field(repr=False)
    distinct: DistinctPersons | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True, eq=False)
class TakenRows(Generic[TakenT]):
    """The rows of one part, converted by a given function; secret, and never shown by ``repr``.

    Attributes:
        blocks: the converted rows, in consecutive blocks.
        labels: class indices, of the narrowest type for all classes, shape ``(rows,)``.
        summary: the summary of the part.
        named: the person of each row; None if a row is the unit of privacy.

    """

    blocks: list[NDArray[TakenT]] = field(repr=False)
    labels: NDArray[np.unsignedinteger] = field(repr=False)
    summary: Summary = field(repr=False)
    named: NamedRows | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The settings by which parts of the rows are read and packed, equal in every process.

    Attributes:
        source: the path or address of the source.
        schema: the public schema.
        dialect: the separators and the encoding of a CSV file.
        coding: the encoding of rows as bytes.
        key: the secret key of the fingerprint.
        person: the private column that names persons; None if a row is the unit of privacy.

    """

    source: str
    schema: Schema
    dialect: CsvDialect = PLAIN_CSV
    coding: RowCodes
    key: bytes = field(repr=False)
    person: PersonColumn | None = None

    def packed(self, numbered: tuple[int, Part]) -> PackedRows:
        """Return the packed rows of one part, with their summary.

        Args:
            numbered: the number of the part, and its file or section of a file.

        Raises:
            DataError: a field does not fit the schema; the error names the column and the row
                number.

        """
        taken = self.taken(numbered, self.coding.codes)
        columns = [
            _in_pages([block[place] for block in taken.blocks])
            for place in range(self.coding.width)
        ]
        return PackedRows(numbered[0], columns, taken.labels, taken.summary, taken.named)

    def summarised(self, numbered: tuple[int, Part]) -> SummarisedPart:
        """Return the summary of one part, without keeping the rows that are read.

        Args:
            numbered: the number of the part, and its file or section of a file.

        Raises:
            DataError: a field does not fit the schema; the error names the column and the row
                number.

        """
        taken = self.taken(numbered, NO_CODES.codes)
        distinct = None if taken.named is None else taken.named.distinct
        return SummarisedPart(taken.summary, distinct)

    def taken(
        self, numbered: tuple[int, Part], take: Callable[[NDArray[np.float64]], NDArray[TakenT]]
    ) -> TakenRows[TakenT]:
        """Return the rows of one part, converted block by block by ``take``, with a summary.

        Args:
            numbered: the number of the part, and its file or section of a file.
            take: a function that converts rows, encoded by the public schema.

        Raises:
            DataError: a field does not fit the schema; the error names the column and the row
                number.

        """
        number, part = numbered
        found = [take(np.zeros((0, len(self.schema.features))))]
        kind = np.min_scalar_type(len(self.schema.classes) - 1)
        labels: list[NDArray[np.unsignedinteger]] = [np.zeros(0, dtype=kind)]
        digests = [np.zeros((0, WORDS_A_BLOCK), dtype="<u8")]
        features = [summary_of(feature) for feature in self.schema.features]
        row_sum = 0
        for rows in read_part(
            part, self.source, self.schema, dialect=self.dialect, person=self.person
        ):
            found.append(take(rows.values))
            labels.append(rows.labels.astype(kind))
            row_sum += sum_of_rows(rows.values, rows.labels, self.key, rows.digests)
            if rows.digests is not None:
                digests.append(rows.digests)
            for index, feature in enumerate(features):
                feature.add(rows.values[:, index])
        together = np.concatenate(labels)
        summary = Summary({number: len(together)}, row_sum % MODULUS, tuple(features))
        named = None if self.person is None else NamedRows.of(np.concatenate(digests))
        return TakenRows(found, together, summary, named)


def _in_pages(pieces: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Return pieces together, in memory that goes back to the system once it is let go.

    What is allocated in small pieces would stay with the process, in holes between others.
    """
    size = sum(map(len, pieces))
    if size < PAGES_BYTES_MIN:
        return np.concatenate(pieces)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    together = np.frombuffer(pages, dtype=np.uint8)
    np.concatenate(pieces, out=together)
    return together
