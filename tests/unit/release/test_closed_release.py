"""A closed ledger: recorded answers and the published classifier, and nothing fresh."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from app.answering.batch_decisions import DEFERRED
from app.answering.queries import Fresh
from app.errors import (
    BudgetExhaustedError,
    IntegrityError,
    InvariantError,
    SwitchingError,
    VerificationError,
)
from app.ledger.entries.entry_kinds import ReleaseClosed, ReleaseReopened
from app.ledger.ledger import RecordedAnswer
from app.privacy.voting.query_decision import Phase
from app.release import opening as open_release
from app.release.classifier.publish_at_once import check_learnable
from app.release.classifier.switch import (
    classifier_of,
    draw_classifier,
    switch_phase,
)
from app.release.release import CLASSIFIER_SERVES, CLOSED, REPLAYS, warn_if_ended
from app.release.statistics.opening_table import check_openable
from tests.builders.release.served import replay, run, serving
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    SmallRelease,
    ask,
    scripted_noise,
    seeded_noise,
)

if TYPE_CHECKING:
    from pathlib import Path

    from app.answering.answer_query import QueryAnswerer
    from app.ledger.entries.entry_kinds import LedgerEvent

BACKUP = ReleaseClosed(reason="backup")
RETIRED = ReleaseClosed(reason="retired")
BOTH = pytest.mark.parametrize("closed", [BACKUP, RETIRED], ids=["backup", "retired"])
SWITCHING = {
    "answers__on_cutoff": "classifier",
    "privacy__shares__classifier": "0.3",
    "privacy__shares__answers": "0.6",
}


class CrashError(Exception):
    """Ends a process in the middle of an opening."""


def _crash(*_: object, **__: object) -> object:
    raise CrashError


def append(answerer: QueryAnswerer, event: LedgerEvent) -> None:
    """Append an entry as a command beside the server does."""
    with answerer.release.ledger.transaction() as transaction:
        transaction.append(event)


@BOTH
def test_a_closed_ledger_replays_and_refuses(
    small_release: SmallRelease, closed: ReleaseClosed
) -> None:
    """Recorded vectors and keys get their answers after a start; a new vector casts no vote."""
    answerer = small_release.answerer([STABLE, HIT])
    given = answerer.answer_batch([ask(1, "key"), ask(2)])
    append(answerer, closed)
    again = small_release.answerer(())
    assert again.phase is Phase.HALTED
    assert again.release.private_ensemble is None
    replayed = again.answer_batch([ask(1), ask(1, "key"), ask(2, "new"), ask(3)])
    assert all(isinstance(each, Fresh) for each in given)
    assert [each.query_id for each in replayed if isinstance(each, RecordedAnswer)] == [1, 1, 2]
    assert isinstance(replayed[-1], BudgetExhaustedError)


@BOTH
def test_a_server_beside_notices_the_closing(
    small_release: SmallRelease, closed: ReleaseClosed
) -> None:
    """A server that was answering casts no vote from the closing entry on."""
    answerer = small_release.answerer([STABLE])
    answerer.answer_batch([ask(1)])
    append(answerer, closed)
    refused, replayed = answerer.answer_batch([ask(2), ask(1)])
    assert isinstance(refused, BudgetExhaustedError)
    assert isinstance(replayed, RecordedAnswer)
    assert answerer.phase is Phase.HALTED
    assert answerer.release.ledger.read_state().answered == 1


@BOTH
def test_a_ledger_closed_before_the_switch_draws_nothing(
    tmp_path: Path, closed: ReleaseClosed
) -> None:
    """After the last answer a closed release without a classifier is halted, and never switches."""
    answerer = SmallRelease(tmp_path, SWITCHING).answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    assert answerer.release.is_switching
    append(answerer, closed)
    again = SmallRelease(tmp_path, SWITCHING).answerer(())
    assert again.phase is Phase.HALTED
    assert not again.release.is_switching
    assert not again.release.may_draw
    assert again.release.private_rows is None
    refused, replayed = again.answer_batch([ask(3), ask(1)])
    assert isinstance(refused, BudgetExhaustedError)
    assert isinstance(replayed, RecordedAnswer)


@BOTH
def test_a_closed_ledger_serves_what_was_published(tmp_path: Path, closed: ReleaseClosed) -> None:
    """A classifier that is out goes on answering: what is published is anybody's."""
    answerer = SmallRelease(tmp_path, SWITCHING).answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    switch_phase(answerer.release, seeded_noise())
    append(answerer, closed)
    again = SmallRelease(tmp_path, SWITCHING).answerer(())
    assert again.phase is Phase.CLASSIFIER
    assert again.answer_batch([ask(3)]) == [DEFERRED]
    said: list[str] = []
    warn_if_ended(again.release, said.append)
    assert said == [f"{CLOSED[closed.reason]}: {CLASSIFIER_SERVES}"]


def test_a_start_says_that_the_ledger_is_closed(small_release: SmallRelease) -> None:
    """The operator is told in one line, and told nothing of a ledger that is open."""
    answerer = small_release.answerer(())
    said: list[str] = []
    warn_if_ended(answerer.release, said.append)
    append(answerer, BACKUP)
    warn_if_ended(small_release.open(), said.append)
    assert said == [f"{CLOSED['backup']}: {REPLAYS}"]


