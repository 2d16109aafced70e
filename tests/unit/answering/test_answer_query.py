"""Batches on a real ledger: what is recorded, replayed, refused and contained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from app.answering.answer_query import Edge, Step
from app.answering.batch_decisions import DEFERRED
from app.answering.queries import Fresh
from app.errors import (
    BudgetExhaustedError,
    IdempotencyConflictError,
    InvariantError,
    LedgerUnavailableError,
)
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.privacy.voting.query_decision import Phase
from app.release.release import Release
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    VotesByMargin,
    ask,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.batch_decisions import Decision
    from app.ledger.entries.fold import LedgerState
    from tests.builders.ledger.faulty_ledger import Fault


def votes_of(answerer: RowAnswerer) -> VotesByMargin:
    """Return the ensemble double of an answerer."""
    assert isinstance(answerer.release.private_ensemble, VotesByMargin)
    return answerer.release.private_ensemble


def answers(decisions: Sequence[Decision]) -> list[RecordedAnswer]:
    """Return what was answered, fresh or replayed."""
    assert all(isinstance(decision, Fresh | RecordedAnswer) for decision in decisions)
    return [
        decision.recorded if isinstance(decision, Fresh) else decision
        for decision in decisions
        if isinstance(decision, Fresh | RecordedAnswer)
    ]


def test_a_batch_is_one_entry_of_a_contiguous_range(small_release: SmallRelease) -> None:
    """Fresh answers of one batch are one entry, their numbers from 1 without gaps."""
    answerer = small_release.answerer([STABLE, HIT, STABLE])
    before = answerer.release.state.head.sequence
    given = answers(answerer.answer_batch([ask(10), ask(-10), ask(3)]))
    assert given == [
        RecordedAnswer(1, 1, stable=True),
        RecordedAnswer(2, None, stable=False),
        RecordedAnswer(3, 1, stable=True),
    ]
    state = answerer.release.ledger.read_state()
    assert state.head.sequence == before + 1
    assert (state.answered, state.unstable) == (3, 1)


def test_replays_write_no_entry(small_release: SmallRelease) -> None:
    """A batch of recorded vectors and keys leaves the head where it is."""
    answerer = small_release.answerer([STABLE])
    first = answers(answerer.answer_batch([ask(10, "k")]))
    head = answerer.release.state.head
    again = [ask(10), ask(10, "k"), ask(10, "another")]
    assert answerer.answer_batch(again) == first * 3
    assert answerer.release.ledger.read_state().head == head


def test_each_unknown_vector_is_voted_on_once(small_release: SmallRelease) -> None:
    """Only vectors without a recorded answer are evaluated, and each once a batch."""
    answerer = small_release.answerer([STABLE] * 3)
    votes = votes_of(answerer)
    answerer.answer_batch([ask(10), ask(20), ask(10)])
    answerer.answer_batch([ask(20), ask(30)])
    answerer.answer_batch([ask(30)])
    assert votes.batch_sizes == [2, 1]


def test_vectors_that_differ_as_posted_are_different_queries(small_release: SmallRelease) -> None:
    """Clipping comes after the replay key: 60 and 70 are two queries, 1 and 1.0 are one."""
    answerer = small_release.answerer([STABLE] * 3)
    given = answers(answerer.answer_batch([ask(60), ask(70), ask(1), ask(1.0)]))
    assert [answer.query_id for answer in given] == [1, 2, 3, 3]


def test_a_key_alone_is_durable_without_an_entry(small_release: SmallRelease) -> None:
    """A new key on a recorded vector is known after a restart."""
    answerer = small_release.answerer([STABLE])
    answerer.answer_batch([ask(10)])
    answerer.answer_batch([ask(10, "k")])
    restarted = small_release.answerer()
    (conflict,) = restarted.answer_batch([ask(20, "k")])
    assert isinstance(conflict, IdempotencyConflictError)


def test_a_restart_replays_and_goes_on(small_release: SmallRelease) -> None:
    """After a restart old vectors replay, and numbers and counters go on."""
    answerer = small_release.answerer([HIT, STABLE])
    before = answers(answerer.answer_batch([ask(10, "k"), ask(20)]))
    restarted = small_release.answerer([HIT])
    assert restarted.answer_batch([ask(20), ask(10, "k"), ask(10)]) == [
        before[1],
        before[0],
        before[0],
    ]
    assert answers(restarted.answer_batch([ask(30)])) == [RecordedAnswer(3, None, stable=False)]
    assert restarted.phase is Phase.HALTED


def test_the_limit_is_met_exactly_across_restarts(small_release: SmallRelease) -> None:
    """With m_o = 4 and a restart between any two answers, the fifth query is deferred."""
    for number in range(1, 5):
        answerer = small_release.answerer([STABLE])
        (given,) = answers(answerer.answer_batch([ask(number)]))
        assert given.query_id == number
    assert small_release.answerer().answer_batch([ask(9)]) == [DEFERRED]


def test_a_halted_release_votes_on_nothing(small_release: SmallRelease) -> None:
    """After the halt new vectors are refused without an evaluation; the ensemble is let go."""
    answerer = small_release.answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    (refused, replayed) = answerer.answer_batch([ask(3), ask(2)])
    assert isinstance(refused, BudgetExhaustedError)
    assert replayed == RecordedAnswer(2, None, stable=False)
    assert answerer.release.private_ensemble is None


def test_an_entry_that_halts_is_obeyed(small_release: SmallRelease) -> None:
    """Where the ledger says that the release has halted, no counter revives it."""
    answerer = small_release.answerer([STABLE])
    answerer.answer_batch([ask(1)])
    with small_release.ledger().transaction() as transaction:
        transaction.append(ReleaseHalted(reason="its operator ended it"))
    (refused, replayed) = answerer.answer_batch([ask(2), ask(1)])
    assert isinstance(refused, BudgetExhaustedError)
    assert replayed == RecordedAnswer(1, 1, stable=True)
    assert small_release.answerer().phase is Phase.HALTED


# -- commits that fail ---------------------------------------------------------


def test_a_refused_commit_leaves_no_trace(small_release: SmallRelease) -> None:
    """A refused commit changes neither the ledger nor what is committed, keys included."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([HIT, STABLE], ledger=ledger)
    before = ledger.read_state()
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1, "k"), ask(2)])
    assert ledger.read_state() == before
    assert answerer.release.state == before
    assert answers(answerer.answer_batch([ask(2, "k")])) == [RecordedAnswer(2, 1, stable=True)]


