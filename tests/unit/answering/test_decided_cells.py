"""A release whose learners vote by public cells decides each cell once, for every vector in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.answering.answers import Answer
from app.answering.asked_vectors import AskedVectors
from app.answering.queries import Fresh
from app.answering.replays import RecentReplays, ReplayIndex
from app.data.vectors import encode
from app.errors import (
    IdempotencyConflictError,
    InvariantError,
    LedgerCorruptError,
    LedgerUnavailableError,
    VerificationError,
)
from app.estimator.memory_release import MemoryRelease
from app.learning.ensemble import cells_of
from app.ledger.ledger import RecordedAnswer, Transaction, open_ledger
from app.ledger.verification import verify
from app.release.classifier.switch import answered_points
from app.release.terms.answer_terms import check_cells
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.ledger.releases import tamper
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.batch_decisions import Decision

CELLS = {
    "hypotheses__class": "cells",
    "hypotheses__cells": '["margin >= 0", "margin >= -25", "", "", "group = a", "", ""]',
}


@pytest.fixture
def release(small_release: SmallRelease) -> SmallRelease:
    """Return a release on four cells: two below 0, and group a and the others above."""
    return replace(small_release, changes={**small_release.changes, **CELLS})


def numbers(decisions: Sequence[Decision]) -> list[tuple[int, bool]]:
    """Return the number of each answer, and whether it was replayed."""
    given = []
    for each in decisions:
        assert isinstance(each, Fresh | RecordedAnswer)
        recorded = each.recorded if isinstance(each, Fresh) else each
        given.append((recorded.query_id, not isinstance(each, Fresh)))
    return given


def test_vectors_of_one_cell_get_one_answer(release: SmallRelease) -> None:
    """One decision a cell, within a batch and across batches, whatever came out of it."""
    answerer = release.answerer([STABLE, HIT])
    first = answerer.answer_batch([ask(10), ask(20), ask(-10), ask(10), ask(-1)])
    assert numbers(first) == [(1, False), (1, True), (2, False), (1, True), (2, True)]
    again = answerer.answer_batch([ask(-20), ask(30), ask(-20)])
    assert numbers(again) == [(2, True), (1, True), (2, True)]
    assert [each for each in again if isinstance(each, RecordedAnswer) and each.stable] == [
        again[1]
    ]
    state = answerer.release.ledger.read_state()
    assert (state.answered, state.unstable, state.asked) == (2, 1, 6)
    verify(answerer.release.ledger)
    check_cells(answerer.release.configuration, answerer.release.ledger)


def test_an_unstable_cell_keeps_its_coin_for_ever(release: SmallRelease) -> None:
    """After a restart too, a vector that nobody asked before gets the coin of its cell."""
    coins = replace(release, changes={**release.changes, "answers__unstable": "coin"})
    (first,) = coins.answerer([HIT, 1]).answer_batch([ask(10)])
    restarted = coins.answerer()
    (again,) = restarted.answer_batch([ask(49)])
    assert isinstance(first, Fresh)
    assert again == first.recorded
    assert restarted.release.state.unstable == 1


def test_an_idempotency_key_is_kept_for_the_vector(release: SmallRelease) -> None:
    """Another vector of the same cell is a conflict, and the same one a replay."""
    answerer = release.answerer([STABLE])
    answerer.answer_batch([ask(10, "k")])
    same, other = answerer.answer_batch([ask(10, "k"), ask(20, "k")])
    assert isinstance(same, RecordedAnswer)
    assert isinstance(other, IdempotencyConflictError)
    (conflict,) = release.answerer().answer_batch([ask(20, "k")])
    assert isinstance(conflict, IdempotencyConflictError)


def test_a_key_with_a_new_vector_is_kept_beside_it(release: SmallRelease) -> None:
    """A key that came with a further vector of the cell is found after a restart."""
    answerer = release.answerer([STABLE])
    answerer.answer_batch([ask(10)])
    answerer.answer_batch([ask(20, "k")])
    same, conflict = release.answerer().answer_batch([ask(20, "k"), ask(10, "k")])
    assert isinstance(same, RecordedAnswer)
    assert isinstance(conflict, IdempotencyConflictError)
    verify(answerer.release.ledger)


def test_a_vector_is_recorded_once(release: SmallRelease) -> None:
    """A vector that was asked before writes nothing, in this process and in the next."""
    answerer = release.answerer([STABLE])
    answerer.answer_batch([ask(10), ask(20)])
    head = answerer.release.state.head
    answerer.answer_batch([ask(20), ask(10)])
    restarted = release.answerer()
    restarted.answer_batch([ask(20), ask(10)])
    assert restarted.release.ledger.read_state().head == head


def test_a_draw_whose_commit_failed_decides_its_cell(release: SmallRelease) -> None:
    """It is recorded before anything new is drawn, and answers every vector of its cell."""
    ledger = FaultyLedger(release)
    answerer = release.answerer([HIT, STABLE], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(10)])
    (given,) = answerer.answer_batch([ask(20)])
    assert given == RecordedAnswer(1, None, stable=False)
    verify(answerer.release.ledger)


def test_two_processes_decide_a_cell_once(release: SmallRelease) -> None:
    """The second finds the decision of the first under the write lock, and draws nothing."""
    one, two = release.answerer([STABLE]), release.answerer([])
    (first,) = one.answer_batch([ask(10)])
    (second,) = two.answer_batch([ask(20)])
    assert isinstance(first, Fresh)
    assert second == first.recorded
    one.answer_batch([ask(20), ask(30)])
    assert one.release.ledger.read_state().asked == 3
    verify(one.release.ledger)


def test_the_points_of_a_switch_are_the_vectors_asked(release: SmallRelease) -> None:
    """Each vector once, in the order of asking, though one answer covers them."""
    answerer = release.answerer([STABLE, STABLE])
    answerer.answer_batch([ask(10), ask(20), ask(-30), ask(10)])
    points = answered_points(answerer.release.ledger, answerer.release.schema)
    assert points[:, 0].tolist() == [10, 20, -30]


def test_further_vectors_are_recorded_up_to_a_number(release: SmallRelease) -> None:
    """Beyond it a replay writes nothing, but the first vector of a cell is still recorded."""
    answerer = release.answerer([STABLE, STABLE])
    answerer.asked = AskedVectors(are_kept=True, asked_max=2)
    answerer.answer_batch([ask(10), ask(20), ask(30)])
    assert answerer.release.state.asked == 2
    answerer.answer_batch([ask(-10), ask(40, "k")])
    assert answerer.release.state.asked == 3
    verify(answerer.release.ledger)


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy__calibration": "svt"},
        {"learner__estimator": "sklearn.tree.DecisionTreeClassifier"},
        {"hypotheses__class": "trees", "hypotheses__cells": "[]"},
    ],
)
def test_another_release_answers_each_vector(
    release: SmallRelease, changes: dict[str, str]
) -> None:
    """Sparse vector, other learners and other classes keep the vector for the key."""
    other = replace(release, changes={**release.changes, **changes})
    assert not other.open().state.decides_cells


def test_a_ledger_of_before_keeps_the_vector(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release whose first entry says nothing of cells goes on by the vector."""
    with monkeypatch.context() as patch:
        patch.setattr("app.release.opening.replay_parameter", lambda _: {})
        patch.setattr("app.release.terms.answer_terms.counts_decisions", lambda _: False)
        release.open().ledger.close()
    answerer = release.answerer([STABLE, STABLE])
    assert numbers(answerer.answer_batch([ask(10), ask(20)])) == [(1, False), (2, False)]
    verify(answerer.release.ledger)


