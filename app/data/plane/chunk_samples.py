"""A random sample of the rows of each chunk, for learners that need the rows themselves.

The sample of a chunk is its rows with the first slots.  Slots are a keyed permutation of the rows'
positions (``app/privacy/voting/keyed_permutation.py``), so that which rows are taken depends on
the key, on public numbers, and on no value of any row.  Rows outside the sample reach no learner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.chunks import ChunkNumbers, chunk_offsets, first_of_chunks
from app.learning.ensemble import fit_chunks
from app.privacy.voting.keyed_permutation import Slots, chunk_of_slots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.plane.summaries import Reading, Summary
    from app.data.sources.parts import Part
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import Hypothesis

ONE_AT_A_TIME: Final = Lock()
"""Held while learners are fitted: some draw from a generator that all threads share."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSamples:
    """Sampled rows of some chunks, or of a part of the rows; secret, and never shown by ``repr``.

    Attributes:
        values: as the public schema encodes them, float64 (m, d).
        labels: that they take, int64 (m,).
        slots: of the rows, int64 (m,).
        summary: of all rows of the parts that they were taken from.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    slots: NDArray[np.int64] = field(repr=False)
    summary: Summary = field(repr=False)

    @classmethod
    def joined(cls, samples: Sequence[ChunkSamples]) -> ChunkSamples:
        """Return the rows of several samples in the order of their slots."""
        slots = np.concatenate([each.slots for each in samples])
        order = np.argsort(slots)
        return cls(
            np.concatenate([each.values for each in samples])[order],
            np.concatenate([each.labels for each in samples])[order],
            slots[order],
            samples[0].summary,
        )

    def between(self, first_slot: int, end_slot: int) -> ChunkSamples:
        """Return a copy with only the rows of some slots; rows are in the order of slots."""
        rows = slice(*np.searchsorted(self.slots, [first_slot, end_slot]).tolist())
        return ChunkSamples(
            self.values[rows].copy(),
            self.labels[rows].copy(),
            self.slots[rows].copy(),
            self.summary,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The rule by which some rows of each chunk are taken: those with the first slots.

    Attributes:
        firsts: position of each part's first row.
        key: of the slots; secret.
        row_count: the public n.
        size: the number of chunks, k.
        rows_max: rows of a chunk that are taken at most.

    """

    firsts: Mapping[int, int]
    key: bytes = field(repr=False)
    row_count: int
    size: int
    rows_max: int

    def is_taken(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each slot whether the row in it is in the sample of its chunk."""
        chunks = chunk_of_slots(slots, count=self.row_count, size=self.size)
        return slots - self._offsets[chunks] < self.rows_max

    def offsets(self, chunks: slice) -> NDArray[np.int64]:
        """Return where the sampled rows of each of some chunks begin, and the end of the last."""
        bounds = self._offsets[chunks.start : chunks.stop + 1]
        return first_of_chunks(bounds - bounds[0], self.rows_max)[1]

    def cut(self, samples: ChunkSamples, chunks: slice) -> ChunkSamples:
        """Return a copy that holds only the rows of some chunks."""
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
        reading: of parts.
        sampling: which rows are kept.

    """

    reading: Reading
    sampling: Sampling

    def of(self, numbered: tuple[int, Part]) -> ChunkSamples:
        """Return the sampled rows of one part, in the order in which they are read.

        Raises:
            DataError: what does not fit the schema, by column and row number.

        """
        sampling = self.sampling
        slots = Slots(sampling.key, sampling.row_count)
        position, read = sampling.firsts.get(numbered[0], 0), 0
        kept = [np.zeros(0, dtype=np.int64)]
        kept_slots = [np.zeros(0, dtype=np.int64)]

        def take(values: NDArray[np.float64]) -> NDArray[np.float64]:
            nonlocal read
            places = np.arange(read, read + len(values))
            read += len(values)
            # A source that grew meanwhile has rows without a slot; it is refused once it is read.
            of_rows = slots.of(np.minimum(position + places, sampling.row_count - 1))
            is_taken = sampling.is_taken(of_rows)
            kept.append(places[is_taken])
            kept_slots.append(of_rows[is_taken])
            return values[is_taken]

        taken = self.reading.taken(numbered, take)
        labels = taken.labels[np.concatenate(kept)].astype(np.int64)
        values = np.concatenate(taken.blocks)
        return ChunkSamples(values, labels, np.concatenate(kept_slots), taken.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFit:
    """The training of the models of some chunks, each on the sampled rows of its chunk.

    Attributes:
        learner: the public choice.
        sampling: which rows they are.
        hypothesis: that relabels; None where rows keep their labels; secret.
        chunks: which, from start to stop.
        secret: of the release.

    """

    learner: Learner
    sampling: Sampling
    hypothesis: Hypothesis | None = field(repr=False)
    chunks: slice
    secret: bytes = field(repr=False)

    def of(self, samples: ChunkSamples) -> bytes:
        """Return the trained models as bytes, from a part that holds these chunks as a whole."""
        own, offsets = self.sampling.cut(samples, self.chunks), self.sampling.offsets(self.chunks)
        invariant(len(own.slots) == offsets[-1], "every sampled row of a chunk is there, once")
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
