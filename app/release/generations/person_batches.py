"""The batch of rows to which a person belongs: that of the person's first row.

A person who already has rows in a generation (batch of rows) is never put in a second one. The
person's new rows are added to the earlier ones at the next tick (scheduled update), or are not used
if their generation has retired (its models no longer vote, since its budget is used up). So a
person pays the budget of one generation in total, and can change only one of all votes on a query
(``app/privacy/generations/accounts_proof.md``, section "Persons over the generations"). The number
of new persons in a batch is public, since it is the size of the batch's generation. The number of
returning persons and of their rows is private.

The keyed hashes that identify a generation's persons are kept after their rows are deleted.
Otherwise a returning person would count as new, the size of a generation would reveal the return,
and the person would pay twice.
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
    """Rows to be added, of new and known persons; secret except for the number of new persons.

    Attributes:
        new: the rows of new persons, which make a generation; None if no person is new.
        further: the rows of known persons whose generation has not retired.
        unused_count: the number of persons whose generation has retired.

    """

    new: PrivateRows | None = field(repr=False)
    further: tuple[Change, ...] = field(repr=False, default=())
    unused_count: int = 0


def sorted_out(transaction: Transaction, rows: PrivateRows) -> Batch:
    """Return a batch's rows, split into rows of new persons and rows of known persons.

    Args:
        transaction: an open transaction on the ledger of a release that accepts rows.
        rows: the rows of the batch.

    Raises:
        ConfigurationError: a person in the batch was erased.
        LedgerCorruptError: the stored keyed hashes of persons are missing or altered.

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
    """Store the keyed hashes that identify a batch's persons, until the release ends.

    Args:
        transaction: the transaction in which the generation is appended.
        number: the number of the generation.
        rows: the rows of the generation.

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
