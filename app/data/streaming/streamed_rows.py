"""Private rows that a release reads in parts, because it needs only counts of them.

If the rows themselves are needed later, for example to draw a classifier, they are read into memory
then. Before anything is drawn from them, their fingerprint (a keyed digest of all rows) is compared
with that of the rows with which the release was opened.

There are two kinds of fingerprint: one computed from the sum of the keyed hashes of all rows, and
one computed from the sorted rows.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from app.data.checks.dead_features import dead_of_summaries
from app.data.persons import WEIGHT_UNITS
from app.data.rows import PrivateRows, fingerprint
from app.data.sources.encoded_parts import list_files, list_parts, read_part
from app.data.streaming.chunk_samples import CHANGED, SOURCE, ChunkSamples, SampleReading
from app.data.streaming.fingerprint_sums import MODULUS, fingerprint_of_sum, sum_of_rows
from app.data.streaming.part_counts import (
    CountedPart,
    OverlapReading,
    Summaries,
    VectorReading,
    VectorSum,
    Verified,
    distinct_persons,
    numbered_persons,
    with_numbers,
)
from app.data.streaming.person_numbers import merged_persons
from app.errors import DataError, InvariantError, invariant
from app.learning.encoding.row_codes import NO_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from app.data.checks.public_overlap import Overlap, PublicRuns
    from app.data.sources.parts import Part
    from app.data.streaming.chunk_samples import Sampling
    from app.data.streaming.engine import Counting, CountsT, Engine, Held, PartT, ResultT
    from app.data.streaming.part_counts import NamedT, TotalOfVectors
    from app.data.streaming.part_summaries import PackedRows, Reading, SummarisedPart, Summary
    from app.learning.encoding.row_codes import RowCodes

    SumOfVectors = Callable[[TotalOfVectors], NDArray[np.int64]]

AnyRows: TypeAlias = "PrivateRows | StreamedRows"
"""Private rows, in memory or not."""
ROW_SUMS: Final = "row sums"
SORTED: Final = "sorted rows"
ROWS_AT_ONCE: Final = 1 << 16


class StreamedRows:
    """Private rows that are counted in parts, and read into memory only when they are needed.

    Args:
        reading: the settings by which a part of the rows is read.
        engine: a function that returns the engine, which reads and counts parts.
        load: a function that reads all rows into memory.
        told: a function that is called with the number of rows read so far, and the number of all
            rows or None.
        opened: the number of rows (or persons), and the fingerprint of the rows, if the release was
            already opened and the files have the same sizes and versions as then. The rows are then
            read only when they are needed. None otherwise.

    """

    def __init__(
        self,
        reading: Reading,
        engine: Callable[[], Engine],
        *,
        load: Callable[[], PrivateRows],
        told: Callable[[int, int | None], None],
        opened: tuple[int, str] | None = None,
    ) -> None:
        """Prepare for reading without reading anything."""
        self.reading = reading
        self._make_engine = engine
        self._engine: Engine | None = None
        self._load = load
        self._told = told
        self._opened = opened
        self._held: Held[PackedRows] | None = None
        self._summary: Summary | None = None
        self._person_count = 0
        self._numbers: Mapping[int, NDArray[np.int64]] = {}

    @property
    def engine(self) -> Engine:
        """The engine that reads and counts the rows; it is made at the first use."""
        if self._engine is None:
            self._engine = self._make_engine()
        return self._engine

    @property
    def count(self) -> int:
        """Return the public number of rows, or of persons if a column names them."""
        if self._opened is not None:
            return self._opened[0]
        row_count = self.summary.row_count
        return self._person_count if self.is_of_persons else row_count

    @property
    def is_of_persons(self) -> bool:
        """Whether a private column names the person of each row."""
        return self.reading.person is not None

    @property
    def unit_count(self) -> int:
        """The number u such that the weight of every row in sums is a multiple of ``1 / u``.

        It is ``2**20`` if a column names persons, since the weights of a person's rows add up to at
        most 1. Otherwise it is 1, and so is every weight.
        """
        return WEIGHT_UNITS if self.is_of_persons else 1

    @property
    def summary(self) -> Summary:
        """Sizes, value ranges and hashes of all rows, which are read at the first use; secret."""
        if self._summary is None:
            self._summary = self._read()
        return self._summary

    @property
    def held(self) -> Held[PackedRows]:
        """The rows of all parts, packed into bytes, which the caller must free; secret."""
        if self._held is None:
            self._summary = self._read()
        held, self._held = self._held, None
        if held is None:
            raise InvariantError("parts that are read are held")
        return held

    def dead_features(self) -> dict[str, str]:
        """Return each feature without information (for example, always missing) and the reason."""
        return dead_of_summaries(self.reading.schema, self.summary.features)

    def fingerprint(self, key: bytes) -> str:
        """Return the fingerprint of the rows, computed from the sum of their keyed hashes."""
        if self._opened is not None:
            return self._opened[1]
        invariant(key == self.reading.key, "rows are summed under the fingerprint's key")
        return self._of_sum(self.summary)

    def in_memory(self) -> PrivateRows:
        """Read the source again, and return all rows in memory.

        Raises:
            DataError: the rows of the source changed after they were counted.

        """
        rows, key = self._load(), self.reading.key
        if rows.count != self.count or row_sum_fingerprint(rows, key) != self.fingerprint(key):
            raise DataError(SOURCE, CHANGED)
        return rows

    def counted(
        self, counting: Counting[PackedRows, CountsT, ResultT], coding: RowCodes
    ) -> ResultT:
        """Return the result of a count over all rows, which are read again and not kept.

        Args:
            counting: the count over a part of the rows.
            coding: the encoding of rows as bytes that the count needs.

        Raises:
            DataError: the rows of the source changed after they were counted.

        """
        coded = replace(self.reading, coding=coding)
        if self.is_of_persons:
            return self._counted_of_persons(counting, coded)
        reading = CountedPart(reading=coded, counting=counting)
        try:
            held = self._read_again(reading.of)
            ((summary, result),) = self.engine.counted([Verified(counting)], held, lambda _: None)
            self._verify(summary)
        finally:
            self.close()
        return result

    def overlap(self, runs: PublicRuns) -> tuple[int, Overlap]:
        """Return the number of rows, and the public points that occur among them; both are secret.

        Args:
            runs: the public points, and the sequences of consecutive points.

        Raises:
            DataError: the rows of the source changed after they were counted.

        """
        try:
            held = self._read_again(OverlapReading(reading=self.reading, runs=runs).of)
            ((summary, found),) = self.engine.counted([Verified(runs)], held, lambda _: None)
            self._verify(summary)
        finally:
            self.close()
        return summary.row_count, found

    def _counted_of_persons(
        self, counting: Counting[PackedRows, CountsT, ResultT], reading: Reading
    ) -> ResultT:
        """Return the result of a count by weights, for which packed rows of all parts are held."""
        try:
            held = self._verified(self._read_again(reading.packed))
            (result,) = self.engine.counted([counting], held, lambda _: None)
        finally:
            self.close()
        return result

    def sampled(self, sampling: Sampling) -> tuple[Held[ChunkSamples], list[slice]]:
        """Return the sampled rows of all chunks, for learners that need the rows themselves.

        The rows are read again, and divided into new parts, so that the sample of a chunk is in one
        part.

        Args:
            sampling: the rule that chooses the sample of each chunk.

        Returns:
            The new parts, and the consecutive chunks of each.

        Raises:
            DataError: the rows of the source changed after they were counted.

        """
        numbers = self._numbers if self.is_of_persons else None
        reading = SampleReading(reading=self.reading, sampling=sampling, numbers=numbers)
        held = self._read_again(reading.of)
        (summary,) = self.engine.counted([Summaries()], held, lambda _: None)
        self._verify(summary)
        joined = self.engine.joined(ChunkSamples.joined, held)
        return self.engine.divided(sampling.cut, ChunkSamples.joined, joined, sampling.size)

    @contextmanager
    def as_vectors(
        self, vectors: Callable[[NDArray[np.float64]], NDArray[np.int16]]
    ) -> Iterator[SumOfVectors]:
        """Yield a function that applies a given function to every row, and returns the sum.

        The rows are read again, and kept as integer vectors. Noisy gradient descent needs such a
        sum in every step.

        Args:
            vectors: a function that maps rows, encoded by the public schema, to integer vectors,
                int16, shape ``(rows, coordinates)``.

        Raises:
            DataError: the rows of the source changed after they were counted.

        """
        try:
            reading = VectorReading(reading=self.reading, vectors=vectors)
            held = self._verified(self._read_again(reading.of))

            def total(count: TotalOfVectors) -> NDArray[np.int64]:
                (found,) = self.engine.counted([VectorSum(count)], held, lambda _: None)
                return found

            yield total
        finally:
            self.close()

    def _read_again(self, read: Callable[[tuple[int, Part]], PartT]) -> Held[PartT]:
        """Read every part, of whose number of rows nothing is told; packed rows are let go."""
        self._held = None
        parts = self._parts()
        return self.engine.read(read, list(enumerate(parts)), lambda _: None)

    def _parts(self) -> tuple[Part, ...]:
        """Return the parts of the source; no row is read."""
        reading = self.reading
        return list_parts(
            reading.source, reading.schema, dialect=reading.dialect, person=reading.person
        )

    def _verified(self, held: Held[NamedT]) -> Held[NamedT]:
        """Return parts that were read again, persons with their numbers.

        Raises:
            DataError: they are other rows than those that were counted.

        """
        (summary,) = self.engine.counted([Summaries()], held, lambda _: None)
        self._verify(summary)
        return self._numbered(held)[0] if self.is_of_persons else held

    def _numbered(self, held: Held[NamedT]) -> tuple[Held[NamedT], int]:
        """Return parts whose persons have numbers, and how many persons there are."""
        each = [(place, distinct_persons) for place in range(len(held.parts))]
        known = merged_persons(self.engine.mapped(each, held, lambda _: None))
        return self.engine.completed(with_numbers, held, known.of_parts()), known.count

    def _number_persons(self, summed: Held[SummarisedPart]) -> None:
        """Give every person of parts of which only summaries are kept a number."""
        each = [(place, numbered_persons) for place in range(len(summed.parts))]
        found = self.engine.mapped(each, summed, lambda _: None)
        known = merged_persons([distinct for _, distinct in found])
        pairs = zip(found, known.by_part, strict=True)
        self._numbers = {number: numbers for (number, _), numbers in pairs}
        self._person_count = known.count

    def _verify(self, summary: Summary) -> None:
        """Refuse other rows than those that were counted.

        The fingerprint is of the persons too, and of how many rows there are.

        Raises:
            DataError: they are others.

        """
        if self._of_sum(summary) != self.fingerprint(self.reading.key):
            raise DataError(SOURCE, CHANGED)

    def _of_sum(self, summary: Summary) -> str:
        """Return the fingerprint of some rows by the sum of their hashes."""
        reading = self.reading
        return fingerprint_of_sum(
            summary.row_sum,
            row_count=summary.row_count,
            width=len(reading.schema.features),
            key=reading.key,
            is_of_persons=self.is_of_persons,
        )

    def close(self) -> None:
        """Free the memory of all rows, and close the engine."""
        self._held = None
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _read(self) -> Summary:
        """Read and pack every part, and return the summary of all."""
        parts = self._parts()
        counts = [part.row_count for part in parts]
        known = sum(count for count in counts if count is not None)
        total = None if None in counts else known
        read = 0

        def done(numbered: tuple[int, Part]) -> None:
            nonlocal read
            read += numbered[1].row_count or 0
            self._told(read, total)

        self._told(0, total)
        try:
            summary = self._summed(list(enumerate(parts)), done)
        except MemoryError:
            raise DataError(SOURCE, "does not fit into memory") from None
        except DataError:
            if len(parts) > 1 and total is None:
                self._read_in_order()
            raise
        if not summary.row_count:
            raise DataError(SOURCE, "has no row of data")
        if self.is_of_persons and self._held is not None:
            self._held, self._person_count = self._numbered(self._held)
        self._told(summary.row_count, summary.row_count)
        return summary

    def _summed(
        self, numbered: list[tuple[int, Part]], done: Callable[[tuple[int, Part]], None]
    ) -> Summary:
        """Return the summary of all parts; keep their packed rows unless no byte of a row is."""
        reading = self.reading
        if reading.coding is NO_CODES:
            summed = self.engine.read(reading.summarised, numbered, done)
            (summary,) = self.engine.counted([Summaries()], summed, lambda _: None)
            if self.is_of_persons:
                self._number_persons(summed)
            return summary
        self._held = self.engine.read(reading.packed, numbered, done)
        (summary,) = self.engine.counted([Summaries()], self._held, lambda _: None)
        return summary

    def _read_in_order(self) -> None:
        """Read whole files, so that a refusal counts the rows before what it names."""
        reading, count = self.reading, 0
        for file in list_files(reading.source):
            for rows in read_part(
                replace(file, rows_before=count, rows_before_file=count),
                reading.source,
                reading.schema,
                dialect=reading.dialect,
                person=reading.person,
            ):
                count += len(rows.labels)


def row_sum_fingerprint(rows: PrivateRows, key: bytes) -> str:
    """Return the fingerprint of rows in memory, computed from the sum of their keyed hashes.

    The fingerprint has 64 hexadecimal digits.

    Args:
        rows: the private rows.
        key: the secret key of the fingerprint.

    """
    total, persons = 0, rows.persons
    if persons is not None and persons.digests is None:
        raise InvariantError("persons are recognised by digests of their identifiers")
    for start in range(0, len(rows.labels), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        digests = None
        if persons is not None and persons.digests is not None:
            digests = persons.digests[persons.numbers[some]]
        total += sum_of_rows(rows.values[some], rows.labels[some], key, digests)
    count, width = rows.values.shape
    return fingerprint_of_sum(
        total % MODULUS,
        row_count=count,
        width=width,
        key=key,
        is_of_persons=persons is not None,
    )


def fingerprint_by(rule: str, rows: PrivateRows | StreamedRows, key: bytes) -> str:
    """Return the fingerprint of the rows by one of two rules: 64 hexadecimal digits.

    Args:
        rule: ``row sums`` for the sum of keyed hashes, or any other text for the digest of the
            sorted rows.
        rows: the private rows; for the digest of sorted rows they are read into memory.
        key: the secret key of the fingerprint.

    """
    if isinstance(rows, StreamedRows):
        if rule == ROW_SUMS and key == rows.reading.key:
            return rows.fingerprint(key)
        rows = rows.in_memory()
    return row_sum_fingerprint(rows, key) if rule == ROW_SUMS else fingerprint(rows, key)


def tag_of_files(source: str) -> str:
    """Return a digest of the paths, sizes and version tags of a source's files; secret."""
    digest = hashlib.sha256()
    for part in list_files(source):
        digest.update(repr(part.file).encode() + b"\0")
    return digest.hexdigest()
