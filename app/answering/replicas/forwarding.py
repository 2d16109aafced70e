"""Batches that one server decides and commits for all servers of a ledger.

The server that has a certain lock of the database leads. Every other server validates the queries
of its clients, sends them to the leading server and waits. The leading server decides them together
with its own queries, in one transaction, and sends the answers inside that transaction: PostgreSQL
delivers them only after the commit. A decision on a query is its new or recorded answer, a refusal,
or the choice to leave the query to the published classifier.

A server that gets no answer decides by itself, as every server does if none leads: it takes the
ledger's write lock, and reads what was committed. If the leading server had committed the batch
after all, its answers are found and repeated. No guarantee depends on whether one server leads, or
how many do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec
import structlog

from app.answering.queries import NO_QUERIES, Asker, Fresh, IdentifiedQueries, Relayed
from app.errors import IntegrityError, LedgerUnavailableError, UnavailableError
from app.ledger.api_key_counts import KeyCount
from app.ledger.database.driver import UNAVAILABLE
from app.ledger.database.notifications import BODY_BYTES_MAX
from app.ledger.ledger import RecordedAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from app.answering.answer_query import QueryAnswerer
    from app.answering.batch_decisions import Decision
    from app.ledger.database.notifications import Message, Messages
    from app.ledger.ledger import Transaction

FORWARDED_MAX: Final = 128
"""Queries of a batch that is sent to the leader; a larger one is worth a commit of its own."""

ANSWER_BYTES_MAX: Final = 96
"""Bytes that one answer takes in a reply, at most."""

COUNT_BYTES_MAX: Final = 32
"""Bytes that the counts of one API key take in a reply, at most, beside its name."""

TAKEN_MAX: Final = 1024
"""Queries of other servers in one transaction of the leader's."""

WAITING_MAX: Final = 1024
"""Messages that wait at the leader; a server whose message is dropped sends it again."""

WAIT_SECONDS: Final = 0.25
"""How long a server waits for the leader before it asks again, and tries to lead itself."""

WAITS_MAX: Final = 12
"""How often it does, before it decides by itself."""

SILENT_SECONDS: Final = 5.0
"""How long a server decides by itself after a leader has kept silent."""

GATHERING_SECONDS_MAX: Final = 0.05
"""How long the leader waits at most for the servers that it answered last."""

CONNECT_AGAIN_SECONDS: Final = 5.0
"""How long a server leaves a connection alone that could not be made, or heard nothing."""

Parts: TypeAlias = "dict[int, tuple[bytes, IdentifiedQueries]]"
log = structlog.get_logger("conclave.service")


class Forwarded(msgspec.Struct, array_like=True, frozen=True):
    """Queries sent to the leading server, as columns; a column without information is empty.

    The message contains the keyed hash of an idempotency key and not the key itself.
    """

    number: int
    vectors: Sequence[bytes]
    vector_digests: Sequence[bytes]
    posted_digests: Sequence[bytes] = ()
    kept: Sequence[bytes] = ()
    key_digests: Sequence[bytes | None] = ()
    precisions: Sequence[int | None] = ()
    askers: Sequence[Asker | None] = ()


class Given(msgspec.Struct, array_like=True, frozen=True):
    """An answer in the leading server's reply to another server.

    Attributes:
        recorded: the answer.
        is_new: whether the answer is new, and not a repeated recorded one.

    """

    recorded: RecordedAnswer
    is_new: bool


class Reply(msgspec.Struct, array_like=True, frozen=True):
    """The leading server's reply to queries of another server.

    Attributes:
        number: the number of the message to which this is the reply.
        given: the answer to each query; None if the server that sent the query has to decide it.
        counts: the answer counts of each API key that asked, this batch included.
        has_failed: whether the transaction failed, so that nothing was written to the ledger.

    """

    number: int
    given: Sequence[Given | None] = ()
    counts: dict[str, KeyCount] = {}
    has_failed: bool = False


class Taken(NamedTuple):
    """Queries that the leading server has received from another server."""

    sender: bytes
    number: int
    queries: IdentifiedQueries