def test_a_release_in_memory_decides_each_cell_once(release: SmallRelease) -> None:
    """The estimator's release gives a cell's answer to every vector in it, and draws once."""
    memory = MemoryRelease(release.configuration(), rows=private_rows(), noise=seeded_noise())
    told = memory.answer([(10.0, "a"), (20.0, "a"), (-10.0, "a"), (10.0, "a")])
    assert all(isinstance(each, Answer) for each in told)
    given = [(each.query_id, each.replayed) for each in told if isinstance(each, Answer)]
    assert given == [(1, False), (1, True), (2, False), (1, True)]
    assert memory.budget()["queries"] == {"answered": 2, "limit": 4, "left": 2}


@settings(max_examples=10, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(-50, 50), st.sampled_from("ab?")), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    ),
    words=st.lists(st.sampled_from([HIT, STABLE]), min_size=4, max_size=4),
)
def test_any_two_vectors_of_a_cell_get_equal_answers(
    batches: list[list[tuple[int, str]]], words: list[int]
) -> None:
    """Whatever is asked, in which batches, and by two processes in turn."""
    with TemporaryDirectory() as folder:
        changes = {**CELLS, "answers__cutoff": "9", "answers__queries": "9"}
        release = SmallRelease(Path(folder), changes)
        processes = [release.answerer(words), release.answerer(words)]
        splits = cells_of(release.configuration().hypotheses)
        by_cell: dict[int, RecordedAnswer] = {}
        for number, batch in enumerate(batches):
            asked = [ask(margin, group=group) for margin, group in batch]
            values = encode(release.configuration().schema, [each.vector for each in asked])
            decisions = processes[number % 2].answer_batch(asked)
            for cell, each in zip(splits.places(values).tolist(), decisions, strict=True):
                assert isinstance(each, Fresh | RecordedAnswer)
                recorded = each.recorded if isinstance(each, Fresh) else each
                assert by_cell.setdefault(cell, recorded) == recorded
        ledger = processes[0].release.ledger
        assert ledger.read_state().answered == len(by_cell)
        verify(ledger)
        check_cells(release.configuration(), ledger)
        for process in processes:
            process.release.ledger.close()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "DELETE FROM private_state WHERE name = 'asked-vectors-1'",
            "the private state is missing a piece: asked-vectors-1",
        ),
        (
            "UPDATE private_state SET body = x'90' WHERE name = 'asked-vectors-1'",
            "the piece asked-vectors-1 has other vectors than entry 7 says",
        ),
        (
            "UPDATE private_state SET body = x'c1' WHERE name = 'asked-vectors-1'",
            "a piece of vectors that were asked holds none",
        ),
        (
            "UPDATE answers SET vector = x'00000000'",
            "answer 1 in the answers table has a cell that does not give its digest",
        ),
        (
            "UPDATE idempotency_keys SET mark = NULL",
            "an idempotency key is kept for a vector that has no answer",
        ),
    ],
)
def test_what_is_altered_is_named(release: SmallRelease, statement: str, problem: str) -> None:
    """Verification names a vector, a cell or a key that is not what was written."""
    answerer = release.answerer([STABLE])
    answerer.answer_batch([ask(10, "k"), ask(20)])
    answerer.release.ledger.close()
    tamper(release.folder / "conclave.db", statement)
    with pytest.raises((VerificationError, LedgerCorruptError)) as found:
        verify(open_ledger(f"sqlite:///{release.folder / 'conclave.db'}", create=False))
    assert str(found.value) == problem


