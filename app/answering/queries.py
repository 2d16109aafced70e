"""Queries, the clients that ask them, and batches as columns; one query is a batch of one.

The answers that a batch makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, Self

import msgspec
from msgspec.structs import astuple

from app.data.vectors import Vector, replay_key, replay_keys
from app.ledger.ledger import RecordedAnswer
from app.privacy.voting.query_decision import State

if TYPE_CHECKING:
    from collections.abc import Iterable


class Asker(msgspec.Struct, frozen=True):
    """The API key or token under whose name a client's queries are counted.

    Attributes:
        name: of the key.
        answer_limit: fresh answers that it may have; None for as many as there are.
        unstable_limit: the same of unstable ones; with scores, of units of the cutoff.

    """

    name: str
    answer_limit: int | None = None
    unstable_limit: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether a limit of new answers is set for this API key."""
        return self.answer_limit is not None or self.unstable_limit is not None


class Query(msgspec.Struct, frozen=True, gc=False):
    """A validated feature vector, with the caller's idempotency key if there is one.

    Attributes:
        vector: as posted, in schema order.
        idempotency_key: the caller's; None without one.
        precision: bins of the score that is asked for; None leaves it to the release.
        asker: whose query it is; None on a server without keys.

    """

    vector: Vector
    idempotency_key: str | None = None
    precision: int | None = None
    asker: Asker | None = None


class Queries(msgspec.Struct, frozen=True, gc=False):
    """Validated queries of one or several callers, as columns (vectors, keys, ...) of equal length.

    Attributes:
        vectors: canonical bytes of each vector.
        idempotency_keys: the caller's; None without one.
        precisions: bins of the score that each asks for; None leaves it to the release.
        askers: by whom each is counted; None on a server without keys.

    """

    vectors: Sequence[bytes]
    idempotency_keys: Sequence[str | None]
    precisions: Sequence[int | None]
    askers: Sequence[Asker | None]

    @classmethod
    def plain(cls, vectors: Sequence[bytes], asker: Asker | None = None) -> Self:
        """Return queries of one caller without idempotency keys or score precisions."""
        nothing = [None] * len(vectors)
        return cls(vectors, nothing, nothing, [asker] * len(vectors))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.vectors)

    @property
    def have_keys(self) -> bool:
        """Whether any of the queries has an idempotency key."""
        return self.idempotency_keys.count(None) < len(self.idempotency_keys)

    def part(self, start: int, end: int) -> Self:
        """Return the queries whose indices lie in a range."""
        if start == 0 and end >= len(self.vectors):
            return self
        return type(self)(*[column[start:end] for column in astuple(self)])

    def at(self, places: Sequence[int]) -> Self:
        """Return the queries at the given indices."""
        return type(self)(*[[column[place] for place in places] for column in astuple(self)])

    def followed_by(self, others: Iterable[Self]) -> Self:
        """Return a batch with these queries followed by ``others``."""
        columns = zip(*map(astuple, (self, *others)), strict=True)
        return type(self)(*[list(chain.from_iterable(parts)) for parts in columns])


def alone(query: Query) -> Queries:
    """Return a batch of one query, faster than the general function for batches."""
    vector = replay_key(query.vector)
    return Queries((vector,), (query.idempotency_key,), (query.precision,), (query.asker,))


def in_columns(queries: Sequence[Query]) -> Queries:
    """Return a list of queries as a batch of columns."""
    return Queries(
        replay_keys([each.vector for each in queries]),
        [each.idempotency_key for each in queries],
        [each.precision for each in queries],
        [each.asker for each in queries],
    )


class IdentifiedQueries(Queries, frozen=True, gc=False):
    """Queries with the keyed hashes under which their answers are recorded.

    Their precisions are those that they are answered with; None for a label.

    Attributes:
        vector_digests: by which answers are found: of the vectors, with scores of the
            vectors and the precisions, and of their public cells where each is decided once.
        key_digests: of the idempotency keys; None without one.
        posted_digests: of the vectors as posted, with scores and the precisions; what a
            key is kept for.
        kept: canonical bytes that an answer is kept with: of the vector, or of its cell.

    """

    vector_digests: Sequence[bytes]
    key_digests: Sequence[bytes | None]
    posted_digests: Sequence[bytes]
    kept: Sequence[bytes]


NO_QUERIES: Final = IdentifiedQueries((), (), (), (), (), (), (), ())


class Relayed(msgspec.Struct, frozen=True, gc=False):
    """A new answer that the leading server has committed on behalf of this server.

    Attributes:
        recorded: the answer.

    """

    recorded: RecordedAnswer


class Fresh(msgspec.Struct, frozen=True, gc=False):
    """A new answer of a batch that has yet to be committed to the ledger.

    Attributes:
        recorded: the answer.
        vector_digest: by which it is found again.
        kept: canonical bytes of the vector, or of its cell.
        posted_digest: of the vector as posted.
        posted: its canonical bytes.
        asker: by whom it is counted; None on a server without keys.
        drawn_in: a state of the epoch in which it was drawn.
        following: one of the epoch after it, with whatever it drew for the threshold.

    """

    recorded: RecordedAnswer
    vector_digest: bytes
    kept: bytes
    posted_digest: bytes
    posted: bytes
    asker: Asker | None
    drawn_in: State
    following: State

    @property
    def hit_count(self) -> int:
        """The part of the limit of unstable answers used by this one: 0 if stable, else 1 or 2."""
        return self.following.unstable_count - self.drawn_in.unstable_count
