"""What is recorded of the vectors and keys of one batch, found by either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from app.errors import IdempotencyConflictError, LedgerCorruptError
from app.privacy.soft_labels.mechanism import ScoreBin

if TYPE_CHECKING:
    from collections.abc import Iterable


CONFLICT = (
    "this Idempotency-Key was used with another feature vector or precision; send a new key, "
    "or the same ones"
)
KEY_WITHOUT_ANSWER = "an idempotency key is kept for a vector that has no answer"


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """A committed answer of the ensemble: number, class index or none, stable flag.

    With scores also the precision that was asked for and, where stable, the bin.
    """

    query_id: int
    label: int | None
    stable: bool
    precision: int | None = None
    released_bin: ScoreBin | None = None


class ReplayIndex:
    """Committed answers by vector digest, and vector digests by key digest.

    With scores, a vector's digest is one of the vector and a precision throughout.
    """

    def __init__(
        self,
        by_vector: dict[bytes, Recorded] | None = None,
        vector_by_key: dict[bytes, bytes] | None = None,
    ) -> None:
        """Take over what is given, or start empty."""
        self._by_vector = {} if by_vector is None else by_vector
        self._vector_by_key = {} if vector_by_key is None else vector_by_key

    def add(self, vector_digest: bytes, recorded: Recorded) -> None:
        """Add a committed answer."""
        self._by_vector[vector_digest] = recorded

    def add_keys(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Add committed (key digest, vector digest) pairs."""
        self._vector_by_key.update(pairs)

    def has_any(self, vector_digests: Iterable[bytes]) -> bool:
        """Return whether one of the vectors has an answer."""
        return not self._by_vector.keys().isdisjoint(vector_digests)

    def find_by_key(self, key_digest: bytes | None, vector_digest: bytes) -> Recorded | None:
        """Return the key's answer, or None for a new key.

        Raises:
            IdempotencyConflictError: the key was used with another vector.
            LedgerCorruptError: the key has no answer.

        """
        known = None if key_digest is None else self._vector_by_key.get(key_digest)
        if known is None:
            return None
        check_same_vector(known, vector_digest)
        recorded = self._by_vector.get(known)
        if recorded is None:
            raise LedgerCorruptError(KEY_WITHOUT_ANSWER)
        return recorded

    def find_by_vector(self, vector_digest: bytes) -> Recorded | None:
        """Return the vector's answer, or None for a new vector."""
        return self._by_vector.get(vector_digest)


def check_same_vector(known: bytes, given: bytes) -> None:
    """Raise :class:`IdempotencyConflictError` unless both digests are of one vector."""
    if known != given:
        raise IdempotencyConflictError(CONFLICT)
