"""A failure after votes were cast: contained, told to nobody, and the end of the release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import CONTAINED, FAILED_AFTER_VOTE
from app.answering.queries import Fresh
from app.errors import BudgetExhaustedError, ContainedError
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.ledger.verification import verify
from app.privacy.voting.query_decision import Phase
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.release.small_release import STABLE, SmallRelease, VotesByMargin, ask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tests.builders.ledger.faulty_ledger import Fault


MARKER = "a private value"


class FailingVotes(VotesByMargin):
    """Fails on every query, with a text that must not get out."""

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Fail."""
        raise ValueError(MARKER, values)


def _fail(*_: object) -> None:
    raise ValueError(MARKER)


def test_a_failing_vote_is_contained(small_release: SmallRelease) -> None:
    """A failure after VOTE has one fixed text and no cause, and nothing is charged or answered."""
    answerer = small_release.answerer([STABLE])
    before = answerer.release.ledger.read_state()
    answerer.release.private_ensemble = FailingVotes()
    with pytest.raises(ContainedError) as contained:
        answerer.answer_batch([ask(1)])
    assert str(contained.value) == CONTAINED
    assert contained.value.__cause__ is None
    assert contained.value.__suppress_context__
    after = answerer.release.ledger.read_state()
    assert (after.answered, after.unstable) == (before.answered, before.unstable)
    assert after.charged == before.charged


def test_a_failing_vote_halts_for_good(small_release: SmallRelease) -> None:
    """The halt is an entry: a restart replays what it gave and evaluates nothing again."""
    answerer = small_release.answerer([STABLE])
    (given,) = answerer.answer_batch([ask(1)])
    answerer.release.private_ensemble = FailingVotes()
    with pytest.raises(ContainedError):
        answerer.answer_batch([ask(2)])
    halted = answerer.release.ledger.read_state().halted
    assert halted == ReleaseHalted(reason=FAILED_AFTER_VOTE)
    restarted = small_release.answerer()
    assert restarted.phase is Phase.HALTED
    assert restarted.release.private_ensemble is None
    replayed, refused = restarted.answer_batch([ask(1), ask(2)])
    assert isinstance(given, Fresh)
    assert replayed == given.recorded
    assert isinstance(refused, BudgetExhaustedError)
    verify(restarted.release.ledger)


def test_a_failure_before_any_vote_does_not_halt(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails before models see a query, or for a replay, tells nothing of them."""
    answerer = small_release.answerer([STABLE])
    answerer.answer_batch([ask(1)])
    monkeypatch.setattr(answerer, "_step", _fail)
    for query in (ask(1), ask(1, "key")):
        with pytest.raises(ContainedError):
            answerer.answer_batch([query])
    assert answerer.release.ledger.read_state().halted is None


@pytest.mark.parametrize("fault", ["refused", "lost"])
def test_a_halt_that_cannot_be_recorded_stops_the_process(
    small_release: SmallRelease, fault: Fault
) -> None:
    """Where the ledger takes no entry either, the caller gets the same fixed text."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE], ledger=ledger)
    answerer.release.private_ensemble = FailingVotes()
    ledger.faults = [None, fault]
    with pytest.raises(ContainedError):
        answerer.answer_batch([ask(1)])
    assert (ledger.read_state().halted is None) == (fault == "refused")
