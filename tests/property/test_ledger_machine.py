"""The ledger against a deliberately simple model: lists, sets and two counters.

Every step is tried on both.  What the model allows must be committed and read
back; what it does not must be refused and leave no trace.  Restarts, a second
process and a transaction that its caller abandons come in between.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from app.errors import InvariantError
from app.ledger.events import (
    ClassifierPublished,
    EnsembleFitted,
    LedgerEvent,
    ReleaseClosed,
    ReleaseHalted,
    ReleaseReopened,
    ShareCharged,
    ShareReserved,
    StudentPublished,
    ThresholdRefreshed,
    threshold_noise_name,
)
from app.ledger.store import RELEASE_SECRET, Ledger, RecordedAnswer, open_ledger
from app.ledger.verify import verify
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.property.ledger_model import Model
from tests.unit.ledger.releases import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ledger.store import Transaction

CLOSINGS = ["backup", "backup", "moving", "retired"]
MECHANISMS = st.sampled_from(["relabel", "answers", "classifier"])
TENTHS = st.integers(0, 6)
OUTCOMES = st.sampled_from([(0, True), (1, True), (None, False), (1, False)])


class AbandonedError(Exception):
    """Raised inside a transaction that must leave no trace."""


class LedgerMachine(RuleBasedStateMachine):
    """Drives a ledger in a file and the model side by side."""

    def __init__(self) -> None:
        """Make a folder for the file."""
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="conclave-ledger-"))
        self.ledger = self.open()
        self.model = Model(queries=None, cutoff=None)

    def open(self) -> Ledger:
        """Open the file as a new process would."""
        noise = ScriptedNoise(seeded_words(3))
        return open_ledger(f"sqlite:///{self.folder / 'l.db'}", create=True, noise=noise)

    def teardown(self) -> None:
        """Verify the ledger from entry one, and remove the folder."""
        verify(self.ledger)
        self.ledger.close()
        shutil.rmtree(self.folder)

    @initialize(
        queries=st.sampled_from([None, 1, 5, 12]),
        cutoff=st.sampled_from([None, 1, 2, 3]),
        serving=st.sampled_from([True, True, True, False]),
        has_threshold=st.booleans(),
    )
    def open_release(
        self, queries: int | None, cutoff: int | None, *, serving: bool, has_threshold: bool
    ) -> None:
        """Open the release, without any share or as far as its ensemble."""
        self.model = Model(queries=queries, cutoff=cutoff)
        self.model.private[RELEASE_SECRET] = b"s" * 32
        with self.ledger.transaction() as transaction:
            digest = transaction.put_private(RELEASE_SECRET, b"s" * 32)
            bound = {RELEASE_SECRET: digest}
            transaction.append(opened(queries=queries, cutoff=cutoff, private_digests=bound))
        if serving:
            self.charge("answers", 6)
            self.fit(b"trees", has_threshold=has_threshold)

    @rule(mechanism=MECHANISMS, tenths=TENTHS)
    def charge(self, mechanism: str, tenths: int) -> None:
        """Spend a share."""
        event = ShareCharged(mechanism=mechanism, epsilon=f"{tenths}/10", delta="0")
        if self.append(event, allowed=self.model.may_charge(mechanism, tenths)):
            self.model.charged[mechanism] = tenths
            self.model.reserved.pop(mechanism, None)

    @rule(mechanism=MECHANISMS, tenths=TENTHS)
    def reserve(self, mechanism: str, tenths: int) -> None:
        """Set a share aside."""
        event = ShareReserved(mechanism=mechanism, epsilon=f"0.{tenths}", delta="0")
        if self.append(event, allowed=self.model.may_reserve(mechanism, tenths)):
            self.model.reserved[mechanism] = tenths

    @rule(body=st.binary(max_size=20), has_threshold=st.booleans())
    def fit(self, body: bytes, *, has_threshold: bool) -> None:
        """Fit the ensemble, with a piece of private state and perhaps a threshold's noise."""
        allowed = not self.model.fitted and "answers" in self.model.charged
        pieces = {"ensemble": body}
        if has_threshold:
            pieces[threshold_noise_name(0)] = b"noise 0"
        if self.append_private(pieces, allowed=allowed):
            self.model.fitted = True

    @rule(body=st.binary(max_size=20))
    def publish(self, body: bytes) -> None:
        """Publish a classifier, with a piece of private state."""
        allowed = not self.model.published and "classifier" in self.model.charged
        if self.append_private({"classifier-draw": body}, allowed=allowed):
            self.model.published = True

    @rule(body=st.binary(max_size=20))
    def publish_a_student(self, body: bytes) -> None:
        """Publish a student, which needs no charge, after the ensemble's last answer."""
        if self.append_private({"student": body}, allowed=self.model.may_teach()):
            self.model.published = True

    @precondition(lambda self: self.model.fitted)
    @rule(outcomes=st.lists(OUTCOMES, min_size=2, max_size=5))
    def answer_a_batch(self, outcomes: list[tuple[int | None, bool]]) -> None:
        """Give several answers at once: the rule that matters, so there are two."""
        self.answer(outcomes, keyed=False)

    @rule(outcomes=st.lists(OUTCOMES, max_size=2), keyed=st.booleans())
    def answer(self, outcomes: list[tuple[int | None, bool]], *, keyed: bool) -> None:
        """Give answers to fresh vectors, some with an idempotency key."""
        rows = self.rows(outcomes)
        allowed = self.model.may_answer(outcomes)

        def write(transaction: Transaction) -> None:
            transaction.record_answers(rows)
            if keyed:
                transaction.record_key(self.key(rows[0].vector), rows[0].vector_digest)

        if self.commit(write, allowed=allowed, entry_count=1):
            self.model.answer(rows)
            if keyed:
                self.model.keys[self.key(rows[0].vector)] = rows[0].vector_digest

    @precondition(lambda self: threshold_noise_name(0) in self.model.private)
    @rule(outcomes=st.lists(OUTCOMES, min_size=1, max_size=3), off=st.sampled_from([0, 0, 0, 1]))
    def answer_and_refresh(self, outcomes: list[tuple[int | None, bool]], off: int) -> None:
        """Give answers and, in the same transaction, the noise after their hits."""
        rows = self.rows(outcomes)
        trial = copy.deepcopy(self.model)
        allowed = trial.may_answer(outcomes)
        trial.answer(rows)
        noise_after = trial.unstable + off
        allowed = allowed and trial.may_refresh(noise_after)

        def write(transaction: Transaction) -> None:
            transaction.record_answers(rows)
            self.put_threshold_noise(transaction, noise_after)

        if self.commit(write, allowed=allowed, entry_count=2):
            self.model.answer(rows)
            self.adopt_threshold_noise(noise_after)

    @rule(off=st.sampled_from([0, 0, 1]))
    def refresh(self, off: int) -> None:
        """Change the threshold's noise in a transaction of its own."""
        noise_after = self.model.unstable + off

        def write(transaction: Transaction) -> None:
            self.put_threshold_noise(transaction, noise_after)

        if self.commit(write, allowed=self.model.may_refresh(noise_after), entry_count=1):
            self.adopt_threshold_noise(noise_after)

    @precondition(lambda self: self.model.answers)
    @rule(number=st.integers(0, 3))
    def add_key(self, number: int) -> None:
        """Keep a further key beside a recorded answer, at most once."""
        vector = self.model.answers[number % len(self.model.answers)][0]
        key_digest = self.key(b"further" + vector)
        vector_digest = self.ledger.digests.of_vector(vector)

        def write(transaction: Transaction) -> None:
            transaction.record_key(key_digest, vector_digest)

        allowed = key_digest not in self.model.keys
        if self.commit(write, allowed=allowed, entry_count=0):
            self.model.keys[key_digest] = vector_digest

    @precondition(lambda self: len(self.model.answers) > 4)
    @rule()
    def halt(self) -> None:
        """Halt the release."""
        if self.append(ReleaseHalted(reason="stopped"), allowed=not self.model.halted):
            self.model.halted = True

    @precondition(lambda self: len(self.model.answers) > 2)
    @rule(how=st.sampled_from(CLOSINGS))
    def close_ledger(self, how: str) -> None:
        """Close the ledger as a backup, for good, or to be moved."""
        event = ReleaseClosed(
            reason="backup" if how == "backup" else "retired",
            transfer="cd" * 32 if how == "moving" else None,
        )
        if self.append(event, allowed=True):
            self.model.closed = how

    @rule(reason=st.sampled_from(["moved", "newest"]))
    def reopen(self, reason: Literal["moved", "newest"]) -> None:
        """Go on after a closing."""
        closed, allowed = self.model.closed, self.model.may_reopen(reason)
        self.model.closed = None if allowed else closed
        self.append(ReleaseReopened(reason=reason), allowed=allowed)

    @rule(outcomes=st.lists(OUTCOMES, min_size=1, max_size=3))
    def abandon(self, outcomes: list[tuple[int | None, bool]]) -> None:
        """Raise inside a transaction that has written."""
        rows = self.rows(outcomes)

        def write(transaction: Transaction) -> None:
            transaction.put_private("abandoned", b"1")
            if self.model.may_answer(outcomes) and self.model.closed is None:
                transaction.record_answers(rows)
            raise AbandonedError

        with pytest.raises(AbandonedError), self.ledger.transaction() as transaction:
            write(transaction)

    @rule()
    def restart(self) -> None:
        """Close the ledger and open it as the next process does."""
        self.ledger.close()
        self.ledger = self.open()

    @rule()
    def write_from_elsewhere(self) -> None:
        """Go on in another process while this one stays open, then come back."""
        here, self.ledger = self.ledger, self.open()
        self.answer([(0, True)], keyed=False)
        self.ledger.close()
        self.ledger = here

    @invariant()
    def says_what_the_model_says(self) -> None:
        """State, answers, keys and private state are the model's."""
        state, model = self.ledger.read_state(), self.model
        if state.release is None:
            return
        assert state.head.sequence == model.entry_count
        assert (state.answered, state.unstable) == (len(model.answers), model.unstable)
        assert {share.mechanism: tenths(share.epsilon) for share in state.charged} == model.charged
        assert {
            share.mechanism: tenths(share.epsilon) for share in state.reserved
        } == model.reserved
        assert (state.ensemble is not None) == model.fitted
        assert (state.classifier is not None) == model.published
        assert (state.halted is not None) == model.halted
        assert (state.closed is not None) == (model.closed is not None)
        assert (state.ended_epoch, state.refreshed_at) == (model.ended_epoch, model.refreshed_at)
        self.reads_what_the_model_holds()

    def reads_what_the_model_holds(self) -> None:
        """Compare the tables beside the entries."""
        found = [(row.vector, row.label, row.stable) for row in self.ledger.answers_after(0)]
        assert found == self.model.answers
        assert dict(self.ledger.keys()) == self.model.keys
        noises = [threshold_noise_name(count) for count in range(self.model.unstable + 2)]
        names = (RELEASE_SECRET, "ensemble", "classifier-draw", "student", "abandoned")
        for name in (*names, *noises):
            assert self.ledger.private(name) == self.model.private.get(name)

    def append(self, event: LedgerEvent, *, allowed: bool) -> bool:
        """Append one event."""

        def write(transaction: Transaction) -> None:
            transaction.append(event)

        return self.commit(write, allowed=allowed, entry_count=1)

    def append_private(self, pieces: dict[str, bytes], *, allowed: bool) -> bool:
        """Put pieces of private state, and the event that binds them."""

        def write(transaction: Transaction) -> None:
            bound = {name: transaction.put_private(name, body) for name, body in pieces.items()}
            if "ensemble" in pieces:
                transaction.append(EnsembleFitted(size=3, private_digests=bound))
            elif "student" in pieces:
                transaction.append(StudentPublished(classifier="{}", private_digests=bound))
            else:
                transaction.append(ClassifierPublished(classifier="{}", private_digests=bound))

        committed = self.commit(write, allowed=allowed, entry_count=1)
        if committed:
            self.model.private |= pieces
        return committed

    def put_threshold_noise(self, transaction: Transaction, noise_after: int) -> None:
        """Put a threshold's noise, and the event that binds it."""
        name = threshold_noise_name(noise_after)
        bound = {name: transaction.put_private(name, b"noise %d" % noise_after)}
        transaction.append(ThresholdRefreshed(private_digests=bound))

    def adopt_threshold_noise(self, noise_after: int) -> None:
        """Let the model hold a threshold's noise that was committed."""
        self.model.ended_epoch, self.model.refreshed_at = None, noise_after
        self.model.private[threshold_noise_name(noise_after)] = b"noise %d" % noise_after

    def commit(
        self, write: Callable[[Transaction], None], *, allowed: bool, entry_count: int
    ) -> bool:
        """Write in a transaction; return whether it was committed, which must be as allowed."""
        allowed = allowed and (self.model.closed is None or entry_count == 0)
        try:
            with self.ledger.transaction() as transaction:
                write(transaction)
        except InvariantError:
            assert not allowed
            return False
        assert allowed
        self.model.entry_count += entry_count
        if entry_count:
            self.model.ended_epoch = None
        return True

    def rows(self, outcomes: list[tuple[int | None, bool]]) -> list[RecordedAnswer]:
        """Return answers to the next vectors."""
        numbers = range(len(self.model.answers) + 1, len(self.model.answers) + 1 + len(outcomes))
        vectors = [b"vector %d" % number for number in numbers]
        return [
            RecordedAnswer(number, self.ledger.digests.of_vector(vector), vector, label, stable)
            for number, vector, (label, stable) in zip(numbers, vectors, outcomes, strict=True)
        ]

    def key(self, text: bytes) -> bytes:
        """Return the digest of an idempotency key."""
        return self.ledger.digests.of_key(text.decode())


def tenths(epsilon: str) -> int:
    """Return an exact cost in tenths."""
    return int(Fraction(epsilon) * 10)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
