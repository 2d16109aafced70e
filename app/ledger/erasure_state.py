"""Private state without a ledger entry: pending erasure requests, and erased records.

The fact that somebody asked for an erasure is private, so no ledger entry may reveal it. Each
private value is stored with a keyed digest, by which an alteration is detected; a deletion is not
detected. There are three kinds, named as follows:

* ``request-00000001`` and so on: requests for erasures and corrections; the next tick (scheduled
  update) fulfils and deletes them.
* ``forgotten-`` and the number of a tick: keyed hashes of the identifiers of the records (or
  persons) that were erased at this tick, kept until the release ends.
* ``persons-`` and the number of a generation (batch of rows): keyed hashes of the identifiers
  of the persons in this generation, kept until the release ends, so that a returning person is
  recognised.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from app.data.persons import IDENTITY_BYTES
from app.errors import LedgerCorruptError
from app.ledger.asked_vectors import RELEASE_SECRET
from app.ledger.database.statements import read_private, read_private_like
from app.ledger.entries.digests import private_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.ledger.entries.generations import Generations

REQUEST: Final = "request-"
TOMBSTONE: Final = "forgotten-"
PERSONS: Final = "persons-"
PERSON_COUNT: Final = "data.persons"
"""The parameter of the first entry that says that units are persons."""
NUMBER_DIGITS: Final = 8
LOST_PERSONS: Final = "the private state lacks the persons of generation {number}"
PREFIXES: Final = (REQUEST, TOMBSTONE, PERSONS)


def persons_pieces(
    opened: ReleaseOpened | None, known: Generations | None
) -> Iterator[tuple[int, str, int]]:
    """Yield each row batch's number, and the storage name and size in bytes of its person list.

    Args:
        opened: the release's first entry.
        known: the state of all batches of rows; None if the release accepts no further rows.

    """
    if opened is None or known is None or PERSON_COUNT not in opened.parameters:
        return
    for each in known.all:
        yield each.number, persons_name(each.number), each.slots * IDENTITY_BYTES


def persons_name(number: int) -> str:
    """Return the storage name of the list of persons of one batch of rows (generation)."""
    return f"{PERSONS}{number:0{NUMBER_DIGITS}d}"


def is_beside_entries(name: str) -> bool:
    """Return whether a private value is of a kind that no ledger entry mentions."""
    return name.startswith(PREFIXES)


def read_beside(connection: Connection, release_number: int, prefix: str) -> dict[str, bytes]:
    """Return the stored private values whose names begin with a prefix, ordered by name.

    Raises:
        LedgerCorruptError: a value is altered, or belongs to another release.

    """
    rows = read_private_like(connection, release_number, prefix)
    if not rows:
        return {}
    secret = read_private(connection, release_number, RELEASE_SECRET)
    found = {}
    for row in rows:
        key = b"" if secret is None else secret.body
        computed = private_digest(key, name=row.name, body=row.body)
        if not hmac.compare_digest(computed, row.digest):
            raise LedgerCorruptError(f"the private state has an altered piece: {row.name}")
        found[row.name] = row.body
    return found