class Forwarding:
    """The object that decides batches on this server, or sends them to the leading server.

    The leading server commits the answers for all servers of a ledger. All methods are called on
    the writer's thread, except :meth:`receive`, which may be called on another thread while the
    writer's thread is idle.
    """

    def __init__(self, answerer: QueryAnswerer, messages: Messages) -> None:
        """Decide by ``answerer``, here or at the leader that ``messages`` reach."""
        self._answerer = answerer
        self._messages = messages
        self._number = 0
        self._silent_until = self._apart_until = 0.0
        self._waiting: list[Taken] = []
        self._batch_seconds = 0.0
        self._expected = 0  # messages that are likely to come
        # Answers of other servers are looked up: to read them all would take each server
        # as long as to answer them.
        answerer.replays.leave_out_answers()

    @property
    def leads(self) -> bool:
        """Whether this server leads: it decides batches for all servers of the ledger."""
        return self._messages.leads

    @property
    def descriptor(self) -> int | None:
        """The file descriptor that becomes readable once other servers have sent something."""
        return self._messages.descriptor()

    @property
    def has_waiting(self) -> bool:
        """Whether queries that other servers sent wait for a decision."""
        return bool(self._waiting)

    @property
    def is_complete(self) -> bool:
        """Whether all messages from other servers expected for the next batch have arrived."""
        return len(self._waiting) >= self._expected

    @property
    def gathering_seconds(self) -> float:
        """The time to wait for other servers' queries: as long as the last batch took."""
        return self._batch_seconds

    def look(self) -> None:
        """Connect to the other servers or try to become the leading one, if necessary."""
        if time.monotonic() < self._apart_until:
            return
        try:
            if not self._messages.is_connected:
                self._messages.connect()
            if self._messages.take_the_lead():
                self._messages.keep_awake()
        except UnavailableError as error:
            self._apart_until = time.monotonic() + CONNECT_AGAIN_SECONDS
            log.warning("server_apart", error=type(error).__name__)

    def close(self) -> None:
        """Close the connection to the other servers, so that another one may lead."""
        self._messages.close()

    def answer_batch(self, queries: IdentifiedQueries) -> Sequence[Decision]:
        """Return the decisions on ``queries``, in order, after they are committed.

        Raises:
            LedgerUnavailableError: nothing was released; try again.
            IntegrityError: the release must stop serving.

        """
        if self._messages.leads:
            return self._answer_for_all(queries)
        self._waiting.clear()  # from when this server led: they were sent again since
        parts = self._parts(queries) if self._may_forward(queries) else None
        if parts is None:
            return self._answerer.answer_batch(queries)
        return self._answer_by_leader(queries, parts)

    def _may_forward(self, queries: IdentifiedQueries) -> bool:
        # Draws whose commit failed come before anything new, and this server has them.
        is_free = self._messages.is_connected and not self._answerer.has_undelivered
        is_heard = time.monotonic() >= self._silent_until
        return is_free and is_heard and 0 < len(queries) <= FORWARDED_MAX

    # -- as the leader ---------------------------------------------------------

    def _answer_for_all(self, queries: IdentifiedQueries) -> Sequence[Decision]:
        """Decide what other servers have sent, and then ``queries``, in one transaction."""
        self.receive()
        taken = self._take_turns()
        self._expected = max(len(taken), self._expected - 1)
        if not taken:
            return self._answerer.answer_batch(queries) if queries else ()
        together = NO_QUERIES.followed_by([*(each.queries for each in taken), queries])

        def reply(
            transaction: Transaction,
            decisions: Sequence[Decision],
            counts: Mapping[str, KeyCount],
        ) -> None:
            replies = _replies(taken, decisions, counts)
            transaction.send([self._messages.sealed(body, receiver=to) for to, body in replies])

        started = time.monotonic()
        try:
            decisions = self._answerer.answer_batch(together, before_commit=reply)
        except (UnavailableError, IntegrityError):
            self._tell_failure(taken)
            raise
        self._batch_seconds = min(time.monotonic() - started, GATHERING_SECONDS_MAX)
        return decisions[len(together) - len(queries) :]

    def _take_turns(self) -> list[Taken]:
        """Take the messages that have waited longest, up to a maximum number of queries."""
        taken, room = [], TAKEN_MAX
        while self._waiting and len(self._waiting[0].queries) <= room:
            taken.append(self._waiting.pop(0))
            room -= len(taken[-1].queries)
        return taken

    def receive(self) -> None:
        """Read the messages that other servers have sent, without waiting for any."""
        try:
            for message in self._messages.received(0):
                self._take_in(message)
        except UnavailableError as error:
            log.warning("lead_lost", error=type(error).__name__)

    def _take_in(self, message: Message) -> None:
        """Keep forwarded queries once, however often they were sent."""
        try:
            forwarded = _FORWARDED.decode(message.body)
        except msgspec.MsgspecError:
            return
        taken = Taken(message.sender, forwarded.number, _unpacked(forwarded))
        known = {(each.sender, each.number) for each in self._waiting}
        if len(known) < WAITING_MAX and (taken.sender, taken.number) not in known:
            self._waiting.append(taken)

    def _tell_failure(self, taken: Sequence[Taken]) -> None:
        """Let other servers refuse what the ledger did not take, so that none of them waits."""
        try:
            self._messages.send(
                [
                    self._messages.sealed(
                        _ENCODER.encode(Reply(each.number, has_failed=True)), receiver=each.sender
                    )
                    for each in taken
                ]
            )
        except UnavailableError as error:
            log.warning("lead_lost", error=type(error).__name__)

    # -- as another server -----------------------------------------------------

    def _parts(self, queries: IdentifiedQueries) -> Parts | None:
        """Return messages of the queries, by number; None where one query alone is too long."""
        self._number += 1
        body = _ENCODER.encode(_packed(self._number, queries))
        if max(len(body), _reply_bytes_max(queries)) <= BODY_BYTES_MAX:
            return {self._number: (body, queries)}
        if len(queries) == 1:
            return None
        middle = len(queries) // 2
        halves = queries.part(0, middle), queries.part(middle, len(queries))
        first, second = map(self._parts, halves)
        return None if first is None or second is None else first | second

    def _answer_by_leader(self, queries: IdentifiedQueries, parts: Parts) -> Sequence[Decision]:
        """Send queries to the leader, and decide those here that it leaves to this server."""
        replies: dict[int, Reply] = {}
        try:
            self._ask(parts, replies)
        except UnavailableError as error:
            log.warning("server_apart", error=type(error).__name__)
        if any(reply.has_failed for reply in replies.values()):
            raise LedgerUnavailableError(UNAVAILABLE)
        given: list[Given | None] = []
        for number, (_, part) in parts.items():
            reply = replies.get(number)
            given += [None] * len(part) if reply is None else reply.given
            if reply is not None:
                self._answerer.key_counts.update(reply.counts)
        return self._completed(queries, given)

    def _ask(self, parts: Parts, replies: dict[int, Reply]) -> None:
        """Wait until the leader has replied, or this server leads, or nobody replies."""
        for _ in range(WAITS_MAX):
            rest = [body for number, (body, _) in parts.items() if number not in replies]
            self._messages.send(list(map(self._messages.sealed, rest)))
            if self._hear(parts, replies) or self._messages.take_the_lead():
                return
        self._silent_until = time.monotonic() + SILENT_SECONDS
        log.warning("leader_silent")

    def _hear(self, parts: Parts, replies: dict[int, Reply]) -> bool:
        """Take in replies for a while; return whether all have come."""
        until = time.monotonic() + WAIT_SECONDS
        while len(replies) < len(parts) and (seconds := until - time.monotonic()) > 0:
            for message in self._messages.received(seconds):
                reply = _reply(message)
                part = None if reply is None else parts.get(reply.number)
                if reply is None or part is None:
                    continue  # to what nobody waits for any more
                if reply.has_failed or len(reply.given) == len(part[1]):
                    replies[reply.number] = reply
        return len(replies) == len(parts)

    def _completed(
        self, queries: IdentifiedQueries, given: Sequence[Given | None]
    ) -> Sequence[Decision]:
        """Return a decision for each query: the leader's answer, or one that is made here."""
        places = [place for place, each in enumerate(given) if each is None]
        answered = zip(queries.vector_digests, given, strict=True)
        self._answerer.replays.add_all(
            {digest: each.recorded for digest, each in answered if each is not None}
        )
        rest = iter(self._answerer.answer_batch(queries.at(places)) if places else ())
        return [next(rest) if each is None else _decision(each) for each in given]


