"""Replies to clients, made from decisions, recorded answers or the classifier's labels.

Results in the order of what was asked: those known at once, and those that come in parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec

from app.answering.batch_decisions import Deferred
from app.answering.queries import Fresh, Relayed
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
        query_id: number of the fresh answer, from 1; None from the classifier.
        label: a class of the public schema; None where unstable and abstaining.
        stable: whether the votes agreed far enough; True from the classifier.
        phase: the phase that answered.
        replayed: whether this is a recorded answer given again.

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
    """A released answer of a release with scores.

    Attributes:
        score: mid-point of the bin; None where unstable, and from the classifier.
        bin: what holds the score; None with it.
        precision: bins that were asked for; None from the classifier.

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
        decisions: of queries, in order.
        vectors: canonical bytes of theirs.
        schema: the public schema.
        classify: answers by the classifier; called once for all that are left to it.

    """
    if {Fresh, Relayed}.issuperset(map(type, decisions)):  # as most are
        recorded = [decision.recorded for decision in decisions]  # type: ignore[union-attr]  # fresh
        return [answer_of(each, schema, replayed=False) for each in recorded]
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
    """Yield the answers to all queries in order, as parts arrive; some are known beforehand.

    Args:
        known: results by their place.
        parts: those of all other places, in order, as they come.

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
