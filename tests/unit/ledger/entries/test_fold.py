"""The fold: what entries establish, and a table of what does not follow."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from app.errors import LedgerCorruptError
from app.ledger.entries.chain import next_entry
from app.ledger.entries.entry_kinds import (
    AnswersReleased,
    ClassifierPublished,
    EnsembleFitted,
    LedgerEvent,
    ReleaseHalted,
    ShareCharged,
    ShareReserved,
    StudentPublished,
    ThresholdRefreshed,
    VectorsAsked,
)
from app.ledger.entries.fold import CELL, EMPTY, REPLAYED_BY, LedgerState, fold
from tests.builders.ledger.releases import DOCUMENT, opened, shares

if TYPE_CHECKING:
    from collections.abc import Sequence

FITTED = EnsembleFitted(size=8, private_digests={"ensemble": "cd" * 32})
CLASSIFIER_CHARGED = ShareCharged(mechanism="classifier", epsilon="0.3", delta="0")
PUBLISHED = ClassifierPublished(classifier=DOCUMENT)
STUDENT = StudentPublished(classifier=DOCUMENT, private_digests={"student": "ef" * 32})
ENDED = [opened(queries=2), *shares(), FITTED]
HALTED = ReleaseHalted(reason="stopped")
REFRESHING = replace(
    FITTED, private_digests={**FITTED.private_digests, "threshold-noise-0": "00" * 32}
)


def answers(first: int, stable: Sequence[bool]) -> AnswersReleased:
    """Return answers that are stable or not as said."""
    return AnswersReleased(
        first_query_id=first,
        digests=[f"{first + index:032x}" for index in range(len(stable))],
        labels=[0 if is_stable else None for is_stable in stable],
        stable=list(stable),
    )


def refreshed(unstable_count: int) -> ThresholdRefreshed:
    """Return the refreshment after so many unstable answers."""
    name, digest = f"threshold-noise-{unstable_count}", f"{unstable_count:064x}"
    return ThresholdRefreshed(private_digests={name: digest})


def asked(first: int, query_ids: Sequence[int]) -> VectorsAsked:
    """Return vectors from a number on that got these answers."""
    return VectorsAsked(
        first_number=first,
        digests=[f"{first + place:032x}" for place in range(len(query_ids))],
        query_ids=list(query_ids),
        private_digests={f"asked-vectors-{first}": f"{first:064x}"},
    )


def fold_all(events: Sequence[LedgerEvent]) -> LedgerState:
    """Fold events from nothing."""
    state = EMPTY
    for event in events:
        state = fold(state, next_entry(state.head, event))
    return state


SERVING: list[LedgerEvent] = [opened(), *shares(), FITTED]
DECIDING: list[LedgerEvent] = [opened(parameters={REPLAYED_BY: CELL}), *shares(), FITTED]
EPOCHS: list[LedgerEvent] = [opened(cutoff=9), *shares(), REFRESHING]


def test_vectors_are_counted_and_the_newest_piece_is_bound() -> None:
    """Of the pieces of vectors, the newest alone is kept in the state."""
    state = fold_all([*DECIDING, answers(1, [True]), asked(1, [1, 1]), asked(3, [1])])
    assert (state.answered, state.asked, state.decides_cells) == (1, 3, True)
    assert [name for name in state.private_digests if "asked" in name] == ["asked-vectors-3"]


def test_balances_are_folded_from_entries() -> None:
    """Counters, charges and what is set aside follow from the entries."""
    state = fold_all([*SERVING, answers(1, [True, False]), answers(3, [True])])
    assert (state.answered, state.unstable) == (3, 1)
    assert [share.mechanism for share in state.charged] == ["relabel", "answers"]
    assert [share.mechanism for share in state.reserved] == ["classifier"]
    assert state.ensemble == FITTED
    assert state.head.sequence == len(SERVING) + 2
    assert state.private_digests == FITTED.private_digests


def test_share_moves_from_set_aside_to_spent() -> None:
    """The classifier's share is set aside until it is charged, and spent after."""
    state = fold_all([*SERVING, CLASSIFIER_CHARGED, PUBLISHED])
    assert state.reserved == ()
    assert sum(Fraction(share.epsilon) for share in state.charged) == 1
    assert state.reserve_of("classifier") is None
    assert state.charge_of("classifier") == CLASSIFIER_CHARGED
    assert state.classifier == PUBLISHED


