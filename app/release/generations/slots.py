"""The stored rows, labels and models of a batch of rows: private, rewritten at each update.

The release stores its own rows, so that a restart does not need the source. The rows of a
generation (batch of rows) are in a secret, uniformly random order. A slot is a place in this order
for one row, or for one person with any number of rows; a chunk is a range of slots whose length is
public. The rows in a slot may change at a tick (scheduled update), but never move to another slot.

The rows of a person are stored together, in the order of the source and then of their arrival. An
empty slot for a person has no rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from app.data.persons import IDENTITY_BYTES, Persons
from app.data.rows import PrivateRows
from app.errors import LedgerCorruptError
from app.release.private_state import read_piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from app.ledger.entries.generations import Generation
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource

SECRET_BYTES: Final = 32
NO_SLOTS: Final = "the private state has a piece that is no slots"
_VALUES: Final = np.dtype("<f8")
_LABELS: Final = np.dtype("<i8")


class Contents(NamedTuple):
    """The encoded rows (rows, features) and labels (rows,) of one record or person; secret."""

    values: NDArray[np.float64]
    labels: NDArray[np.int64]


class _Kept(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The stored form: plain arrays as bytes, little-endian, slot by slot."""

    width: int
    values: bytes
    labels: bytes
    is_filled: bytes
    secret: bytes
    given_labels: bytes
    ensemble: bytes
    identities: bytes = b""
    starts: bytes = b""


@dataclass(frozen=True, eq=False, slots=True)
class Slots:
    """The stored private data of a batch of rows: rows in fixed places (slots), and models.

    Attributes:
        values: the encoded rows, float64 (m, d), in the order of slots. If slots are for rows, m is
            the number n_g of slots.
        labels: the labels of the rows in the source, int64 (m,).
        is_filled: whether each slot is filled, bool (n_g,).
        secret: 32 bytes from which the seeds of the models are derived.
        given_labels: the labels on which the models are trained, int64 (m,); None before they are
            drawn.
        ensemble: the trained models, as stored; None before they are trained.
        identities: the keyed digest of the identifier of each record or person, uint8 (n_g, 16),
            zeros for an empty slot; None if no column has identifiers.
        starts: the index at which each person's rows begin, and the end, int64 (n_g + 1,); None if
            slots are for rows, and then an empty slot has one row of zeros.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    is_filled: NDArray[np.bool_] = field(repr=False)
    secret: bytes = field(repr=False)
    given_labels: NDArray[np.int64] | None = field(repr=False, default=None)
    ensemble: bytes | None = field(repr=False, default=None)
    identities: NDArray[np.uint8] | None = field(repr=False, default=None)
    starts: NDArray[np.int64] | None = field(repr=False, default=None)

    @property
    def count(self) -> int:
        """Return the public number of places (slots) for records or persons."""
        return len(self.is_filled)

    @property
    def held(self) -> NDArray[np.int64]:
        """Return the indices of all stored rows in one array, in the order of their places."""
        if self.starts is None:
            return np.flatnonzero(self.is_filled).astype(np.int64)
        return np.arange(len(self.labels), dtype=np.int64)

    def before(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each given place, the number of rows that are stored in earlier places."""
        if self.starts is None:
            return np.searchsorted(self.held, places).astype(np.int64)
        return self.starts[places]

    def held_rows(self) -> PrivateRows:
        """Return all stored rows, place by place, without empty places."""
        held = self.held
        if self.starts is None or self.identities is None:
            return PrivateRows(self.values[held], self.labels[held])
        lengths = np.diff(self.starts)[self.is_filled]
        numbers = np.repeat(np.arange(len(lengths)), lengths)
        persons = Persons(numbers, self.identities[self.is_filled])
        return PrivateRows(self.values, self.labels, persons)

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Return each row's weight when models are trained; None if every record is one row."""
        return None if self.starts is None else self.held_rows().weights

    def positions(self, places: Iterable[int]) -> NDArray[np.int64]:
        """Return the indices of all rows stored in the given places, in the order of the places."""
        parts = [np.arange(*self._span(place), dtype=np.int64) for place in places]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def contents(self, place: int) -> Contents:
        """Return the rows and labels in a place that is not empty."""
        rows = slice(*self._span(place))
        return Contents(self.values[rows], self.labels[rows])

    def _span(self, place: int) -> tuple[int, int]:
        if self.starts is None:
            return place, place + 1
        return int(self.starts[place]), int(self.starts[place + 1])

    def fitted(self, given_labels: NDArray[np.int64], ensemble: bytes) -> Slots:
        """Return the same rows with newly drawn labels and trained models."""
        return replace(self, given_labels=given_labels, ensemble=ensemble)

    def places(self) -> dict[bytes, int]:
        """Return the place of every record or person, by its identifier's keyed hash."""
        if self.identities is None:
            return {}
        held = np.flatnonzero(self.is_filled).tolist()
        return {self.identities[place].tobytes(): place for place in held}

    def changed(self, emptied: Sequence[int], replaced: Mapping[int, Contents]) -> Slots:
        """Return the rows with some places emptied and others replaced; no row moves.

        An emptied slot looks as if it had been empty from the start. Labels on which models are
        trained are removed with their rows; replaced rows have no such labels yet.

        Args:
            emptied: the indices of slots whose records are erased.
            replaced: the new rows and labels of slots, by the slot's index; one row if slots are
                for rows.

        """
        is_filled = self.is_filled.copy()
        identities = None if self.identities is None else self.identities.copy()
        gone = np.array(emptied, dtype=np.int64)
        is_filled[gone] = False
        if identities is not None:
            identities[gone] = 0
        after = replace(self, is_filled=is_filled, identities=identities)
        if self.starts is not None:
            return after._laid_out_anew(emptied, replaced)  # noqa: SLF001 -- its own class
        values, labels = self.values.copy(), self.labels.copy()
        for place, contents in replaced.items():
            values[place], labels[place] = contents.values[0], contents.labels[0]
        values[gone], labels[gone] = 0.0, 0
        return replace(after, values=values, labels=labels)

    def _laid_out_anew(self, emptied: Sequence[int], replaced: Mapping[int, Contents]) -> Slots:
        """Return persons' slots with other numbers of rows in some, the others as they were."""
        starts = np.zeros(0, np.int64) if self.starts is None else self.starts
        begins, lengths = starts[:-1].copy(), np.diff(starts)
        further, end = list(replaced.items()), len(self.labels)
        for place, contents in further:
            begins[place], lengths[place] = end, len(contents.labels)
            end += len(contents.labels)
        lengths[list(emptied)] = 0
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        order = np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1])
        values = np.concatenate([self.values, *(each.values for _, each in further)])
        labels = np.concatenate([self.labels, *(each.labels for _, each in further)])
        given = self.given_labels
        if given is not None:
            given = np.concatenate([given, np.zeros(end - len(given), np.int64)])[order]
        return replace(
            self, values=values[order], labels=labels[order], starts=offsets, given_labels=given
        )

    def holds_same(self, other: Slots) -> bool:
        """Return whether two stored batches have the same rows in every place."""
        same = self.starts is other.starts or np.array_equal(
            _or_none(self.starts), _or_none(other.starts)
        )
        return (
            same
            and np.array_equal(self.is_filled, other.is_filled)
            and np.array_equal(self.labels, other.labels)
            and self.values.tobytes() == other.values.tobytes()
        )

    def to_bytes(self) -> bytes:
        """Return rows, labels and models as bytes, for the private state."""
        given = b"" if self.given_labels is None else _bytes_of(self.given_labels, _LABELS)
        return msgspec.msgpack.encode(
            _Kept(
                width=self.values.shape[1],
                values=_bytes_of(self.values, _VALUES),
                labels=_bytes_of(self.labels, _LABELS),
                is_filled=self.is_filled.astype(np.uint8).tobytes(),
                secret=self.secret,
                given_labels=given,
                ensemble=self.ensemble or b"",
                identities=b"" if self.identities is None else self.identities.tobytes(),
                starts=b"" if self.starts is None else _bytes_of(self.starts, _LABELS),
            )
        )

    @classmethod
    def from_bytes(cls, body: bytes) -> Slots:
        """Return the rows, labels and models that :meth:`to_bytes` wrote.

        Raises:
            LedgerCorruptError: the bytes were not written by :meth:`to_bytes`.

        """
        try:
            kept = msgspec.msgpack.decode(body, type=_Kept)
            values = np.frombuffer(kept.values, dtype=_VALUES).reshape(-1, kept.width)
        except (msgspec.DecodeError, ValueError):
            raise LedgerCorruptError(NO_SLOTS) from None
        given = np.frombuffer(kept.given_labels, dtype=_LABELS).astype(np.int64)
        identities = np.frombuffer(kept.identities, dtype=np.uint8).reshape(-1, IDENTITY_BYTES)
        starts = np.frombuffer(kept.starts, dtype=_LABELS).astype(np.int64)
        if kept.starts and not _are_starts(starts, len(kept.is_filled), len(values)):
            raise LedgerCorruptError(NO_SLOTS)
        return cls(
            values=values.astype(np.float64),
            labels=np.frombuffer(kept.labels, dtype=_LABELS).astype(np.int64),
            is_filled=np.frombuffer(kept.is_filled, dtype=np.uint8).astype(np.bool_),
            secret=kept.secret,
            given_labels=given if kept.given_labels else None,
            ensemble=kept.ensemble or None,
            identities=identities if kept.identities else None,
            starts=starts if kept.starts else None,
        )


