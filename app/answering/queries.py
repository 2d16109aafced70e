"""Queries, the clients that ask them, and batches as columns; one query is a batch of one.

The module also defines the new answers that a batch gives to its queries. The canonical bytes of a
vector are its one encoding: equal vectors have equal bytes.

A unit of the cutoff is one unstable answer. In a release with scores it is one failed stability
test (a noisy test of whether enough models agree), and an answer takes up to two tests. The
precision of a query with a score is the number of equal intervals (bins) into which the scores are
divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, Self, overload

import msgspec
from msgspec.structs import astuple

from app.data.vectors import Vector, replay_key, replay_keys
from app.ledger.ledger import RecordedAnswer
from app.privacy.voting.query_decision import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Asker(msgspec.Struct, frozen=True):
    """The API key or token under whose name a client's queries are counted.

    Attributes:
        name: the name of the API key.
        answer_limit: the largest number of new answers that the key may get; None for no limit.
        unstable_limit: the largest number of new unstable answers (with scores, of failed stability
            tests) that the key may get; None for no limit.

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
        vector: the feature values as posted, in the order of the schema.
        idempotency_key: the caller's idempotency key; None without one.
        precision: the number of score bins that the query asks for; None for the release's default.
        asker: the API key that asks the query; None on a server without API keys.

    """

    vector: Vector
    idempotency_key: str | None = None
    precision: int | None = None
    asker: Asker | None = None


class Queries(msgspec.Struct, frozen=True, gc=False):
    """Validated queries of one or several callers, as columns (vectors, keys, ...) of equal length.

    Attributes:
        vectors: the canonical bytes of each query's feature vector.
        idempotency_keys: the caller's idempotency key of each query; None without one.
        precisions: the number of score bins that each query asks for; None for the release's
            default.
        askers: the API key under which each query is counted; None on a server without API keys.

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

    The column ``precisions`` contains the number of score bins of each query's answer, or None if
    the answer is a label.

    Attributes:
        vector_digests: the keyed hash by which each query's answer is found: a hash of the vector,
            of the vector and its precision (with scores), or of the vector's public cell (in a
            release that answers each cell only once).
        key_digests: the keyed hash of each idempotency key; None without one.
        posted_digests: the keyed hash of each vector as posted, with scores also of the precision;
            an idempotency key may be used again only with the same hash.
        kept: the canonical bytes that are recorded with each answer: those of the vector or of its
            cell.

    """

    vector_digests: Sequence[bytes]
    key_digests: Sequence[bytes | None]
    posted_digests: Sequence[bytes]
    kept: Sequence[bytes]


NO_QUERIES: Final = IdentifiedQueries((), (), (), (), (), (), (), ())


class Relayed(msgspec.Struct, frozen=True, gc=False):
    """A new answer that another server has committed on behalf of this server.

    If several servers share a ledger, one of them, the leading server, commits for all.

    Attributes:
        recorded: the answer.

    """

    recorded: RecordedAnswer


class Fresh(msgspec.Struct, frozen=True, gc=False):
    """A new answer of a batch that has yet to be committed to the ledger.

    Attributes:
        recorded: the answer.
        vector_digest: the keyed hash by which the answer is found again.
        kept: the canonical bytes that are recorded with the answer: those of the vector or of its
            cell.
        posted_digest: the keyed hash of the vector as posted.
        posted: the canonical bytes of the vector as posted.
        asker: the API key under which the answer is counted; None on a server without API keys.
        drawn_in: the state before the answer: the counts of answers by vote, and the secret noise
            of the sparse vector's threshold.
        following: the same state after the answer; if the threshold's noise was drawn again after
            an unstable answer, it contains the new noise.

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
        """The number of units of the cutoff that this answer uses: 0, 1 or 2."""
        return self.following.unstable_count - self.drawn_in.unstable_count


class FreshColumns(NamedTuple):
    """New answers as columns of equal length, which are named as in :class:`Fresh`."""

    recorded: list[RecordedAnswer]
    vector_digest: list[bytes]
    kept: list[bytes]
    posted_digest: list[bytes]
    posted: list[bytes]
    asker: list[Asker | None]
    drawn_in: list[State]
    following: list[State]


class FreshAnswers(Sequence[Fresh]):
    """The new answers of a batch, in order; a :class:`Fresh` is made of one when it is asked for.

    Attributes:
        columns: the answers; they are changed by :meth:`append` alone.

    """

    __slots__ = ("columns",)

    def __init__(self, columns: FreshColumns | None = None) -> None:
        """Take columns over; start without an answer if there are none."""
        self.columns = columns or FreshColumns([], [], [], [], [], [], [], [])

    def __len__(self) -> int:
        """Return the number of answers."""
        return len(self.columns.recorded)

    def __iter__(self) -> Iterator[Fresh]:
        """Yield the answers one by one."""
        return map(Fresh, *self.columns)

    @overload
    def __getitem__(self, index: int) -> Fresh: ...
    @overload
    def __getitem__(self, index: slice) -> FreshAnswers: ...
    def __getitem__(self, index: int | slice) -> Fresh | FreshAnswers:
        """Return one answer, or the answers of a slice."""
        if isinstance(index, slice):
            return FreshAnswers(FreshColumns._make(column[index] for column in self.columns))
        return Fresh(*[column[index] for column in self.columns])  # type: ignore[arg-type]  # in order

    def append(self, fresh: Fresh) -> None:
        """Add one answer at the end."""
        for column, value in zip(self.columns, astuple(fresh), strict=True):
            column.append(value)  # type: ignore[attr-defined]  # a list