_ENCODER: Final = msgspec.msgpack.Encoder()
_FORWARDED: Final = msgspec.msgpack.Decoder(Forwarded)
_REPLY: Final = msgspec.msgpack.Decoder(Reply)


def _replies(
    taken: Sequence[Taken], decisions: Sequence[Decision], counts: Mapping[str, KeyCount]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield a reply for each server that sent queries; theirs come first in the batch."""
    place = 0
    for each in taken:
        own = decisions[place : place + len(each.queries)]
        place += len(each.queries)
        names = {asker.name for asker in each.queries.askers if asker is not None}
        known = {name: counts[name] for name in names & counts.keys()}
        yield each.sender, _ENCODER.encode(Reply(each.number, [*map(_given, own)], known))


def _reply_bytes_max(queries: IdentifiedQueries) -> int:
    """Return how long a reply can be: one too long would undo the leader's transaction."""
    names = {asker.name for asker in queries.askers if asker is not None}
    counts = sum(len(name.encode()) + COUNT_BYTES_MAX for name in names)
    return COUNT_BYTES_MAX + ANSWER_BYTES_MAX * len(queries) + counts


def _packed(number: int, queries: IdentifiedQueries) -> Forwarded:
    is_plain = list(queries.posted_digests) == list(queries.vector_digests)
    return Forwarded(
        number,
        queries.vectors,
        queries.vector_digests,
        () if is_plain else queries.posted_digests,
        () if list(queries.kept) == list(queries.vectors) else queries.kept,
        queries.key_digests if queries.have_keys else (),
        () if set(queries.precisions) == {None} else queries.precisions,
        () if set(queries.askers) == {None} else queries.askers,
    )


def _unpacked(sent: Forwarded) -> IdentifiedQueries:
    nothing = [None] * len(sent.vectors)
    key_digests = sent.key_digests or nothing
    return IdentifiedQueries(
        sent.vectors,
        [None if digest is None else "" for digest in key_digests],
        sent.precisions or nothing,
        sent.askers or nothing,
        sent.vector_digests,
        key_digests,
        sent.posted_digests or sent.vector_digests,
        sent.kept or sent.vectors,
    )


def _reply(message: Message) -> Reply | None:
    """Return a leader's reply; None where it is none."""
    try:
        return _REPLY.decode(message.body)
    except msgspec.MsgspecError:
        return None


def _given(decision: Decision) -> Given | None:
    if isinstance(decision, Fresh):
        return Given(decision.recorded, is_new=True)
    return Given(decision, is_new=False) if isinstance(decision, RecordedAnswer) else None


def _decision(given: Given) -> Decision:
    return Relayed(given.recorded) if given.is_new else given.recorded