@BOTH
def test_a_ledger_closed_before_its_ensemble_does_not_open(
    small_release: SmallRelease, closed: ReleaseClosed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opening that was charged and not drawn is never drawn from a closed ledger."""
    monkeypatch.setattr(open_release, "draw_ensemble", _crash)
    with pytest.raises(CrashError):
        small_release.open()
    with small_release.ledger().transaction() as transaction:
        transaction.append(closed)
    with pytest.raises(VerificationError, match="casts no vote and draws nothing any more"):
        small_release.open(noise=scripted_noise())


@BOTH
def test_learning_from_a_closed_ledger_is_refused(tmp_path: Path, closed: ReleaseClosed) -> None:
    """``conclave learn`` is refused in a line, before a row is read or a share is charged."""
    release = SmallRelease(tmp_path, SWITCHING)
    answerer = release.answerer(())
    append(answerer, closed)
    with pytest.raises(VerificationError, match="draws nothing any more"):
        check_learnable(release.configuration(), answerer.release.ledger)


@BOTH
def test_opening_statistics_of_a_closed_ledger_is_refused(
    tmp_path: Path, closed: ReleaseClosed
) -> None:
    """``conclave statistics`` is refused likewise where no table is open, after the end too."""
    changes = {"privacy__shares__statistics": "0.1", "privacy__shares__answers": "0.5"}
    release = SmallRelease(tmp_path, {**changes, "answers__after": "halt"})
    answerer = release.answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    assert answerer.release.must_open_statistics
    append(answerer, closed)
    assert not release.open().must_open_statistics
    with pytest.raises(VerificationError, match="draws nothing any more"):
        check_openable(release.configuration(), answerer.release.ledger, has_points=False)


def test_a_reopened_ledger_goes_on(small_release: SmallRelease) -> None:
    """After a reopening the ensemble answers on, with the numbers and counters of before."""
    answerer = small_release.answerer([STABLE])
    answerer.answer_batch([ask(1)])
    append(answerer, BACKUP)
    append(answerer, ReleaseReopened(reason="newest"))
    again = small_release.answerer([HIT])
    replayed, fresh = again.answer_batch([ask(1), ask(2)])
    assert isinstance(replayed, RecordedAnswer)
    assert isinstance(fresh, Fresh)
    assert fresh.recorded.query_id == 2


def test_a_closed_ledger_takes_no_entry(small_release: SmallRelease) -> None:
    """Whatever would be appended to a closed ledger is refused where it is written."""
    answerer = small_release.answerer(())
    append(answerer, RETIRED)
    with pytest.raises(InvariantError):
        append(answerer, RETIRED)


@BOTH
def test_a_draw_that_a_closing_overtakes_publishes_nothing(
    tmp_path: Path, closed: ReleaseClosed
) -> None:
    """Closed between the charge and the publication, the draw is refused in the closing's words."""
    answerer = SmallRelease(tmp_path, SWITCHING).answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    release = answerer.release
    publication = classifier_of(release.configuration, release.ledger)
    assert publication.charge()
    drawn = draw_classifier(release, seeded_noise())
    append(answerer, closed)
    with pytest.raises(VerificationError, match=CLOSED[closed.reason]):
        publication.publish(drawn)
    with pytest.raises(VerificationError, match=CLOSED[closed.reason]):
        publication.charge()


TABLE = {
    "answers__on_cutoff": "halt",
    "answers__after": "halt",
    "privacy__shares": '{"relabel": 0.1, "answers": 0.7, "classifier": 0, "statistics": 0.2}',
}


@pytest.mark.parametrize(
    "changes",
    [SWITCHING, {"answers__on_cutoff": "student"}, TABLE],
    ids=["classifier", "student", "table"],
)
def test_a_server_whose_ledger_is_closed_before_its_draw_goes_on(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    """Not stopped: it draws, trains and counts nothing, repeats answers and refuses the rest."""
    release, stopped = SmallRelease(tmp_path, changes), list[IntegrityError]()
    is_closed = threading.Event()

    def close() -> None:
        with release.ledger().transaction() as transaction:
            if transaction.state.closed is None:
                transaction.append(RETIRED)
        is_closed.set()

    async def test() -> None:
        async with serving(release, [HIT, HIT], before_switch=close, stopped=stopped) as service:
            await service.answer_many([ask(1), ask(2)])
            await asyncio.to_thread(is_closed.wait)
            refused, replayed = await service.answer_many([ask(3), ask(1)])
            while isinstance(refused, SwitchingError):  # who waited for the draw is told to return
                refused, replayed = await service.answer_many([ask(3), ask(1)])
            assert isinstance(refused, BudgetExhaustedError)
            assert replayed == replay(1, None, stable=False)

    run(test())
    assert not stopped
    state = release.ledger().read_state()
    assert (state.closed, state.classifier, state.statistics) == (RETIRED, None, None)
