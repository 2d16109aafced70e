"""Keyed hashes (digests), by which entries and tables refer to private values and queries.

There are two secret keys. The database's secret, shared by all its releases, is the key of the
digests by which vectors, cells, idempotency keys, users, persons and rows are recognised. The
release's secret is the key of the digests of its private state. Each use of a key has its own tag
(a fixed text before the hashed bytes), so that a digest of one use is never valid for another.

A fingerprint is a keyed hash of all private rows of a release, or of one generation (batch of
rows), by which a restarted server recognises the rows.

A client may send an idempotency key with a query, so that a repeated request is recognised.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from app.ledger.entries.chain import FIRST_RELEASE
from app.ledger.entries.entry_kinds import PUBLIC_DIGEST_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.ledger.database.statements import KeyRow

SECRET_BYTES: Final = 32
"""Length of the database's and of a release's secret."""

_VECTOR: Final = b"conclave-vector-1\0"
_SCORED_VECTOR: Final = b"conclave-scored-vector-1\0"
_CELL: Final = b"conclave-cell-1\0"
_ACTIVE_SET: Final = b"conclave-active-set-1\0"
_IDEMPOTENCY: Final = b"conclave-idempotency-key-1\0"
_KEPT_KEY: Final = b"conclave-kept-key-1\0"
_KEY_COUNT: Final = b"conclave-key-count-1\0"
_SUBJECT: Final = b"conclave-subject-1\0"
_SUBJECT_BYTES: Final = 16
_FINGERPRINT: Final = b"conclave-fingerprint-key-1\0"
_GENERATION: Final = b"conclave-generation-key-1\0"
_PERSON: Final = b"conclave-person-key-1\0"
_CHECKPOINT: Final = b"conclave-checkpoint-1\0"
_PRIVATE_STATE: Final = b"conclave-private-state-1\0"
_CODE: Final = "transfer-code"  # the name that its digest is of; no piece is stored
_PRECISION_BYTES: Final = 2
_CELL_BYTES: Final = 4

# Of RFC 2104, for SHA-256; a secret is shorter than a block.
_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))


class Digests:
    """The functions that compute the keyed hashes of one database."""

    __slots__ = ("_outer", "_secret", "_vectors")

    def __init__(self, database_secret: bytes) -> None:
        """Use the database's secret as the key of every digest."""
        self._secret = database_secret
        # An HMAC's two hashes as they stand after the key, and after the tag of vectors:
        # a copy of each takes a third of what the key takes anew, for every query.
        key = database_secret.ljust(_BLOCK_BYTES, b"\0")
        self._vectors = hashlib.sha256(key.translate(_INNER) + _VECTOR)
        self._outer = hashlib.sha256(key.translate(_OUTER))

    def of_vector(self, vector: bytes) -> bytes:
        """Return the keyed hash (32 bytes) of a vector's canonical bytes."""
        inner, outer = self._vectors.copy(), self._outer.copy()
        inner.update(vector)
        outer.update(inner.digest())
        return outer.digest()

    def of_vectors(self, vectors: Sequence[bytes]) -> list[bytes]:
        """Return the keyed hashes (32 bytes each) of many vectors' canonical bytes."""
        copy_inner, copy_outer = self._vectors.copy, self._outer.copy
        digests = []
        for vector in vectors:
            inner = copy_inner()
            inner.update(vector)
            outer = copy_outer()
            outer.update(inner.digest())
            digests.append(outer.digest())
        return digests

    def of_question(self, vector: bytes, precision: int | None) -> bytes:
        """Return the keyed hash (32 bytes) of a query: its vector, and what it asks for.

        Args:
            vector: the canonical bytes of the vector.
            precision: the number of bins of the score, up to 1000; None if a label is asked for.

        """
        if precision is None:
            return self.of_vector(vector)
        asked = precision.to_bytes(_PRECISION_BYTES, "big") + vector
        return hmac.digest(self._secret, _SCORED_VECTOR + asked, "sha256")

    def of_cell(self, key: bytes) -> bytes:
        """Return the keyed hash (32 bytes) of a public cell's canonical bytes."""
        return hmac.digest(self._secret, _CELL + key, "sha256")

    def of_qualified(self, digest: bytes, qualifier: bytes) -> bytes:
        """Return the keyed hash (32 bytes) of a vector or cell, with further identifying bytes.

        Args:
            digest: the keyed hash of the vector or of the cell, 32 bytes.
            qualifier: further bytes that identify the query, for example the set of voting
                generations; if empty, ``digest`` is returned unchanged.

        """
        if not qualifier:
            return digest
        return hmac.digest(self._secret, _ACTIVE_SET + digest + qualifier, "sha256")

    def of_key(self, idempotency_key: str) -> bytes:
        """Return the keyed hash (32 bytes) of an idempotency key."""
        return hmac.digest(self._secret, _IDEMPOTENCY + idempotency_key.encode(), "sha256")

    def of_kept_key(self, key_digest: bytes, vector_digest: bytes, *, release_number: int) -> bytes:
        """Return the authentication code (32 bytes) of a stored idempotency key and its vector."""
        kept = release_number.to_bytes(2, "big") + key_digest + vector_digest
        return hmac.digest(self._secret, _KEPT_KEY + kept, "sha256")

    def marks(self, row: KeyRow, release_number: int) -> bool:
        """Return whether a stored idempotency key's authentication code is right.

        The result is true for a key of an early version, which stored no code.
        """
        if row.mark is None:
            return True
        computed = self.of_kept_key(
            row.key_digest, row.vector_digest, release_number=release_number
        )
        return hmac.compare_digest(computed, row.mark)

    def of_key_count(
        self, name: str, answered: int, unstable: int, *, release_number: int
    ) -> bytes:
        """Return the authentication code (32 bytes) of an API key's answer counts."""
        counted = f"{release_number} {answered} {unstable} {name}".encode()
        return hmac.digest(self._secret, _KEY_COUNT + counted, "sha256")

    def of_subject(self, subject: str) -> str:
        """Return the pseudonym of an access token's user (subject): 32 hexadecimal characters."""
        keyed = hmac.digest(self._secret, _SUBJECT + subject.encode("utf-8", "replace"), "sha256")
        return keyed[:_SUBJECT_BYTES].hex()

    def fingerprint_key(self, release_number: int = FIRST_RELEASE) -> bytes:
        """Return the secret (32 bytes) for the fingerprint of a release's private rows.

        Each release has a different secret, because fingerprints are in public entries, and whether
        two releases have the same rows is private.
        """
        later = b"" if release_number == FIRST_RELEASE else release_number.to_bytes(2, "big")
        return hmac.digest(self._secret, _FINGERPRINT + later, "sha256")

    def generation_key(self, release_number: int, generation: int) -> bytes:
        """Return the secret (32 bytes) for the fingerprint of one added batch of rows."""
        numbers = f"{release_number} {generation}".encode()
        return hmac.digest(self._secret, _GENERATION + numbers, "sha256")

    def person_key(self) -> bytes:
        """Return the secret (32 bytes) for the digests of persons, the same in every release."""
        return hmac.digest(self._secret, _PERSON, "sha256")

    def of_checkpoint(self, body: str) -> str:
        """Return the authentication code (64 hexadecimal characters) of a checkpoint's text.

        A checkpoint is a stored summary of all ledger entries so far.
        """
        return hmac.digest(self._secret, _CHECKPOINT + body.encode(), "sha256").hex()


