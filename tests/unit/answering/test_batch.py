"""A batch decides query by query: idempotency key, recorded vector, phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.batch_decisions import DEFERRED, Batch
from app.answering.queries import Fresh
from app.answering.replays import ReplayIndex
from app.errors import BudgetExhaustedError, IdempotencyConflictError
from app.ledger.ledger import RecordedAnswer
from app.noise.scripted import ScriptedNoise
from app.privacy.stability import mechanism as stability
from app.privacy.voting.query_decision import Parameters, Phase, Sequel, State
from app.privacy.voting.tallies import PrivateValues
from app.privacy.voting.votes import Tally
from tests.builders.release.small_release import HIT, STABLE, ask, identified

if TYPE_CHECKING:
    from app.answering.batch_decisions import Decision

HALT, CLASSIFIER = Sequel.HALT, Sequel.CLASSIFIER
NAMES = (b"a", b"b", b"c", b"d", b"e", b"f")
OLD = RecordedAnswer(query_id=1, label=1, stable=True)


def decide(decided: Batch, name: str, key: str | None = None) -> Decision:
    """Decide one query whose digests are readable names."""
    (decision,) = decided.decide(identified([ask(0, key)], [name.encode()]))
    return decision


def batch(
    *words: int,
    state: State = State(1, 0),  # noqa: B008 -- a frozen value
    after: Sequel = CLASSIFIER,
    on_cutoff: Sequel = HALT,
    coin: bool = False,
) -> Batch:
    """Return a batch after one answer, of "old" with the key "k-old"; T = 2, m_o = 4."""
    replays = ReplayIndex()
    replays.add(b"old", OLD)
    replays.add_keys([(b"k-old", b"old")])
    return Batch(
        parameters=Parameters(
            answering=stability.Parameters((1,), 2),
            class_count=2,
            answer_limit=4,
            after=after,
            on_cutoff=on_cutoff,
            unstable_gets_coin=coin,
        ),
        state=state,
        replays=replays,
        private_values=PrivateValues(list(NAMES), [Tally(1, 30, (20, 80))] * len(NAMES)),
        noise=ScriptedNoise(words),
    )


def recorded(decision: Decision) -> RecordedAnswer:
    """Return the answer of a fresh or replayed decision."""
    assert isinstance(decision, Fresh | RecordedAnswer)
    return decision.recorded if isinstance(decision, Fresh) else decision


def test_fresh_answers_are_numbered_in_order() -> None:
    """New vectors get consecutive numbers after the committed ones."""
    decided = batch(STABLE, HIT)
    first, second = decide(decided, "a"), decide(decided, "b")
    assert recorded(first) == RecordedAnswer(2, 1, stable=True)
    assert recorded(second) == RecordedAnswer(3, None, stable=False)
    assert [*decided.fresh] == [first, second]
    assert decided.state == State(3, 1)


def test_new_answers_in_columns_are_those_of_a_list() -> None:
    """Answers added one by one are found by their places, from either end, and in parts."""
    decided = batch(STABLE, HIT, STABLE)
    given = [decide(decided, name) for name in "abc"]
    fresh = decided.fresh
    assert len(fresh) == len(given)
    assert [fresh[place] for place in (0, 1, 2, -1)] == [*given, given[-1]]
    assert [*fresh[1:]] == given[1:]
    with pytest.raises(IndexError):
        fresh[3]


def test_a_vector_asked_twice_in_a_batch_is_answered_once() -> None:
    """The second asker gets the first one's answer, without a draw or a count."""
    decided = batch(HIT)
    fresh = decide(decided, "a")
    again = decide(decided, "a")
    assert isinstance(fresh, Fresh)
    assert again == fresh.recorded
    assert decided.state == State(2, 1)


def test_a_committed_vector_replays_without_a_draw() -> None:
    """A recorded vector costs nothing and changes nothing."""
    decided = batch()
    assert decide(decided, "old") is OLD
    assert [*decided.fresh] == []
    assert decided.new_keys == {}


def test_a_new_key_on_a_recorded_vector_is_kept() -> None:
    """The key is to be stored beside the answer that it repeats."""
    decided = batch()
    assert decide(decided, "old", "k-new") is OLD
    assert decided.new_keys == {b"k-new": b"old"}


def test_a_known_key_on_its_vector_is_not_stored_again() -> None:
    """A recorded key replays and leaves nothing to write."""
    decided = batch()
    assert decide(decided, "old", "k-old") is OLD
    assert decided.new_keys == {}


@pytest.mark.parametrize("state", [State(1, 0), State(2, 2), State(4, 1)])
def test_a_known_key_on_another_vector_conflicts_in_every_phase(state: State) -> None:
    """The key is checked first: before the vector is looked up, and before the phase."""
    decided = batch(state=state)
    assert isinstance(decide(decided, "a", "k-old"), IdempotencyConflictError)
    assert [*decided.fresh] == []


