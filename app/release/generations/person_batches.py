"""The batch of rows to which a person belongs: that of the person's first row.

Rows of a person who has a slot make no further one.  They go into that slot at the next tick, and
are not used any more once its generation has retired; so a person costs one generation's budget in
a life, and moves one vote of all (rule ``owner``, ``accounts_proof.md``).  The number of a batch's
new persons is public, as the size of its generation; who came back, and with how many rows, is not.

The keyed identities of a generation's persons outlive their rows: without them a person who comes
back would be new, the size of a generation would tell of it, and the person would pay twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.data.persons import IDENTITY_BYTES
from app.errors import LedgerCorruptError
from app.ledger.entries.generations import generations_of
from app.ledger.erasure_state import LOST_PERSONS, PERSONS, persons_name, persons_pieces
from app.release.generations.waiting_requests import (
    Change,
    corrections_of,
    refuse_forgotten_persons,
)

if TYPE_CHECKING:
    from app.data.rows import PrivateRows
    from app.ledger.ledger import Transaction


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to be added, of new and known persons; secret but for the number of new ones.

    Attributes:
        new: the rows that make a generation; None where nobody is new.
        further: rows of persons whose slot is in a generation that has not retired.
        unused_count: persons whose generation has retired.

    """

    new: PrivateRows | None = field(repr=False)
    further: tuple[Change, ...] = field(repr=False, default=())
    unused_count: int = 0


def sorted_out(transaction: Transaction, rows: PrivateRows) -> Batch:
    """Return a batch's rows, split into rows of new persons and rows of known persons.

    Args:
        transaction: of a release that takes generations.
        rows: of a batch.

    Raises:
        ConfigurationError: a person was forgotten.
        LedgerCorruptError: what is known of persons is missing or altered.

    """
    if rows.persons is None:
        return Batch(rows)
    refuse_forgotten_persons(transaction, rows)
    known = generations_of(transaction.state.generations)
    owners, kept = _owners(transaction), {each.number for each in known.kept}
    owner = np.array([owners.get(bytes(each), 0) for each in rows.persons.identities])
    is_kept = np.isin(owner, sorted(kept))
    new, theirs = np.flatnonzero(owner == 0), np.flatnonzero(is_kept)
    further = corrections_of(rows.of_persons(theirs), are_further=True) if len(theirs) else []
    return Batch(
        new=rows.of_persons(new) if len(new) else None,
        further=tuple(further),
        unused_count=len(owner) - len(new) - len(theirs),
    )


def put_owners(transaction: Transaction, number: int, rows: PrivateRows) -> None:
    """Store the identities of the persons of a batch of rows, until the release ends.

    Args:
        transaction: in which the generation is appended.
        number: the generation's.
        rows: that make it.

    """
    if rows.persons is not None:
        body = rows.persons.identities.tobytes()
        transaction.put_beside(persons_name(number), body)


def _owners(transaction: Transaction) -> dict[bytes, int]:
    """Return the generation of every person that has had a slot, by the person's identity."""
    found: dict[bytes, int] = {}
    pieces, state = transaction.beside(PERSONS), transaction.state
    for number, name, length in persons_pieces(state.release, state.generations):
        body = pieces.get(name, b"")
        if len(body) != length:
            raise LedgerCorruptError(LOST_PERSONS.format(number=number))
        identities = (body[at : at + IDENTITY_BYTES] for at in range(0, length, IDENTITY_BYTES))
        found |= dict.fromkeys(identities, number)
    return found
