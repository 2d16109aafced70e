"""What a release must answer, kept the plain way: a list, a table of keys and two counters."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from app.answering.batch_decisions import Deferred
from app.answering.queries import Fresh
from app.errors import BudgetExhaustedError, IdempotencyConflictError
from app.ledger.ledger import RecordedAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.answering.batch_decisions import Decision

Phase = Literal["ensemble", "classifier", "halted"]


class Asked(NamedTuple):
    """One query: its margin, which is its vector, and an idempotency key or none."""

    margin: int
    key: str | None


class Draw(NamedTuple):
    """What the noise decides for one fresh answer; a hit may draw a threshold's noise."""

    hit: bool
    coin: int
    threshold_noise: int


class Answered(NamedTuple):
    """A fresh answer, the epoch it was drawn in, and the noise that a hit drew for the next."""

    margin: int
    label: int | None
    stable: bool
    epoch: tuple[int, int | None]
    threshold_noise: int


class UncountedError(Exception):
    """An answer that counts cannot be recorded: another process ended its epoch, or gave one."""


class Given(NamedTuple):
    """What became of a query: an answer, fresh or replayed, or why there is none."""

    kind: Literal["fresh", "replayed", "conflict", "exhausted", "deferred", "stopped"]
    query_id: int | None = None
    label: int | None = None
    stable: bool | None = None


class Terms(NamedTuple):
    """What a release is opened with.

    Attributes:
        cutoff: T.
        limit: m_o.
        after: the phase that follows answer m_o.
        on_cutoff: the phase that follows hit T.
        coin: whether an unstable answer has a label.
        test: what decides; a hit of ``refreshed`` draws another noise of the threshold.

    """

    cutoff: int
    limit: int
    after: Phase
    on_cutoff: Phase
    coin: bool
    test: Literal["profile", "one-threshold", "refreshed"]


@dataclass
class Model:
    """A release in memory.

    Attributes:
        terms: what it was opened with.
        answers: each as it was given; the number is the place.
        keys: the margin that each key was first used with.
        threshold_noises: the kept ones, by the number of hits before them.
        halted: no fresh answer may follow, since one could not be counted.

    """

    terms: Terms
    answers: list[Answered] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)
    threshold_noises: dict[int, int] = field(default_factory=dict)
    halted: bool = False

    def copy(self) -> Model:
        """Return a model that goes its own way."""
        return copy.deepcopy(self)

    @property
    def is_refreshed(self) -> bool:
        """Whether every hit ends an epoch."""
        return self.terms.test == "refreshed"

    @property
    def unstable_count(self) -> int:
        """Hits so far."""
        return sum(not answer.stable for answer in self.answers)

    @property
    def epoch(self) -> tuple[int, int | None]:
        """Hits and the threshold's noise after them; without refreshing always the same."""
        hits = [answer for answer in self.answers if not answer.stable]
        return (len(hits), hits[-1].threshold_noise) if self.is_refreshed and hits else (0, None)

    @property
    def phase(self) -> Phase:
        """What answers the next new query."""
        if self.unstable_count == self.terms.cutoff:
            return self.terms.on_cutoff
        if len(self.answers) == self.terms.limit:
            return self.terms.after
        return "halted" if self.halted else "ensemble"

    def decide(self, batch: Sequence[Asked], draws: Iterable[Draw]) -> list[Given]:
        """Answer a batch, query after query."""
        drawing = iter(draws)
        return [self._decide(asked, drawing) for asked in batch]

    def take_up(
        self,
        drawn: Sequence[Answered],
        left_no_trace: bool,  # noqa: FBT001 -- in the order of what a process keeps
        has_happened: bool,  # noqa: FBT001 -- as above
    ) -> None:
        """Record answers that were drawn before, where they still can be.

        Args:
            drawn: in order.
            left_no_trace: nothing that was seen depends on them.
            has_happened: they were committed after all.

        Raises:
            UncountedError: a hit has lost its place to another answer, or its threshold.

        """
        if has_happened:
            return
        lost = [answer for answer in drawn if self._find(answer.margin) is not None]
        if self.phase == "ensemble" and not left_no_trace and not all(a.stable for a in lost):
            raise UncountedError
        waiting = [answer for answer in drawn if self._find(answer.margin) is None]
        is_another = drawn[0].epoch[0] != self.epoch[0] or len(waiting) < len(drawn)
        if self.is_refreshed and left_no_trace and is_another:
            return
        for answer in waiting:
            if self.phase == "ensemble":
                is_of_epoch = answer.epoch == self.epoch
                if not (is_of_epoch or answer.stable):
                    raise UncountedError
                if is_of_epoch:
                    self.answers.append(answer)

    def keep_threshold_noise(self, *, answered_before: int) -> None:
        """Keep the noise that the last hit of a commit drew."""
        hits = [answer for answer in self.answers[answered_before:] if not answer.stable]
        if self.is_refreshed and hits:
            self.threshold_noises[self.unstable_count] = hits[-1].threshold_noise

    def _decide(self, asked: Asked, drawing: Iterable[Draw]) -> Given:
        if asked.key in self.keys:
            if self.keys[asked.key] != asked.margin:
                return Given("conflict")
            return self._replay(asked.margin)
        if self.phase == "classifier":
            return Given("deferred")
        if self._find(asked.margin) is not None:
            self._keep_key(asked)
            return self._replay(asked.margin)
        if self.phase == "halted":
            return Given("exhausted")
        draw = next(iter(drawing))
        unstable_label = draw.coin if self.terms.coin else None
        label = unstable_label if draw.hit else int(asked.margin > 0)
        given = Answered(asked.margin, label, not draw.hit, self.epoch, draw.threshold_noise)
        self.answers.append(given)
        self._keep_key(asked)
        return Given("fresh", len(self.answers), label, not draw.hit)

    def _keep_key(self, asked: Asked) -> None:
        if asked.key is not None:
            self.keys[asked.key] = asked.margin

    def _find(self, margin: int) -> int | None:
        margins = [answer.margin for answer in self.answers]
        return margins.index(margin) if margin in margins else None

    def _replay(self, margin: int) -> Given:
        index = self._find(margin)
        assert index is not None
        answer = self.answers[index]
        return Given("replayed", index + 1, answer.label, answer.stable)


def given_of(decision: Decision) -> Given:
    """Return a decision of the service as the model puts it."""
    match decision:
        case Fresh():
            recorded = decision.recorded
            return Given("fresh", recorded.query_id, recorded.label, recorded.stable)
        case RecordedAnswer():
            return Given("replayed", decision.query_id, decision.label, decision.stable)
        case IdempotencyConflictError():
            return Given("conflict")
        case BudgetExhaustedError():
            return Given("exhausted")
        case Deferred():
            return Given("deferred")
        case _:
            raise AssertionError(decision)
