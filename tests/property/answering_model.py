"""What a release must answer, kept the plain way: a list, a table of keys and two counters."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from app.errors import BudgetExhaustedError, IdempotencyConflictError
from app.service.batch import Deferred, Fresh
from app.service.replay_index import Recorded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.service.batch import Decision

Phase = Literal["ensemble", "classifier", "halted"]


class Asked(NamedTuple):
    """One query: its margin, which is its vector, and an idempotency key or none."""

    margin: int
    key: str | None


class Draw(NamedTuple):
    """What the noise decides for one fresh answer."""

    hit: bool
    coin: int


class Given(NamedTuple):
    """What became of a query: an answer, fresh or replayed, or why there is none."""

    kind: Literal["fresh", "replayed", "conflict", "exhausted", "deferred"]
    query_id: int | None = None
    label: int | None = None
    stable: bool | None = None


@dataclass
class Model:
    """A release in memory.

    Attributes:
        cutoff: T.
        limit: m_o.
        after: the phase that follows answer m_o.
        on_cutoff: the phase that follows hit T.
        coin: whether an unstable answer has a label.
        answers: margin, label and stable flag of each; the number is the place.
        keys: the margin that each key was first used with.

    """

    cutoff: int
    limit: int
    after: Phase
    on_cutoff: Phase
    coin: bool
    answers: list[tuple[int, int | None, bool]] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Model:
        """Return a model that goes its own way."""
        return copy.deepcopy(self)

    @property
    def unstable_count(self) -> int:
        """Hits so far."""
        return sum(not stable for _, _, stable in self.answers)

    @property
    def phase(self) -> Phase:
        """What answers the next new query."""
        if self.unstable_count == self.cutoff:
            return self.on_cutoff
        return self.after if len(self.answers) == self.limit else "ensemble"

    def decide(self, batch: Sequence[Asked], draws: Iterable[Draw]) -> list[Given]:
        """Answer a batch, query after query."""
        drawing = iter(draws)
        return [self._decide(asked, drawing) for asked in batch]

    def take_up(self, drawn: Iterable[tuple[int, int | None, bool]]) -> None:
        """Record answers that were drawn before, where they still can be."""
        for margin, label, stable in drawn:
            if self._find(margin) is None and self.phase == "ensemble":
                self.answers.append((margin, label, stable))

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
        unstable_label = draw.coin if self.coin else None
        label = unstable_label if draw.hit else int(asked.margin > 0)
        self.answers.append((asked.margin, label, not draw.hit))
        self._keep_key(asked)
        return Given("fresh", len(self.answers), label, not draw.hit)

    def _keep_key(self, asked: Asked) -> None:
        if asked.key is not None:
            self.keys[asked.key] = asked.margin

    def _find(self, margin: int) -> int | None:
        margins = [answered for answered, _, _ in self.answers]
        return margins.index(margin) if margin in margins else None

    def _replay(self, margin: int) -> Given:
        index = self._find(margin)
        assert index is not None
        _, label, stable = self.answers[index]
        return Given("replayed", index + 1, label, stable)


def given_of(decision: Decision) -> Given:
    """Return a decision of the service as the model puts it."""
    match decision:
        case Fresh():
            recorded = decision.recorded
            return Given("fresh", recorded.query_id, recorded.label, recorded.stable)
        case Recorded():
            return Given("replayed", decision.query_id, decision.label, decision.stable)
        case IdempotencyConflictError():
            return Given("conflict")
        case BudgetExhaustedError():
            return Given("exhausted")
        case Deferred():
            return Given("deferred")
        case _:
            raise AssertionError(decision)