def test_a_missing_vector_stops_a_start(release: SmallRelease) -> None:
    """A server does not go on where a vector that was asked is gone, or altered."""
    for statement, problem in (
        ("UPDATE private_state SET body = x'90' WHERE name = 'asked-vectors-1'", "an altered"),
        ("DELETE FROM private_state WHERE name = 'asked-vectors-1'", "is missing a piece"),
    ):
        if not (release.folder / "conclave.db").exists():
            release.answerer([STABLE]).answer_batch([ask(10)])
        tamper(release.folder / "conclave.db", statement)
        with pytest.raises(LedgerCorruptError, match=problem):
            release.answerer()


# -- planted faults ---------------------------------------------------------------


def test_cells_replayed_by_vector_are_caught(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that keys answers by vector leaves rows that verification refuses."""
    answerer = release.answerer([STABLE, STABLE])
    monkeypatch.setattr(type(answerer.release), "decided_cells", None)
    answerer.answer_batch([ask(10), ask(20)])
    with pytest.raises(VerificationError, match="is kept for a vector"):
        verify(answerer.release.ledger)


def test_a_cell_decided_twice_is_caught(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables refuse the row of a server that forgets a cell, and without it verification."""
    answerer = release.answerer([STABLE, HIT, HIT])
    answerer.answer_batch([ask(10)])
    monkeypatch.setattr(RecentReplays, "find_by_vector", lambda *_: None)
    monkeypatch.setattr(ReplayIndex, "find_by_vector", lambda *_: None)
    with pytest.raises(InvariantError):
        answerer.answer_batch([ask(20)])
    monkeypatch.setattr(Transaction, "_refuse_recorded", lambda *_: None)
    with pytest.raises(InvariantError):
        release.answerer([HIT]).answer_batch([ask(20)])
    tamper(release.folder / "conclave.db", "DELETE FROM newest_answers")
    careless = release.answerer([HIT])
    careless.answer_batch([ask(20)])
    with pytest.raises(VerificationError, match="repeats the cell of answer 1"):
        verify(careless.release.ledger)


def test_a_cell_decided_under_another_number_is_caught(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that gives each vector a cell of its own passes the index, and is found out."""
    answerer = release.answerer([STABLE, STABLE])
    cells = iter(range(2, 9))
    monkeypatch.setattr(
        "app.answering.answer_query.cell_key", lambda _: bytes([0, 0, 0, next(cells)])
    )
    answerer.answer_batch([ask(10), ask(20)])
    verify(answerer.release.ledger)
    with pytest.raises(VerificationError, match="which is another cell's"):
        check_cells(answerer.release.configuration, answerer.release.ledger)
