"""Keyed digests of the identifiers of persons, computed for many rows at once.

**Algorithm.** CBC-MAC with the block cipher AES. The message is the identifier's length, its bytes,
and zeros up to a full block. It is encrypted block by block; each block is first combined with the
previous ciphertext by exclusive or.

**Claim.** A digest depends only on one identifier and the key, not on other rows. If the key is
secret, the digests of distinct identifiers cannot be distinguished from independent random numbers
of 128 bits. The reason is that the length comes first, so no message is the beginning of another
one, and CBC-MAC is a pseudo-random function for these messages.

**Use.** When rows are read block by block, two blocks have the same person if the digests are
equal. The identifiers themselves do not leave the process that reads the block.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from app.data.field_values import ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WORD_BYTES: Final = 8
BLOCK_WORDS: Final = 2
BLOCK_BYTES: Final = BLOCK_WORDS * WORD_BYTES
_KEY: Final = b"conclave persons 2: identifiers"
_WORD: Final = np.dtype("<u8")
_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(WORD_BYTES + 1)], dtype=_WORD)
"""By number of bytes: the mask that keeps so many of a word, the first ones of memory."""


def identifier_digests(
    body: NDArray[np.uint8], offsets: NDArray[np.integer], key: bytes
) -> NDArray[np.uint64]:
    """Return the keyed digest of each identifier as two 64-bit words; secret.

    Args:
        body: the bytes of all identifiers, one after another.
        offsets: the index at which each identifier starts in ``body``, followed by the index at
            which the last one ends, shape ``(identifiers + 1,)``.
        key: the secret key of the digests, which the ledger's database keeps.

    Returns:
        Digests, shape ``(identifiers, 2)``.

    """
    words = _Words(body, offsets.astype(np.int64, copy=False))
    encryptor = Cipher(algorithms.AES(hmac.digest(key, _KEY, "sha256")), modes.ECB()).encryptor()  # noqa: S305 -- chained by hand, over many identifiers at once
    state = np.zeros((len(offsets) - 1, BLOCK_WORDS), dtype=_WORD)
    block_counts = (words.lengths + WORD_BYTES - 1) // BLOCK_BYTES + 1
    for block in range(int(block_counts.max(initial=0))):
        going_on = block_counts > block
        rows = slice(None) if going_on.all() else np.flatnonzero(going_on)
        chained = state[rows]
        for place in range(BLOCK_WORDS):
            chained[:, place] ^= words.at(BLOCK_WORDS * block + place, rows)
        encrypted = np.frombuffer(encryptor.update(chained.tobytes()), dtype=_WORD)
        state[rows] = encrypted.reshape(-1, BLOCK_WORDS)
    return state


def text_digests(texts: Sequence[str], key: bytes) -> NDArray[np.uint64]:
    """Return the keyed digest of each identifier that is given as text; secret.

    Returns:
        Digests as two 64-bit words each, shape ``(identifiers, 2)``.

    """
    encoded = [text.encode(errors=ERRORS) for text in texts]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return identifier_digests(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets, key)


class _Words:
    """The messages of many identifiers, in words of eight bytes: a length, then the text.

    Attributes:
        lengths: of the texts in bytes, shape ``(m,)``.

    """

    def __init__(self, body: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        """Look at the bytes as the words that begin at each of them."""
        self.lengths = np.diff(offsets)
        self._longest = int(self.lengths.max(initial=0))
        self._shortest = int(self.lengths.min(initial=self._longest))
        self._starts = offsets[:-1]
        self._size = len(body)
        padded = np.concatenate([body, np.zeros(WORD_BYTES, dtype=np.uint8)])
        self._from = np.ndarray((len(body) + 1,), dtype=_WORD, buffer=padded, strides=(1,))

    def at(self, place: int, rows: slice | NDArray[np.intp]) -> NDArray[np.uint64]:
        """Return one word of the messages of some rows: what is beyond a message's end is zero."""
        lengths = self.lengths[rows]
        before = (place - 1) * WORD_BYTES
        if place == 0:
            return lengths.astype(_WORD)
        if before >= self._longest:
            return np.zeros(len(lengths), dtype=_WORD)
        if self._shortest == self._longest:
            # Every row goes on, and its text begins where the one before it ends.
            every = self._from[before : self._size : self._longest]
            kept: NDArray[np.uint64] = every & _MASKS[min(self._longest - before, WORD_BYTES)]
            return kept
        starts = np.minimum(self._starts[rows] + before, self._size)
        words: NDArray[np.uint64] = self._from[starts]
        if before + WORD_BYTES > self._shortest:
            words &= _MASKS[np.clip(lengths - before, 0, WORD_BYTES)]
        return words