def test_a_key_of_the_same_batch_conflicts_too() -> None:
    """Two vectors under one new key: the first is answered, the second refused."""
    decided = batch(STABLE)
    assert isinstance(decide(decided, "a", "k"), Fresh)
    assert isinstance(decide(decided, "b", "k"), IdempotencyConflictError)
    assert isinstance(decide(decided, "old", "k"), IdempotencyConflictError)
    assert decided.new_keys == {b"k": b"a"}


def test_a_key_and_its_vector_may_come_twice_in_a_batch() -> None:
    """A client that repeats itself within a batch gets one answer."""
    decided = batch(STABLE)
    fresh = decide(decided, "a", "k")
    assert decide(decided, "a", "k") == recorded(fresh)


def test_two_keys_may_stand_for_one_vector() -> None:
    """Each key of a vector leads to its one answer."""
    decided = batch(STABLE)
    fresh = decide(decided, "a", "k1")
    assert decide(decided, "a", "k2") == recorded(fresh)
    assert decided.new_keys == {b"k1": b"a", b"k2": b"a"}


def test_the_last_unstable_answer_is_given_and_the_next_refused() -> None:
    """The T-th hit is answered; new vectors after it are refused, recorded ones replay."""
    decided = batch(HIT, HIT)
    assert not recorded(decide(decided, "a")).stable
    last = decide(decided, "b")
    assert not recorded(last).stable
    assert decided.phase is Phase.HALTED
    assert isinstance(decide(decided, "c", "k"), BudgetExhaustedError)
    assert decide(decided, "b") == recorded(last)
    assert decide(decided, "old", "k-new") is OLD
    assert decided.new_keys == {b"k-new": b"old"}
    assert decided.state == State(3, 2)


def test_the_answer_that_meets_the_limit_is_given() -> None:
    """Answer m_o is the ensemble's; the next query waits for the classifier."""
    decided = batch(STABLE, STABLE, STABLE)
    answers = [recorded(decide(decided, name)) for name in "abc"]
    assert [answer.query_id for answer in answers] == [2, 3, 4]
    assert decided.phase is Phase.CLASSIFIER
    assert decide(decided, "d") is DEFERRED


def test_after_the_switch_a_recorded_vector_is_the_classifiers() -> None:
    """In phase classifier vectors do not replay, even those of this batch, and leave no key."""
    decided = batch(STABLE, state=State(3, 0))
    decide(decided, "a")
    assert decide(decided, "a") is DEFERRED
    assert decide(decided, "old", "k-new") is DEFERRED
    assert decided.new_keys == {}


def test_after_the_switch_a_recorded_key_still_replays() -> None:
    """A key recorded before the switch replays, one of this very batch included."""
    decided = batch(STABLE, state=State(3, 0))
    fresh = decide(decided, "a", "k")
    assert decided.phase is Phase.CLASSIFIER
    assert decide(decided, "a", "k") == recorded(fresh)
    assert decide(decided, "old", "k-old") is OLD
    assert isinstance(decide(decided, "old", "k"), IdempotencyConflictError)


@pytest.mark.parametrize(
    ("after", "on_cutoff", "expected"),
    [(CLASSIFIER, HALT, Phase.HALTED), (HALT, CLASSIFIER, Phase.CLASSIFIER)],
)
def test_the_cutoff_decides_where_both_limits_are_met(
    after: Sequel, on_cutoff: Sequel, expected: Phase
) -> None:
    """Where answer m_o is hit T as well, ``on_cutoff`` says what follows."""
    decided = batch(HIT, state=State(3, 1), after=after, on_cutoff=on_cutoff)
    decide(decided, "a")
    assert decided.phase is expected


def test_a_halted_state_refuses_whatever_its_counters_say() -> None:
    """A release that an entry halted gives no fresh answer."""
    decided = batch(STABLE, state=State(1, 0, halted=True))
    assert isinstance(decide(decided, "a"), BudgetExhaustedError)
    assert decide(decided, "old") is OLD


def test_a_coin_is_part_of_the_recorded_answer() -> None:
    """An unstable answer's coin is drawn once and repeated on replay."""
    decided = batch(HIT, 1 << 63, coin=True)
    fresh = decide(decided, "a")
    assert recorded(fresh) == RecordedAnswer(2, 1, stable=False)
    assert decide(decided, "a") == recorded(fresh)


def test_a_refused_query_leaves_no_key() -> None:
    """Neither a conflict nor a halt binds a new key to a vector."""
    decided = batch(state=State(2, 2))
    decide(decided, "a", "k")
    decide(decided, "b", "k-old")
    assert decided.new_keys == {}
