"""The decisions on a batch of queries, one by one, before any is committed or visible.

A decision on a query is its new or recorded answer, a refusal, or the choice to leave the query to
the published classifier.

A batch looks up its own new answers before the committed ones, so that a vector or an idempotency
key that occurs twice in one batch is treated as it would be in two batches.

The module also applies the limits of API keys: how many of a release's answers one client may use.
The limits share the answers out fairly and are no part of the privacy promise, which is the same
for any clients. Only new answers of the ensemble count, since only new answers use up the budget
that all clients share. A limit is public and is compared with the answers that the key was given,
so that a refusal shows its client nothing new.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from app.answering.asked_vectors import NOTHING_ASKED
from app.answering.queries import Fresh, FreshAnswers, FreshColumns, Relayed
from app.answering.replays import (
    AnswerSource,
    ReplayIndex,
    answer_source,
    check_same_vector,
    released_bin,
)
from app.data.vectors import TOGETHER_MIN
from app.errors import (
    BudgetExhaustedError,
    IdempotencyConflictError,
    KeyLimitError,
    RequestError,
    UncountedDrawsError,
    WaitingError,
)
from app.ledger.api_key_counts import NOTHING, KeyCount
from app.ledger.ledger import AskedVector, RecordedAnswer
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Outcome, Phase, State
from app.privacy.voting.votes import Tallies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.answering.asked_vectors import AskedVectors
    from app.answering.queries import Asker, IdentifiedQueries
    from app.noise.source import NoiseSource
    from app.privacy.soft_labels.mechanism import PrivateBins
    from app.privacy.voting.query_decision import Parameters
    from app.privacy.voting.tallies import PrivateValues
    from app.privacy.voting.votes import Tally

ANSWERS_USED: Final = (
    "this key has had its {limit} fresh answers; nothing was charged, recorded vectors still "
    "get their answers, and the operator can raise the limit"
)
UNSTABLE_USED: Final = (
    "this key has had its {limit} unstable answers; nothing was charged, recorded vectors "
    "still get their answers, and the operator can raise the limit"
)


def key_limit_refusal(asker: Asker, given: KeyCount) -> KeyLimitError | None:
    """Return the reason why an API key gets no further new answer, or None if it gets one.

    The answer with which a key reaches its limit is still given.
    """
    if asker.answer_limit is not None and given.answered >= asker.answer_limit:
        return KeyLimitError(ANSWERS_USED.format(limit=asker.answer_limit))
    if asker.unstable_limit is not None and given.unstable >= asker.unstable_limit:
        return KeyLimitError(UNSTABLE_USED.format(limit=asker.unstable_limit))
    return None


EXHAUSTED: Final = (
    "the release has halted: new vectors are refused, recorded ones still get "
    "their answers; ask the operator for a new release"
)


WAITING: Final = (
    "fewer generations of records vote than this release asks for; nothing was charged, and "
    "recorded vectors still get their answers: try again after the next ones have joined"
)


class Deferred(msgspec.Struct, frozen=True):
    """A query that the published classifier answers, now or as soon as the classifier is drawn."""


DEFERRED: Final = Deferred()
Decision = RecordedAnswer | Fresh | Relayed | RequestError | Deferred | WaitingError


class Batch:
    """The decisions on all queries of one transaction.

    Attributes:
        state: the counts of answers by vote, and the sparse vector's secret noise, after the
            decisions.
        phase: the release's phase after the decisions.
        fresh: the new answers of the batch, in order.
        fresh_by_vector: the new answers, by the keyed hash of their vector.
        new_keys: the keyed hash of the vector of each new idempotency key, by the key's own keyed
            hash.
        key_counts: the numbers of answers that each API key has been given, this batch included.
        asked: the queried vectors that this batch records, by their keyed hashes.

    """

    def __init__(
        self,
        *,
        parameters: Parameters,
        state: State,
        replays: ReplayIndex,
        private_values: PrivateValues,
        noise: NoiseSource,
        key_counts: Mapping[str, KeyCount] | None = None,
        asked_before: AskedVectors = NOTHING_ASKED,
        phase: Phase | None = None,
    ) -> None:
        """Start a batch of decisions from the committed state.

        Args:
            parameters: the release's public parameters.
            state: the mechanism's committed state.
            replays: all recorded answers to the batch's vectors and idempotency keys.
            private_values: the models' votes, or score bins, by vector; they may be missing for a
                vector that only API keys at their limit query.
            noise: the source of randomness.
            key_counts: the numbers of answers that each API key was given before.
            asked_before: the queried vectors that are recorded already.
            phase: the release's phase; None for the phase that follows from the state's counts.

        """
        self.state = state
        self.phase = phase or query_decision.phase(parameters, state)  # after the decisions so far
        self.fresh = FreshAnswers()
        self.new_keys: dict[bytes, bytes] = {}
        self.key_counts: dict[str, KeyCount] = {}
        self._counts_before = key_counts or {}
        self.fresh_by_vector: dict[bytes, RecordedAnswer] = {}
        self.asked: dict[bytes, AskedVector] = {}
        self._asked_before = asked_before
        self._parameters = parameters
        self._replays = replays
        self._private_values = private_values
        self._noise = noise

    def restore(
        self,
        undelivered: Sequence[Fresh],
        *,
        left_no_trace: bool = False,
        may_be_recorded: bool = True,
    ) -> None:
        """Restore answers that were drawn earlier but not committed, so that none is drawn again.

        An answer that is recorded by now is left as it is: either its commit happened after all, or
        another process answered its query.

        Args:
            undelivered: the drawn answers of one batch, in order.
            left_no_trace: whether the failed commit cannot have shown anything about the answers.
            may_be_recorded: whether the failed commit may have happened after all.

        Raises:
            UncountedDrawsError: the failed commit may have shown something about the drawn answers,
                and they can no longer be recorded, because meanwhile another process answered one
                of the queries or gave an unstable answer.

        """
        waiting = [
            fresh
            for fresh in undelivered
            if self._replays.find_by_vector(fresh.vector_digest) is None
        ]
        if left_no_trace:
            if self._is_overtaken(undelivered, waiting):
                return
        elif not (may_be_recorded and all(map(self._is_as_drawn, undelivered))):
            self._require_counted(undelivered)
        for fresh in waiting:
            if self.phase is Phase.ENSEMBLE:
                self._restore(fresh)

    def _is_as_drawn(self, fresh: Fresh) -> bool:
        """Return whether what is recorded of a vector is what was drawn for it."""
        found, drawn = self._replays.find_by_vector(fresh.vector_digest), fresh.recorded
        return found is not None and (
            (found.query_id, found.label, found.stable)
            == (drawn.query_id, drawn.label, drawn.stable)
        )

    def _require_counted(self, undelivered: Sequence[Fresh]) -> None:
        """Refuse to draw on where a draw that counts has lost its place to another server's.

        That the database refused a draw may have told of it, so a hit counts although nobody
        was given it, and so does every answer where answers are what is paid for.  A stable
        answer costs a test nothing, recorded or not.  Where the ensemble has ended nothing
        is drawn any more that could be too much.
        """
        counts_each = self._parameters.cutoff is None
        for fresh in undelivered if self.phase is Phase.ENSEMBLE else ():
            found = self._replays.find_by_vector(fresh.vector_digest)
            if found is not None and (counts_each or fresh.hit_count):
                raise UncountedDrawsError

    def _is_overtaken(self, undelivered: Sequence[Fresh], waiting: Sequence[Fresh]) -> bool:
        """Return whether draws against a threshold are forgotten, all of them, unseen.

        They are where another server has ended their epoch, or answered one of their
        vectors, which could leave the rest in an epoch that never was.  To draw again is
        then right: the other server's draws in the epoch are the first of it that
        anybody sees.  Whether it comes to this is public: which answers are recorded,
        and how many hits.  Were some of the draws kept by what they are, those kept
        would tell of the others: recorded up to a first hit, they would say where it was.
        """
        if not waiting or not self._parameters.is_refreshed:
            return False
        has_ended = self.state.unstable_count != undelivered[0].drawn_in.unstable_count
        return has_ended or len(waiting) < len(undelivered)

    def _restore(self, fresh: Fresh) -> None:
        recorded, before = fresh.recorded, self.state
        if self._epoch(before) != self._epoch(fresh.drawn_in):
            if fresh.hit_count:
                raise UncountedDrawsError
            return
        self.state, outcome = query_decision.redo(
            self._parameters,
            before,
            Outcome(recorded.label, recorded.stable, released_bin(recorded)),
            drawn=(fresh.drawn_in, fresh.following),
            noise=self._noise,
        )
        self.phase = query_decision.phase(self._parameters, self.state)
        recorded = self._recorded(outcome, fresh.recorded.precision, drawn_in=before)
        drawn = structs.replace(fresh, recorded=recorded, drawn_in=before, following=self.state)
        self._keep(drawn)

    def _epoch(self, state: State) -> tuple[int | None, int | None]:
        """Return what a draw depends on beside its votes; an epoch ends with a hit."""
        hits = state.unstable_count if self._parameters.is_refreshed else None
        return hits, state.private_threshold_noise

    def decide(
        self, queries: IdentifiedQueries, *, until_spent: bool = False
    ) -> Sequence[Decision]:
        """Return the decision on each query, in order.

        Args:
            queries: the queries of the batch.
            until_spent: whether to stop after the unstable answer that reaches the cutoff, so that
                later queries are left to other generations of records.

        """
        answered: Sequence[Decision] = ()
        if self._are_new(queries):
            answered = self._answer_together(queries) or self._answer_in_order(queries)
        if len(answered) == len(queries):
            return answered
        decided = [*answered]
        for at in range(len(decided), len(queries)):
            if until_spent and self.fresh and self.phase is Phase.HALTED:
                break
            decided.append(self._decide(queries, at))
        return decided

    def _are_new(self, queries: IdentifiedQueries) -> bool:
        """Return whether nothing but the ensemble decides the first of these queries.

        Not where votes were cast for other queries than these, since some vector has an answer or
        is asked twice, or an answer was drawn before, or more than a vector decides.
        """
        digests = queries.vector_digests
        if self.fresh or self._private_values.digests != digests or queries.have_keys:
            return False
        if len(set(digests)) < len(digests) or self._replays.has_any(digests):
            return False
        return not any(asker is not None and asker.is_limited for asker in set(queries.askers))

    def _answer_in_order(self, queries: IdentifiedQueries) -> Sequence[Fresh]:
        """Answer new queries one by one, up to the ensemble's last answer.

        The votes are in the order of the queries.
        """
        answered: list[Fresh] = []
        for place, private_value in enumerate(self._private_values.in_order):
            if self.phase is not Phase.ENSEMBLE:
                break
            answered.append(self._answer(queries, place, private_value))
        return answered

    def _answer_together(self, queries: IdentifiedQueries) -> Sequence[Fresh]:
        """Answer new queries at once, up to the ensemble's last answer, where they are many."""
        private_votes = self._private_values.in_order
        if len(queries) < TOGETHER_MIN or not isinstance(private_votes, Tallies):
            return ()
        before = self.state
        answered = query_decision.steps(self._parameters, before, private_votes, self._noise)
        if answered is None:
            return ()
        self.state, outcomes = answered
        self.phase = query_decision.phase(self._parameters, self.state)
        self._record_all(queries, outcomes, before)
        return self.fresh

    def _record_all(
        self, queries: IdentifiedQueries, outcomes: Sequence[Outcome], before: State
    ) -> None:
        """Record stable answers and single hits, which all there are without scores."""
        stable = [outcome.stable for outcome in outcomes]
        recorded = list(
            map(
                RecordedAnswer,
                count(before.answered_count + 1),
                [outcome.label for outcome in outcomes],
                stable,
            )
        )
        # As many as there are outcomes: the ensemble may have ended before the last query.
        answered = slice(len(recorded))
        self.fresh = FreshAnswers(
            FreshColumns(
                recorded,
                [*queries.vector_digests[answered]],
                [*queries.kept[answered]],
                [*queries.posted_digests[answered]],
                [*queries.vectors[answered]],
                [*queries.askers[answered]],
                *_states_around(stable, before),
            )
        )
        self.fresh_by_vector.update(zip(queries.vector_digests, recorded, strict=False))
        if self._asked_before.are_kept or any(queries.askers):
            for fresh in self.fresh:
                self._note(fresh)

    def _decide(self, queries: IdentifiedQueries, place: int) -> Decision:
        """Decide one query: idempotency key, recorded vector, phase, in this order."""
        vector_digest, key_digest = queries.vector_digests[place], queries.key_digests[place]
        posted_digest = queries.posted_digests[place]
        try:
            by_key = self._known_by_key(key_digest, posted_digest, vector_digest)
        except IdempotencyConflictError as conflict:
            return conflict
        source = answer_source(self.phase, by_key=by_key, by_vector=self._known(vector_digest))
        if source is AnswerSource.REFUSED:
            return BudgetExhaustedError(EXHAUSTED)
        if source is AnswerSource.CLASSIFIER:
            return DEFERRED
        if source is AnswerSource.WAITING:
            return WaitingError(WAITING)
        if source is AnswerSource.ENSEMBLE:
            refusal = self._key_refusal(queries.askers[place])
            if refusal is not None:
                return refusal
            private_value = self._private_values[vector_digest]
            decision: Decision = self._answer(queries, place, private_value)
        else:
            decision = source
            if self.phase is Phase.ENSEMBLE and self._wants(posted_digest):
                self.asked[posted_digest] = AskedVector(source.query_id, queries.vectors[place])
        if key_digest is not None and by_key is None:
            self.new_keys[key_digest] = posted_digest
        return decision

    def _known_by_key(
        self, key_digest: bytes | None, posted_digest: bytes, vector_digest: bytes
    ) -> RecordedAnswer | None:
        """Return the answer of an idempotency key, of this batch or from before."""
        known_for = None if key_digest is None else self.new_keys.get(key_digest)
        if known_for is None:
            return self._replays.find_by_key(key_digest, posted_digest, vector_digest)
        check_same_vector(known_for, posted_digest)
        return self._known(vector_digest)

    def _known(self, vector_digest: bytes) -> RecordedAnswer | None:
        """Return the answer of a vector, of this batch or from before."""
        fresh = self.fresh_by_vector.get(vector_digest)
        return fresh or self._replays.find_by_vector(vector_digest)

    def _key_refusal(self, asker: Asker | None) -> KeyLimitError | None:
        return None if asker is None else key_limit_refusal(asker, self._key_count(asker.name))

    def _key_count(self, name: str) -> KeyCount:
        """Return what a key was given, in this batch too."""
        return self.key_counts.get(name) or self._counts_before.get(name, NOTHING)

    def _answer(
        self, queries: IdentifiedQueries, place: int, private_value: Tally | PrivateBins
    ) -> Fresh:
        """Answer a new query, given the counted votes on it."""
        vector_digest, before = queries.vector_digests[place], self.state
        self.state, outcome = query_decision.step(
            self._parameters, before, private_value, self._noise
        )
        self.phase = query_decision.phase(self._parameters, self.state)
        recorded = self._recorded(outcome, queries.precisions[place], drawn_in=before)
        fresh = Fresh(
            recorded,
            vector_digest,
            queries.kept[place],
            queries.posted_digests[place],
            queries.vectors[place],
            queries.askers[place],
            before,
            self.state,
        )
        return self._keep(fresh)

    def _recorded(
        self, outcome: Outcome, precision: int | None, *, drawn_in: State
    ) -> RecordedAnswer:
        """Return the newest answer as it is recorded."""
        label, stable, released = outcome.label, outcome.stable, outcome.released_bin
        if precision is None:
            return RecordedAnswer(self.state.answered_count, label, stable)
        return RecordedAnswer(
            self.state.answered_count,
            label,
            stable,
            precision,
            bin_index=None if released is None else released.index,
            bin_shifted=released is not None and released.shifted,
            units=self.state.unstable_count - drawn_in.unstable_count,
        )

    def _keep(self, fresh: Fresh) -> Fresh:
        """Keep an answer to be committed, and count it for the key that asked."""
        self.fresh.append(fresh)
        self.fresh_by_vector[fresh.vector_digest] = fresh.recorded
        self._note(fresh)
        return fresh

    def _note(self, fresh: Fresh) -> None:
        """Note the vector of a decided cell, and count an answer for the key that asked."""
        if self._asked_before.are_kept:  # the first vector of its cell
            self.asked[fresh.posted_digest] = AskedVector(fresh.recorded.query_id, fresh.posted)
        if fresh.asker is not None:
            name = fresh.asker.name
            answered, unstable = self._key_count(name)
            self.key_counts[name] = KeyCount(answered + 1, unstable + fresh.hit_count)

    def _wants(self, posted_digest: bytes) -> bool:
        """Return whether a further vector of a decided cell is to be recorded."""
        is_new = posted_digest not in self.asked
        return is_new and self._asked_before.want(posted_digest, beside=len(self.asked))


def _states_around(stable: Sequence[bool], before: State) -> tuple[list[State], list[State]]:
    """Return a state of the epoch before and after each answer; an unstable one ends an epoch."""
    befores, afters = [before] * len(stable), [before] * len(stable)
    for place in [place for place, is_stable in enumerate(stable) if not is_stable]:
        after = State(befores[0].answered_count + place + 1, befores[place].unstable_count + 1)
        afters[place:] = [after] * (len(stable) - place)
        befores[place + 1 :] = [after] * (len(stable) - place - 1)
    return befores, afters
