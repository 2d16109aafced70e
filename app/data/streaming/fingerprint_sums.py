"""The keyed fingerprint of all rows in any order, as a sum over parts of the rows.

Each row with its label is hashed to 128 bits by AES in CBC mode without an initial vector, under a
secret key that is used for these hashes only. This is a pseudo-random function of rows of the same
length. The hashes are added modulo ``2**128``. The published fingerprint is the HMAC-SHA-256 of the
sum and of the numbers of rows and columns, under the fingerprint's key. It depends on the rows and
how often each occurs, but not on their order, and reveals nothing about them.

If a column names persons, the keyed digest of the row's person is used as the initial vector, and
the hashes have another key. This has the same effect as one more block in front of the row, which
differs between persons.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODULUS: Final = 1 << 128
LIMB_BITS: Final = 32
BLOCK_BYTES: Final = 16
WORDS_A_BLOCK: Final = 2
COUNT_BYTES: Final = 8
_ROW_KEY: Final = b"conclave row sums 1: rows"
_PERSON_ROW_KEY: Final = b"conclave row sums 1: rows of persons"
_DOMAIN: Final = b"conclave row sums 1"
_PERSON_DOMAIN: Final = b"conclave row sums 1 of persons"


def sum_of_rows(
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    key: bytes,
    digests: NDArray[np.uint64] | None = None,
) -> int:
    """Return the sum of the keyed hashes of some rows, modulo ``2**128``; secret.

    Args:
        values: feature values encoded by the public schema, shape ``(rows, features)``.
        labels: class indices, shape ``(rows,)``.
        key: the secret key of the fingerprint.
        digests: the keyed digest of each row's person, shape ``(rows, 2)``; None if a row is the
            unit of privacy.

    """
    count, width = values.shape
    block_count = -(-(width + 1) // WORDS_A_BLOCK)
    words = np.zeros((count, block_count * WORDS_A_BLOCK), dtype="<f8")
    words[:, :width] = values
    words[:, width] = labels
    blocks = words.view("<u8").reshape(count, block_count, WORDS_A_BLOCK)
    state = np.zeros((count, WORDS_A_BLOCK), dtype="<u8") if digests is None else digests
    row_key = _row_key(key, width, is_of_persons=digests is not None)
    encryptor = Cipher(algorithms.AES(row_key), modes.ECB()).encryptor()  # noqa: S305 -- chained by hand, over many rows at once
    for block in range(block_count):
        state = np.frombuffer(
            encryptor.update((state ^ blocks[:, block]).tobytes()), dtype="<u8"
        ).reshape(count, WORDS_A_BLOCK)
    limbs = state.view("<u4").sum(axis=0, dtype=np.uint64)
    return sum(int(limb) << LIMB_BITS * place for place, limb in enumerate(limbs)) % MODULUS


def fingerprint_of_sum(
    row_sum: int, *, row_count: int, width: int, key: bytes, is_of_persons: bool = False
) -> str:
    """Return the fingerprint that follows from a sum of row hashes: 64 hexadecimal digits.

    Args:
        row_sum: the sum of the hashes of all rows.
        row_count: the number of rows.
        width: the number of feature columns.
        key: the secret key of the fingerprint.
        is_of_persons: whether a row is hashed with its person.

    """
    digest = hmac.new(key, _PERSON_DOMAIN if is_of_persons else _DOMAIN, hashlib.sha256)
    for number in (row_count, width):
        digest.update(number.to_bytes(COUNT_BYTES, "big"))
    digest.update(row_sum.to_bytes(BLOCK_BYTES, "big"))
    return digest.hexdigest()


def _row_key(key: bytes, width: int, *, is_of_persons: bool) -> bytes:
    """Return the key of the rows' hashes, another one for each length of a row."""
    domain = _PERSON_ROW_KEY if is_of_persons else _ROW_KEY
    return hmac.digest(key, domain + width.to_bytes(COUNT_BYTES, "big"), "sha256")