@pytest.mark.parametrize("stable", [[True, True], [False] * 2 + [True, False]])
def test_a_student_follows_the_last_answer_without_a_charge(stable: list[bool]) -> None:
    """After the limit, or after the cutoff, it is the published classifier and costs nothing."""
    events = ENDED if len(stable) == 2 else SERVING
    before = fold_all([*events, answers(1, stable)])
    state = fold_all([*events, answers(1, stable), STUDENT])
    assert state.classifier == STUDENT
    assert (state.charged, state.reserved) == (before.charged, before.reserved)
    assert state.private_digests["student"] == "ef" * 32


def test_unstable_answer_at_the_cutoff_is_given() -> None:
    """The answer that reaches the cutoff is legal as the last of its range."""
    state = fold_all([*SERVING, answers(1, [False, True, False, True, False])])
    assert (state.answered, state.unstable) == (5, 3)


def test_unlimited_release_has_no_counter_to_exceed() -> None:
    """Without a limit and a cutoff any number of answers is legal."""
    unlimited = [opened(queries=None, cutoff=None), *shares(), FITTED]
    assert fold_all([*unlimited, answers(1, [False] * 5000)]).unstable == 5000


def test_answers_go_on_beside_a_published_classifier() -> None:
    """A classifier may be published before the ensemble's last answer."""
    events = [*SERVING, CLASSIFIER_CHARGED, PUBLISHED, answers(1, [True])]
    assert fold_all(events).answered == 1


def test_a_threshold_is_refreshed_after_each_entry_with_an_unstable_answer() -> None:
    """Stable answers go on under the same noise; hits bind the next, in place of the last."""
    state = fold_all(
        [
            *EPOCHS,
            answers(1, [True]),
            answers(2, [True, False]),
            refreshed(1),
            answers(4, [True]),
            answers(5, [False, True, False]),
            refreshed(3),
        ]
    )
    assert (state.unstable, state.refreshed_at, state.ended_epoch) == (3, 3, None)
    names = {name for name in state.private_digests if name.startswith("threshold")}
    assert names == {"threshold-noise-0", "threshold-noise-3"}


def test_one_threshold_is_never_refreshed() -> None:
    """Where no hit ever drew noise, hits need none: one threshold, or none at all."""
    for fitted in (FITTED, REFRESHING):
        events = [opened(cutoff=9), *shares(), fitted, answers(1, [False]), answers(2, [True])]
        assert fold_all(events).refreshed_at is None