def test_what_a_refused_commit_drew_is_never_drawn_again(small_release: SmallRelease) -> None:
    """On a full disk a refusal may tell of a hit, by its length: the hit stays, and counts."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([HIT] * 5, ledger=ledger)
    ledger.faults = ["refused"] * 5
    for _ in range(5):
        with pytest.raises(LedgerUnavailableError):
            answerer.answer_batch([ask(1)])
    assert answers(answerer.answer_batch([ask(2), ask(1)])) == [
        RecordedAnswer(2, None, stable=False),
        RecordedAnswer(1, None, stable=False),
    ]
    state = ledger.read_state()
    assert (state.answered, state.unstable, answerer.phase) == (2, 2, Phase.HALTED)
    verify(ledger)


def test_draws_of_a_refused_commit_come_after_another_process(small_release: SmallRelease) -> None:
    """They are numbered anew, what was answered meanwhile is left, and a halt ends them."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE, HIT, STABLE], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1), ask(2), ask(3)])
    other = small_release.answerer([HIT])
    assert answers(other.answer_batch([ask(1)])) == [RecordedAnswer(1, None, stable=False)]
    decisions = answerer.answer_batch([ask(1), ask(2), ask(3)])
    assert answers(decisions[:2]) == [
        RecordedAnswer(1, None, stable=False),
        RecordedAnswer(2, None, stable=False),
    ]
    assert isinstance(decisions[2], BudgetExhaustedError)
    verify(ledger)


