"""Queries with the keyed digests by which they are found again, one by one or side by side.

Answers that a batch makes, one by one or side by side.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import overload

import msgspec

from app.answering.types import Asker, PlainQueries, Query
from app.data.vectors import TOGETHER_MIN
from app.ledger.ledger import AnswerRow, RecordedAnswer
from app.privacy.voting.universal import State


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """A query with its keyed digests.

    Attributes:
        query: as it came.
        vector_digest: by which it is found again: of the vector, with scores of the
            vector and the precision.
        vector_bytes: the canonical ones, of which the digest is.
        key_digest: of its idempotency key; None without one.
        precision: bins of the score that it asks for; None for a label.

    """

    query: Query
    vector_digest: bytes
    vector_bytes: bytes
    key_digest: bytes | None
    precision: int | None = None


class Tickets(Sequence[Ticket]):
    """Queries with their digests, column by column, where nothing but its vector decides each.

    None has an idempotency key, asks for a score, or comes with a key that has a limit.

    Attributes:
        queries: as they came.
        vector_digests: of their vectors.
        vector_bytes: the canonical ones.

    """

    __slots__ = ("queries", "vector_bytes", "vector_digests")

    def __init__(
        self,
        queries: Sequence[Query],
        vector_digests: Sequence[bytes],
        vector_bytes: Sequence[bytes],
    ) -> None:
        """Take columns of one length."""
        self.queries = queries
        self.vector_digests = vector_digests
        self.vector_bytes = vector_bytes

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.vector_digests)

    @overload
    def __getitem__(self, index: int) -> Ticket: ...
    @overload
    def __getitem__(self, index: slice) -> Tickets: ...
    def __getitem__(self, index: int | slice) -> Ticket | Tickets:
        """Return one of them, or the columns of a slice."""
        if isinstance(index, slice):
            return Tickets(
                self.queries[index], self.vector_digests[index], self.vector_bytes[index]
            )
        return Ticket(
            self.queries[index], self.vector_digests[index], self.vector_bytes[index], None
        )

    def __iter__(self) -> Iterator[Ticket]:
        """Yield one after another, in a third of the time of as many look-ups."""
        columns = zip(self.queries, self.vector_digests, self.vector_bytes, strict=True)
        for query, vector_digest, vector_bytes in columns:
            yield Ticket(query, vector_digest, vector_bytes, None)

    def askers(self) -> Sequence[Asker | None]:
        """Return by whom each is counted."""
        if isinstance(self.queries, PlainQueries):
            return [self.queries.asker] * len(self)
        return [query.asker for query in self.queries]


def in_columns(tickets: Sequence[Ticket]) -> Sequence[Ticket]:
    """Return tickets side by side, where they are many and nothing but a vector decides each."""
    if isinstance(tickets, Tickets) or len(tickets) < TOGETHER_MIN:
        return tickets
    if not all(map(_is_plain, tickets)):
        return tickets
    return Tickets(
        [each.query for each in tickets],
        [each.vector_digest for each in tickets],
        [each.vector_bytes for each in tickets],
    )


def vector_digests_of(tickets: Sequence[Ticket]) -> Sequence[bytes]:
    """Return the digest of each one's vector."""
    if isinstance(tickets, Tickets):
        return tickets.vector_digests
    return [each.vector_digest for each in tickets]


def vector_bytes_of(tickets: Sequence[Ticket]) -> Sequence[bytes]:
    """Return the canonical bytes of each one's vector."""
    if isinstance(tickets, Tickets):
        return tickets.vector_bytes
    return [each.vector_bytes for each in tickets]


def precisions_of(tickets: Sequence[Ticket]) -> Sequence[int | None]:
    """Return the bins of the score that each asks for; none where no score is asked for."""
    return () if isinstance(tickets, Tickets) else [each.precision for each in tickets]


