"""A keyed pseudo-random permutation of rows, which needs not be stored.

A slot is the number of a row's or person's place in the permuted order.

**Algorithm.** A Feistel network on pairs ``(left, right)`` of numbers below ``side``, the smallest
number whose square is at least n. Each round adds a keyed function of one half to the other half,
modulo ``side``. A result of n or more is permuted again until it is below n (cycle walking), which
happens to fewer than one in ``side / 2`` numbers. The keyed function of a round maps each value of
a half to 64 bits of a keyed BLAKE2b digest, reduced modulo ``side``, with a bias of less than
``2**-32``. One digest, of the number of the round and of a block of eight values, gives the bits
for these eight values.

**Claim.** For every key the function is a permutation of ``0 .. n - 1``. So each unit of privacy
(row or person) has one slot, and so belongs to one chunk, whatever the other rows are. No slot
depends on features or labels.

**Assumption.** With a uniform key that stays secret, no observer of a release's outputs can
distinguish the permutation from a uniform one (``docs/guarantee.md``). No output shows a slot.

**Inputs and outputs.** In: positions of rows in the source, whose order is public, or numbers of
persons in the order of their keyed hashes, int64 (m,) for m of them. Out: slots, int64 (m,). The
slots of any subset can be computed alone, in any order.
"""

from __future__ import annotations

from hashlib import blake2b
from math import isqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDS: Final = 20
KEY_BYTES: Final = 32
UNIT_COUNT_MAX: Final = 1 << 40
"""Units whose halves have tables of a hundred megabytes at the most."""
_DOMAIN: Final = b"conclave slots 1"
_WORDS_A_HASH: Final = 8
_DIGEST_BYTES: Final = 64


class Slots:
    """A keyed pseudo-random permutation of n rows or persons.

    Args:
        key: a uniform and secret key, 32 bytes.
        count: the public number n of rows or persons, 1 or more.

    """

    def __init__(self, key: bytes, count: int) -> None:
        """Tabulate the keyed function of every round of the permutation."""
        invariant(len(key) == KEY_BYTES, "slots are keyed by 32 bytes")
        invariant(1 <= count <= UNIT_COUNT_MAX, "slots are of one unit or more, and not too many")
        self.count = count
        self._side = isqrt(count - 1) + 1
        self._tables = [_table(key, each, self._side) for each in range(ROUNDS)]

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slot of each given position, shape ``(m,)``."""
        slots = self._permuted(positions)
        beyond = np.flatnonzero(slots >= self.count)
        while len(beyond):
            slots[beyond] = self._permuted(slots[beyond])
            beyond = beyond[slots[beyond] >= self.count]
        return slots

    def _permuted(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the network's permutation of numbers below the square of the side."""
        halves = np.divmod(positions, self._side)
        left, right = (half.astype(np.uint32) for half in halves)
        side = np.uint32(self._side)
        for table in self._tables:
            left += table[right]
            # What is below the side wraps round to a larger number.
            np.minimum(left, left - side, out=left)
            left, right = right, left
        return left.astype(np.int64) * self._side + right


def _table(key: bytes, number: int, side: int) -> NDArray[np.uint32]:
    """Return one round's function of every half, shape ``(side,)``, below ``side``."""
    begun = blake2b(_DOMAIN + number.to_bytes(2, "big"), key=key, digest_size=_DIGEST_BYTES)
    digests = []
    for block in range(-(-side // _WORDS_A_HASH)):
        hashed = begun.copy()
        hashed.update(block.to_bytes(8, "big"))
        digests.append(hashed.digest())
    words = np.frombuffer(b"".join(digests), dtype=">u8")[:side]
    return (words % side).astype(np.uint32)


def chunk_of_slots(slots: NDArray[np.int64], *, count: int, size: int) -> NDArray[np.int64]:
    """Return the index of the chunk of rows to which each slot belongs.

    Args:
        slots: slots below ``count``.
        count: the number n of slots.
        size: the number k of chunks.

    """
    return ((slots + 1) * size - 1) // count
