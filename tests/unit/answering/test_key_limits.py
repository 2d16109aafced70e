"""Limits of keys: exact, whatever the batches, the restarts and the failures."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from app.answering.batch_decisions import Deferred
from app.answering.queries import Asker, Fresh, Query
from app.errors import KeyLimitError, LedgerUnavailableError
from app.ledger.api_key_counts import KeyCount
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, VotesByMargin, ask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.answering.batch_decisions import Decision
    from tests.builders.ledger.faulty_ledger import Fault

WEB = Asker("web", answer_limit=2)
DESK = Asker("desk")


def by(asker: Asker, margin: float, key: str | None = None) -> Query:
    """Return a query of that many votes more than half, with a key of the server."""
    return replace(ask(margin, key), asker=asker)


def kinds(decisions: Sequence[Decision]) -> list[type]:
    """Return what became of each query."""
    return [type(decision) for decision in decisions]


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_a_key_gets_as_many_answers_as_its_limit(
    small_release: SmallRelease, batch_size: int
) -> None:
    """The answer that reaches the limit is given, the next is refused, others are served."""
    answerer = small_release.answerer([STABLE] * 4)
    asked = [by(WEB, 1), by(WEB, 2), by(WEB, 3), by(DESK, 4), by(WEB, 5)]
    decisions: list[Decision] = []
    for begin in range(0, len(asked), batch_size):
        decisions += answerer.answer_batch(asked[begin : begin + batch_size])
    assert kinds(decisions) == [Fresh, Fresh, KeyLimitError, Fresh, KeyLimitError]
    assert answerer.key_counts == {"web": KeyCount(2), "desk": KeyCount(1)}
    ledger = answerer.release.ledger
    assert ledger.key_counts() == answerer.key_counts
    assert ledger.read_state().answered == 3
    verify(ledger)


def test_a_refusal_draws_nothing_and_costs_nothing(small_release: SmallRelease) -> None:
    """A key at its limit moves neither the ledger's head nor the votes."""
    answerer = small_release.answerer([STABLE, STABLE])
    answerer.answer_batch([by(WEB, 1), by(WEB, 2)])
    votes, head = answerer.release.private_ensemble, answerer.release.ledger.read_state().head
    assert isinstance(votes, VotesByMargin)
    asked = list(votes.batch_sizes)
    assert kinds(answerer.answer_batch([by(WEB, 3, "k")])) == [KeyLimitError]
    assert votes.batch_sizes == asked
    assert answerer.release.ledger.read_state().head == head
    assert answerer.release.ledger.known_keys([answerer.release.digests.of_key("k")]) == []


def test_replays_are_free_at_the_limit_too(small_release: SmallRelease) -> None:
    """A recorded vector, whoever asked it first, and a new key on it count for nobody."""
    answerer = small_release.answerer([STABLE] * 3)
    answerer.answer_batch([by(WEB, 1), by(WEB, 2), by(DESK, 3)])
    again = [by(WEB, 1), by(WEB, 1, "new"), by(WEB, 1, "new"), by(WEB, 3), by(DESK, 1)]
    assert kinds(answerer.answer_batch(again)) == [RecordedAnswer] * 5
    assert answerer.key_counts == {"web": KeyCount(2), "desk": KeyCount(1)}


def test_a_vector_that_one_key_may_not_ask_is_answered_to_another(
    small_release: SmallRelease,
) -> None:
    """In one batch the key at its limit is refused, and after the other's answer replays it."""
    answerer = small_release.answerer([STABLE] * 3)
    answerer.answer_batch([by(WEB, 1), by(WEB, 2)])
    decided = answerer.answer_batch([by(WEB, 3), by(DESK, 3), by(WEB, 3)])
    assert kinds(decided) == [KeyLimitError, Fresh, RecordedAnswer]
    assert answerer.key_counts == {"web": KeyCount(2), "desk": KeyCount(1)}


def test_the_unstable_answer_that_reaches_the_limit_is_given(
    small_release: SmallRelease,
) -> None:
    """Unstable answers have a limit of their own; stable ones do not count there."""
    careful = Asker("web", unstable_limit=1)
    answerer = small_release.answerer([STABLE, HIT, STABLE])
    decided = answerer.answer_batch([by(careful, margin) for margin in (1, 2, 3)])
    assert kinds(decided) == [Fresh, Fresh, KeyLimitError]
    assert "1 unstable answers" in str(decided[2])
    assert answerer.key_counts == {"web": KeyCount(2, 1)}
    assert kinds(answerer.answer_batch([by(DESK, 3)])) == [Fresh]


