"""Answers to queries in a release to which rows are added, so that the voting models change.

An unstable answer is charged to every generation that voted, and a generation whose budget is used
up by this answer stops voting. The votes on all later queries of the batch are then counted again
without this generation, with new random noise, and are recorded as answers of another set of
generations.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import structlog

from app.answering.answer_query import (
    NOTHING_UNDELIVERED,
    Edge,
    QueryAnswerer,
    Step,
    Undelivered,
    do_nothing,
    unknown_of,
)
from app.answering.batch_decisions import Batch
from app.answering.queries import NO_QUERIES
from app.data.vectors import encode_keys
from app.errors import InvariantError, UncountedDrawsError
from app.ledger.entries.entry_kinds import GenerationRetired
from app.ledger.entries.generations import generations_of
from app.noise.system import drawn_ahead
from app.privacy.voting.query_decision import Phase
from app.privacy.voting.tallies import PrivateValues, private_tallies
from app.release.generations.generations_release import LivingRelease
from app.release.generations.tick import NotFittedError
from app.release.terms.answer_time_padding import padding_seconds, wait_for_multiple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.answering.answer_query import BeforeCommit
    from app.answering.batch_decisions import Decision
    from app.answering.queries import Fresh, IdentifiedQueries
    from app.answering.replays import ReplayIndex
    from app.ledger.api_key_counts import KeyCount
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Transaction
    from app.release.generations.tick import Ticker

log = structlog.get_logger("conclave.service")


class Run(NamedTuple):
    """New answers by one fixed set of voting models; ``active_set`` is that set's number."""

    active_set: int
    fresh: Sequence[Fresh]


