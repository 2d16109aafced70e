"""The service of one open release: the interface that the HTTP layer uses.

A hypothesis is a rule that gives each row one of two outcomes. The statistics of a release are the
fractions of its rows to which a hypothesis gives each outcome. They are read from one table of
noisy counts of rows, which is drawn once.

In a release with scores, an answer is one of the equal intervals (bins) into which the scores are
divided. A decision on a query is its new or recorded answer, a refusal, or the choice to leave the
query to the published classifier.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from app.answering.answers import Answer, answer_of, answers_for, classified_as, in_turn
from app.answering.batch_decisions import DEFERRED, EXHAUSTED, WAITING, Deferred
from app.answering.generations.generations_answerer import LivingAnswerer
from app.answering.generations.tick_clock import TickClock
from app.answering.hourly_counts import (
    CLASSIFIED,
    FRESH,
    REPEATED,
    AnswerCounts,
    Changes,
    Hourly,
    Workload,
)
from app.answering.outlook.outlook import Outlook
from app.answering.queries import Fresh, Relayed
from app.answering.queue import all_decisions, decisions_of
from app.answering.replays import AnswerSource, answer_source
from app.answering.replicas.other_servers import Abreast
from app.answering.writer import SWITCHING, Writer
from app.data.vectors import decode_key
from app.errors import (
    BudgetExhaustedError,
    IdempotencyConflictError,
    IntegrityError,
    NoStatisticsError,
    StatisticsNotOpenError,
    SwitchingError,
    UnavailableError,
    WaitingError,
)
from app.ledger.api_key_counts import NOTHING
from app.ledger.disk_and_backups import read_storage
from app.privacy.budget.composition import Mechanism
from app.privacy.voting.query_decision import Phase
from app.release.classifier.export_formats import PublishedForms
from app.release.statistics.posted_hypotheses import parse_hypotheses
from app.release.statistics.released_table import released_statistics
from app.release.views.budget import Budget as Budget  # noqa: PLC0414 -- HTTP names it here
from app.release.views.budget import budget_view
from app.release.views.parameters_in_words import explained

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from app.answering.answer_query import QueryAnswerer
    from app.answering.answers import Told
    from app.answering.queries import IdentifiedQueries, Queries
    from app.answering.queue import Decisions, Pending, Recipient
    from app.answering.replays import RecentReplays, ReplayIndex
    from app.answering.replicas.forwarding import Forwarding
    from app.data.schema import Schema
    from app.ledger.api_key_counts import KeyCount
    from app.ledger.disk_and_backups import Storage
    from app.release.generations.tick import Ticker
    from app.release.statistics.released_table import ReleasedStatistics, StatisticsAnswer

ToldT = TypeVar("ToldT", bound="Sequence[Told]")
SUBJECT_PREFIX = "oidc:"
NO_STATISTICS = "this release has no share for statistics"
STATISTICS_NOT_OPEN = (
    "the statistics table is not open yet; it opens after the ensemble's last answer, or by "
    "`conclave statistics` before the first"
)


class ConclaveService:
    """The service of one release: answers to queries, and views of the public state."""

    def __init__(
        self,
        answerer: QueryAnswerer,
        *,
        switch: Callable[[], None],
        open_statistics: Callable[[], None],
        on_stop: Callable[[IntegrityError], None],
        pending_queries_max: int,
        ticker: Ticker | None = None,
        wall_clock: Callable[[], float] = time.time,
        forwarding: Forwarding | None = None,
    ) -> None:
        """Connect the writer thread with an answerer, and with a clock if rows may be added."""
        self._answerer = answerer
        self._release = answerer.release
        self._on_stop = on_stop
        self._forms = PublishedForms(self._release)
        self._changes = Changes()
        self._answer_counts = AnswerCounts()
        self._outlook = Outlook(self._release)
        self._hourly = Hourly(self._release.ledger, wall_clock)
        self._statistics: ReleasedStatistics | None = None
        self._answering_statistics = asyncio.Lock()
        self._writer = Writer(
            answerer=answerer,
            switch=switch,
            open_statistics=open_statistics,
            on_change=self._changes.notify,
            on_stop=self._stop,
            pending_queries_max=pending_queries_max,
            forwarding=forwarding,
        )
        self._abreast = Abreast(answerer, self._writer)
        self._clock: TickClock | None = None
        if ticker is not None and isinstance(answerer, LivingAnswerer):
            self._clock = TickClock(answerer, self._writer, ticker)

    @property
    def schema(self) -> Schema:
        """The public schema of the release's features and labels."""
        return self._release.schema

    @property
    def release_name(self) -> str:
        """The release's name, which is also the model's name in protocols of model servers."""
        return self._release.name

    @property
    def precision(self) -> int | None:
        """The default number of score bins; None if answers are labels only."""
        return self._release.precision

    def start(self) -> None:
        """Start the writer on the running event loop, and start counting its answers."""
        self._writer.start()
        self._outlook.start(self._changes)
        self._hourly.start()
        if self._clock is not None:
            self._clock.start()

    def drain(self) -> None:
        """Accept no further queries; queued queries are still answered."""
        self._writer.drain()

    async def close(self) -> None:
        """Answer the queued queries, stop the writer, and end every stream of budget events."""
        if self._clock is not None:
            self._clock.close()
        await self._writer.close()
        self._changes.close()
        await self._outlook.close()
        await self._hourly.close()

    async def answer_many(self, queries: Queries) -> list[Told]:
        """Return the answers to ``queries`` in order, with an error in place of a refused answer.

        Raises:
            IntegrityError: the release has stopped.

        """
        if self._are_classified(queries):
            return self._classify(queries.vectors)
        identified = self._answerer.identify(queries)
        known = await self._answers_without_writer(identified)
        if len(known) == len(identified):
            return self._counted([known[place] for place in range(len(known))])
        if not known:
            decisions = await all_decisions(self._writer.enqueue(identified))
            told = answers_for(decisions, identified.vectors, self.schema, self._classify)
            return self._counted(told)
        parts = self._parts(identified, known)
        return self._counted([result async for part in parts for result in part])

    def answer_at_once(self, queries: Queries) -> Told | IdentifiedQueries | None:
        """Return the answer to one query if it is known now; else the query to enqueue, or None.

        Returns:
            The answer; or the query with its keyed hashes, to be passed to :meth:`enqueue_alone`;
            or None if only :meth:`answer_many` can decide the query.

        """
        release, memory = self._release, self._answerer.replays
        if release.classifier is not None and self._are_classified(queries):
            return self._classify(queries.vectors)[0]
        if release.phase is not Phase.ENSEMBLE:
            return None
        identified = self._answerer.identify(queries)
        if not memory.know_any(identified.key_digests, identified.vector_digests):
            return identified  # as most are
        if release.is_shared:
            return None  # what other servers have committed is read first
        told = self._answer_without_writer(identified, 0, Phase.ENSEMBLE, memory)
        if told is None:
            return identified
        return None if isinstance(told, Deferred) else self._counted([told])[0]

    def enqueue_alone(self, queries: IdentifiedQueries, recipient: Recipient) -> None:
        """Queue one query; ``recipient`` gets the decision on it.

        Raises:
            IntegrityError: the release has stopped.

        """
        self._writer.enqueue_alone(queries, recipient)

    def told_alone(self, queries: IdentifiedQueries, decisions: Decisions) -> Told:
        """Return the reply to a client that sent one query, given the decision on this query."""
        decision = decisions[0]
        if isinstance(decision, Fresh | Relayed):
            self._count(FRESH, 1, unstable=not decision.recorded.stable)
            return answer_of(decision.recorded, self._release.schema, replayed=False)
        told = answers_for(decisions, queries.vectors, self.schema, self._classify)
        return self._counted(told)[0]

    async def answer_in_turn(self, queries: Queries) -> AsyncIterator[Sequence[Told]]:
        """Yield the answers to ``queries`` in order, part by part, each as soon as it is committed.

        If the release switches to the classifier in between, the ensemble's answers do not wait for
        the classifier.

        Raises:
            IntegrityError: the release has stopped.

        """
        if self._are_classified(queries):
            yield self._classify(queries.vectors)
            return
        identified = self._answerer.identify(queries)
        known = await self._answers_without_writer(identified)
        async for part in self._parts(identified, known):
            yield self._counted(part)

    def _counted(self, told: ToldT) -> ToldT:
        """Count answers of the ensemble, new and repeated; the classifier's are counted already."""
        answers = [each for each in told if isinstance(each, Answer) and each.query_id is not None]
        fresh = [each.stable for each in answers if not each.replayed]
        if fresh:
            self._count(FRESH, len(fresh), unstable=fresh.count(False))
        if len(fresh) < len(answers):
            self._count(REPEATED, len(answers) - len(fresh))
        return told

    def _count(self, kind: str, count: int, *, unstable: int = 0) -> None:
        self._answer_counts.add(kind, count)
        self._hourly.add(kind, count, unstable=unstable)

    def note_refused(self, count: int) -> None:
        """Count refused requests, or refused lines of a stream."""
        self._hourly.add("refused", count)

    def _are_classified(self, queries: Queries) -> bool:
        """Return whether the classifier answers whatever was recorded, now and for ever."""
        is_published = self._release.classifier is not None
        return is_published and self._release.phase is Phase.CLASSIFIER and not queries.have_keys

    def _parts(
        self, queries: IdentifiedQueries, known: Mapping[int, Told]
    ) -> AsyncIterator[Sequence[Told]]:
        """Return the answers in order, those by the writer part by part."""
        if not known:
            return self._told(queries, self._writer.enqueue(queries))
        others = queries.at([place for place in range(len(queries)) if place not in known])
        pending = self._writer.enqueue(others) if others else ()
        return in_turn(known, self._told(others, pending))

    async def _told(
        self, queries: IdentifiedQueries, pending: Sequence[Pending]
    ) -> AsyncIterator[Sequence[Told]]:
        """Yield what clients are told of the writer's decisions, part by part."""
        place = 0
        async for decisions in decisions_of(pending):
            vectors = queries.vectors[place : place + len(decisions)]
            place += len(decisions)
            yield answers_for(decisions, vectors, self.schema, self._classify)

    async def _answers_without_writer(self, queries: IdentifiedQueries) -> Mapping[int, Told]:
        """Return, by index, the answers that committed state or the classifier gives."""
        # Before the look-up: whoever sees that it has changed finds every answer before.
        release = self._release
        phase = await self._abreast.phase_for(queries) if release.is_shared else release.phase
        if isinstance(phase, UnavailableError):
            return dict.fromkeys(range(len(queries)), phase)
        memory = self._answerer.replays
        if phase is Phase.ENSEMBLE and not memory.know_any(
            queries.key_digests, queries.vector_digests
        ):
            return {}  # as most are
        looked_up = _looked_up(queries, phase)
        found = await self._recorded(queries.at(looked_up)) if looked_up else memory
        known: dict[int, Told] = {}
        if isinstance(found, UnavailableError):
            known, found = dict.fromkeys(looked_up, found), memory
        deferred: list[int] = []
        for place in range(len(queries)):
            if place in known:
                continue
            result = self._answer_without_writer(queries, place, phase, found)
            if isinstance(result, Deferred):
                deferred.append(place)
            elif result is not None:
                known[place] = result
        return known | self._classified(queries, deferred) if deferred else known

    def _classified(self, queries: IdentifiedQueries, places: Sequence[int]) -> dict[int, Told]:
        """Return the classifier's answers by their place; none before it is published."""
        if self._release.classifier is None:
            return {}
        classified = self._classify([queries.vectors[place] for place in places])
        return dict(zip(places, classified, strict=True))

    async def _recorded(self, queries: IdentifiedQueries) -> ReplayIndex | UnavailableError:
        """Return what is recorded of ``queries``, in memory or in the ledger."""
        ledger = self._release.ledger
        try:
            return await asyncio.to_thread(self._answerer.recorded, queries, ledger)
        except UnavailableError as unavailable:
            return unavailable
        except IntegrityError as error:
            self._writer.stop(error)
            raise

    def _answer_without_writer(
        self,
        queries: IdentifiedQueries,
        place: int,
        phase: Phase,
        replays: ReplayIndex | RecentReplays,
    ) -> Told | Deferred | None:
        """Return what a query gets by committed state; None where the writer has to see it."""
        vector_digest, key_digest = queries.vector_digests[place], queries.key_digests[place]
        posted_digest = queries.posted_digests[place]
        try:
            by_key = replays.find_by_key(key_digest, posted_digest, vector_digest)
        except IdempotencyConflictError as conflict:
            return conflict
        by_vector = replays.find_by_vector(vector_digest)
        source = answer_source(phase, by_key=by_key, by_vector=by_vector)
        if source is AnswerSource.ENSEMBLE:
            return None
        if source is AnswerSource.CLASSIFIER:
            return DEFERRED
        if source is AnswerSource.WAITING:
            return WaitingError(WAITING)
        if source is AnswerSource.REFUSED:
            return BudgetExhaustedError(EXHAUSTED)
        # A new key on a recorded vector has to be stored before the reply, and so has a
        # new vector of a decided cell.
        is_new = key_digest is not None and by_key is None
        is_new |= phase is Phase.ENSEMBLE and self._answerer.asked.want(posted_digest)
        return None if is_new else answer_of(source, self.schema, replayed=True)

    def _classify(self, vectors: Sequence[bytes]) -> list[Told]:
        """Answer by the published classifier, which is called once for all."""
        if not vectors:
            return []
        classifier = self._release.classifier
        if classifier is None:  # they waited for one, and the ledger was closed before its draw
            return [SwitchingError(SWITCHING)] * len(vectors)
        labels = classifier.predict_many(list(map(decode_key, vectors)))
        self._count(CLASSIFIED, len(labels))
        return [classified_as(label, with_scores=self.precision is not None) for label in labels]

    # -- the public side -------------------------------------------------------

    def key_count(self, name: str) -> KeyCount:
        """Return the committed answer counts of the API key with the given name."""
        return self._answerer.key_counts.get(name, NOTHING)

    def subject_name(self, subject: str) -> str:
        """Return the pseudonym under which an access token's user is counted and logged.

        The pseudonym is a keyed hash of the token's subject, which cannot be computed without the
        ledger's secret.
        """
        return SUBJECT_PREFIX + self._release.ledger.digests.of_subject(subject)

    async def key_counts(self) -> dict[str, KeyCount]:
        """Return the answer counts of every API key by name, from all servers of the ledger.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: a count was altered, and the release has stopped.

        """
        try:
            return await asyncio.to_thread(self._release.ledger.key_counts)
        except IntegrityError as error:
            self._writer.stop(error)
            raise

    def budget(self) -> Budget:
        """Return the body of ``GET /budget`` from this server's state."""
        return budget_view(self._release)

    async def read_budget(self) -> Budget:
        """Return the body of ``GET /budget``, including entries that other servers committed.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: the ledger was altered, and the release has stopped.

        """
        return budget_view(self._release, await self._abreast.state())

    async def outlook(self) -> dict[str, object]:
        """Return the body of ``GET /budget/outlook``, a forecast of when the budget is used up.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: the entries were altered, and the release has stopped.

        """
        state = await self._abreast.state()
        try:
            return await self._outlook.document(state)
        except IntegrityError as error:
            self._writer.stop(error)
            raise

    async def history(self) -> dict[str, object]:
        """Return the body of ``GET /budget/history``: the number of queries by hour.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.

        """
        return await self._hourly.document()

    def parameters(self) -> list[dict[str, str]]:
        """Return the release's public parameters as sentences, each with its formula."""
        return [each._asdict() for each in explained(self._release)]

    async def ledger_head(self) -> dict[str, object]:
        """Return number and hash of the ledger's newest entry.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: the ledger was altered, and the release has stopped.

        """
        head = (await self._abreast.state()).head
        return {"sequence": head.sequence, "hash": head.hash}

    def noted_sequence(self) -> int | None:
        """Return the number of the ledger entry that the head file records; None without one.

        The head file is a file outside the ledger that records the ledger's newest entry.
        """
        return self._release.ledger.noted_sequence

    def workload(self) -> Workload:
        """Return the number of waiting queries, and counters of batches, commits and answers."""
        writer = self._writer
        return Workload(
            waiting=writer.waiting_count,
            waiting_max=writer.pending_queries_max,
            batch_queries=writer.batch_queries,
            commit_seconds=self._answerer.commit_seconds,
            answers=self._answer_counts,
        )

    async def storage(self) -> Storage:
        """Return the state of the ledger's storage (backup, free space), for the operator."""
        release, ledger = self._release.state.release, self._release.ledger
        release_id = "" if release is None else release.release_id
        return await asyncio.to_thread(read_storage, ledger.file, release_id)

    async def ledger_entries(self, *, after: int, limit: int) -> list[dict[str, object]]:
        """Return the public part of up to ``limit`` ledger entries after entry number ``after``."""
        return await asyncio.to_thread(self._release.ledger.public_entries, after, limit)

    async def classifier(self) -> bytes:
        """Return the published classifier as JSON.

        Raises:
            NotPublishedError: no classifier is published yet.
            LedgerUnavailableError: the ledger cannot be read.

        """
        return await self._forms.document()

    async def classifier_onnx(self) -> bytes:
        """Return the published classifier as an ONNX model.

        Raises:
            NotPublishedError: no classifier is published yet.
            NotExportableError: ONNX cannot express the classifier.
            LedgerUnavailableError: the ledger cannot be read.

        """
        return await self._forms.onnx()

    async def statistics(self, raw: Sequence[object]) -> StatisticsAnswer:
        """Return the statistics of posted hypotheses, from the released table alone.

        Raises:
            NoStatisticsError: the release has no share of epsilon for statistics.
            InvalidHypothesisError: a hypothesis does not fit the schema, or the released table does
                not contain it; the error names the hypothesis.
            TooLargeError: there are too many hypotheses.
            StatisticsNotOpenError: the statistics table is not released yet.
            LedgerUnavailableError: the ledger cannot be read.

        """
        self._require_statistics()
        asked = parse_hypotheses(self.schema, raw)
        table = await self._statistics_table()
        # One at a time, so that however many ask, other requests find a thread and a core.
        async with self._answering_statistics:
            return await asyncio.to_thread(table.answer, asked)

    async def statistics_document(self) -> bytes:
        """Return the released statistics table as JSON.

        Raises:
            NoStatisticsError: the release has no share of epsilon for statistics.
            StatisticsNotOpenError: the statistics table is not released yet.
            LedgerUnavailableError: the ledger cannot be read.

        """
        self._require_statistics()
        return (await self._statistics_table()).json

    def _require_statistics(self) -> None:
        if not self._release.configuration.has(Mechanism.STATISTICS):
            raise NoStatisticsError(NO_STATISTICS)

    async def _statistics_table(self) -> ReleasedStatistics:
        """Return the table; another process may have released it since the last batch."""
        known = self._release.statistics or self._statistics
        if known is not None:
            return known
        self._statistics = await asyncio.to_thread(self._read_statistics)
        if self._statistics is None:
            raise StatisticsNotOpenError(STATISTICS_NOT_OPEN)
        return self._statistics

    def _read_statistics(self) -> ReleasedStatistics | None:
        ledger = self._release.ledger
        return released_statistics(ledger.read_state(), ledger, self.schema)

    def subscribe(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Yield an iterator with one item for each change of the release's public state."""
        return self._changes.subscribe()

    def _stop(self, error: IntegrityError) -> None:
        """Pass on that the release has stopped, and wake every event stream to see it."""
        self._on_stop(error)
        self._changes.notify()


def _looked_up(queries: IdentifiedQueries, phase: Phase) -> Sequence[int]:
    """Return the indices of queries to look up in the ledger before the queue, if not in memory.

    While the ensemble answers the writer looks, for a whole batch at once.
    """
    if phase is Phase.ENSEMBLE:
        return ()
    replays_all, keys = phase is not Phase.CLASSIFIER, enumerate(queries.key_digests)
    return [place for place, key in keys if replays_all or key is not None]
