"""The main function for a batch of queries: look up, vote, decide and commit, on the writer thread.

The steps of a query have one name in code, docs, logs and crash tests: :class:`Step`. This module
runs the steps ``REPLAY`` (look up recorded answers), ``VOTE`` (count the models' votes), ``STEP``
(decide on each query with noise) and ``COMMIT``; ``VALIDATE`` is in
``app.data.vectors_and_schema``, and ``ENQUEUE`` and ``RESPOND`` are in ``app.answering.writer``. No
value that depends on the votes leaves this module before its transaction has committed. A decision
on a query is its new or recorded answer, a refusal, or the choice to leave the query to the
published classifier.

An observer is a function that is called before and after each step; traces and crash tests use one.

The module also keeps answers whose commit failed, and decides whether a client can have learned
anything about these answers from the failure.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import structlog

from app.answering.asked_vectors import AskedVectors
from app.answering.batch_decisions import Batch, key_limit_refusal
from app.answering.hourly_counts import SECONDS_BOUNDS, Buckets
from app.answering.queries import NO_QUERIES, IdentifiedQueries
from app.answering.replays import RecentReplays
from app.data.vectors import encode_keys
from app.errors import ContainedError, IntegrityError, UnavailableError, UncountedDrawsError
from app.ledger.api_key_counts import NOTHING
from app.ledger.entries.digests import cell_key
from app.ledger.entries.entry_kinds import ReleaseHalted, ThresholdRefreshed
from app.noise.system import drawn_ahead
from app.privacy.voting import query_decision
from app.privacy.voting.tallies import PrivateValues, private_tallies
from app.release.private_state import put_pieces, threshold_noise_piece
from app.release.terms.answer_time_padding import wait_for_multiple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.answering.batch_decisions import Decision
    from app.answering.queries import Asker, Fresh, Queries
    from app.answering.replays import Records, ReplayIndex
    from app.ledger.api_key_counts import KeyCount
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger, Transaction
    from app.noise.source import NoiseSource
    from app.privacy.voting.query_decision import Phase
    from app.release.release import Release


class Step(StrEnum):
    """The steps of answering a query, in order; see ``docs/life-of-a-query.md``."""

    VALIDATE = "validate"
    REPLAY = "replay"
    ENQUEUE = "enqueue"
    VOTE = "vote"
    STEP = "step"
    COMMIT = "commit"
    RESPOND = "respond"


class Edge(StrEnum):
    """The side of a step, before or after it, at which an observer is called."""

    BEFORE = "before"
    AFTER = "after"


Observer = Callable[[Step, Edge], None]
"""Called on both sides of a step: crash tests kill the process in it."""


def observe_nothing(step: Step, edge: Edge) -> None:
    """Do nothing before and after a step of a query; this is the default observer."""
    del step, edge


class Undelivered(NamedTuple):
    """New answers of a batch whose commit failed or is still in progress.

    Attributes:
        fresh: the new answers, as they were drawn; empty if every new answer is known to be
            committed.
        transaction: the last transaction that should have recorded the answers.
        was_refused: whether the database may have refused an earlier transaction because of the
            answers that it would have written.

    """

    fresh: Sequence[Fresh] = ()
    transaction: Transaction | None = None
    was_refused: bool = False

    def followed_by(self, fresh: Sequence[Fresh], transaction: Transaction) -> Undelivered:
        """Return the new answers that stay unrecorded if the commit of ``transaction`` fails."""
        was_refused = bool(self.fresh) and not self.left_no_trace
        return Undelivered(fresh, transaction, was_refused)

    @property
    def may_be_recorded(self) -> bool:
        """Whether the last commit may have succeeded although the database reported an error."""
        return self.transaction is not None and self.transaction.may_be_committed

    @property
    def left_no_trace(self) -> bool:
        """Whether no client can have seen anything that depends on the unrecorded answers.

        If the connection to the database was lost, nobody has seen anything of these answers, so
        they can be drawn again at no further charge. A database that refuses a statement, for
        example because its disk is full, may have refused it because of the size of the answers,
        and clients have seen this refusal.
        """
        if self.was_refused:
            return False
        return self.transaction is None or self.transaction.was_cut_off


NOTHING_UNDELIVERED: Final = Undelivered()
log = structlog.get_logger("conclave.service")

FAILED_AFTER_VOTE: Final = "an internal failure after votes were cast"
NOT_COUNTED: Final = "answers that the database refused could not be counted"
READ_AT_ONCE_MAX: Final = 10_000
"""Answers that are read into memory together; of more, each is looked up when it is asked."""

CONTAINED: Final = "the release has stopped after an internal failure; its operator must restart it"


BeforeCommit: TypeAlias = (
    "Callable[[Transaction, Sequence[Decision], Mapping[str, KeyCount]], None]"
)
"""Called in a transaction with its decisions, and with the counts of the keys that asked."""


def do_nothing(
    transaction: Transaction, decisions: Sequence[Decision], counts: Mapping[str, KeyCount]
) -> None:
    """Do nothing before a commit; used where no other server waits for the decisions."""
    del transaction, decisions, counts


class QueryAnswerer:
    """The object that answers batches of queries; it keeps newest answers and counts in memory."""

    def __init__(
        self,
        release: Release,
        noise: NoiseSource,
        observe: Observer = observe_nothing,
        *,
        padding_seconds: float = 0.0,
    ) -> None:
        """Take over an open release and read its recorded answers.

        Args:
            release: the open release whose models answer.
            noise: the source of randomness for answers.
            observe: a function that is called before and after every step.
            padding_seconds: the duration of every evaluation of votes is padded to a multiple of
                this time.

        """
        self.release = release
        self.replays = RecentReplays()
        self.asked = AskedVectors(are_kept=release.state.decides_cells)
        self.commit_seconds = Buckets(SECONDS_BOUNDS)
        self._noise = noise
        self._padding_seconds = padding_seconds
        self._has_voted = False  # in the batch that is under way, or was last
        self.key_counts: dict[str, KeyCount] = dict(release.ledger.key_counts())
        self._undelivered = NOTHING_UNDELIVERED
        self._untold: deque[dict[str, int | str]] = deque()  # committed, and not logged yet
        self.observe = observe
        self._read_replays(release.ledger, answered_before=0, answered=release.state.answered)
        self._read_asked(release.ledger, asked_before=0, asked=release.state.asked)

    @property
    def has_undelivered(self) -> bool:
        """Whether answers were drawn that are not known to be committed."""
        return bool(self._undelivered.fresh)

    @property
    def phase(self) -> Phase:
        """The release's phase by its committed counts: ensemble, classifier or halted."""
        return self.release.phase

    def answer_batch(
        self, queries: IdentifiedQueries, before_commit: BeforeCommit = do_nothing
    ) -> Sequence[Decision]:
        """Return the decisions on ``queries``, in order, after committing them in one transaction.

        Args:
            queries: the queries of the batch, with the keyed hashes of their vectors.
            before_commit: a function that is called inside the transaction, as its last step.

        Raises:
            LedgerUnavailableError: no answer was released; try again.
            IntegrityError: the release must stop serving.

        """
        try:
            if self._undelivered.fresh:
                # That a commit failed may tell of its draws, by their size on a full
                # disk: they are recorded, and count, before anything new is drawn.
                self._answer_batch(NO_QUERIES)
            return self._answer_batch(queries, before_commit)
        except UncountedDrawsError:
            self._halt(NOT_COUNTED)
            raise
        except (UnavailableError, IntegrityError):
            raise
        except Exception:  # noqa: BLE001 -- containment: whatever it says may be private
            if self._has_voted:  # that they failed may tell of them
                self._halt(FAILED_AFTER_VOTE)
            raise ContainedError(CONTAINED) from None

    def _halt(self, reason: str) -> None:
        """Halt the release for good, for every server of it and every later start.

        Started anew it would fail again, and once more for every restart.  Where the
        ledger takes no entry the process stops all the same.
        """
        try:
            with self.release.ledger.transaction() as transaction:
                if transaction.state.halted is None:
                    transaction.append(ReleaseHalted(reason=reason))
        except Exception as error:  # noqa: BLE001 -- containment: whatever it says may be private
            log.error("halt_not_recorded", error=type(error).__name__)  # noqa: TRY400 -- nor its trace

    def _answer_batch(
        self, queries: IdentifiedQueries, before_commit: BeforeCommit = do_nothing
    ) -> Sequence[Decision]:
        self._has_voted = False
        with self.release.ledger.transaction() as transaction:
            self._adopt_newer(transaction.state, transaction)
            replays = self._replay(transaction, queries)
            counts = self._key_counts(transaction, queries)
            private_values = self._vote(unknown_of(queries, replays, counts))
            batch, decisions = self._step(queries, private_values, replays, counts)
            self._undelivered = self._undelivered.followed_by(batch.fresh, transaction)
            self._append(transaction, batch)
            before_commit(transaction, decisions, counts | batch.key_counts)
            self.observe(Step.COMMIT, Edge.BEFORE)
            started = time.monotonic()
        self.commit_seconds.add(time.monotonic() - started)
        self._undelivered = NOTHING_UNDELIVERED
        self.observe(Step.COMMIT, Edge.AFTER)
        self._adopt(transaction, batch)
        return decisions

    def identify(self, queries: Queries) -> IdentifiedQueries:
        """Return the queries with the keyed hashes under which their answers are recorded."""
        digests, vectors, keys = self.release.digests, queries.vectors, queries.idempotency_keys
        splits, usual = self.release.decided_cells, self.release.precision
        precisions: list[int | None] = [None] * len(vectors)
        if usual is None:
            posted_digests = digests.of_vectors(vectors)
        else:
            precisions = [usual if each is None else each for each in queries.precisions]
            posted_digests = list(map(digests.of_question, vectors, precisions))
        vector_digests, kept = posted_digests, vectors
        if splits is not None:
            cells = splits.places(encode_keys(self.release.schema, vectors))
            kept = list(map(cell_key, cells.tolist()))
            vector_digests = list(map(digests.of_cell, kept))
        key_digests = [None if key is None else digests.of_key(key) for key in keys]
        return IdentifiedQueries(
            vectors,
            keys,
            precisions,
            queries.askers,
            vector_digests,
            key_digests,
            posted_digests,
            kept,
        )

    def recorded(
        self,
        queries: IdentifiedQueries,
        records: Records,
        *,
        further_vectors: Sequence[bytes] = (),
    ) -> ReplayIndex:
        """Return all recorded answers to the vectors and idempotency keys of ``queries``.

        Args:
            queries: the queries, with the keyed hashes of their vectors.
            records: the ledger, or the open transaction of the batch.
            further_vectors: keyed hashes of further vectors to look up.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            LedgerCorruptError: a recorded answer cannot be decoded.

        """
        return self.replays.among(
            vector_digests=[*queries.vector_digests, *further_vectors],
            key_digests=[key for key in queries.key_digests if key is not None],
            records=records,
        )

    def _replay(self, transaction: Transaction, queries: IdentifiedQueries) -> ReplayIndex:
        """Look up what is recorded, of undelivered answers too, under the write lock."""
        self.observe(Step.REPLAY, Edge.BEFORE)
        undelivered = [each.vector_digest for each in self._undelivered.fresh]
        replays = self.recorded(queries, transaction, further_vectors=undelivered)
        self.observe(Step.REPLAY, Edge.AFTER)
        return replays

    def _key_counts(
        self, transaction: Transaction, queries: IdentifiedQueries
    ) -> dict[str, KeyCount]:
        """Read under the write lock what the askers' keys were given; without keys, nothing."""
        if not (self._undelivered.fresh or any(queries.askers)):
            return {}
        askers = {*queries.askers, *(each.asker for each in self._undelivered.fresh)}
        names = {asker.name for asker in askers if asker is not None}
        if not names:
            return {}
        counts = transaction.key_counts(names)
        self.key_counts.update(counts)  # a commit of unknown outcome may have counted
        return counts

    def _vote(self, unknown: IdentifiedQueries) -> PrivateValues:
        """Evaluate every model on every vector, or vector with a precision, without an answer."""
        self.observe(Step.VOTE, Edge.BEFORE)
        private_values = PrivateValues()
        if unknown and self.release.phase is query_decision.Phase.ENSEMBLE:
            started, self._has_voted = time.monotonic(), True
            values = encode_keys(self.release.schema, unknown.vectors)
            tallies = private_tallies(self.release.ensemble, values, unknown.precisions)
            private_values = PrivateValues(unknown.vector_digests, tallies)
            if self._padding_seconds:
                wait_for_multiple(self._padding_seconds, started=started)
        self.observe(Step.VOTE, Edge.AFTER)
        return private_values

    def _step(
        self,
        queries: IdentifiedQueries,
        private_values: PrivateValues,
        replays: ReplayIndex,
        key_counts: dict[str, KeyCount],
    ) -> tuple[Batch, Sequence[Decision]]:
        self.observe(Step.STEP, Edge.BEFORE)
        batch = Batch(
            parameters=self.release.mechanism,
            state=self.release.answering_state,
            replays=replays,
            private_values=private_values,
            noise=drawn_ahead(self._noise, len(private_values)),
            key_counts=key_counts,
            asked_before=self.asked,
        )
        undelivered = self._undelivered
        if undelivered.fresh:
            batch.restore(
                undelivered.fresh,
                left_no_trace=undelivered.left_no_trace,
                may_be_recorded=undelivered.may_be_recorded,
            )
        decisions = batch.decide(queries)
        self.observe(Step.STEP, Edge.AFTER)
        return batch, decisions

    def _append(self, transaction: Transaction, batch: Batch) -> None:
        """Put the batch's entry, answers and keys into the open transaction."""
        if batch.fresh:
            columns = batch.fresh.columns
            transaction.record_columns(columns.vector_digest, columns.kept, columns.recorded)
            self._append_threshold(transaction, batch)
        if batch.asked:
            transaction.record_asked(list(batch.asked.values()))
        if batch.key_counts:
            transaction.keep_key_counts(batch.key_counts)
        for key_digest, posted_digest in batch.new_keys.items():
            transaction.record_key(key_digest, posted_digest)

    def _append_threshold(self, transaction: Transaction, batch: Batch) -> None:
        """Put the noise that a hit drew for the threshold beside the answers that it follows."""
        state, mechanism = batch.state, self.release.mechanism
        if state.unstable_count != self.release.state.unstable and mechanism.is_refreshed:
            piece = threshold_noise_piece(state.unstable_count, state.private_threshold_noise)
            transaction.append(ThresholdRefreshed(private_digests=put_pieces(transaction, piece)))

    def _adopt(self, transaction: Transaction, batch: Batch) -> None:
        """Make committed answers visible in memory.

        The phase comes last: whoever sees that it has changed finds every
        answer that was given before.
        """
        self.replays.add_all(batch.fresh_by_vector)
        if batch.new_keys:
            self.replays.add_keys(batch.new_keys.items())
        if batch.asked:
            self.asked.add(batch.asked)
        if batch.key_counts:
            self.key_counts.update(batch.key_counts)
        self.release.adopt(transaction.state)
        if batch.fresh:
            self._log_later(batch)

    def _log_later(self, batch: Batch) -> None:
        """Queue the log line of a batch, to be written after its answers are sent."""
        self._untold.append(
            {
                "count": len(batch.fresh),
                "first_query_id": batch.fresh.columns.recorded[0].query_id,
                "last_query_id": batch.fresh.columns.recorded[-1].query_id,
                "entry_number": self.release.state.head.sequence,
                "phase": str(self.release.phase),
            }
        )

    def tell_committed(self) -> None:
        """Write log lines for the batches committed since the last call; callable on any thread."""
        tell = log.bind().info  # once for all lines: the logger is bound anew at every use
        while self._untold:
            tell("answers_committed", **self._untold.popleft())

    def follow(self) -> bool:
        """Read ledger entries that other processes have committed; return whether there were any.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: the release must stop serving.

        """
        ledger = self.release.ledger
        has_changed = self._adopt_newer(ledger.read_state(), ledger)
        if has_changed:
            self.key_counts.update(ledger.key_counts())
        return has_changed

    def _adopt_newer(self, state: LedgerState, records: Ledger | Transaction) -> bool:
        """Adopt the entries of another process, or of a commit of unknown outcome."""
        known = self.release.state
        if state.head == known.head:
            return False
        self._read_replays(records, answered_before=known.answered, answered=state.answered)
        self._read_asked(records, asked_before=known.asked, asked=state.asked)
        self.release.adopt(state)
        return True

    def _read_replays(
        self, records: Ledger | Transaction, *, answered_before: int, answered: int
    ) -> None:
        """Read the answers after number ``answered_before``, unless they are looked up."""
        if self.replays.lacks_answers:
            return
        if answered - answered_before > READ_AT_ONCE_MAX:
            self.replays.leave_out_answers()
            return
        for row in records.answers_after(answered_before):
            self.replays.add(row.vector_digest, row.answer)

    def _read_asked(self, records: Ledger | Transaction, *, asked_before: int, asked: int) -> None:
        """Read the vectors asked after number ``asked_before``; at most a named number."""
        if asked > asked_before:
            vectors = [each.vector for each in records.asked_after(asked_before)]
            self.asked.add(self.release.digests.of_vectors(vectors))


def unknown_of(
    queries: IdentifiedQueries, replays: ReplayIndex, counts: Mapping[str, KeyCount]
) -> IdentifiedQueries:
    """Return the queries, one per distinct vector, that have no recorded answer yet.

    The queries of an API key that has reached its limit of answers are left out, because they will
    be refused and no votes are needed for them.
    """
    digests = queries.vector_digests
    askers = filter(None, set(queries.askers))
    at_limit = {asker for asker in askers if _is_at_limit(asker, counts)}
    if not (at_limit or replays.has_any(digests)) and len(set(digests)) == len(digests):
        return queries  # as most are
    places: dict[bytes, int] = {}
    for place, digest in enumerate(digests):
        if queries.askers[place] not in at_limit and replays.find_by_vector(digest) is None:
            places.setdefault(digest, place)
    return queries.at(list(places.values()))


def _is_at_limit(asker: Asker, counts: Mapping[str, KeyCount]) -> bool:
    return key_limit_refusal(asker, counts.get(asker.name, NOTHING)) is not None
