"""Private values that no ledger entry refers to: pending erasure requests, and erased records.

That somebody asked to be forgotten is itself private, so that no entry may tell of it.  Each piece
lies in the table of private state with a keyed digest of the release, by which an altered one is
found; that one is missing nobody can tell.

* ``request-00000001`` and so on: erasures and corrections that wait for a tick, which deletes them.
* ``forgotten-`` and the number of a tick: tombstones, the keyed identities of the records that
  were forgotten with it, kept until the release ends.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from app.errors import LedgerCorruptError
from app.ledger.asked_vectors import RELEASE_SECRET
from app.ledger.database.statements import read_private, read_private_like
from app.ledger.entries.digests import private_digest

if TYPE_CHECKING:
    from sqlalchemy import Connection

REQUEST: Final = "request-"
TOMBSTONE: Final = "forgotten-"
PREFIXES: Final = (REQUEST, TOMBSTONE)


def is_beside_entries(name: str) -> bool:
    """Return whether a private value is of a kind that no ledger entry refers to."""
    return name.startswith(PREFIXES)


def read_beside(connection: Connection, release_number: int, prefix: str) -> dict[str, bytes]:
    """Return the private values whose names begin with a prefix, ordered by name.

    Raises:
        LedgerCorruptError: one is altered, or of another release.

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