def test_a_commit_of_unknown_outcome_is_found_by_the_next_batch(
    small_release: SmallRelease,
) -> None:
    """What did become durable replays; nothing is drawn twice and no number is skipped."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([HIT, STABLE, HIT], ledger=ledger)
    ledger.faults = ["lost"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1, "k"), ask(2)])
    decisions = answerer.answer_batch([ask(2), ask(1, "k"), ask(3), ask(4, "k")])
    assert answers(decisions[:3]) == [
        RecordedAnswer(2, 1, stable=True),
        RecordedAnswer(1, None, stable=False),
        RecordedAnswer(3, None, stable=False),
    ]
    assert isinstance(decisions[3], IdempotencyConflictError)
    assert answerer.phase is Phase.HALTED


def test_a_key_whose_commit_was_lost_is_found_again(small_release: SmallRelease) -> None:
    """A key has no entry, so the head tells nothing of it; it is looked up all the same."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE, STABLE], ledger=ledger)
    answerer.answer_batch([ask(1), ask(2)])
    ledger.faults = ["lost"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1, "k")])
    replayed, conflict = answerer.answer_batch([ask(1, "k"), ask(2, "k")])
    assert replayed == RecordedAnswer(1, 1, stable=True)
    assert isinstance(conflict, IdempotencyConflictError)


def test_a_key_whose_commit_was_lost_is_found_where_it_is_asked_again(
    small_release: SmallRelease,
) -> None:
    """It is not in memory, and the ledger has it: after the switch no batch would look for it."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE, STABLE], ledger=ledger)
    answerer.answer_batch([ask(1)])
    ledger.faults = ["lost"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1, "k")])
    asked = answerer.identified(ask(1, "k"))
    digests = asked.key_digests[0], asked.posted_digests[0], asked.vector_digests[0]
    assert answerer.replays.find_by_key(*digests) is None
    found = answerer.recorded(asked, ledger).find_by_key(*digests)
    assert found == RecordedAnswer(1, 1, stable=True)


@pytest.mark.parametrize("faults", [["lost", "lost"], ["refused", "lost"], ["lost", "refused"]])
def test_failures_in_a_row_keep_numbers_without_gaps(
    small_release: SmallRelease, faults: list[Fault | None]
) -> None:
    """Whatever happened to earlier commits, the ledger verifies and numbers have no gap."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE] * 6, ledger=ledger)
    ledger.faults = faults
    for margin in (1, 2):
        with pytest.raises(LedgerUnavailableError):
            answerer.answer_batch([ask(margin, str(margin))])
    given = answers(answerer.answer_batch([ask(3), ask(1), ask(2)]))
    assert sorted(answer.query_id for answer in given) == [1, 2, 3]
    verify(ledger, expect_head=None)


# -- two processes -------------------------------------------------------------


def test_two_processes_share_one_sequence(small_release: SmallRelease) -> None:
    """What one process answered, the other replays, and their numbers interleave."""
    first = small_release.answerer([STABLE, HIT])
    second = small_release.answerer([HIT])
    assert answers(first.answer_batch([ask(1)])) == [RecordedAnswer(1, 1, stable=True)]
    assert answers(second.answer_batch([ask(2), ask(1)])) == [
        RecordedAnswer(2, None, stable=False),
        RecordedAnswer(1, 1, stable=True),
    ]
    assert answers(first.answer_batch([ask(2), ask(3)])) == [
        RecordedAnswer(2, None, stable=False),
        RecordedAnswer(3, None, stable=False),
    ]
    (refused,) = second.answer_batch([ask(4)])
    assert isinstance(refused, BudgetExhaustedError)


