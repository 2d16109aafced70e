"""Erasures, corrections and later rows of known persons that wait for an update: private.

A request identifies a record, or a person, by the keyed digest of its identifier. The existence,
time and number of requests are private too (``app/privacy/generations/accounts_proof.md``, Theorem
G): a tick (scheduled update) follows the clock whether or not a request is pending, and the tick's
ledger entry has the same form. This module decides, on the operator's terminal, which requests are
accepted; ``row_changes.py`` carries them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.data.field_values import ERRORS
from app.data.persons import IDENTITY_BYTES
from app.errors import (
    ConfigurationError,
    LedgerCorruptError,
    ReleaseMismatchError,
    VerificationError,
)
from app.ledger.entries.generations import generations_of
from app.ledger.erasure_state import REQUEST, TOMBSTONE
from app.release.generations.labelling import can_label_again
from app.release.generations.slots import Contents, read_slots
from app.release.release import HALTED, refuse_closed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.ledger.entries.chain import Head
    from app.ledger.ledger import Ledger, Transaction
    from app.release.terms.configuration import Configuration

_VALUES: Final = np.dtype("<f8")
_LABELS: Final = np.dtype("<i8")
ID: Final = "data.id"
PERSON: Final = "data.person"
NUMBER_DIGITS: Final = 8
IS_FIXED: Final = (
    "the ledger's release is fixed, and keeps no rows: a release erases and corrects records that "
    "was opened with [generations] and data.id, by calibration profile or certified"
)
NO_IDS: Final = "names no column, so that no record can be told by an identifier"
KNOWN: Final = "row {row} names a record that generation {number} holds; nothing is appended"
FORGOTTEN: Final = "row {row} names a record that was erased; nothing is appended"
PERSON_FORGOTTEN: Final = "row {row} names a person who was forgotten; nothing is appended"
NOT_CORRECTED: Final = (
    "draws labels in a form that labels no further rows: erase the record and append it corrected"
)


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A requested change of one record or person; secret.

    Attributes:
        identity: the keyed digest of the record's or person's identifier, 16 bytes.
        row: the record's new encoded row, or all new rows of a person, float64 little-endian; empty
            for an erasure.
        label: the class index of the row's label.
        labels: the class indices of a person's rows, int64 little-endian.
        is_further: whether a person's rows are added to the earlier rows, and not put in their
            place.

    """

    identity: bytes
    row: bytes = b""
    label: int = 0
    labels: bytes = b""
    is_further: bool = False

    @property
    def is_erasure(self) -> bool:
        """Whether the requested change erases the record."""
        return not self.row

    @property
    def contents(self) -> Contents:
        """The new rows and labels with which a record is replaced."""
        labels = np.frombuffer(self.labels, _LABELS) if self.labels else np.array([self.label])
        values = np.frombuffer(self.row, _VALUES).reshape(len(labels), -1)
        return Contents(values.astype(np.float64), labels.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of storing requested changes: how many records were found.

    Attributes:
        count: the number of records whose change was stored.
        unknown: the positions, from 1, of requested changes whose records the release does not
            know.

    """

    count: int
    unknown: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The confirmation of a requested change, for the operator and the person concerned.

    Attributes:
        taken: the numbers of records found and not found.
        before: the newest ledger entry when the request was stored.
        after: the newest ledger entry after the change was made; None if the change waits for a
            tick.

    """

    taken: Taken
    before: Head
    after: Head | None


def identity_of(ledger: Ledger, identifier: str) -> bytes:
    """Return the keyed hash that stands for a record's identifier."""
    keyed = blake2b(key=ledger.digests.person_key(), digest_size=IDENTITY_BYTES)
    keyed.update(identifier.encode(errors=ERRORS))
    return keyed.digest()


def erasures_of(ledger: Ledger, identifiers: Sequence[str]) -> list[Change]:
    """Return the changes that erase records."""
    return [Change(identity_of(ledger, each)) for each in identifiers]


def corrections_of(rows: PrivateRows, *, are_further: bool = False) -> list[Change]:
    """Return the changes that replace records by new rows with the same identifiers.

    Args:
        rows: the new row of each record, or all rows that each person is to have from now on.
        are_further: whether the rows of persons are added to their earlier rows instead.

    """
    if rows.persons is not None:
        return _persons_changes(rows, rows.persons.identities, are_further=are_further)
    identities = (
        np.zeros((0, IDENTITY_BYTES), np.uint8) if rows.identities is None else rows.identities
    )
    values = np.ascontiguousarray(rows.values, dtype="<f8")
    return [
        Change(identity.tobytes(), row.tobytes(), int(label))
        for identity, row, label in zip(identities, values, rows.labels, strict=True)
    ]


def _persons_changes(
    rows: PrivateRows, identities: NDArray[np.uint8], *, are_further: bool
) -> list[Change]:
    """Return a change for every person, with all rows in the order of the source."""
    positions, starts = rows.positions(np.arange(len(identities), dtype=np.int64))
    changes = []
    for place, identity in enumerate(identities):
        theirs = positions[starts[place] : starts[place + 1]]
        values = np.ascontiguousarray(rows.values[theirs], dtype=_VALUES)
        labels = np.ascontiguousarray(rows.labels[theirs], dtype=_LABELS)
        changes.append(
            Change(
                identity.tobytes(),
                values.tobytes(),
                labels=labels.tobytes(),
                is_further=are_further,
            )
        )
    return changes


def refuse_changes(configuration: Configuration, ledger: Ledger, *, corrects: bool) -> None:
    """Raise an error for changes in a release that stores no rows, or no identifiers.

    Raises:
        ReleaseMismatchError: the ledger has no release that accepts further rows.
        ConfigurationError: no column has identifiers of records, or a new version of a record could
            not get a label.
        VerificationError: the release has ended.

    """
    state = ledger.read_state()
    if state.generations is None:
        raise ReleaseMismatchError("generations", IS_FIXED)
    refuse_closed(state)
    if state.halted is not None:
        raise VerificationError(f"{HALTED}: no record is erased or corrected")
    data = configuration.settings.data
    if data.id is None and data.person is None:
        raise ConfigurationError(ID, NO_IDS)
    if corrects and not can_label_again(configuration):
        raise ConfigurationError("hypotheses.class", NOT_CORRECTED)


def take_down(ledger: Ledger, changes: Sequence[Change]) -> Taken:
    """Store requested changes of known records for the next scheduled update.

    Args:
        ledger: the ledger of the release, which a server may be serving.
        changes: the requested changes, in the order in which the operator listed them.

    """
    with ledger.transaction() as transaction:
        held = _held(ledger, transaction)
        waiting = _to_be_forgotten(transaction)
        is_known = [each.identity in held and each.identity not in waiting for each in changes]
        taken = [each for each, known in zip(changes, is_known, strict=True) if known]
        put_request(transaction, taken)
    unknown = tuple(place for place, known in enumerate(is_known, start=1) if not known)
    return Taken(len(taken), unknown)


def put_request(transaction: Transaction, changes: Sequence[Change]) -> None:
    """Store changes for the next scheduled update, if there are any."""
    if changes:
        newest = max((number_of(name) for name in transaction.beside(REQUEST)), default=0)
        name = f"{REQUEST}{newest + 1:0{NUMBER_DIGITS}d}"
        transaction.put_beside(name, msgspec.msgpack.encode(list(changes)))


def number_of(name: str) -> int:
    """Return the number in the storage name of a stored request."""
    return int(name.removeprefix(REQUEST))


def read_changes(body: bytes) -> list[Change]:
    """Return the changes in a stored request.

    Raises:
        LedgerCorruptError: the bytes do not contain changes.

    """
    try:
        return msgspec.msgpack.decode(body, type=list[Change])
    except msgspec.DecodeError:
        raise LedgerCorruptError("the private state has a request that is none") from None


def bury(transaction: Transaction, tick: int, identities: Sequence[bytes]) -> None:
    """Store the keyed digests of erased records' identifiers, to notice if one is added again."""
    if identities:
        name = f"{TOMBSTONE}{tick:0{NUMBER_DIGITS}d}"
        transaction.put_beside(name, b"".join(sorted(identities)))


def _buried(transaction: Transaction) -> set[bytes]:
    """Return every identity that was forgotten."""
    return {
        body[at : at + IDENTITY_BYTES]
        for body in transaction.beside(TOMBSTONE).values()
        for at in range(0, len(body), IDENTITY_BYTES)
    }


def refuse_known(ledger: Ledger, transaction: Transaction, rows: PrivateRows) -> None:
    """Raise an error if a record to be added is stored already, or was erased.

    Raises:
        ConfigurationError: the error names the row's number, for the operator's terminal only.

    """
    if rows.identities is None:
        return
    held = _held(ledger, transaction)
    gone = _buried(transaction) | _to_be_forgotten(transaction)
    for index, identity in enumerate(map(bytes, rows.identities)):
        if identity in gone:
            raise ConfigurationError(ID, FORGOTTEN.format(row=index + 1))
        if identity in held:
            raise ConfigurationError(ID, KNOWN.format(row=index + 1, number=held[identity]))


def refuse_forgotten_persons(transaction: Transaction, rows: PrivateRows) -> None:
    """Raise an error if rows to be added belong to a person who was erased.

    Raises:
        ConfigurationError: the error names the first such row's number, for the operator's terminal
            only.

    """
    if rows.persons is None:
        return
    gone = _buried(transaction) | _to_be_forgotten(transaction)
    is_gone = np.array([bytes(each) in gone for each in rows.persons.identities])
    found = np.flatnonzero(is_gone[rows.persons.numbers])
    if len(found):
        raise ConfigurationError(PERSON, PERSON_FORGOTTEN.format(row=int(found[0]) + 1))


def _held(ledger: Ledger, transaction: Transaction) -> dict[bytes, int]:
    """Return the generation of every record or person that is held, by its identity."""
    known = generations_of(transaction.state.generations)
    return {
        identity: each.number
        for each in known.kept
        for identity in read_slots(ledger, each).places()
    }


def _to_be_forgotten(transaction: Transaction) -> set[bytes]:
    """Return the identities of records that a tick will forget."""
    return {
        change.identity
        for body in transaction.beside(REQUEST).values()
        for change in read_changes(body)
        if change.is_erasure
    }
