"""A random sample of the units of each chunk, for learners that need the rows themselves.

A unit is a row, or a person with all rows if a column names persons. A secret key puts all units of
a release into a random order; the place of a unit in this order is its *slot*
(``app/privacy/voting/keyed_slots.py``). A chunk consists of the units in consecutive slots, and the
sample of the chunk consists of the units in the first of these slots. Therefore the choice of units
depends on the key and on public sizes, and not on the values of any row. Learners get no row
outside the samples.

A part is a file of the source, or a section of a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import DataError, invariant
from app.learning.chunks import ChunkNumbers, chunk_offsets, first_of_chunks
from app.learning.ensemble import fit_chunks
from app.privacy.voting.keyed_slots import Slots, chunk_of_slots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.sources.parts import Part
    from app.data.streaming.part_summaries import Reading, Summary
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import Hypothesis

SOURCE: Final = "data.source"
CHANGED: Final = "holds other rows than when it was read; restore it"
ONE_AT_A_TIME: Final = Lock()
"""Held while learners are fitted: some draw from a generator that all threads share."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSamples:
    """Sampled rows of some chunks or of one part; secret, and never shown by ``repr``.

    Attributes:
        values: feature values encoded by the public schema, float64, shape ``(rows, features)``.
        labels: the class index of each row in the source, int64, shape ``(rows,)``.
        slots: the slot of each row, or of its person, int64, shape ``(rows,)``.
        positions: the index of each row among all rows of the source, int64, shape ``(rows,)``.
        summary: the sizes, value ranges and hashes of a part from which rows were taken.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    slots: NDArray[np.int64] = field(repr=False)
    positions: NDArray[np.int64] = field(repr=False)
    summary: Summary = field(repr=False)

    @classmethod
    def joined(cls, samples: Sequence[ChunkSamples]) -> ChunkSamples:
        """Return the rows of several samples, sorted by slot, then by position in the source."""
        slots = np.concatenate([each.slots for each in samples])
        positions = np.concatenate([each.positions for each in samples])
        order = np.lexsort((positions, slots))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        # Row by row into its place: numbers of all rows are in memory twice, and not three times.
        values = np.empty((len(order), samples[0].values.shape[1]))
        labels, start = np.empty(len(order), dtype=np.int64), 0
        for each in samples:
            own = places[start : start + len(each.slots)]
            values[own], labels[own] = each.values, each.labels
            start += len(own)
        return cls(values, labels, slots[order], positions[order], samples[0].summary)

    def between(self, first_slot: int, end_slot: int) -> ChunkSamples:
        """Return a copy with only the rows of some consecutive slots.

        The rows of this object must be sorted by slot.

        Args:
            first_slot: the first of these slots.
            end_slot: the first slot after them.

        """
        rows = slice(*np.searchsorted(self.slots, [first_slot, end_slot]).tolist())
        return ChunkSamples(
            self.values[rows].copy(),
            self.labels[rows].copy(),
            self.slots[rows].copy(),
            self.positions[rows].copy(),
            self.summary,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The rule that takes the units in the first slots of each chunk as the chunk's sample.

    Attributes:
        firsts: the index of each part's first row among all rows, by the part's number.
        key: the secret key from which the slots follow.
        row_count: the public number of rows, or of persons if a column names them.
        size: the number of chunks.
        rows_max: the largest number of units in the sample of a chunk.

    """

    firsts: Mapping[int, int]
    key: bytes = field(repr=False)
    row_count: int
    size: int
    rows_max: int

    def is_taken(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each given slot whether its unit is in the sample of a chunk."""
        chunks = chunk_of_slots(slots, count=self.row_count, size=self.size)
        return slots - self._offsets[chunks] < self.rows_max

    def offsets(self, samples: ChunkSamples, chunks: slice) -> NDArray[np.int64]:
        """Return the index at which each chunk's sampled rows start, and where the last ones end.

        Args:
            samples: all sampled rows of the given chunks, and no others, sorted by slot.
            chunks: the consecutive indices of the chunks.

        Returns:
            Indices of rows in ``samples``, shape ``(chunks + 1,)``.

        """
        bounds = self._offsets[chunks.start : chunks.stop + 1]
        found: NDArray[np.int64] = np.searchsorted(samples.slots, bounds).astype(np.int64)
        units = len(np.unique(samples.slots))
        whole = int(first_of_chunks(bounds - bounds[0], self.rows_max)[1][-1])
        invariant(units == whole, "every sampled unit of a chunk is there")
        return found

    def cut(self, samples: ChunkSamples, chunks: slice) -> ChunkSamples:
        """Return a copy of sampled rows, sorted by slot, that has only the rows of some chunks."""
        first, end = self._offsets[[chunks.start, chunks.stop]].tolist()
        return samples.between(first, end)

    @property
    def _offsets(self) -> NDArray[np.int64]:
        """The first slot of each chunk, and the number of slots."""
        return chunk_offsets(self.row_count, self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReading:
    """A computation that reads one part of the rows and keeps those in the samples of chunks.

    Attributes:
        reading: the settings by which a part is read.
        sampling: the rule that chooses the sample of each chunk.
        numbers: the numbers of the distinct persons of each part, by the part's number; None if a
            row is the unit of privacy.

    """

    reading: Reading
    sampling: Sampling
    numbers: Mapping[int, NDArray[np.int64]] | None = field(repr=False, default=None)

    def of(self, numbered: tuple[int, Part]) -> ChunkSamples:
        """Return the sampled rows of one part, in the order in which they are read.

        Args:
            numbered: the number of the part, and its file or section of a file.

        Raises:
            DataError: a field does not fit the schema, and the error names the column and the row
                number; or the part contains other persons than when it was first read.

        """
        return self._of_rows(numbered) if self.numbers is None else self._of_persons(numbered)

    def _of_rows(self, numbered: tuple[int, Part]) -> ChunkSamples:
        """Return the sampled rows, of which all others are let go block by block."""
        sampling = self.sampling
        slots = Slots(sampling.key, sampling.row_count)
        first, read = self._first(numbered), 0
        kept = [np.zeros(0, dtype=np.int64)]
        kept_slots = [np.zeros(0, dtype=np.int64)]

        def take(values: NDArray[np.float64]) -> NDArray[np.float64]:
            nonlocal read
            places = np.arange(read, read + len(values))
            read += len(values)
            # A source that grew meanwhile has rows without a slot; it is refused once it is read.
            of_rows = slots.of(np.minimum(first + places, sampling.row_count - 1))
            is_taken = sampling.is_taken(of_rows)
            kept.append(places[is_taken])
            kept_slots.append(of_rows[is_taken])
            return values[is_taken]

        taken = self.reading.taken(numbered, take)
        places = np.concatenate(kept)
        return ChunkSamples(
            np.concatenate(taken.blocks),
            taken.labels[places].astype(np.int64),
            np.concatenate(kept_slots),
            first + places,
            taken.summary,
        )

    def _of_persons(self, numbered: tuple[int, Part]) -> ChunkSamples:
        """Return all rows of the sampled persons, whose numbers are known."""
        sampling, numbers = self.sampling, (self.numbers or {}).get(numbered[0])
        taken = self.reading.taken(numbered, _as_they_are)
        named = taken.named
        if numbers is None or named is None or len(numbers) != len(named.distinct.digests):
            raise DataError(SOURCE, CHANGED)
        of_persons = Slots(sampling.key, sampling.row_count).of(numbers)
        places = np.flatnonzero(sampling.is_taken(of_persons)[named.codes])
        return ChunkSamples(
            np.concatenate(taken.blocks)[places],
            taken.labels[places].astype(np.int64),
            of_persons[named.codes[places]],
            self._first(numbered) + places,
            taken.summary,
        )

    def _first(self, numbered: tuple[int, Part]) -> int:
        """Return the position of the part's first row."""
        return self.sampling.firsts.get(numbered[0], 0)


def _as_they_are(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows of a part, which are chosen once all of it is read."""
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFit:
    """The training of the models of some chunks, each on the sampled rows of its chunk.

    Attributes:
        learner: the public choice of the learner.
        sampling: the rule that chooses the sample of each chunk.
        hypothesis: the secret hypothesis that gives every row a new label; None if rows keep their
            labels.
        chunks: the consecutive indices of the chunks.
        secret: the release's secret, from which the random seed of each chunk is derived.

    """

    learner: Learner
    sampling: Sampling
    hypothesis: Hypothesis | None = field(repr=False)
    chunks: slice
    secret: bytes = field(repr=False)

    def of(self, samples: ChunkSamples) -> bytes:
        """Return one trained model per chunk, all of them serialised together as bytes.

        Args:
            samples: sampled rows, sorted by slot, that include the sample of each of the chunks.

        """
        own = self.sampling.cut(samples, self.chunks)
        offsets = self.sampling.offsets(own, self.chunks)
        with ONE_AT_A_TIME:
            return fit_chunks(
                self.learner,
                own.values,
                self._labels(own),
                offsets=offsets,
                secret=self.secret,
                numbers=ChunkNumbers(self.chunks.start, self.sampling.size),
            ).to_bytes()

    def _labels(self, samples: ChunkSamples) -> NDArray[np.int64]:
        """Return the labels that the rows take."""
        if self.hypothesis is None:
            return samples.labels
        encoded = self.learner.hypothesis_class.encode(samples.values)
        return self.hypothesis.predict(encoded).astype(np.int64)