def key_digests_of(tickets: Sequence[Ticket]) -> list[bytes]:
    """Return the digests of their idempotency keys, of those that have one."""
    if isinstance(tickets, Tickets):
        return []
    return [each.key_digest for each in tickets if each.key_digest is not None]


def askers_of(tickets: Sequence[Ticket]) -> Sequence[Asker | None]:
    """Return by whom each is counted."""
    return tickets.askers() if isinstance(tickets, Tickets) else [e.query.asker for e in tickets]


def _is_plain(ticket: Ticket) -> bool:
    asker = ticket.query.asker
    without = ticket.key_digest is None and ticket.precision is None
    return without and (asker is None or not asker.is_limited)


class Fresh(msgspec.Struct, frozen=True, gc=False):
    """An answer that this batch makes, to be committed.

    Attributes:
        ticket: of the query.
        recorded: the answer.
        drawn_in: a state of the epoch in which it was drawn.
        following: one of the epoch after it, with whatever it drew for the threshold.

    """

    ticket: Ticket
    recorded: RecordedAnswer
    drawn_in: State
    following: State

    @property
    def hit_count(self) -> int:
        """Units of the cutoff that it used."""
        return self.following.unstable_count - self.drawn_in.unstable_count


class FreshAnswers(Sequence[Fresh]):
    """Answers without scores that a batch makes together, numbered without gaps.

    Attributes:
        tickets: of the queries.
        recorded: the answers.

    """

    __slots__ = ("_drawn_in", "_hits", "recorded", "tickets")

    def __init__(
        self,
        tickets: Tickets,
        recorded: Sequence[RecordedAnswer],
        drawn_in: State,
        hits: Sequence[int] | None = None,
    ) -> None:
        """Take answers that are each stable or a hit.

        Args:
            tickets: of the queries.
            recorded: an answer for each.
            drawn_in: the state before the first, or before one that was given with it.
            hits: numbers of the unstable answers since then; None counts these.

        """
        self.tickets = tickets
        self.recorded = recorded
        self._drawn_in = drawn_in
        unstable = (each.query_id for each in recorded if not each.stable)
        self._hits = list(unstable) if hits is None else hits

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.recorded)

    @overload
    def __getitem__(self, index: int) -> Fresh: ...
    @overload
    def __getitem__(self, index: slice) -> FreshAnswers: ...
    def __getitem__(self, index: int | slice) -> Fresh | FreshAnswers:
        """Return one of them, or those of a slice."""
        if isinstance(index, slice):
            return FreshAnswers(
                self.tickets[index], self.recorded[index], self._drawn_in, self._hits
            )
        recorded = self.recorded[index]
        hits_before = bisect_left(self._hits, recorded.query_id)
        before = self._after(hits_before)
        after = before if recorded.stable else self._after(hits_before + 1)
        return Fresh(self.tickets[index], recorded, before, after)

    def __iter__(self) -> Iterator[Fresh]:
        """Yield one after another, in a third of the time of as many look-ups."""
        hit_count = bisect_left(self._hits, self.recorded[0].query_id) if self.recorded else 0
        before = self._after(hit_count)
        for ticket, recorded in zip(self.tickets, self.recorded, strict=True):
            after = before
            if not recorded.stable:
                hit_count += 1
                after = self._after(hit_count)
            yield Fresh(ticket, recorded, before, after)
            before = after

    def _after(self, hit_count: int) -> State:
        """Return the state after so many of the hits; an epoch has no other."""
        if hit_count == 0:
            return self._drawn_in
        return State(self._hits[hit_count - 1], self._drawn_in.unstable_count + hit_count)


def rows_of(fresh: Sequence[Fresh]) -> list[AnswerRow]:
    """Return answers as the ledger keeps them."""
    if isinstance(fresh, FreshAnswers):
        tickets = fresh.tickets
        return list(map(AnswerRow, tickets.vector_digests, tickets.vector_bytes, fresh.recorded))
    return [
        AnswerRow(each.ticket.vector_digest, each.ticket.vector_bytes, each.recorded)
        for each in fresh
    ]
