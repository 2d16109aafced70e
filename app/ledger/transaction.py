"""A write transaction of a ledger: entries, answers, idempotency keys and private values.

The state after a new entry is computed before the entry is written, so that an entry which may not
follow is refused before anything changes. Errors of the database are converted here to Conclave's
errors, call by call. An error of the caller's own code inside a transaction is passed on unchanged,
and the transaction is undone.

A client may send an idempotency key with a query, so that a repeated request is recognised.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from msgspec import structs
from sqlalchemy import insert

from app.errors import InvariantError, LedgerCorruptError, LedgerUnavailableError, invariant
from app.ledger.answer_index.recorded_keys import caught_up, find_recorded, keep
from app.ledger.api_key_counts import read_key_counts, write_key_counts
from app.ledger.asked_vectors import RELEASE_SECRET, AskedVector, asked_body, read_asked
from app.ledger.database.answer_tables import AnswerColumns, insert_answers, read_answers
from app.ledger.database.driver import (
    REFUSED,
    UNAVAILABLE,
    fetch_all,
    is_cut_off,
    translate,
)
from app.ledger.database.hour_counts import add_hours
from app.ledger.database.key_lookups import find_keys
from app.ledger.database.notifications import notifying
from app.ledger.database.protections import delete_private
from app.ledger.database.recorded_answers import RecordedAnswer
from app.ledger.database.statements import every, read_head, read_private
from app.ledger.database.tables import idempotency_keys, private_state
from app.ledger.entries.chain import next_entry
from app.ledger.entries.digests import private_digest, public_digests
from app.ledger.entries.entry_kinds import (
    AnswersReleased,
    AnswersReleased2,
    GenerationRetired,
    ScoresReleased,
    SlotsChanged,
    VectorsAsked,
    asked_vectors_name,
)
from app.ledger.entries.fold import followed_by
from app.ledger.entries.short_bodies import short_body
from app.ledger.erasure_state import is_beside_entries, read_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from app.ledger.answer_index.key_blocks import KeyImage
    from app.ledger.api_key_counts import KeyCount
    from app.ledger.database.hour_counts import HourCounts
    from app.ledger.database.notifications import Sealed
    from app.ledger.database.recorded_answers import AnswerRow
    from app.ledger.entries.chain import Head
    from app.ledger.entries.digests import Digests
    from app.ledger.entries.entry_kinds import LedgerEvent, ReleaseOpened
    from app.ledger.entries.fold import LedgerState
    from app.ledger.entries.generations import Generations

PRIVATE_BODY_BYTES_MAX: Final = 900_000_000
"""Largest piece of private state: SQLite holds a value of just under 10^9 bytes."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
_INSERT_ENTRY = (
    "INSERT INTO entries (release_number, sequence, kind, version, body, hash) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)
_INSERT_KEYS = insert(idempotency_keys)
Given = ParamSpec("Given")
ResultT = TypeVar("ResultT")
_INSERT_PRIVATE = insert(private_state)


class Transaction:
    """An open write transaction with the database's write lock, made by ``Ledger.transaction``."""

    def __init__(
        self,
        connection: Connection,
        state: LedgerState,
        *,
        release_number: int,
        openings: tuple[ReleaseOpened, ...],
        digests: Digests,
        image: KeyImage | None = None,
    ) -> None:
        """Start from the database's state under the lock, for one release and for all.

        Args:
            connection: the connection that has the write lock.
            state: the state of the release.
            release_number: the number of the release in the database.
            openings: the first entry of every release in the database.
            digests: the keyed digests of the database.
            image: the in-memory index of recorded answers as of an earlier commit of this process;
                None to read it from the database.

        """
        self._connection = connection
        self._release_number = release_number
        self._openings = openings
        self._digests = digests
        self._state = state
        self._answered_before = state.answered
        self.was_cut_off = False  # told once it has failed: by the database, not by what it took
        self.may_be_committed = False  # told once its commit was asked for, whatever came of it
        self._failed = False
        self._key_rows: list[dict[str, object]] = []
        self._unbound: dict[str, str] = {}
        self._kept_image = image
        self._image: KeyImage | None = None
        self._new_digests: set[bytes] = set()
        self._release_secret: bytes | None = None

    @property
    def state(self) -> LedgerState:
        """The release's state, including the entries appended in this transaction."""
        return self._state

    @property
    def image(self) -> KeyImage | None:
        """The index of recorded answers, including those of this transaction.

        The index finds recorded answers by the keyed hash of the query's vector.
        """
        return self._kept_image if self._image is None else self._image

    @property
    def release_number(self) -> int:
        """The release's number in its database, which cannot change during the transaction."""
        return self._release_number

    @property
    def openings(self) -> tuple[ReleaseOpened, ...]:
        """The first entry of every release in the database, including one in this transaction."""
        release = self._state.release
        if release is None or self._release_number <= len(self._openings):
            return self._openings
        return (*self._openings, release)

    def head(self) -> Head:
        """Return the newest entry's number and hash, read from the database."""
        return self._in_database(read_head, self._connection, self._release_number)

    def append(self, event: LedgerEvent) -> Head:
        """Append an entry to the ledger.

        Private values whose digests the event contains must have been stored earlier in this
        transaction.

        Raises:
            InvariantError: the event may not follow the earlier ones.
            LedgerUnavailableError: the database refused the write.

        """
        return self._append(event)

    def _append(self, event: LedgerEvent, stored: str | None = None) -> Head:
        """Append an entry whose stored body is ``stored``, or whole if it is None."""
        entry = next_entry(self._state.head, event)
        try:
            following = followed_by(self._state, entry)
        except LedgerCorruptError as illegal:
            raise InvariantError(str(illegal)) from None
        self._bind(following)
        row = (
            self._release_number,
            entry.sequence,
            entry.kind,
            entry.version,
            entry.body if stored is None else stored,
            entry.hash,
        )
        self._in_database(fetch_all, self._connection, _INSERT_ENTRY, row)
        if isinstance(event, SlotsChanged | GenerationRetired):
            lost = self._state.private_digests.keys() - following.private_digests.keys()
            self._in_database(delete_private, self._connection, self._release_number, lost)
        self._state = following
        return entry.head

    def record_answers(self, rows: Sequence[AnswerRow]) -> Head:
        """Append one entry for a contiguous range of new answers, and store each answer.

        Args:
            rows: at least one answer, in the order of their numbers.

        Raises:
            InvariantError: the answers may not follow the earlier ones.
            LedgerUnavailableError: the database refused the write.

        """
        invariant(bool(rows), "an entry covers at least one answer")
        vector_digests, vectors, given, qualifiers = zip(*rows, strict=True)
        return self.record_columns(vector_digests, vectors, given, qualifiers)

    def record_columns(
        self,
        vector_digests: Sequence[bytes],
        vectors: Sequence[bytes],
        given: Sequence[RecordedAnswer],
        qualifiers: Sequence[bytes] | None = None,
    ) -> Head:
        """Append one entry for new answers that are given as columns of equal length.

        The effect is that of :meth:`record_answers`; the columns have the values of its ``rows``.

        Args:
            vector_digests: the keyed digest of each vector, or of its cell, 32 bytes.
            vectors: the canonical bytes of each vector as posted, or of its cell if each cell is
                decided once.
            given: the answers, at least one, in the order of their numbers.
            qualifiers: bytes that also identify each query, for example the set of voting
                generations; None if there are none.

        Raises:
            InvariantError: the answers may not follow the earlier ones.
            LedgerCorruptError: a value has a wrong type.
            LedgerUnavailableError: the database refused the write.

        """
        first, count = given[0].query_id, len(given)
        numbers = [answer.query_id for answer in given]
        invariant(numbers == [*range(first, first + count)], "answers are numbered without gaps")
        self._refuse_recorded(vector_digests)
        event = _released(vector_digests, given, self._state.generations)
        head = self._append(event, short_body(event))
        columns = AnswerColumns(vector_digests, vectors, given, qualifiers or [b""] * count)
        self._in_database(
            insert_answers, self._connection, self._release_number, head.sequence, columns
        )
        self._in_database(
            keep, self._recorded(), self._connection, self._release_number, vector_digests
        )
        self._new_digests.difference_update(vector_digests)
        return head

    def _refuse_recorded(self, vector_digests: Sequence[bytes]) -> None:
        """Refuse a second answer to a key, by what the database holds under the lock.

        The key of the newest part refuses one that is there too, and the number of the entry
        one that another server recorded meanwhile.  What was looked up in this transaction, and
        had no answer, is not looked up again.
        """
        is_new = len(set(vector_digests)) == len(vector_digests)
        others = [digest for digest in vector_digests if digest not in self._new_digests]
        invariant(is_new and not (others and self.known_answers(others)), REFUSED)

    def _recorded(self) -> KeyImage:
        """Return the recorded keys, as of the state at the beginning of this transaction."""
        if self._image is None:
            self._image = self._in_database(
                caught_up,
                self._kept_image,
                self._connection,
                self._release_number,
                self._answered_before,
            )
        return self._image

    def record_asked(self, vectors: Sequence[AskedVector]) -> Head:
        """Append one entry for queried vectors that got the recorded answer of their cell.

        Args:
            vectors: at least one vector with the number of its answer, none recorded before; they
                are stored too.

        Raises:
            InvariantError: the vectors may not follow the earlier ones.
            LedgerUnavailableError: the database refused the write.

        """
        first = self._state.asked + 1
        name = asked_vectors_name(first)
        digest = self.put_private(name, asked_body(vectors))
        digests = self._digests.of_vectors([each.vector for each in vectors])
        return self.append(
            VectorsAsked(
                first_number=first,
                digests=public_digests(digests),
                query_ids=[each.query_id for each in vectors],
                private_digests={name: digest},
            )
        )

    def asked_after(self, number: int) -> list[AskedVector]:
        """Return the committed query vectors with numbers above ``number``, in order.

        Raises:
            LedgerCorruptError: stored vectors are missing or altered.
            LedgerUnavailableError: the database cannot be read.

        """
        return self._in_database(
            read_asked,
            self._connection,
            self._release_number,
            after=number,
            until=self._state.asked,
        )

    def known_answers(self, vector_digests: Sequence[bytes]) -> list[tuple[bytes, RecordedAnswer]]:
        """Return the recorded answers to the given vectors, each with the vector's hash.

        Raises:
            LedgerUnavailableError: the database cannot be read.

        """
        found = self._in_database(
            find_recorded,
            self._connection,
            self._release_number,
            vector_digests,
            self._recorded(),
        )
        self._new_digests.update(vector_digests)
        if found:
            self._new_digests.difference_update([digest for digest, _ in found])
        return found

    def answers_after(self, query_id: int) -> Iterator[AnswerRow]:
        """Yield every committed answer after number ``query_id``, in order.

        Raises:
            LedgerUnavailableError: the database cannot be read.

        """
        return every(self._read_answers, query_id, lambda row: row.answer.query_id)

    def _read_answers(self, after: int) -> list[AnswerRow]:
        found = self._in_database(read_answers, self._connection, self._release_number, after)
        return [row for _, row in found]

    def known_keys(self, key_digests: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return a pair of hashes, (key, vector), for each given idempotency key that is recorded.

        Raises:
            LedgerUnavailableError: the database cannot be read.

        """
        return self._in_database(
            find_keys, self._connection, self._release_number, key_digests, digests=self._digests
        )

    def key_counts(self, names: Collection[str]) -> dict[str, KeyCount]:
        """Return the answer counts of those API keys that have any.

        Raises:
            LedgerCorruptError: a count was altered.
            LedgerUnavailableError: the database cannot be read.

        """
        return self._in_database(
            read_key_counts, self._connection, self._release_number, names, digests=self._digests
        )

    def keep_key_counts(self, counts: Mapping[str, KeyCount]) -> None:
        """Store the present answer counts of API keys in this transaction.

        Raises:
            InvariantError: a count would be less than before.
            LedgerUnavailableError: the database refused the write.

        """
        self._in_database(
            write_key_counts, self._connection, self._release_number, counts, digests=self._digests
        )

    def count_hours(self, counts: Mapping[int, HourCounts]) -> None:
        """Add request counts to the stored counts of their hours.

        Raises:
            LedgerUnavailableError: the database refused the write.

        """
        self._in_database(add_hours, self._connection, self._release_number, counts)

    def record_key(self, key_digest: bytes, vector_digest: bytes) -> None:
        """Store an idempotency key for the answer to its vector, without a ledger entry.

        Args:
            key_digest: the keyed digest of an idempotency key that is not stored yet, 32 bytes.
            vector_digest: the keyed digest of an answered vector, 32 bytes.

        """
        self._key_rows.append(
            {
                "release_number": self._release_number,
                "key_digest": key_digest,
                "vector_digest": vector_digest,
                "mark": self._digests.of_kept_key(
                    key_digest, vector_digest, release_number=self._release_number
                ),
            }
        )

    def put_private(self, name: str, body: bytes) -> str:
        """Store a private value permanently, and return its keyed hash.

        Private values (secrets, models, noise) are stored in the database, and ledger entries
        contain their keyed hashes.

        The hash belongs in ``private_digests`` of the event that follows in this transaction. The
        first private value of a release must be ``release-secret``.

        Args:
            name: a name of lower-case letters, digits and hyphens that the release has not used
                yet.
            body: the value, at most ``PRIVATE_BODY_BYTES_MAX`` bytes.

        Raises:
            InvariantError: the name is malformed or already used, or the body is too large.
            LedgerUnavailableError: the database refused the write.

        """
        invariant(_NAME.fullmatch(name) is not None, "private state has a name of plain letters")
        invariant(len(body) <= PRIVATE_BODY_BYTES_MAX, "a piece of private state is too large")
        digest = private_digest(self._secret_for(name, body), name=name, body=body)
        row = {"release_number": self._release_number, "name": name, "digest": digest, "body": body}
        self._in_database(self._connection.execute, _INSERT_PRIVATE, row)
        self._unbound[name] = digest
        return digest

    def put_beside(self, name: str, body: bytes) -> None:
        """Store a private value that no ledger entry mentions, such as a pending erasure request.

        Raises:
            InvariantError: the name is already used, or is not the name of such a value.
            LedgerUnavailableError: the database refused the write.

        """
        invariant(is_beside_entries(name), "no entry binds a request or a tombstone")
        self.put_private(name, body)
        del self._unbound[name]

    def beside(self, prefix: str) -> dict[str, bytes]:
        """Return the private values outside the ledger's entries whose names begin with a prefix.

        Raises:
            LedgerCorruptError: a value is altered.
            LedgerUnavailableError: the database cannot be read.

        """
        return self._in_database(read_beside, self._connection, self._release_number, prefix)

    def delete_beside(self, names: Collection[str]) -> None:
        """Delete private values that no ledger entry mentions.

        Raises:
            InvariantError: a ledger entry mentions one of the values.
            LedgerUnavailableError: the database refused the deletion.

        """
        invariant(all(map(is_beside_entries, names)), "what an entry binds is not deleted alone")
        self._in_database(delete_private, self._connection, self._release_number, names)

    def send(self, messages: Sequence[Sealed]) -> None:
        """Send messages to other servers, which get them once this transaction is committed.

        Raises:
            LedgerUnavailableError: the database refused the write.

        """
        if messages:
            self._in_database(fetch_all, self._connection, *notifying(messages))

    def finish(self) -> None:
        """Write the remaining rows, and check that the transaction is complete.

        Raises:
            InvariantError: no entry mentions a private value that was stored.
            LedgerUnavailableError: an earlier write failed, or this one does.

        """
        if self._failed:
            raise LedgerUnavailableError(UNAVAILABLE)
        invariant(not self._unbound, "every piece of private state is bound by an entry")
        invariant(self._state.is_finished, "what an entry makes due is in its transaction")
        if self._key_rows:
            self._in_database(self._connection.execute, _INSERT_KEYS, self._key_rows)

    def note_its_failure(self) -> None:
        """Record, after the transaction failed, whether the connection was lost."""
        self.was_cut_off = is_cut_off(self._connection)

    def _in_database(
        self, function: Callable[Given, ResultT], *values: Given.args, **named: Given.kwargs
    ) -> ResultT:
        """Call what reads or writes; after a failure nothing of this transaction is committed."""
        failed_before, self._failed = self._failed, True
        try:
            result = function(*values, **named)
        except Exception as error:
            translate(error)
            raise
        self._failed = failed_before
        return result

    def _bind(self, following: LedgerState) -> None:
        """Check that an event binds exactly the private state put before it."""
        known = self._state.private_digests
        if following.private_digests is known:
            return
        bound = {
            name: digest for name, digest in following.private_digests.items() if name not in known
        }
        invariant(
            not bound or bound == self._unbound, "an entry binds the private state put before it"
        )
        if bound:
            self._unbound = {}

    def _secret_for(self, name: str, body: bytes) -> bytes:
        if name == RELEASE_SECRET:
            self._release_secret = body
        if self._release_secret is None:
            row = self._in_database(
                read_private, self._connection, self._release_number, RELEASE_SECRET
            )
            invariant(row is not None, "the release's secret is put before other private state")
            self._release_secret = None if row is None else row.body
        return self._release_secret or b""


def _released(
    vector_digests: Sequence[bytes],
    answers: Sequence[RecordedAnswer],
    generations: Generations | None,
) -> AnswersReleased | ScoresReleased:
    """Return the entry of a range, whose answers all have scores or all have none."""
    labels = AnswersReleased(
        first_query_id=answers[0].query_id,
        digests=public_digests(vector_digests),
        labels=[each.label for each in answers],
        stable=[each.stable for each in answers],
    )
    precisions = [each.precision for each in answers if each.precision is not None]
    if not precisions and generations is not None:
        return AnswersReleased2(**structs.asdict(labels), active=generations.active_set)
    if not precisions:
        return labels
    invariant(len(precisions) == len(answers), "an entry has labels or scores")
    return ScoresReleased(
        **structs.asdict(labels),
        precisions=precisions,
        bins=[each.bin_index for each in answers],
        shifted=[bool(each.bin_shifted) for each in answers],
        units=[each.units or 0 for each in answers],
    )
