"""Recorded query vectors, in releases that answer each public cell only once.

In such a release the row of an answer contains the cell. Each vector that was asked in the cell is
stored here, once, with the number of the answer that it got. The new vectors of one batch of
queries are stored together as one private value, and a ``VectorsAsked`` entry contains a keyed hash
of this value. The public points of a published classifier, and the training examples of a student
(a classifier that is trained on the answers), are read from these vectors.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from app.errors import LedgerCorruptError
from app.ledger.database.statements import read_private
from app.ledger.entries.digests import private_digest
from app.ledger.entries.entry_kinds import asked_vectors_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

RELEASE_SECRET: Final = "release-secret"  # noqa: S105 -- the name of the piece, not its value
"""The piece of private state that keys the digests of all others; written first."""


class AskedVector(NamedTuple):
    """The feature vector of a query, with the answer that it got.

    Attributes:
        query_id: the number of the answer of the vector's cell.
        vector: the canonical bytes of the vector as the client posted it.

    """

    query_id: int
    vector: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AskedVector])


def asked_body(vectors: Sequence[AskedVector]) -> bytes:
    """Return query vectors as bytes, the form in which a batch of them is stored."""
    return _encoder.encode(vectors)


def asked_of(body: bytes) -> list[AskedVector]:
    """Return the query vectors of a batch from the bytes in which it is stored.

    Raises:
        LedgerCorruptError: the bytes do not contain query vectors.

    """
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError:
        raise LedgerCorruptError("a piece of vectors that were asked holds none") from None


def read_asked(
    connection: Connection, release_number: int, *, after: int, until: int
) -> list[AskedVector]:
    """Return the queried vectors after number ``after``, up to ``until``, in order.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release in the database.
        after: the number of the last vector that is left out, which must be the last one of a
            stored batch; 0 to begin with the first vector.
        until: the number of the last vector that a ledger entry mentions.

    Raises:
        LedgerCorruptError: a stored value is missing or altered.

    """
    found: list[AskedVector] = []
    secret = read_private(connection, release_number, RELEASE_SECRET) if after < until else None
    while after + len(found) < until:
        name = asked_vectors_name(after + len(found) + 1)
        piece = read_private(connection, release_number, name)
        if piece is None or secret is None:
            raise LedgerCorruptError(f"the private state is missing a piece: {name}")
        computed = private_digest(secret.body, name=name, body=piece.body)
        vectors = asked_of(piece.body) if hmac.compare_digest(computed, piece.digest) else []
        if not vectors:
            raise LedgerCorruptError(f"the private state has an altered piece: {name}")
        found += vectors
    return found