def test_a_limit_of_nothing_gives_nothing(small_release: SmallRelease) -> None:
    """A key with limit 0 may replay and no more."""
    answerer = small_release.answerer([STABLE])
    nobody = Asker("nobody", answer_limit=0)
    assert kinds(answerer.answer_batch([by(nobody, 1)])) == [KeyLimitError]
    answerer.answer_batch([ask(1)])
    assert kinds(answerer.answer_batch([by(nobody, 1)])) == [RecordedAnswer]


def test_counts_survive_a_restart_and_a_raised_limit_goes_on(small_release: SmallRelease) -> None:
    """A process that starts anew counts on, and so does a key with another limit."""
    answerer = small_release.answerer([STABLE, STABLE])
    answerer.answer_batch([by(WEB, 1), by(WEB, 2)])
    answerer.release.ledger.close()
    again = small_release.answerer([STABLE])
    assert again.key_counts == {"web": KeyCount(2)}
    assert kinds(again.answer_batch([by(WEB, 3)])) == [KeyLimitError]
    raised = replace(WEB, answer_limit=3)
    assert kinds(again.answer_batch([by(raised, 3), by(raised, 4)])) == [Fresh, KeyLimitError]
    assert again.key_counts == {"web": KeyCount(3)}


@pytest.mark.parametrize("fault", ["refused", "lost"])
def test_an_answer_whose_commit_failed_is_counted_once(
    small_release: SmallRelease, fault: Fault
) -> None:
    """Whether or not the commit happened, the answer counts for its key, and once."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE] * 3, ledger=ledger)
    ledger.faults = [fault]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([by(WEB, 1)])
    assert kinds(answerer.answer_batch([by(WEB, 1)])) == [RecordedAnswer]
    assert answerer.key_counts == {"web": KeyCount(1)}
    assert kinds(answerer.answer_batch([by(WEB, 2), by(WEB, 3)])) == [Fresh, KeyLimitError]
    assert ledger.key_counts() == {"web": KeyCount(2)}


def test_a_halt_and_a_switch_come_before_a_limit(small_release: SmallRelease) -> None:
    """Who is at a limit is told that the release has ended, and is served by what follows."""
    answerer = small_release.answerer([HIT, HIT])
    answerer.answer_batch([by(WEB, 1), by(WEB, 2)])
    (decided,) = answerer.answer_batch([by(WEB, 3)])
    assert not isinstance(decided, KeyLimitError | Fresh)


def test_after_the_switch_a_limit_holds_nobody_back(tmp_path: Path) -> None:
    """The published classifier answers without limit, a key at its limit too."""
    release = SmallRelease(tmp_path, {"answers__queries": "2"})
    answerer = release.answerer([STABLE, STABLE])
    answerer.answer_batch([by(WEB, 1), by(WEB, 2)])
    assert kinds(answerer.answer_batch([by(WEB, 3)])) == [Deferred]


def test_no_entry_tells_who_asked(small_release: SmallRelease) -> None:
    """The public ledger of a release with keys is that of one without, byte by byte."""
    answerer = small_release.answerer([STABLE, HIT])
    answerer.answer_batch([by(WEB, 1, "k"), by(DESK, 2)])
    text = str(answerer.release.ledger.public_entries(0, 100))
    assert "web" not in text
    assert "desk" not in text


def test_threads_that_ask_at_once_get_no_more_than_the_limit(tmp_path: Path) -> None:
    """Two answerers of one ledger, each on a thread, give a key exactly its limit."""
    release = SmallRelease(tmp_path, {"answers__queries": "100", "answers__cutoff": "90"})
    limited = Asker("web", answer_limit=20)
    answerers = [release.answerer([STABLE] * 40), release.answerer([STABLE] * 40)]
    given: list[Decision] = []

    def ask_all(number: int) -> None:
        for margin in range(20):
            given.extend(answerers[number].answer_batch([by(limited, margin + number * 0.5)]))

    threads = [threading.Thread(target=ask_all, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kinds(given).count(Fresh) == 20
    assert kinds(given).count(KeyLimitError) == 20
    assert answerers[0].release.ledger.key_counts() == {"web": KeyCount(20)}
