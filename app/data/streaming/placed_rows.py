"""Rows that are packed into bytes and sorted by chunk (one chunk per model), each with its label.

The chunk of a row depends on the position of the row in the public order of the source, or on the
number of its person, and on a secret key. If a hypothesis relabels the rows, the label of a row
depends on the row's own values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from app.learning.chunks import chunk_offsets
from app.learning.encoding.feature_codes import CellCodes
from app.learning.trees.tree import Tree
from app.privacy.voting.keyed_slots import Slots, chunk_of_slots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.streaming.part_summaries import PackedRows
    from app.data.streaming.person_numbers import PersonRows
    from app.learning.encoding.row_codes import RowCodes
    from app.learning.hypothesis import Hypothesis

    Columns = Sequence[NDArray[np.uint8]]

ByteOrLabelT = TypeVar("ByteOrLabelT", bound=np.unsignedinteger)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRows:
    """The rows of consecutive chunks, sorted by chunk; secret, and not shown by ``repr``.

    Attributes:
        columns: for each byte that encodes a row, the bytes of all rows, uint8, shape ``(rows,)``.
        labels: the labels with which models are trained, of the narrowest type for all classes,
            shape ``(rows,)``.
        offsets: the index at which each chunk's rows start, followed by the number of rows, shape
            ``(chunks + 1,)``.
        first_chunk: the index of the first of these chunks among all chunks of the release.

    """

    columns: Columns = field(repr=False)
    labels: NDArray[np.unsignedinteger] = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)
    first_chunk: int = 0

    def codes(self, rows: slice) -> NDArray[np.uint8]:
        """Return the bytes that encode some rows, shape ``(bytes per row, rows)``."""
        return np.stack([column[rows] for column in self.columns])

    def offsets_of(self, chunks: slice) -> NDArray[np.int64]:
        """Return the index at which each given chunk's rows start, and where the last ones end."""
        first = self.first_chunk
        return self.offsets[chunks.start - first : chunks.stop - first + 1]

    def of_chunks(
        self, chunks: slice
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Return the bytes, labels and chunk indices of all rows of some chunks.

        Returns:
            The bytes, shape ``(bytes per row, rows)``; the labels, shape ``(rows,)``; and the index
            of each row's chunk among the given chunks, shape ``(rows,)``.

        """
        ends = self.offsets_of(chunks)
        rows = slice(int(ends[0]), int(ends[-1]))
        numbers = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        return self.codes(rows), self.labels[rows].astype(np.int64), numbers

    def cut(self, chunks: slice) -> PlacedRows:
        """Return a copy that has only the rows of some chunks."""
        ends = self.offsets_of(chunks)
        rows = slice(int(ends[0]), int(ends[-1]))
        columns = [column[rows].copy() for column in self.columns]
        return PlacedRows(columns, self.labels[rows].copy(), ends - ends[0], chunks.start)


def put_together(placed: list[PlacedRows]) -> PlacedRows:
    """Return the rows of several objects, all for the same chunks, as one, sorted by chunk."""
    counts = np.sum([np.diff(each.offsets) for each in placed], axis=0)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    free, places = offsets[:-1].copy(), []
    for each in placed:
        sizes = np.diff(each.offsets)
        kind = np.min_scalar_type(int(offsets[-1]))
        # A chunk begins no earlier among all rows than among those of one place.
        its_places = np.repeat((free - each.offsets[:-1]).astype(kind), sizes)
        its_places += np.arange(len(its_places), dtype=kind)
        places.append(its_places)
        free += sizes
    columns = [
        _scattered(places, [each.columns[place] for each in placed])
        for place in range(len(placed[0].columns))
    ]
    labels = _scattered(places, [each.labels for each in placed])
    return PlacedRows(columns, labels, offsets, placed[0].first_chunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """The rule by which packed rows are assigned to chunks, one chunk per model.

    Attributes:
        firsts: the index of each part's first row among all rows, by the part's number.
        key: the secret key from which the random assignment follows.
        row_count: the public number of rows, or of persons if a column names them.
        size: the number of chunks.
        coding: the encoding of rows as bytes.
        hypothesis: the secret hypothesis that gives every row a new label; None if rows keep their
            labels.

    """

    firsts: Mapping[int, int]
    key: bytes = field(repr=False)
    row_count: int
    size: int
    coding: RowCodes
    hypothesis: Hypothesis | None = field(repr=False)

    def placed(self, parts: list[PackedRows]) -> PlacedRows:
        """Return the rows of some parts, sorted by chunk; the memory of the parts is freed."""
        offsets, places = self._places(parts)
        labels = np.empty(int(offsets[-1]), dtype=parts[0].labels.dtype)
        for its_places, part in zip(places, parts, strict=True):
            for rows in _blocks(len(its_places)):
                taken = self._labels(part, rows)
                labels[its_places[rows]] = taken
        held = [list(part.columns) for part in parts]
        parts.clear()
        columns = []
        for _ in range(self.coding.width):
            columns.append(_scattered(places, [each[0] for each in held]))
            for each in held:
                del each[0]
        return PlacedRows(columns, labels, offsets)

    def _places(
        self, parts: list[PackedRows]
    ) -> tuple[NDArray[np.int64], list[NDArray[np.unsignedinteger]]]:
        """Return where chunks begin, and each part's places in their order.

        Where each row is a unit of its own and all are here, sizes of chunks are public and a
        row's place is its slot.
        """
        slots = Slots(self.key, self.row_count)
        persons = [part.persons for part in parts if part.persons is not None]
        if len(persons) == len(parts):
            return self._in_chunks(self._chunks_of_persons(slots, persons))
        if sum(len(part.labels) for part in parts) == self.row_count:
            return chunk_offsets(self.row_count, self.size), [
                self._found(part, slots.of, self.row_count) for part in parts
            ]
        return self._in_chunks(
            [self._found(part, partial(self._chunks, slots), self.size) for part in parts]
        )

    def _chunks_of_persons(
        self, slots: Slots, persons: Sequence[PersonRows]
    ) -> list[NDArray[np.unsignedinteger]]:
        """Return the chunk of each row of each part, which is its person's."""
        of_person = np.empty(self.row_count, dtype=np.min_scalar_type(self.size))
        for some in _blocks(self.row_count):
            of_person[some] = self._chunks(slots, np.arange(some.start, some.stop))
        return [of_person[each.numbers][each.codes] for each in persons]

    def _in_chunks(
        self, chunks: Sequence[NDArray[np.unsignedinteger]]
    ) -> tuple[NDArray[np.int64], list[NDArray[np.unsignedinteger]]]:
        """Return where chunks begin, and each part's places, by the chunk of each row.

        Args:
            chunks: of each row of each part.

        """
        counts = np.zeros(self.size, dtype=np.int64)
        for each in chunks:
            counts += np.bincount(each, minlength=self.size)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        free = offsets[:-1].copy()
        return offsets, [_behind(each, free, int(offsets[-1])) for each in chunks]

    def _found(
        self, part: PackedRows, find: Callable[[NDArray[np.int64]], NDArray[np.int64]], bound: int
    ) -> NDArray[np.unsignedinteger]:
        """Return what is found for the position of each row of a part, in the narrowest type."""
        first, count = self.firsts[part.number], len(part.labels)
        found: NDArray[np.unsignedinteger] = np.empty(count, dtype=np.min_scalar_type(bound))
        for rows in _blocks(count):
            found[rows] = find(np.arange(first + rows.start, first + rows.stop))
        return found

    def _chunks(self, slots: Slots, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the chunk of each position."""
        return chunk_of_slots(slots.of(positions), count=self.row_count, size=self.size)

    def _labels(self, part: PackedRows, rows: slice) -> NDArray[np.unsignedinteger]:
        """Return the labels that some rows of a part take."""
        hypothesis, coding, kind = self.hypothesis, self.coding, part.labels.dtype
        if hypothesis is None:
            return part.labels[rows]
        codes = part.codes(rows)
        if not (isinstance(hypothesis, Tree) and isinstance(coding, CellCodes)):
            return hypothesis.predict(coding.encoded(codes)).astype(kind)
        tests = np.array(hypothesis.test_indices, dtype=np.int64)
        nodes = np.zeros(codes.shape[1], dtype=np.int64)
        for _ in range(hypothesis.depth):
            nodes = 2 * nodes + 1 + coding.outcomes(codes, tests[nodes])
        leaves: NDArray[np.unsignedinteger] = np.array(hypothesis.leaf_labels, dtype=kind)
        return leaves[nodes - len(tests)]


ROWS_AT_ONCE = 1 << 17


def _blocks(count: int) -> Iterator[slice]:
    """Yield slices of so many rows that what is computed of them stays small."""
    for start in range(0, count, ROWS_AT_ONCE):
        yield slice(start, min(start + ROWS_AT_ONCE, count))


def _behind(
    chunks: NDArray[np.unsignedinteger], free: NDArray[np.int64], count: int
) -> NDArray[np.unsignedinteger]:
    """Return the place of each row, behind the rows of its chunk that were placed before.

    Args:
        chunks: of the rows.
        free: the first free place of each chunk; moved on by these rows.
        count: number of places.

    """
    places: NDArray[np.unsignedinteger] = np.empty(len(chunks), dtype=np.min_scalar_type(count))
    for rows in _blocks(len(chunks)):
        order = np.argsort(chunks[rows], kind="stable")
        sizes = np.bincount(chunks[rows], minlength=len(free))
        firsts = np.repeat(free - (np.cumsum(sizes) - sizes), sizes)
        places[rows][order] = firsts + np.arange(len(order))
        free += sizes
    return places


def _scattered(
    places: Sequence[NDArray[np.integer]], columns: Sequence[NDArray[ByteOrLabelT]]
) -> NDArray[ByteOrLabelT]:
    """Return the bytes, or labels, of several columns together, each at its place."""
    together = np.empty(sum(map(len, places)), dtype=columns[0].dtype)
    for its_places, column in zip(places, columns, strict=True):
        for rows in _blocks(len(column)):
            together[its_places[rows]] = column[rows]
    return together
