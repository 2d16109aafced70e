"""What the clients of one release asked and saw, over every life of its server."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from app.data.vectors import decode_key
from app.ledger.database.database import is_shared
from app.ledger.entries.chain import Head
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.releases import url_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np

    from app.data.vectors import Vector
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger
    from tests.builders.server.http_release import SmallRelease

Reply: TypeAlias = dict[str, Any]
RECENT_COUNT = 64


class Question(NamedTuple):
    """A vector with or without an idempotency key."""

    vector: Vector
    key: str | None

    def line(self) -> dict[str, object]:
        """Return it as a line of a stream."""
        asked: dict[str, object] = {"features": self.vector}
        return asked if self.key is None else asked | {"idempotency_key": self.key}


class Answer(NamedTuple):
    """What an answer of the ensemble says, however often it is given."""

    query_id: int
    label: str | None
    stable: bool


@dataclass
class Witnessed:
    """Everything asked and seen; a contradiction is kept, and told by ``check``.

    Attributes:
        asked: every question, in the order of asking.
        seen: answers of the ensemble by vector.
        keys: idempotency keys of the answers seen.
        unanswered: questions whose reply never came.
        refused: problems by status.
        classified: answers of the published classifier.
        head: the newest head of the ledger that anybody was told.
        heard: replies of any kind.
        lost: when each request was sent, by the monotonic clock, whose reply did not come whole.

    """

    asked: list[Question] = field(default_factory=list)
    seen: dict[Vector, Answer] = field(default_factory=dict)
    keys: dict[str, Vector] = field(default_factory=dict)
    unanswered: set[Question] = field(default_factory=set)
    refused: Counter[int] = field(default_factory=Counter)
    classified: int = 0
    head: Head | None = None
    heard: int = 0
    lost: list[float] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    _fresh: set[Vector] = field(default_factory=set)
    _vectors: dict[int, Vector] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, vector: Vector, *, with_key: bool) -> Question:
        """Note that a vector is about to be asked."""
        with self._lock:
            question = Question(vector, f"key-{len(self.asked)}" if with_key else None)
            self.asked.append(question)
            self.unanswered.add(question)
        return question

    def draw(self, generator: np.random.Generator, *, recent: bool) -> Question:
        """Return a question asked before: any, or one that may be under way."""
        count = len(self.asked)
        first = max(0, count - RECENT_COUNT) if recent else 0
        return self.asked[int(generator.integers(first, count))]

    def hear(self, question: Question, reply: Reply) -> None:
        """Note a whole reply: an answer, or a problem."""
        with self._lock:
            self.heard += 1
            if "status" in reply:
                self.refused[reply["status"]] += 1
                return
            self.unanswered.discard(question)
            if reply["phase"] == "classifier":
                self._hear_classifier(question)
            else:
                answer = Answer(reply["query_id"], reply["label"], reply["stable"])
                self._hear_ensemble(question, answer, replayed=reply["replayed"])

    def hear_head(self, ledger: Mapping[str, Any]) -> None:
        """Note the head of the ledger as ``GET /budget`` tells it."""
        with self._lock:
            if self.head is None or self.head.sequence < ledger["sequence"]:
                self.head = Head(ledger["sequence"], ledger["head"])

    def _hear_classifier(self, question: Question) -> None:
        self.classified += 1
        if question.key in self.keys:
            self.contradictions.append(f"{question} was recorded, and was answered anew")

    def _hear_ensemble(self, question: Question, answer: Answer, *, replayed: bool) -> None:
        vector = question.vector
        if self.seen.setdefault(vector, answer) != answer:
            self.contradictions.append(f"{question}: {self.seen[vector]}, then {answer}")
        if self._vectors.setdefault(answer.query_id, vector) != vector:
            self.contradictions.append(f"{question} has the number of another: {answer}")
        if not replayed and vector in self._fresh:
            self.contradictions.append(f"{question} was answered afresh twice")
        if not replayed:
            self._fresh.add(vector)
        if question.key is not None:
            self.keys[question.key] = vector

    def answered_questions(self, *, with_key_only: bool) -> list[Question]:
        """Return every answered vector once for each of its keys, or without where it has none."""
        with self._lock:
            keys, seen = dict(self.keys), set(self.seen)
        questions = [Question(vector, key) for key, vector in keys.items()]
        if with_key_only:
            return questions
        return questions + [Question(vector, None) for vector in seen - set(keys.values())]

    def check(
        self, release: SmallRelease, *, refusals: tuple[int, ...] = (HTTPStatus.GONE,)
    ) -> LedgerState:
        """Verify the ledger that a process left, hold it to all this, and return its state."""
        assert self.contradictions == []
        assert set(self.refused) <= set(refusals)
        settings = release.settings()
        url = settings.ledger_url
        if not is_shared(url):
            url = url_of(_copy(release))
        ledger = open_ledger(url, create=False)
        try:
            verify(ledger, None if self.head is None else self.head.hash)
            state = ledger.read_state()
            self._check_answers(ledger, state, classes=settings.data.classes)
            recorded_keys = dict(ledger.keys())
            for key in self.keys:
                assert ledger.digests.of_key(key) in recorded_keys
        finally:
            ledger.close()
        assert state.answered <= settings.answers.queries
        assert state.unstable <= settings.answers.cutoff
        assert self.head is None or self.head.sequence <= state.head.sequence
        return state

    def _check_answers(
        self, ledger: Ledger, state: LedgerState, *, classes: tuple[str, ...]
    ) -> None:
        """Check that what is recorded was asked, once each, and that nothing seen is missing."""
        rows = list(ledger.answers_after(0))
        assert [row.answer.query_id for row in rows] == list(range(1, state.answered + 1))
        recorded = {
            decode_key(vector): Answer(
                given.query_id, None if given.label is None else classes[given.label], given.stable
            )
            for _, vector, given, _ in rows
        }
        assert len(recorded) == len(rows)
        assert recorded.keys() <= {question.vector for question in self.asked}
        assert self.seen.items() <= recorded.items(), "an answer seen is not recorded"
        assert state.unstable == sum(not answer.stable for answer in recorded.values())
        charged = [share.mechanism for share in state.charged]
        assert charged == ["relabel", "answers", "classifier"][: len(charged)]
        assert len(charged) == (2 if state.classifier is None else 3) or state.has_last_answer


def _copy(release: SmallRelease) -> Path:
    """Copy the database and its log, which a reader of the original would tidy up.

    So it is the next server that finds them as the kill left them.
    """
    folder = release.folder / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for suffix in ("", "-wal"):
        original = release.ledger.with_name(release.ledger.name + suffix)
        if original.exists():
            shutil.copy(original, folder)
    return folder / release.ledger.name
