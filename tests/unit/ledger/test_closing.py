"""Closing a ledger: nothing follows but a reopening, and that where it may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from app.errors import LedgerCorruptError
from app.ledger.entries.chain import next_entry, read_event
from app.ledger.entries.entry_kinds import (
    EnsembleFitted,
    LedgerEvent,
    ReleaseClosed,
    ReleaseHalted,
    ReleaseReopened,
    StatisticsReleased,
    StudentPublished,
    ThresholdRefreshed,
)
from app.ledger.entries.fold import EMPTY, fold
from tests.builders.ledger.releases import DOCUMENT, opened, shares
from tests.unit.ledger.entries.test_fold import (
    CLASSIFIER_CHARGED,
    ENDED,
    HALTED,
    PUBLISHED,
    SERVING,
    answers,
    fold_all,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

BACKUP = ReleaseClosed(reason="backup")
RETIRED = ReleaseClosed(reason="retired")
MOVING = ReleaseClosed(reason="retired", transfer="cd" * 32)
MOVED = ReleaseReopened(reason="moved")
NEWEST = ReleaseReopened(reason="newest")
FOLLOWING: tuple[LedgerEvent, ...] = (
    answers(1, [True]),
    CLASSIFIER_CHARGED,
    PUBLISHED,
    HALTED,
    BACKUP,
    RETIRED,
    EnsembleFitted(size=1, private_digests={}),
    StudentPublished(classifier=DOCUMENT),
    StatisticsReleased(statistics="{}", private_digests={}),
    ThresholdRefreshed(private_digests={}),
    shares()[2],
)
REFUSED = {
    "a ledger that is open is reopened": ([NEWEST], "that is not closed"),
    "a ledger that is open is moved": ([MOVED], "that is not closed"),
    "a reopened ledger is reopened": ([BACKUP, NEWEST, NEWEST], "that is not closed"),
    "a backup is moved": ([BACKUP, MOVED], "closed for good"),
    "a retired ledger is the newest": ([RETIRED, NEWEST], "closed for good"),
    "a retired ledger without a code is moved": ([RETIRED, MOVED], "closed for good"),
    "a retired ledger with a code is the newest": ([MOVING, NEWEST], "closed for good"),
    "a copy of a retired ledger is the newest": ([RETIRED, BACKUP, NEWEST], "closed for good"),
    "a copy of one with a code is the newest": ([MOVING, BACKUP, NEWEST], "closed for good"),
    "a copy of a retired ledger is moved": ([RETIRED, BACKUP, MOVED], "closed for good"),
    "a copy of a retired ledger is retired": ([RETIRED, BACKUP, MOVING], "comes after"),
    "a backup has a code": (
        [ReleaseClosed(reason="backup", transfer="cd" * 32)],
        "lets a code reopen what was not retired",
    ),
}


@pytest.mark.parametrize("closed", [BACKUP, RETIRED, MOVING], ids=["backup", "retired", "moving"])
@pytest.mark.parametrize(
    "event", FOLLOWING, ids=[f"{number} {each.KIND}" for number, each in enumerate(FOLLOWING)]
)
def test_nothing_follows_a_closing(closed: ReleaseClosed, event: LedgerEvent) -> None:
    """All is refused but that a copy of what was retired says so, and is as retired as before."""
    state = fold_all([*SERVING, closed])
    assert state.closed == closed
    if event == BACKUP and closed.reason == "retired":
        copied = fold(state, next_entry(state.head, event))
        assert msgspec.structs.replace(copied, head=state.head) == state
        return
    with pytest.raises(LedgerCorruptError, match="comes after ReleaseClosed"):
        fold(state, next_entry(state.head, event))


@pytest.mark.parametrize(
    "events", [SERVING, [*ENDED, answers(1, [True, True])], [*SERVING, HALTED], [opened()]]
)
@pytest.mark.parametrize(
    ("closed", "reopened"), [([BACKUP], NEWEST), ([MOVING], MOVED), ([MOVING, BACKUP], MOVED)]
)
def test_a_reopened_ledger_says_what_it_said(
    events: Sequence[LedgerEvent], closed: Sequence[LedgerEvent], reopened: ReleaseReopened
) -> None:
    """Wherever it was closed, a ledger that goes on has every counter and charge of before."""
    before = fold_all(events)
    after = fold_all([*events, *closed, reopened])
    for field in before.__struct_fields__:
        assert field == "head" or getattr(after, field) == getattr(before, field)


def test_answers_go_on_after_a_reopening() -> None:
    """The next answer of a reopened ledger has the next number, and it may be closed again."""
    state = fold_all([*SERVING, answers(1, [True]), BACKUP, NEWEST, answers(2, [True]), MOVING])
    assert (state.answered, state.closed) == (2, MOVING)


@pytest.mark.parametrize(("events", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_may_not_reopen_is_refused(events: list[LedgerEvent], problem: str) -> None:
    """Only a backup is reopened as the newest, and only by a code what was retired with one."""
    state = fold_all([*SERVING, *events[:-1]])
    with pytest.raises(LedgerCorruptError, match=problem):
        fold(state, next_entry(state.head, events[-1]))


@pytest.mark.parametrize("reason", ["", "Backup", "moved"])
def test_a_reason_of_ones_own_does_not_fit(reason: str) -> None:
    """A closing has one of two fixed reasons; the entry of any other is refused."""
    entry = next_entry(EMPTY.head, ReleaseClosed(reason=reason))  # type: ignore[arg-type]  # the claim
    with pytest.raises(LedgerCorruptError, match="does not fit its kind, ReleaseClosed"):
        read_event(entry)


def test_a_halted_release_may_be_closed() -> None:
    """What was halted can be retired, and stays halted where it goes on elsewhere."""
    state = fold_all([*SERVING, ReleaseHalted(reason="stopped"), MOVING, MOVED])
    assert state.halted is not None
    assert state.closed is None
