"""A row batch's stored rows, labels and learners: private, rewritten at each update.

The release keeps its own rows, so that a restart needs neither the source nor its fingerprint.
A slot's number is its place after a secret uniform permutation; a chunk is a run of slots of
public length.  What a slot holds may change at a tick, and its place never does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.data.persons import IDENTITY_BYTES
from app.errors import LedgerCorruptError, invariant
from app.release.private_state import read_piece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.ledger.entries.generations import Generation
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource

SECRET_BYTES: Final = 32
_VALUES: Final = np.dtype("<f8")
_LABELS: Final = np.dtype("<i8")


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The stored form: plain arrays as bytes, little-endian, slot by slot."""

    width: int
    values: bytes
    labels: bytes
    is_filled: bytes
    secret: bytes
    given_labels: bytes
    ensemble: bytes
    identities: bytes = b""


@dataclass(frozen=True, eq=False, slots=True)
class Slots:
    """The stored private data of one batch: rows in fixed positions (slots), and learners.

    Attributes:
        values: encoded rows, float64 (n_g, d), slot by slot.
        labels: their own labels, int64 (n_g,).
        is_filled: bool (n_g,); False where a slot holds nothing.
        secret: 32 bytes, of which the seeds of the learners are made.
        given_labels: the labels that learners see, int64 (n_g,); None before they are drawn.
        ensemble: the fitted learners, as stored; None before they are fitted.
        identities: keyed digests of the records' identifiers, uint8 (n_g, 16), zeros where a slot
            holds nothing; None where no column names records.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    is_filled: NDArray[np.bool_] = field(repr=False)
    secret: bytes = field(repr=False)
    given_labels: NDArray[np.int64] | None = field(repr=False, default=None)
    ensemble: bytes | None = field(repr=False, default=None)
    identities: NDArray[np.uint8] | None = field(repr=False, default=None)

    @property
    def count(self) -> int:
        """Return the number of row positions, which is public."""
        return len(self.labels)

    def fitted(self, given_labels: NDArray[np.int64], ensemble: bytes) -> Slots:
        """Return the same rows with the labels and learners of a fit."""
        return replace(self, given_labels=given_labels, ensemble=ensemble)

    def places(self) -> dict[bytes, int]:
        """Return the position of every identified record, by its identifier's keyed digest."""
        if self.identities is None:
            return {}
        held = np.flatnonzero(self.is_filled).tolist()
        return {self.identities[place].tobytes(): place for place in held}

    def changed(
        self,
        emptied: Sequence[int],
        replaced: Mapping[int, tuple[NDArray[np.float64], int]],
    ) -> Slots:
        """Return the rows with some positions emptied and others replaced; no row moves.

        An emptied slot is as if it had been empty from the start, and its hole stays.

        Args:
            emptied: places of records that are forgotten.
            replaced: encoded row (d,) and label of records that are corrected, by their places.

        """
        values, labels, is_filled = self.values.copy(), self.labels.copy(), self.is_filled.copy()
        identities = None if self.identities is None else self.identities.copy()
        for place, (row, label) in replaced.items():
            values[place], labels[place] = row, label
        gone = np.array(emptied, dtype=np.int64)
        values[gone], labels[gone], is_filled[gone] = 0.0, 0, False
        if identities is not None:
            identities[gone] = 0
        return replace(
            self, values=values, labels=labels, is_filled=is_filled, identities=identities
        )

    def holds_same(self, other: Slots) -> bool:
        """Return whether two stored forms hold the same row at every position."""
        return (
            np.array_equal(self.is_filled, other.is_filled)
            and np.array_equal(self.labels, other.labels)
            and self.values.tobytes() == other.values.tobytes()
        )

    def to_bytes(self) -> bytes:
        """Return the rows, labels and learners as bytes to be stored."""
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
            )
        )

    @classmethod
    def from_bytes(cls, body: bytes) -> Slots:
        """Return the rows, labels and learners that :meth:`to_bytes` wrote.

        Raises:
            LedgerCorruptError: it is something else.

        """
        try:
            kept = msgspec.msgpack.decode(body, type=_Kept)
            values = np.frombuffer(kept.values, dtype=_VALUES).reshape(-1, kept.width)
        except (msgspec.DecodeError, ValueError):
            raise LedgerCorruptError("the private state has a piece that is no slots") from None
        given = np.frombuffer(kept.given_labels, dtype=_LABELS).astype(np.int64)
        identities = np.frombuffer(kept.identities, dtype=np.uint8).reshape(-1, IDENTITY_BYTES)
        return cls(
            values=values.astype(np.float64),
            labels=np.frombuffer(kept.labels, dtype=_LABELS).astype(np.int64),
            is_filled=np.frombuffer(kept.is_filled, dtype=np.uint8).astype(np.bool_),
            secret=kept.secret,
            given_labels=given if kept.given_labels else None,
            ensemble=kept.ensemble or None,
            identities=identities if kept.identities else None,
        )


def drawn_slots(rows: PrivateRows, noise: NoiseSource) -> Slots:
    """Return rows in a secret, uniformly random order that is drawn here.

    Args:
        rows: of a generation, each a unit of its own.
        noise: where the permutation and the secret come from.

    """
    invariant(rows.persons is None, "a slot holds one row")
    places = noise.permutation(rows.count)
    return Slots(
        values=rows.values[places],
        labels=rows.labels[places],
        is_filled=np.ones(rows.count, dtype=np.bool_),
        secret=noise.secret(SECRET_BYTES),
        identities=None if rows.identities is None else rows.identities[places],
    )


def read_slots(ledger: Ledger, generation: Generation) -> Slots:
    """Return the presently stored rows of one batch.

    Raises:
        LedgerCorruptError: they are missing or altered; nothing is drawn again.

    """
    slots = Slots.from_bytes(read_piece(ledger, generation.slots_piece))
    if slots.count != generation.slots:
        raise LedgerCorruptError("the private state has a piece with another number of slots")
    return slots


def _bytes_of(array: NDArray[np.generic], kind: np.dtype[np.generic]) -> bytes:
    return np.ascontiguousarray(array, dtype=kind).tobytes()