def test_two_processes_share_keys(small_release: SmallRelease) -> None:
    """A key that another process stored, with or without an entry, is known."""
    first, second = small_release.answerer([STABLE] * 2), small_release.answerer([STABLE])
    first.answer_batch([ask(1)])
    second.answer_batch([ask(1, "k")])  # no entry tells of this key
    conflict, replayed = first.answer_batch([ask(2, "k"), ask(1, "k")])
    assert isinstance(conflict, IdempotencyConflictError)
    assert replayed == RecordedAnswer(1, 1, stable=True)


# -- what is seen ------------------------------------------------


def test_noise_that_fails_stops_the_release(small_release: SmallRelease) -> None:
    """Without noise there is no answer: the failure is one of integrity, nothing is written."""
    answerer = small_release.answerer([STABLE])
    before = answerer.release.ledger.read_state()
    with pytest.raises(InvariantError):
        answerer.answer_batch([ask(1), ask(2)])
    assert answerer.release.ledger.read_state() == before


def test_an_answer_is_found_before_the_phase_changes(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sees the release halted finds the answer that halted it."""
    answerer = small_release.answerer([HIT, HIT])
    adopt, found = Release.adopt, []

    def look(release: Release, state: LedgerState) -> None:
        asked = answerer.identified(ask(1, "k1"), ask(2, "k2"))
        for key, vector in zip(asked.key_digests, asked.vector_digests, strict=True):
            found.append(answerer.replays.find_by_vector(vector))
            found.append(answerer.replays.find_by_key(key, vector, vector))
        adopt(release, state)

    monkeypatch.setattr(Release, "adopt", look)
    answerer.answer_batch([ask(1, "k1"), ask(2, "k2")])
    assert None not in found


def test_one_line_is_logged_a_committed_batch(small_release: SmallRelease) -> None:
    """The line has counts and numbers, and neither features nor labels."""
    answerer = small_release.answerer([STABLE, HIT, HIT])
    with capture_logs() as lines:
        answerer.answer_batch([ask(7, "secret key"), ask(8)])
        answerer.answer_batch([ask(7), ask(8, "another")])
        answerer.answer_batch([ask(9)])
        assert not lines  # whoever gives the answers comes first
        answerer.tell_committed()
        answerer.tell_committed()
    assert lines == [
        {
            "event": "answers_committed",
            "log_level": "info",
            "count": count,
            "first_query_id": first,
            "last_query_id": first + count - 1,
            "entry_number": entry,
            "phase": phase,
        }
        for count, first, entry, phase in ((2, 1, 6, "ensemble"), (1, 3, 7, "halted"))
    ]


def test_nothing_is_logged_for_a_commit_that_failed(small_release: SmallRelease) -> None:
    """The line comes after the commit, never before."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE], ledger=ledger)
    ledger.faults = ["refused"]
    with capture_logs() as lines, pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(7)])
    answerer.tell_committed()
    assert lines == []


def test_the_steps_come_in_their_order(small_release: SmallRelease) -> None:
    """REPLAY, VOTE, STEP and COMMIT are observed on both sides, in this order."""
    release = small_release.answerer().release
    release.private_ensemble = VotesByMargin()
    seen: list[tuple[Step, Edge]] = []
    noise = small_release.answerer([STABLE])._noise
    answerer = RowAnswerer(release, noise, lambda step, edge: seen.append((step, edge)))
    answerer.answer_batch([ask(1)])
    steps = (Step.REPLAY, Step.VOTE, Step.STEP, Step.COMMIT)
    assert seen == [(step, edge) for step in steps for edge in Edge]


def test_a_vector_without_values_is_answered(small_release: SmallRelease) -> None:
    """A query of missing values only is a query like any other."""
    answerer = small_release.answerer([STABLE])
    assert answers(answerer.answer_batch([ask(None, group=None)])) == [
        RecordedAnswer(1, 0, stable=True)
    ]
