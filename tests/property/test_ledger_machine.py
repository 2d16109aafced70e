"""Two ledgers in one database, each against a deliberately simple model: lists and counters.

Every step is tried on both.  What the model allows must be committed and read
back; what it does not must be refused and leave no trace.  Restarts, a second
process and a transaction that its caller abandons come in between, and turns of
the other release, which asks the same vectors with the same keys.  What each has come
to is then read by verify and by the program for strangers, which must say the same.
"""

from __future__ import annotations

import copy
import shutil
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.ledger.entries.entry_kinds import (
    ReleaseClosed,
    ReleaseHalted,
    ReleaseReopened,
    ShareCharged,
    ShareReserved,
    threshold_noise_name,
)
from app.ledger.entries.fold import DELTA_KEY, EPSILON_KEY
from app.ledger.ledger import RELEASE_SECRET, open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.releases import opened
from tests.docs.verify_exported_ledger import check
from tests.property.ledger_driver import LedgerDriver
from tests.property.ledger_model import Model

if TYPE_CHECKING:
    from app.ledger.ledger import Transaction
    from tests.builders.ledger.postgresql_server import PostgresqlServer

CLOSINGS = ["backup", "backup", "moving", "retired"]
MECHANISMS = st.sampled_from(["relabel", "answers", "classifier", "statistics"])
STATEMENT = {EPSILON_KEY: "2", DELTA_KEY: "1/500000"}
TENTHS = st.integers(0, 6)
OUTCOMES = st.sampled_from([(0, True), (1, True), (None, False), (1, False)])


class AbandonedError(Exception):
    """Raised inside a transaction that must leave no trace."""


class LedgerMachine(LedgerDriver):
    """Drives two ledgers in a database and their models side by side, one at a time."""

    def teardown(self) -> None:
        """Verify both ledgers from entry one, as a stranger does too, and remove the folder."""
        self.adds_up()
        if self.resting is not None:
            self.turn()
            self.says_what_the_model_says()
            self.adds_up()
            self.turn()
            self.resting[1].close()
        self.ledger.close()
        shutil.rmtree(self.folder)

    def adds_up(self) -> None:
        """Let verify and the program of ``docs/ledger-format.md`` say the same."""
        report = verify(self.ledger)
        entries = self.ledger.public_entries(0, 1000)
        if entries:
            assert check(entries) == (
                f"{report.head.sequence} entries, head {report.head.hash}, "
                f"answered {report.answered}, unstable {report.unstable}\n"
            )

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
        self.begin(queries, cutoff, b"s" * 32)
        if serving:
            self.charge("answers", 6)
            self.fit(b"trees", has_threshold=has_threshold)

    def begin(self, queries: int | None, cutoff: int | None, secret: bytes) -> None:
        """Open the release of this turn."""
        self.model = Model(queries=queries, cutoff=cutoff)
        self.model.private[RELEASE_SECRET] = secret
        with self.ledger.transaction() as transaction:
            event = opened(
                name=self.name,
                queries=queries,
                cutoff=cutoff,
                private_digests={RELEASE_SECRET: transaction.put_private(RELEASE_SECRET, secret)},
                parameters=None if self.name == "first" else STATEMENT,
            )
            transaction.append(event)

    @precondition(lambda self: self.resting is None)
    @rule(queries=st.sampled_from([None, 4]), cutoff=st.sampled_from([None, 2]))
    def open_another(self, queries: int | None, cutoff: int | None) -> None:
        """Open a second release in the database, as far as its ensemble, while the first rests."""
        self.resting = self.name, self.ledger, self.model
        self.name = "second"
        self.ledger = self.open()
        self.begin(queries, cutoff, b"t" * 32)
        self.charge("answers", 6)
        self.fit(b"stumps", has_threshold=False)

    @precondition(lambda self: self.resting is not None)
    @rule()
    def turn(self) -> None:
        """Go on with the release that rested."""
        resting = self.resting
        assert resting is not None
        self.resting = self.name, self.ledger, self.model
        self.name, self.ledger, self.model = resting

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

    @rule(body=st.binary(max_size=20))
    def release_statistics(self, body: bytes) -> None:
        """Release a statistics table, before the first answer or after the last."""
        allowed = "statistics" in self.model.charged and self.model.may_open_table()
        if self.append_private({"statistics-points": body}, allowed=allowed):
            self.model.tabled = True

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
        closed, allowed = self.model.closed, self.model.may_close(how)
        self.model.closed = None if allowed else closed
        if self.append(event, allowed=allowed):
            self.model.closed = closed or how

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
        assert (state.statistics is not None) == model.tabled
        assert (state.halted is not None) == model.halted
        assert (state.closed is not None) == (model.closed is not None)
        assert (state.ended_epoch, state.refreshed_at) == (model.ended_epoch, model.refreshed_at)
        self.reads_what_the_model_holds()

    def reads_what_the_model_holds(self) -> None:
        """Compare the tables beside the entries."""
        found = [
            (row.vector, row.answer.label, row.answer.stable)
            for row in self.ledger.answers_after(0)
        ]
        assert found == self.model.answers
        assert dict(self.ledger.keys()) == self.model.keys
        noises = [threshold_noise_name(count) for count in range(self.model.unstable + 2)]
        names = ("ensemble", "classifier-draw", "student", "statistics-points", "abandoned")
        for name in (RELEASE_SECRET, *names, *noises):
            assert self.ledger.private(name) == self.model.private.get(name)


def tenths(epsilon: str) -> int:
    """Return an exact cost in tenths."""
    return int(Fraction(epsilon) * 10)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
LONG_EXAMPLES = 200


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_many_ledgers_say_what_the_model_says() -> None:
    """The same, ten times as often."""
    run_state_machine_as_test(
        LedgerMachine, settings=settings(max_examples=LONG_EXAMPLES, stateful_step_count=25)
    )


@pytest.mark.parametrize(
    "examples", [pytest.param(4, id="some"), pytest.param(50, marks=pytest.mark.long, id="many")]
)
@pytest.mark.timeout(1200)
def test_ledgers_in_postgresql_say_what_the_model_says(
    postgresql: PostgresqlServer, examples: int
) -> None:
    """What holds of ledgers in a file holds of ledgers there: the same machine drives them."""
    prepared = postgresql.create_database()
    open_ledger(prepared, create=True).close()
    made: list[str] = []

    def new_database() -> str:
        made.append(postgresql.copy_database(prepared))
        return made[-1]

    try:
        run_state_machine_as_test(
            lambda: LedgerMachine(new_database),  # type: ignore[arg-type]  # whatever makes one
            settings=settings(
                max_examples=examples, stateful_step_count=25, phases=(Phase.generate,)
            ),
        )
    finally:
        for address in (prepared, *made):
            postgresql.drop_database(address)
