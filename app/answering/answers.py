"""Replies to clients, made from decisions, recorded answers or the classifier's labels.

A decision on a query is its new or recorded answer, a refusal, or the choice to leave the query to
the published classifier. In a release with scores, the models' scores are not answered exactly: an
answer is a bin, one of the intervals of equal length into which the scores from 0 to 1 are divided.

The module also merges answers that are known at once with answers that arrive later, so that a
client gets all of them in the order of its queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec

from app.answering.batch_decisions import Deferred
from app.answering.queries import Fresh, FreshAnswers, Relayed
from app.answering.replays import released_bin
from app.errors import RequestError, UnavailableError
from app.ledger.ledger import RecordedAnswer
from app.privacy.voting.query_decision import Phase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from app.answering.batch_decisions import Decision
    from app.answering.queue import Decisions
    from app.data.schema import Schema
    from app.privacy.soft_labels.mechanism import ScoreBin


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A released answer; its fields are the members of the HTTP reply, in order.

    Attributes:
        query_id: the number of this answer among the release's answers by vote, counted from 1;
            None for an answer by the classifier.
        label: a label of the public schema; None if the answer is unstable and carries no label.
        stable: whether the models' votes agreed clearly enough; True for an answer by the
            classifier.
        phase: the release's phase in which the answer was given.
        replayed: whether this is a recorded answer that is given again.

    """

    query_id: int | None
    label: str | None
    stable: bool
    phase: str
    replayed: bool


class Bin(msgspec.Struct, frozen=True):
    """The interval of scores from ``lower`` up to ``upper``, which is excluded unless it is 1."""

    lower: float
    upper: float


class ScoredAnswer(Answer, frozen=True, gc=False):
    """An answer of a release whose answers are scores (probabilities of the second class).

    Attributes:
        score: the mid-point of the score's bin; None for an unstable answer and for an answer by
            the classifier.
        bin: the interval that contains the score; None if the score is None.
        precision: the number of bins that the query asked for; None for an answer by the
            classifier.

    """

    score: float | None
    bin: Bin | None
    precision: int | None


def with_score(answer: Answer, released: ScoreBin | None, precision: int | None) -> ScoredAnswer:
    """Return an answer with the mid-point of its score bin, if it has one."""
    return ScoredAnswer(
        query_id=answer.query_id,
        label=answer.label,
        stable=answer.stable,
        phase=answer.phase,
        replayed=answer.replayed,
        score=None if released is None else float(released.midpoint),
        bin=None if released is None else Bin(float(released.lower), float(released.upper)),
        precision=precision,
    )


_ENSEMBLE: Final = Phase.ENSEMBLE.value
Told: TypeAlias = Answer | RequestError | UnavailableError
"""What a client gets in its query's place."""


def answers_for(
    decisions: Decisions,
    vectors: Sequence[bytes],
    schema: Schema,
    classify: Callable[[Sequence[bytes]], Sequence[Told]],
) -> list[Told]:
    """Return the replies to clients for the given decisions on their queries.

    Args:
        decisions: the decisions on the queries, in order.
        vectors: the encoded feature vectors of the queries, in the same order.
        schema: the public schema.
        classify: a function that returns the classifier's answers to vectors; called once, with all
            vectors whose decision is to use the classifier.

    """
    if isinstance(decisions, FreshAnswers):  # as most are
        return _answers_of(decisions.columns.recorded, schema)
    if {Fresh, Relayed}.issuperset(map(type, decisions)):
        recorded = [decision.recorded for decision in decisions]  # type: ignore[union-attr]  # fresh
        return _answers_of(recorded, schema)
    pairs = zip(decisions, vectors, strict=True)
    deferred = [vector for decision, vector in pairs if isinstance(decision, Deferred)]
    classified = iter(classify(deferred) if deferred else ())
    return [_answer_for(each, schema, classified) for each in decisions]


def _answer_for(
    decision: Decision | UnavailableError, schema: Schema, classified: Iterator[Told]
) -> Told:
    if isinstance(decision, Fresh | Relayed):
        return answer_of(decision.recorded, schema, replayed=False)
    if isinstance(decision, RecordedAnswer):
        return answer_of(decision, schema, replayed=True)
    return next(classified) if isinstance(decision, Deferred) else decision


def _answers_of(recorded: Sequence[RecordedAnswer], schema: Schema) -> list[Told]:
    """Return the replies for new answers, as :func:`answer_of` does for one."""
    labels: dict[int | None, str | None] = {None: None, **dict(enumerate(schema.classes))}
    return [
        Answer(each.query_id, labels[each.label], each.stable, _ENSEMBLE, replayed=False)
        if each.precision is None
        else answer_of(each, schema, replayed=False)
        for each in recorded
    ]


def answer_of(recorded: RecordedAnswer, schema: Schema, *, replayed: bool) -> Answer:
    """Return the reply for an answer that the models' vote gave, new or recorded."""
    index, precision = recorded.label, recorded.precision
    label = None if index is None else schema.classes[index]
    answer = Answer(recorded.query_id, label, recorded.stable, _ENSEMBLE, replayed)
    if precision is None:
        return answer
    return with_score(answer, released_bin(recorded), precision)


def classified_as(label: str, *, with_scores: bool) -> Answer:
    """Return the reply for a label of the published classifier, which has no score."""
    answer = Answer(None, label, stable=True, phase=Phase.CLASSIFIER.value, replayed=False)
    return with_score(answer, None, None) if with_scores else answer


ResultT = TypeVar("ResultT")


async def in_turn(
    known: Mapping[int, ResultT], parts: AsyncIterator[Sequence[ResultT]]
) -> AsyncIterator[Sequence[ResultT]]:
    """Yield the answers to all queries in order, as they arrive; some are known beforehand.

    Args:
        known: the answers that are known beforehand, by the index of their query.
        parts: the answers to all other queries, in order, in sequences that arrive one by one.

    """
    leading = _known_from(known, 0)
    if leading:
        yield leading
    place = len(leading)
    async for part in parts:
        if not known:
            yield part
            continue
        together: list[ResultT] = []
        for each in part:
            together.append(each)
            together += _known_from(known, place + len(together))
        place += len(together)
        yield together


def _known_from(known: Mapping[int, ResultT], place: int) -> list[ResultT]:
    """Return what is known at a place and from there on without a gap."""
    run: list[ResultT] = []
    while place + len(run) in known:
        run.append(known[place + len(run)])
    return run
