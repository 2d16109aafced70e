"""Checkpoints: stored summaries of a ledger's state, so that a start reads few entries.

A checkpoint is a cache and never a source: all its contents follow from the entries up to the one
at which it was written, and ``verify`` computes the state from the first entry again and compares.
Long texts (the parameters in the first entry, a published document) stay in their entries, and the
checkpoint contains the number and hash of these entries.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

import msgspec
from sqlalchemy import insert

from app.errors import LedgerCorruptError
from app.ledger.database.entry_rows import read_entries
from app.ledger.database.statements import (
    CheckpointRow,
    read_entry_hash,
    read_newest_checkpoint,
)
from app.ledger.database.tables import checkpoints
from app.ledger.entries.chain import Entry, Head, canonical_json, computed_hash, read_event
from app.ledger.entries.entry_kinds import (
    EnsembleFitted,
    ReleaseClosed,
    ReleaseHalted,
    ShareCharged,
    ShareReserved,
)
from app.ledger.entries.fold import EMPTY, LedgerState
from app.ledger.entries.generations import Generations

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from app.ledger.entries.digests import Digests

CHECKPOINT_ENTRIES: Final = 256
"""Entries after which a transaction adds a checkpoint: the most that a start folds."""

_FORMAT: Final = 1
_INSERT = insert(checkpoints)


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of a checkpoint (a stored summary of a ledger's state)."""

    format: int = _FORMAT
    release_number: int
    head: Head
    charged: tuple[ShareCharged, ...]
    reserved: tuple[ShareReserved, ...]
    answered: int
    unstable: int
    ended_epoch: int | None
    refreshed_at: int | None
    asked: int = 0
    ensemble: EnsembleFitted | None
    halted: ReleaseHalted | None
    closed: ReleaseClosed | None
    generations: Generations | None = None
    private_digests: dict[str, str]
    written_at: dict[str, Head]


STATE_FIELDS: Final = frozenset(Document.__struct_fields__) - {"format", "release_number"}


def checkpoint_body(state: LedgerState, release_number: int) -> str:
    """Return the canonical JSON text of a release's state, for a checkpoint."""
    fields = {name: getattr(state, name) for name in STATE_FIELDS}
    document = Document(release_number=release_number, **fields)
    written = msgspec.to_builtins(document)
    if not state.asked:  # as in every release before there were any
        del written["asked"]
    if state.generations is None:  # as in every release that is fixed
        del written["generations"]
    return canonical_json(written)


def newest_checkpoint(connection: Connection, release_number: int, digests: Digests) -> LedgerState:
    """Return the state in a release's newest checkpoint; an empty state if there is none.

    Raises:
        LedgerCorruptError: the checkpoint is altered, or does not fit the entries.

    """
    row = read_newest_checkpoint(connection, release_number)
    return EMPTY if row is None else _restored(connection, release_number, digests, row)


def is_due(state: LedgerState, checkpoint_at: int) -> bool:
    """Return whether enough entries follow the newest checkpoint to write another.

    Args:
        state: the state that is, or is about to be, committed.
        checkpoint_at: the number of the entry of the newest checkpoint; 0 if there is none.

    """
    return state.head.sequence - checkpoint_at >= CHECKPOINT_ENTRIES


def write_checkpoint(
    connection: Connection, release_number: int, digests: Digests, state: LedgerState
) -> int:
    """Write a checkpoint of the ledger's state, unless another process wrote a recent one.

    Args:
        connection: a connection inside a transaction with the write lock.
        release_number: the number of the release in the database.
        digests: the functions that compute the database's keyed hashes.
        state: the state at the newest entry.

    Returns:
        The number of the entry of the newest checkpoint.

    Raises:
        SQLAlchemyError: the database refused the write.

    """
    newest = read_newest_checkpoint(connection, release_number)
    if newest is not None and not is_due(state, newest.sequence):
        return newest.sequence
    body = checkpoint_body(state, release_number)
    row = {
        "release_number": release_number,
        "sequence": state.head.sequence,
        "body": body,
        "mark": digests.of_checkpoint(body),
    }
    connection.execute(_INSERT, row)
    return state.head.sequence


def check_mark(row: CheckpointRow, digests: Digests) -> None:
    """Raise an error if a checkpoint was not written by this database, or was altered.

    Raises:
        LedgerCorruptError: the checkpoint's authentication code does not fit its contents.

    """
    _require(
        hmac.compare_digest(digests.of_checkpoint(row.body), row.mark),
        f"the checkpoint at entry {row.sequence} is altered, or of another database",
    )


def _restored(
    connection: Connection, release_number: int, digests: Digests, row: CheckpointRow
) -> LedgerState:
    check_mark(row, digests)
    named = f"the checkpoint at entry {row.sequence}"
    document = _document(row)
    _require(
        document.release_number == release_number and document.head.sequence == row.sequence,
        f"{named} is of another release or entry",
    )
    found = read_entry_hash(connection, release_number, row.sequence)
    _require(found == document.head.hash, f"{named} has another hash than that entry has")
    long = {
        name: read_event(_entry_at(connection, release_number, head, named))
        for name, head in document.written_at.items()
    }
    fields = {name: getattr(document, name) for name in STATE_FIELDS}
    return msgspec.structs.replace(EMPTY, **fields, **long)


def _document(row: CheckpointRow) -> Document:
    try:
        return msgspec.json.decode(row.body, type=Document)
    except msgspec.DecodeError:
        raise LedgerCorruptError(
            f"the checkpoint at entry {row.sequence} is of a form that this version does not know"
        ) from None


def _entry_at(connection: Connection, release_number: int, head: Head, named: str) -> Entry:
    """Return the entry that a checkpoint names, with that very hash."""
    before = head.sequence - 1
    previous_hash = read_entry_hash(connection, release_number, before)
    after = Head(before, previous_hash or "")
    entry = next(iter(read_entries(connection, release_number, after, 1)), None)
    if entry is None or entry.head != head or computed_hash(entry) != head.hash:
        raise LedgerCorruptError(f"entry {head.sequence} is not the one that {named} names")
    return entry


def _require(holds: bool, problem: str) -> None:  # noqa: FBT001 -- reads as a sentence at every call
    if not holds:
        raise LedgerCorruptError(problem)