class LivingAnswerer(QueryAnswerer):
    """The object that answers batches of queries in a release that accepts further rows."""

    _undelivered_runs: Sequence[Run] = ()

    def tick(self, ticker: Ticker) -> None:
        """Make the scheduled update (tick) if it is due, after recording every earlier answer.

        Raises:
            LedgerUnavailableError: nothing was written to the ledger; try again.
            IntegrityError: the release must stop serving.
            NotFittedError: a generation is due to join whose models are not trained yet.

        """
        if self._undelivered.fresh:
            self.answer_batch(NO_QUERIES)
        answered = self.release.state.answered
        try:
            ticker.tick(self.living)
        except NotFittedError:
            log.error("generation_not_fitted")  # noqa: TRY400 -- its trace tells of the fit
            raise
        if self.release.state.answered != answered:  # by another server, before the tick
            self.replays.leave_out_answers()

    def follow(self) -> bool:
        """Read ledger entries that other processes have committed; return whether there were any.

        The private rows are read under the ledger's write lock, so that no other process makes a
        scheduled update (tick), which may delete them, in the meantime.
        """
        if self.release.ledger.read_state().head == self.release.state.head:
            return False
        with self.release.ledger.transaction() as transaction:
            has_changed = self._adopt_newer(transaction.state, transaction)
        self.key_counts.update(self.release.ledger.key_counts())
        return has_changed

    @property
    def living(self) -> LivingRelease:
        """The served release, which accepts further rows."""
        if not isinstance(self.release, LivingRelease):
            raise InvariantError("the release takes generations")
        return self.release

    def _answer_batch(
        self, queries: IdentifiedQueries, before_commit: BeforeCommit = do_nothing
    ) -> Sequence[Decision]:
        self._has_voted = False
        before, earlier = self._undelivered, list(self._undelivered_runs)
        decisions: list[Decision] = []
        batches: list[Batch] = []
        runs: list[Run] = []
        with self.release.ledger.transaction() as transaction:
            self._adopt_newer(transaction.state, transaction)
            replays = self._replay(transaction, queries)
            counts = dict(self._key_counts(transaction, queries))
            for batch, decided in self._runs(transaction, queries, replays, counts, earlier):
                decisions += decided
                batches.append(batch)
                active_set = generations_of(transaction.state.generations).active_set
                runs.append(Run(active_set, batch.fresh))
                # Those of a failed commit that are not appended again yet are kept too.
                self._undelivered_runs = [*runs, *earlier]
                drawn = [each for run in self._undelivered_runs for each in run.fresh]
                self._undelivered = before.followed_by(drawn, transaction)
                self._append(transaction, batch)
                _retire(transaction)
            before_commit(transaction, decisions, counts)
            self.observe(Step.COMMIT, Edge.BEFORE)
            started = time.monotonic()
        self.commit_seconds.add(time.monotonic() - started)
        self._undelivered, self._undelivered_runs = NOTHING_UNDELIVERED, ()
        self.observe(Step.COMMIT, Edge.AFTER)
        for batch in batches:
            self._adopt(transaction, batch)
        return decisions

    def _runs(
        self,
        transaction: Transaction,
        queries: IdentifiedQueries,
        replays: ReplayIndex,
        counts: dict[str, KeyCount],
        earlier: list[Run],
    ) -> Iterator[tuple[Batch, Sequence[Decision]]]:
        """Yield a batch for each set of generations, with its decisions; whoever takes it appends.

        Draws whose commit failed come first, each under the set that it was drawn with; a run of
        them leaves ``earlier`` when its turn comes.
        """
        undelivered = self._undelivered
        while earlier:
            run = earlier.pop(0)
            is_voting = run.active_set == generations_of(transaction.state.generations).active_set
            is_lost = any(map(replays.lacks, (each.vector_digest for each in run.fresh)))
            if is_lost and not is_voting:
                if undelivered.left_no_trace:
                    earlier.clear()
                    break  # as after a crash, they are drawn again, by whoever votes now
                raise UncountedDrawsError
            batch = self._batch(transaction.state, NO_QUERIES, replays, counts)
            batch.restore(
                run.fresh,
                left_no_trace=undelivered.left_no_trace,
                may_be_recorded=undelivered.may_be_recorded,
            )
            if is_lost:
                _refuse_lost_hits(run, batch, replays, undelivered)
                yield self._note(batch, replays, counts), ()
        rest = queries
        while rest:
            batch = self._batch(transaction.state, rest, replays, counts)
            decided = batch.decide(rest, until_spent=True)
            self.observe(Step.STEP, Edge.AFTER)
            rest = rest.part(len(decided), len(rest))
            yield self._note(batch, replays, counts), decided

    def _batch(
        self,
        state: LedgerState,
        rest: IdentifiedQueries,
        replays: ReplayIndex,
        counts: dict[str, KeyCount],
    ) -> Batch:
        """Return a batch by the votes of those generations that are active in ``state``."""
        private_values = self._vote_at(state, unknown_of(rest, replays, counts))
        self.observe(Step.STEP, Edge.BEFORE)
        return Batch(
            parameters=self.release.mechanism,
            state=self.living.counters_at(state),
            replays=replays,
            private_values=private_values,
            noise=drawn_ahead(self._noise, len(private_values)),
            key_counts=counts,
            phase=self.release.phase_at(state),
        )

    def _vote_at(self, state: LedgerState, unknown: IdentifiedQueries) -> PrivateValues:
        """Evaluate every model that votes in ``state`` on every vector without an answer."""
        self.observe(Step.VOTE, Edge.BEFORE)
        private_values = PrivateValues()
        if unknown and self.release.phase_at(state) is Phase.ENSEMBLE:
            started, self._has_voted = time.monotonic(), True
            values = encode_keys(self.release.schema, unknown.vectors)
            ensemble = self.living.ensemble_at(state)
            tallies = private_tallies(ensemble, values, unknown.precisions)
            private_values = PrivateValues(unknown.vector_digests, tallies)
            constant = padding_seconds(self.release.configuration.settings, state.votes)
            wait_for_multiple(constant, started=started)
        self.observe(Step.VOTE, Edge.AFTER)
        return private_values

    def _note(self, batch: Batch, replays: ReplayIndex, counts: dict[str, KeyCount]) -> Batch:
        """Let the rest of the queries find what a run has answered."""
        for vector_digest, recorded in batch.fresh_by_vector.items():
            replays.add(vector_digest, recorded)
        replays.add_keys(batch.new_keys.items())
        counts.update(batch.key_counts)
        return batch


def _refuse_lost_hits(
    run: Run, batch: Batch, replays: ReplayIndex, undelivered: Undelivered
) -> None:
    """Refuse to go on where a hit that somebody may know of cannot be charged any more."""
    if undelivered.left_no_trace:
        return
    for fresh in run.fresh:
        is_lost = replays.lacks(fresh.vector_digest)
        if is_lost and fresh.vector_digest not in batch.fresh_by_vector and fresh.hit_count:
            raise UncountedDrawsError


def _retire(transaction: Transaction) -> None:
    """Retire every generation that has used its account up; its private state goes with it."""
    while spent := generations_of(transaction.state.generations).spent:
        active = generations_of(transaction.state.generations).active_set + 1
        transaction.append(
            GenerationRetired(number=spent[0].number, reason="cutoff", active=active)
        )
