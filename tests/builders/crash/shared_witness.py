"""What the clients of several servers saw, in the order in which it was so.

A reply is held against everything that anybody had been told before its request was sent:
one server knows what another has acknowledged.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.builders.crash.witnessed import Witnessed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.data.vectors import Vector
    from tests.builders.crash.witnessed import Answer, Question, Reply


class Told(NamedTuple):
    """What clients had been told at a moment.

    Attributes:
        answered: the highest number of an answer.
        unstable: how many different unstable answers.
        sequence: the highest number of an entry.
        switched: whether the published classifier had answered.
        halted: whether a new vector had been refused for good.

    """

    answered: int = 0
    unstable: int = 0
    sequence: int = 0
    switched: bool = False
    halted: bool = False


@dataclass
class SharedWitness(Witnessed):
    """Everything asked of several servers and seen, with what was known before each request.

    Attributes:
        told: what clients have been told so far.
        hashes: of entries, by their numbers, as servers told them.

    """

    told: Told = field(default_factory=Told)
    hashes: dict[int, str] = field(default_factory=dict)
    _places: dict[Vector, int] = field(default_factory=dict)
    _before: threading.local = field(default_factory=threading.local)

    def begin(self) -> None:
        """Note what is known; this thread's next request is sent after it."""
        with self._lock:
            self._before.told = self.told
            self._before.seen = len(self.seen)

    @property
    def before(self) -> Told:
        """What was known before this thread's request was sent."""
        told: Told = self._before.told
        return told

    def assert_sound(self, refusals: Sequence[int]) -> None:
        """Check that there is no contradiction so far, and no refusal but those."""
        assert not self.contradictions, self.contradictions[:3]
        assert set(self.refused) <= set(refusals), f"refused by {dict(self.refused)}"

    def hear(self, question: Question, reply: Reply) -> None:
        """Note a whole reply, which may not be older than what was known before."""
        was_seen = self._places.get(question.vector, inf) < self._before.seen
        super().hear(question, reply)
        with self._lock:
            if "status" in reply:
                self._hear_refusal(question, reply["status"], was_seen=was_seen)
            elif reply["phase"] == "classifier":
                self.told = self.told._replace(switched=True)
            elif self.before.switched and question.key is None:
                self.contradictions.append(f"{question}: the ensemble answers after the switch")

    def hear_budget(self, budget: Mapping[str, Any]) -> None:
        """Hold a budget against what was known before it was asked for."""
        before, answered = self.before, budget["queries"]["answered"]
        shown = (answered, budget["unstable"]["count"], budget["ledger"]["sequence"])
        known = (before.answered, before.unstable, before.sequence)
        with self._lock:
            if any(one < other for one, other in zip(shown, known, strict=True)):
                self.contradictions.append(f"a budget shows {shown}, and {known} were known")
            if before.switched and (budget["phase"], budget["switching"]) != ("classifier", False):
                self.contradictions.append("a budget is of before the switch")
            if before.halted and budget["phase"] != "halted":
                self.contradictions.append("a budget is of before the halt")
        self.hear_head(budget["ledger"])

    def hear_newest(self, ledger: Mapping[str, Any]) -> None:
        """Hold the head of a ledger against what was known before it was asked for."""
        with self._lock:
            if ledger["sequence"] < self.before.sequence:
                self.contradictions.append(f"entry {self.before.sequence} was there before")
        self.hear_head(ledger)

    def hear_head(self, ledger: Mapping[str, Any]) -> None:
        """Note a head; an entry has one hash, whichever server tells it."""
        super().hear_head(ledger)
        sequence, entry_hash = ledger["sequence"], ledger["head"]
        with self._lock:
            if self.hashes.setdefault(sequence, entry_hash) != entry_hash:
                self.contradictions.append(f"entry {sequence} has two hashes")
            self.told = self.told._replace(sequence=max(self.told.sequence, sequence))

    def _hear_refusal(self, question: Question, status: int, *, was_seen: bool) -> None:
        if status != HTTPStatus.GONE:
            return
        self.told = self.told._replace(halted=True)
        if was_seen:
            self.contradictions.append(f"{question} is refused, and has an answer")

    def _hear_ensemble(self, question: Question, answer: Answer, *, replayed: bool) -> None:
        is_new = question.vector not in self.seen
        super()._hear_ensemble(question, answer, replayed=replayed)
        if is_new:
            self._places[question.vector] = len(self._places)
        told = self.told
        self.told = told._replace(
            answered=max(told.answered, answer.query_id),
            unstable=told.unstable + int(is_new and not answer.stable),
        )
