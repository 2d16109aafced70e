"""What the service takes and gives, and the interface that serves it.

The HTTP layer is written against :class:`AnsweringService`, so that its tests
need neither rows nor a ledger.

The steps of a query, one name for code, docs, logs and crash tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, overload

import msgspec

from app.data.vectors import Vector, decode_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from app.answering.workload import Workload
    from app.data.schema import Schema
    from app.errors import RequestError, UnavailableError
    from app.ledger.key_counts import KeyCount
    from app.privacy.soft_labels.mechanism import ScoreBin
    from app.release.statistics.released import StatisticsAnswer


class Asker(msgspec.Struct, frozen=True):
    """The key of a server that a query came with, by which its answers are counted.

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
        """Whether it may be refused a fresh answer."""
        return self.answer_limit is not None or self.unstable_limit is not None


class Query(msgspec.Struct, frozen=True, gc=False):
    """A validated feature vector, with the caller's idempotency key if there is one.

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


class PlainQueries(Sequence[Query]):
    """Vectors of one caller, who sent neither an idempotency key nor a precision with any.

    Attributes:
        vector_bytes: the canonical bytes of each.
        asker: whose queries they are; None on a server without keys.

    """

    __slots__ = ("asker", "vector_bytes")

    def __init__(self, vector_bytes: Sequence[bytes], asker: Asker | None = None) -> None:
        """Take vectors by their canonical bytes."""
        self.vector_bytes = vector_bytes
        self.asker = asker

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.vector_bytes)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> PlainQueries: ...
    def __getitem__(self, index: int | slice) -> Query | PlainQueries:
        """Return one query, or those of a slice."""
        if isinstance(index, slice):
            return PlainQueries(self.vector_bytes[index], self.asker)
        return Query(decode_key(self.vector_bytes[index]), asker=self.asker)


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
    """Scores from ``lower`` on and below ``upper``, or up to it where that is 1."""

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
    """Return an answer with the mid-point of its bin, where it has one."""
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


class AnsweringService(Protocol):
    """One open release, as the layers above see it."""

    @property
    def schema(self) -> Schema:
        """The public schema, by which vectors are validated."""
        ...

    @property
    def release_name(self) -> str:
        """The release's public name."""
        ...

    @property
    def precision(self) -> int | None:
        """Bins of a score where a query does not say; None where labels are answered."""
        ...

    async def answer_many(
        self, queries: Sequence[Query]
    ) -> list[Answer | RequestError | UnavailableError]:
        """Answer ``queries`` in order; a refusal stands in the place of its query.

        Raises:
            IntegrityError: the release has stopped.

        """
        ...

    def answer_in_turn(
        self, queries: Sequence[Query]
    ) -> AsyncIterator[Sequence[Answer | RequestError | UnavailableError]]:
        """Answer as :meth:`answer_many` does, part by part, each as soon as it is known.

        Raises:
            IntegrityError: the release has stopped.

        """
        ...

    def key_count(self, name: str) -> KeyCount:
        """Return what the key of that name was given, as committed by now."""
        ...

    def budget(self) -> dict[str, object]:
        """Return the body of ``GET /budget`` as this server knows it, null where unlimited."""
        ...

    async def read_budget(self) -> dict[str, object]:
        """Return the same with what other servers have committed by now.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: it is not what was written, and the release has stopped.

        """
        ...

    async def outlook(self) -> dict[str, object]:
        """Return the body of ``GET /budget/outlook``: history, forecast, alarm, checked entries.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: the entries are not what was written, and the release has stopped.

        """
        ...

    def parameters(self) -> list[dict[str, str]]:
        """Return the public parameters in words: name, value, meaning, formula."""
        ...

    async def ledger_entries(self, *, after: int, limit: int) -> list[dict[str, object]]:
        """Return the public part of up to ``limit`` entries that follow entry ``after``."""
        ...

    async def ledger_head(self) -> dict[str, object]:
        """Return the newest entry's ``sequence`` and ``hash``; raises as ``read_budget`` does."""
        ...

    def noted_sequence(self) -> int | None:
        """Return the number of the entry that the head file notes; None where none is kept."""
        ...

    def workload(self) -> Workload:
        """Return what waits for the writer, and what it counted."""
        ...

    async def classifier(self) -> bytes:
        """Return the published classifier as canonical JSON.

        Raises:
            NotPublishedError: there is none yet.
            LedgerUnavailableError: the ledger cannot be read.

        """
        ...

    async def classifier_onnx(self) -> bytes:
        """Return the published classifier as an ONNX model.

        Raises:
            NotPublishedError: there is none yet.
            NotExportableError: ONNX cannot hold it.
            LedgerUnavailableError: the ledger cannot be read.

        """
        ...

    async def statistics(self, raw: Sequence[object]) -> StatisticsAnswer:
        """Answer posted hypotheses from the released table.

        Raises:
            NoStatisticsError: statistics have no share.
            InvalidHypothesisError: names one that does not fit, or lies outside the table.
            TooLargeError: there are too many of them.
            StatisticsNotOpenError: there is no table yet.
            LedgerUnavailableError: the ledger cannot be read.

        """
        ...

    async def statistics_document(self) -> bytes:
        """Return the released table as JSON; raises as :meth:`statistics` does."""
        ...

    def subscribe(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Yield once for every change of the budget, coalesced; end when the service closes."""
        ...


class Step(StrEnum):
    """What happens to a query, in this order; see ``docs/life-of-a-query.md``."""

    VALIDATE = "validate"
    REPLAY = "replay"
    ENQUEUE = "enqueue"
    VOTE = "vote"
    STEP = "step"
    COMMIT = "commit"
    RESPOND = "respond"


class Edge(StrEnum):
    """Which side of a step is meant."""

    BEFORE = "before"
    AFTER = "after"


Observer = Callable[[Step, Edge], None]
"""Called on both sides of a step: crash tests kill the process in it."""


def observe_nothing(step: Step, edge: Edge) -> None:
    """Observe nothing: what production passes."""
    del step, edge
