"""Data types of the answering service: a query, its sender and its answer.

The steps of a query, one name for code, docs, logs and crash tests.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from app.data.vectors import Vector
from app.release.views.budget import Budget as Budget  # noqa: PLC0414 -- HTTP names it here

if TYPE_CHECKING:
    from app.privacy.soft_labels.mechanism import ScoreBin


class Asker(msgspec.Struct, frozen=True):
    """The API key or token of a client, under whose name its queries are counted.

    Attributes:
        name: of the key.
        answer_limit: fresh answers that it may have; None for as many as there are.
        unstable_limit: the same of unstable ones; with scores, of units of the cutoff.

    """

    name: str
    answer_limit: int | None = None
    unstable_limit: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the number of new answers for this API key is limited."""
        return self.answer_limit is not None or self.unstable_limit is not None


class Query(msgspec.Struct, frozen=True, gc=False):
    """A validated feature vector, with the client's idempotency key if there is one.

    Attributes:
        vector: as posted, in schema order.
        idempotency_key: the caller's; None without one.
        precision: bins of the score that is asked for; None leaves it to the release.
        asker: whose query it is; None on a server without keys.

    """

    vector: Vector
    idempotency_key: str | None = None
    precision: int | None = None
    asker: Asker | None = None


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A released answer to a query; its fields are the members of the HTTP reply, in order.

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
    """An interval of scores from ``lower`` up to ``upper``, which is excluded unless it is 1."""

    lower: float
    upper: float


class ScoredAnswer(Answer, frozen=True, gc=False):
    """A released answer with a score, in a release that answers with scores.

    Attributes:
        score: mid-point of the bin; None where unstable, and from the classifier.
        bin: what holds the score; None with it.
        precision: bins that were asked for; None from the classifier.

    """

    score: float | None
    bin: Bin | None
    precision: int | None


def with_score(answer: Answer, released: ScoreBin | None, precision: int | None) -> ScoredAnswer:
    """Return an answer with the mid-point of its score bin, if it has a bin."""
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


class Step(StrEnum):
    """The steps of a query, in order; see ``docs/life-of-a-query.md``."""

    VALIDATE = "validate"
    REPLAY = "replay"
    ENQUEUE = "enqueue"
    VOTE = "vote"
    STEP = "step"
    COMMIT = "commit"
    RESPOND = "respond"


class Edge(StrEnum):
    """The moment at which a step's observer is called: before the step or after it."""

    BEFORE = "before"
    AFTER = "after"


Observer = Callable[[Step, Edge], None]
"""Called on both sides of a step: crash tests kill the process in it."""


def observe_nothing(step: Step, edge: Edge) -> None:
    """Do nothing; the observer of a query's steps that a production server uses."""
    del step, edge
