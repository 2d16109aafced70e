"""Stored private values of a release (rows, noise, models): written once, checked at use.

Private values are stored in the ledger's database. A ledger entry contains the keyed digest of each
private value, and the ledger checks the digest whenever the value is read. If a value is missing or
altered, the server refuses to start.

Some mechanisms compare votes with a noisy threshold; the threshold's noise is one of the private
values, so that it survives a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import LedgerCorruptError
from app.ledger.entries.entry_kinds import threshold_noise_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger, Transaction

PERMUTATION: Final = "permutation"
RESAMPLE: Final = "resample"
HYPOTHESIS: Final = "hypothesis"
ENSEMBLE: Final = "ensemble"
PARTS: Final = "parts"
"""Digest of the paths, sizes and version tags of a source's files, where the opening streamed."""
# One length for every value: what a commit writes tells only that there was a hit.
THRESHOLD_NOISE_BYTES: Final = 16


def put_pieces(transaction: Transaction, pieces: Mapping[str, bytes]) -> dict[str, str]:
    """Store private values; return their keyed digests for the next ledger entry."""
    return {name: transaction.put_private(name, body) for name, body in pieces.items()}


def read_piece(ledger: Ledger, name: str, state: LedgerState | None = None) -> bytes:
    """Return a stored private value of an open release, after checking its keyed digest.

    Raises:
        LedgerCorruptError: the value is missing or altered; it is not drawn again.

    """
    body = ledger.private(name, state)
    if body is None:
        raise LedgerCorruptError(f"the private state is missing a piece: {name}")
    return body


def threshold_noise_piece(unstable_count: int, private_noise: int | None) -> dict[str, bytes]:
    """Return the bytes of the threshold's noise to be stored, by name; empty without noise."""
    if private_noise is None:
        return {}
    body = private_noise.to_bytes(THRESHOLD_NOISE_BYTES, "big", signed=True)
    return {threshold_noise_name(unstable_count): body}


def read_threshold_noise(ledger: Ledger, state: LedgerState, unstable_count: int) -> int:
    """Return the threshold's stored noise as it was after a number of unstable answers.

    Raises:
        LedgerCorruptError: the noise is missing or altered; it is never drawn again.

    """
    body = read_piece(ledger, threshold_noise_name(unstable_count), state)
    return int.from_bytes(body, "big", signed=True)
