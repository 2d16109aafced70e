"""Recorded query vectors, in releases that answer each public cell (region) only once.

An answer's row then holds the cell, and each vector asked of it is kept here, once, with
the number of the answer that it got: a private piece a batch, which a ``VectorsAsked``
entry binds.  A classifier's public points and a student's examples are read from them.
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
        query_id: number of the answer of its cell.
        vector: canonical bytes of the vector as posted.

    """

    query_id: int
    vector: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AskedVector])


def asked_body(vectors: Sequence[AskedVector]) -> bytes:
    """Return query vectors as bytes, to be stored in private state."""
    return _encoder.encode(vectors)


def asked_of(body: bytes) -> list[AskedVector]:
    """Return the query vectors that are encoded in bytes from private state.

    Raises:
        LedgerCorruptError: it holds none.

    """
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError:
        raise LedgerCorruptError("a piece of vectors that were asked holds none") from None


def read_asked(
    connection: Connection, release_number: int, *, after: int, until: int
) -> list[AskedVector]:
    """Return the queried vectors with numbers in a range, in the order of the queries.

    Args:
        connection: inside a transaction.
        release_number: of the release.
        after: number of the last vector of a piece; 0 for the beginning.
        until: number of the last vector that an entry tells of.

    Raises:
        LedgerCorruptError: a piece is missing or altered.

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