ILLEGAL: dict[str, tuple[list[LedgerEvent], str]] = {
    "nothing before the release": ([FITTED], "stands where ReleaseOpened should"),
    "a second release": ([*SERVING, opened()], "opens a release a second time"),
    "a second charge": ([*SERVING, shares()[0]], "charges a share a second time, that of relabel"),
    "a second reserve": ([*SERVING, shares()[2]], "sets a share aside a second time"),
    "a reserve after the charge": (
        [*SERVING, ShareReserved(mechanism="relabel", epsilon="0", delta="0")],
        "sets a share aside a second time",
    ),
    "a charge unlike its reserve": (
        [*SERVING, ShareCharged(mechanism="classifier", epsilon="0.2", delta="0")],
        "another share than was set aside",
    ),
    "epsilon overspent": (
        [*SERVING, ShareCharged(mechanism="statistics", epsilon="1e-9", delta="0")],
        "above the budget",
    ),
    "delta overspent": (
        [*SERVING, ShareCharged(mechanism="statistics", epsilon="0", delta="1e-30")],
        "above the budget",
    ),
    "epsilon overpromised": (
        [*SERVING, ShareReserved(mechanism="statistics", epsilon="1/1000", delta="0")],
        "above the budget",
    ),
    "a cost that is no number": (
        [opened(), ShareCharged(mechanism="answers", epsilon="1/0", delta="0")],
        "no exact number",
    ),
    "a cost that is not finite": (
        [opened(), ShareCharged(mechanism="answers", epsilon="nan", delta="0")],
        "no exact number",
    ),
    "a negative cost": (
        [opened(), ShareCharged(mechanism="answers", epsilon="-1", delta="0")],
        "negative cost",
    ),
    "an ensemble before its charge": ([opened(), FITTED], "before the charge of answers"),
    "a second ensemble": ([*SERVING, FITTED], "fits an ensemble a second time"),
    "answers before the ensemble": ([opened(), *shares(), answers(1, [True])], "before Ensemble"),
    "answers after a halt": ([*SERVING, HALTED, answers(1, [True])], "comes after ReleaseHalted"),
    "a second halt": ([*SERVING, HALTED, HALTED], "halts a release that had halted"),
    "a gap in the answers": ([*SERVING, answers(2, [True])], "where answer 1 is next"),
    "an answer again": (
        [*SERVING, answers(1, [True]), answers(1, [True])],
        "begins with answer 1 where answer 2 is next",
    ),
    "answers past the limit": ([*SERVING, answers(1, [True] * 1001)], "exceeds the limit"),
    "an answer after the cutoff": (
        [*SERVING, answers(1, [False] * 3), answers(4, [True])],
        "comes after the cutoff",
    ),
    "a range across the cutoff": (
        [*SERVING, answers(1, [False, False, False, True])],
        "goes on past the unstable answer",
    ),
    "more unstable answers than the cutoff": (
        [*SERVING, answers(1, [False] * 4)],
        "goes on past the unstable answer",
    ),
    "a label short": (
        [*SERVING, replace(answers(1, [True, True]), labels=[0])],
        "does not give every answer",
    ),
    "a digest short": (
        [*SERVING, replace(answers(1, [True, True]), digests=["0" * 32])],
        "does not give every answer",
    ),
    "a stable answer without a label": (
        [*SERVING, replace(answers(1, [True]), labels=[None])],
        "has a stable answer without a label",
    ),
    "a classifier before its charge": ([*SERVING, PUBLISHED], "before the classifier's charge"),
    "a second classifier": (
        [*SERVING, CLASSIFIER_CHARGED, PUBLISHED, PUBLISHED],
        "publishes a classifier a second time",
    ),
    "a student before the ensemble": ([opened(), *shares(), STUDENT], "before EnsembleFitted"),
    "a student before any answer": ([*SERVING, STUDENT], "before the ensemble's last answer"),
    "a student before the last answer": (
        [*ENDED, answers(1, [True]), STUDENT],
        "before the ensemble's last answer",
    ),
    "a second student": (
        [*ENDED, answers(1, [True, True]), STUDENT, STUDENT],
        "publishes a classifier a second time",
    ),
    "a student beside a classifier": (
        [*ENDED, CLASSIFIER_CHARGED, PUBLISHED, answers(1, [True, True]), STUDENT],
        "publishes a classifier a second time",
    ),
    "a classifier beside a student": (
        [*ENDED, answers(1, [True, True]), STUDENT, CLASSIFIER_CHARGED, PUBLISHED],
        "publishes a classifier a second time",
    ),
    "a threshold without noise": (
        [*SERVING, answers(1, [False]), refreshed(1)],
        "refreshes a threshold that has no noise",
    ),
    "a threshold refreshed before an answer": (
        [*EPOCHS, refreshed(0)],
        "does not follow the unstable answers",
    ),
    "a threshold refreshed after stable answers": (
        [*EPOCHS, answers(1, [True]), refreshed(0)],
        "does not follow the unstable answers",
    ),
    "a threshold refreshed later": (
        [*EPOCHS, answers(1, [False]), CLASSIFIER_CHARGED, refreshed(1)],
        "does not follow the unstable answers",
    ),
    "a threshold refreshed again": (
        [*EPOCHS, answers(1, [False]), refreshed(1), refreshed(1)],
        "does not follow the unstable answers",
    ),
    "a threshold refreshed from the second hit": (
        [*EPOCHS, answers(1, [False]), answers(2, [False]), refreshed(2)],
        "does not follow the unstable answers",
    ),
    "a hit that drew no noise": (
        [*EPOCHS, answers(1, [False]), refreshed(1), answers(2, [False]), answers(3, [True])],
        "comes after an unstable answer that drew no noise",
    ),
    "the noise of another hit": (
        [*EPOCHS, answers(1, [False, False]), refreshed(1)],
        "does not bind the noise after unstable answer 2",
    ),
    "the noise and something else": (
        [
            *EPOCHS,
            answers(1, [False]),
            ThresholdRefreshed(
                private_digests={**refreshed(1).private_digests, "ensemble": "00" * 32}
            ),
        ],
        "does not bind the noise after unstable answer 1",
    ),
    "vectors of a release that answers each": (
        [*SERVING, answers(1, [True]), asked(1, [1])],
        "records vectors beside answers that are each a vector's own",
    ),
    "vectors after a halt": (
        [*DECIDING, answers(1, [True]), HALTED, asked(1, [1])],
        "comes after ReleaseHalted",
    ),
    "vectors with a gap": (
        [*DECIDING, answers(1, [True]), asked(2, [1])],
        "begins with vector 2 where vector 1 is next",
    ),
    "vectors of no answer": (
        [*DECIDING, answers(1, [True]), asked(1, [1, 2])],
        "does not give every vector an answer that was released",
    ),
    "vectors without as many answers": (
        [*DECIDING, answers(1, [True]), replace(asked(1, [1, 1]), query_ids=[1])],
        "does not give every vector an answer that was released",
    ),
    "vectors of another piece": (
        [
            *DECIDING,
            answers(1, [True]),
            replace(asked(1, [1]), private_digests={"other": "0" * 64}),
        ],
        "does not bind the vectors from number 1 on",
    ),
    "private state bound twice": (
        [
            *SERVING,
            CLASSIFIER_CHARGED,
            replace(PUBLISHED, private_digests=FITTED.private_digests),
        ],
        "binds a piece of private state a second time",
    ),
}