def _or_none(starts: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return np.zeros(0, np.int64) if starts is None else starts


def _are_starts(starts: NDArray[np.int64], slot_count: int, row_count: int) -> bool:
    """Return whether rows of persons begin where they are said to."""
    is_whole = len(starts) == slot_count + 1 and starts[0] == 0 and starts[-1] == row_count
    return bool(is_whole and np.all(np.diff(starts) >= 0))


def drawn_slots(rows: PrivateRows, noise: NoiseSource) -> Slots:
    """Return rows in a secret, uniformly random order that is drawn here.

    Args:
        rows: the rows of a generation, of which each row, or each person's rows, gets one slot.
        noise: the source of randomness.

    """
    places = np.asarray(noise.permutation(rows.count), dtype=np.int64)
    positions, starts = rows.positions(places)
    persons = rows.persons
    identities = rows.identities if persons is None else persons.identities
    return Slots(
        values=rows.values[positions],
        labels=rows.labels[positions],
        is_filled=np.ones(rows.count, dtype=np.bool_),
        secret=noise.secret(SECRET_BYTES),
        identities=None if identities is None else identities[places],
        starts=None if persons is None else starts,
    )


def read_slots(ledger: Ledger, generation: Generation) -> Slots:
    """Return the presently stored rows of one batch of rows.

    Raises:
        LedgerCorruptError: the stored rows are missing or altered; nothing is drawn again.

    """
    slots = Slots.from_bytes(read_piece(ledger, generation.slots_piece))
    if slots.count != generation.slots:
        raise LedgerCorruptError("the private state has a piece with another number of slots")
    return slots


def _bytes_of(array: NDArray[np.generic], kind: np.dtype[np.generic]) -> bytes:
    return np.ascontiguousarray(array, dtype=kind).tobytes()
