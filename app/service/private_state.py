"""The private pieces of a release: written once, checked before every use.

The digest of each is bound by an entry and checked by the ledger whenever the
piece is read; a missing or altered one refuses to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import LedgerCorruptError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.ledger.store import Ledger, Transaction

PERMUTATION: Final = "permutation"
HYPOTHESIS: Final = "hypothesis"
ENSEMBLE: Final = "ensemble"
PROFILE_TABLE: Final = "profile-table"


def put_pieces(transaction: Transaction, pieces: Mapping[str, bytes]) -> dict[str, str]:
    """Write pieces; return the digests for the entry that must bind them next."""
    return {name: transaction.put_private(name, body) for name, body in pieces.items()}


def read_piece(ledger: Ledger, name: str) -> bytes:
    """Return a private piece that an open release has.

    Raises:
        LedgerCorruptError: it is missing or altered; nothing is drawn again.

    """
    body = ledger.private(name)
    if body is None:
        raise LedgerCorruptError(f"the private state is missing a piece: {name}")
    return body