@pytest.mark.parametrize(("events", "problem"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_what_does_not_follow_is_refused(events: list[LedgerEvent], problem: str) -> None:
    """An illegal entry is named with its number, its kind and what is wrong."""
    state = fold_all(events[:-1])
    entry = next_entry(state.head, events[-1])
    with pytest.raises(LedgerCorruptError, match=problem) as raised:
        fold(state, entry)
    assert str(raised.value).startswith(f"entry {len(events)} ({events[-1].KIND})")


@pytest.mark.parametrize(
    "event",
    [
        answers(1, []),
        replace(answers(1, [True]), digests=["0" * 31]),
        replace(answers(1, [True]), labels=[-1]),
        EnsembleFitted(size=0, private_digests={}),
        EnsembleFitted(size=1, private_digests={"ensemble": "short"}),
        opened(queries=0),
        opened(cutoff=0),
    ],
)
def test_value_outside_its_range_is_refused(event: LedgerEvent) -> None:
    """A body with a value that its kind does not allow does not fold."""
    with pytest.raises(LedgerCorruptError, match="does not fit its kind"):
        fold(EMPTY, next_entry(EMPTY.head, event))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "ShareCharged"),
        ("version", 2),
        ("body", "{}"),
        ("hash", "1" * 64),
        ("previous_hash", "1" * 64),
    ],
)
def test_altered_entry_does_not_have_its_hash(field: str, value: str) -> None:
    """Any change of a stored entry shows in its hash."""
    entry = replace(next_entry(EMPTY.head, opened()), **{field: value})
    with pytest.raises(LedgerCorruptError, match="entry 1 does not have the hash"):
        fold(EMPTY, entry)


def test_missing_entry_is_named() -> None:
    """A gap in the sequence is told by the number that is missing."""
    state = fold_all(SERVING)
    entry = replace(next_entry(state.head, HALTED), sequence=8)
    with pytest.raises(LedgerCorruptError, match="entry 6 is missing: entry 8"):
        fold(state, entry)


def test_refusal_changes_nothing() -> None:
    """A state is a value: folding from it again gives the same."""
    state = fold_all(SERVING)
    before = state
    with pytest.raises(LedgerCorruptError):
        fold(state, next_entry(state.head, FITTED))
    assert state == before
    assert fold(state, next_entry(state.head, answers(1, [True]))).answered == 1