def cell_key(cell: int) -> bytes:
    """Return the canonical bytes of a public cell, given its number."""
    return cell.to_bytes(_CELL_BYTES, "big")


def is_cell_key(key: bytes) -> bool:
    """Return whether bytes are as long as those of a public cell, a length that no vector has."""
    return len(key) == _CELL_BYTES


def transfer_digest(release_secret: bytes, code: str) -> str:
    """Return the keyed hash of the code with which a retired ledger's copy may continue.

    Args:
        release_secret: the secret of the retired release.
        code: the code in hexadecimal characters, in either case.

    """
    return private_digest(release_secret, name=_CODE, body=code.strip().lower().encode())


def public_digest(vector_digest: bytes) -> str:
    """Return the first part of a vector's keyed hash, which ledger entries show."""
    return vector_digest.hex()[:PUBLIC_DIGEST_CHARS]


def public_digests(vector_digests: Iterable[bytes]) -> list[str]:
    """Return the first parts of many vectors' keyed hashes, which ledger entries show."""
    return [digest.hex()[:PUBLIC_DIGEST_CHARS] for digest in vector_digests]


def private_digest(release_secret: bytes, *, name: str, body: bytes) -> str:
    """Return the keyed hash (64 hexadecimal characters) of a private value, for an entry."""
    keyed = hmac.new(release_secret, _PRIVATE_STATE, "sha256")
    keyed.update(name.encode() + b"\0")
    keyed.update(body)
    return keyed.hexdigest()
