"""Generations on a real ledger: common votes, charges, retirement inside a batch, kept draws."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

from app.answering.generations import generations_answerer
from app.answering.queries import Fresh
from app.errors import (
    BudgetExhaustedError,
    InvariantError,
    LedgerCorruptError,
    LedgerUnavailableError,
    MachineError,
    UncountedDrawsError,
    WaitingError,
)
from app.ledger.copies.copies import back_up
from app.ledger.entries.generations import generations_of
from app.ledger.ledger import RecordedAnswer, Transaction
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.privacy.exponential import mechanism as exponential
from app.privacy.voting.query_decision import Phase
from app.release.generations import first_labelling, tick
from app.release.generations.appending import append_generation
from app.release.generations.labelling import given_labels, pooled_by
from app.release.generations.slots import read_slots
from app.release.generations.tick import NotFittedError
from app.release.views.budget import budget_view
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.ledger.outside_audit import faults_in, hits_between
from tests.builders.release.growing_release import MINUTE, GrowingRelease
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    VotesByMargin,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.hypothesis import Hypothesis
    from app.noise.source import NoiseSource
    from app.release.generations.generations_release import LivingRelease
    from tests.builders.release.growing_release import GrowingAnswerer


@pytest.fixture
def growing(tmp_path: Path) -> GrowingRelease:
    """Return the release of a temporary folder, yet to be opened."""
    return GrowingRelease(tmp_path)


def standing(answerer: GrowingAnswerer) -> list[tuple[str, int]]:
    """Return whether each generation votes, and how many hits it was charged."""
    known = generations_of(answerer.release.state.generations)
    return [(each.standing, each.unstable) for each in known.all]


def check(answerer: GrowingAnswerer) -> list[dict[str, object]]:
    """Verify the ledger, from inside and from its public entries alone; return those."""
    ledger = answerer.release.ledger
    verify(ledger)
    entries = ledger.public_entries(0, 1000)
    assert faults_in(entries) == []
    return entries


def votes_of(release: LivingRelease, number: int) -> VotesByMargin:
    """Return the ensemble double of a generation."""
    _, ensemble = release.private_fitted[number]
    assert isinstance(ensemble, VotesByMargin)
    return ensemble


def test_votes_are_summed_and_a_hit_is_charged_to_every_generation_that_votes(
    growing: GrowingRelease,
) -> None:
    """Two generations vote on each query, and each is charged the one unstable answer."""
    answerer = growing.answerer([STABLE, HIT], generations=2)
    assert answerer.release.ensemble.size == 2 * VotesByMargin.size
    answerer.answer_batch([ask(40), ask(1)])
    assert standing(answerer) == [("active", 1), ("active", 1)]
    entries = check(answerer)
    assert hits_between(entries) == {1: (1, 2), 2: (1, 2)}


def test_a_generation_that_joined_later_is_charged_from_there(growing: GrowingRelease) -> None:
    """The hits of before its join are none of its own."""
    answerer = growing.answerer([HIT, STABLE])
    answerer.answer_batch([ask(1)])
    growing.append(answerer.release.ledger)
    growing.pass_periods(answerer, 2)
    answerer.answer_batch([ask(2)])
    assert standing(answerer) == [("active", 1), ("active", 0)]
    check(answerer)


def test_a_generation_retires_inside_a_batch(growing: GrowingRelease) -> None:
    """The votes on what follows its last hit are counted again, without it, in another entry."""
    answerer = growing.answerer([HIT])
    answerer.answer_batch([ask(1)])
    growing.append(answerer.release.ledger)
    growing.pass_periods(answerer, 2)
    answerer._noise = ScriptedNoise([HIT, STABLE, STABLE, STABLE, STABLE])
    second = votes_of(answerer.living, 2)
    decided = answerer.answer_batch([ask(2), ask(3), ask(4)])
    assert [each.recorded.stable for each in decided if isinstance(each, Fresh)] == [
        False,
        True,
        True,
    ]
    assert standing(answerer) == [("retired", 2), ("active", 1)]
    assert second.batch_sizes == [3, 2]
    entries = check(answerer)
    kinds = [entry["kind"] for entry in entries][-3:]
    assert kinds == ["AnswersReleased", "GenerationRetired", "AnswersReleased"]


def test_what_a_retired_generation_left_is_gone(growing: GrowingRelease) -> None:
    """Rows, labels and learners go in the transaction that retires it; a restart goes on."""
    answerer = growing.answerer([HIT, HIT], generations=1)
    ledger = answerer.release.ledger
    (kept,) = generations_of(answerer.release.state.generations).kept
    rows = read_slots(ledger, kept).values.tobytes()
    answerer.answer_batch([ask(1), ask(2)])
    assert standing(answerer) == [("retired", 2)]
    assert answerer.living.private_fitted == {}
    names = answerer.release.state.private_digests.keys()
    assert not any(name.startswith(("slots-", "labelling-")) for name in names)
    check(answerer)
    ledger.close()
    file = (growing.folder / "conclave.db").read_bytes()
    assert not any(rows[place : place + 16] in file for place in range(0, len(rows), 16))
    again = growing.answerer([])
    assert again.phase is Phase.WAITING
    (decision,) = again.answer_batch([ask(3)])
    assert isinstance(decision, WaitingError)
    (replayed,) = again.answer_batch([ask(1)])
    assert isinstance(replayed, RecordedAnswer)


def test_with_fewer_than_the_quorum_nothing_is_charged(tmp_path: Path) -> None:
    """Queries wait, recorded answers do not, and a key on one is kept; the quorum opens it."""
    growing = GrowingRelease(tmp_path, {"generations__quorum": "2"})
    answerer = growing.answerer([STABLE])
    head = answerer.release.state.head
    (decision,) = answerer.answer_batch([ask(3)])
    assert isinstance(decision, WaitingError)
    assert answerer.release.state.head == head
    assert budget_view(answerer.release).phase == "waiting"
    growing.append(answerer.release.ledger)
    growing.pass_periods(answerer, 2)
    (fresh,) = answerer.answer_batch([ask(3)])
    assert isinstance(fresh, Fresh)
    check(answerer)


def test_a_retirement_below_the_quorum_leaves_the_rest_of_the_batch_waiting(
    tmp_path: Path,
) -> None:
    """The last hit is answered, and what follows it is not voted on."""
    growing = GrowingRelease(tmp_path, {"generations__quorum": "2"})
    answerer = growing.answerer([HIT, HIT, STABLE, STABLE], generations=2)
    decided = answerer.answer_batch([ask(1), ask(2), ask(3), ask(1)])
    assert [type(each) for each in decided] == [Fresh, Fresh, WaitingError, RecordedAnswer]
    assert standing(answerer) == [("retired", 2), ("retired", 2)]
    check(answerer)


def test_an_appended_generation_joins_at_its_tick_and_not_before(growing: GrowingRelease) -> None:
    """Fitted at once, it votes from the second tick on, which its entry names."""
    answerer = growing.answerer([])
    growing.append(answerer.release.ledger)
    growing.pass_periods(answerer)
    assert standing(answerer) == [("active", 0), ("waiting", 0)]
    growing.pass_periods(answerer)
    assert standing(answerer) == [("active", 0), ("active", 0)]
    check(answerer)


def test_more_generations_than_may_vote_wait_with_full_accounts(tmp_path: Path) -> None:
    """The newcomer joins at the tick after one has retired."""
    growing = GrowingRelease(tmp_path, {"generations__active_max": "1"})
    answerer = growing.answerer([HIT, HIT], generations=2)
    assert standing(answerer) == [("active", 0), ("waiting", 0)]
    answerer.answer_batch([ask(1), ask(2)])
    growing.pass_periods(answerer)
    assert standing(answerer) == [("retired", 2), ("active", 0)]
    check(answerer)


def test_a_generation_that_is_not_fitted_by_its_tick_stops_the_server(
    growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is committed, and the next start fits it first."""
    answerer = growing.answerer([])
    growing.append(answerer.release.ledger)
    answerer.follow()
    ticker = growing.ticker(answerer.release.ledger)
    with monkeypatch.context() as failing:
        failing.setattr(tick, "fit_generation", _out_of_memory)
        with pytest.raises(MachineError):
            ticker.fit_waiting()
    growing.now += 2 * MINUTE
    head = answerer.release.state.head
    with pytest.raises(NotFittedError, match="not fitted by its tick"):
        answerer.tick(ticker)
    assert answerer.release.ledger.read_state().head == head
    ticker.waiting.end_turn()
    answerer.release.ledger.close()
    again = growing.answerer([])
    assert standing(again) == [("active", 0), ("active", 0)]
    check(again)


def test_a_fit_that_began_too_late_postpones_the_tick(growing: GrowingRelease) -> None:
    """As where a server takes over from one that has ended: what is fitted joins then."""
    answerer = growing.answerer([])
    growing.append(answerer.release.ledger)
    answerer.follow()
    growing.now += 2 * MINUTE
    ticker = growing.ticker(answerer.release.ledger)
    with pytest.raises(LedgerUnavailableError, match="not fitted here"):
        answerer.tick(ticker)
    ticker.fit_waiting()
    answerer.tick(ticker)
    assert standing(answerer) == [("active", 0), ("active", 0)]


def test_what_is_fitted_at_a_start_is_not_drawn_again(growing: GrowingRelease) -> None:
    """The clock of the server goes on with it, and it joins at its tick."""
    release = growing.open()
    growing.append(release.ledger)
    release.ledger.close()
    release = growing.open()
    (fitted,) = release.waiting.private_fitted.values()
    ticker = growing.ticker(release.ledger)
    ticker.waiting = release.waiting
    assert not ticker.awaits_fit(release.state)
    growing.now += 2 * MINUTE
    ticker.tick(release)
    assert release.private_fitted[2][1] is fitted.ensemble


def _out_of_memory(*_: object, **__: object) -> NoReturn:
    """Fail as a machine does."""
    raise MachineError


def test_a_restart_needs_no_source_and_draws_nothing(growing: GrowingRelease) -> None:
    """Learners, labels and counters are read back; a missing piece refuses to start."""
    answerer = growing.answerer([HIT], generations=2)
    answerer.answer_batch([ask(1)])
    state = answerer.release.state
    answerer.release.ledger.close()
    again = growing.open()
    assert again.state == state
    assert again.ensemble.size == 10
    check(growing.answerer([]))


def test_an_altered_piece_of_a_generation_refuses_to_start(growing: GrowingRelease) -> None:
    """What votes is what was fitted, or nothing is."""
    release = growing.open()
    name = generations_of(release.state.generations).all[0].slots_piece
    with closing(sqlite3.connect(growing.folder / "conclave.db")) as database:
        database.execute("DROP TRIGGER private_state_refuse_update")
        database.execute("UPDATE private_state SET body = X'00' WHERE name = ?", (name,))
        database.commit()
    release.ledger.close()
    with pytest.raises(LedgerCorruptError, match="altered piece"):
        growing.open()


def test_draws_of_a_refused_commit_are_recorded_under_their_set(growing: GrowingRelease) -> None:
    """A batch that retires a generation is recorded as it was drawn, in both its runs."""
    ledger = FaultyLedger(growing.small)
    answerer = growing.answerer([], ledger=ledger)
    growing.append(ledger)
    growing.pass_periods(answerer, 2)
    answerer._noise = ScriptedNoise([HIT, HIT])
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1), ask(2)])
    assert standing(answerer) == [("active", 0), ("active", 0)]
    decided = answerer.answer_batch([ask(1), ask(2)])
    assert [each.stable for each in decided if isinstance(each, RecordedAnswer)] == [False, False]
    assert standing(answerer) == [("retired", 2), ("retired", 2)]
    check(answerer)


def test_a_second_refusal_loses_no_draws_of_a_later_set(
    growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hit of those that voted on is recorded, where the retirement before was refused twice."""
    ledger = FaultyLedger(growing.small)
    answerer = growing.answerer([], ledger=ledger, generations=2)
    answerer._noise = ScriptedNoise([HIT])
    answerer.answer_batch([ask(9)])
    growing.append(ledger, seed=12)
    growing.pass_periods(answerer, 2)
    assert standing(answerer) == [("active", 1), ("active", 1), ("active", 0)]
    answerer._noise = ScriptedNoise([HIT, HIT])
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1), ask(2)])
    with monkeypatch.context() as full:
        full.setattr(Transaction, "record_columns", _refuse)
        with pytest.raises(LedgerUnavailableError):
            answerer.answer_batch([ask(1), ask(2)])
    decided = answerer.answer_batch([ask(1), ask(2)])
    assert [each.stable for each in decided if isinstance(each, RecordedAnswer)] == [False, False]
    assert standing(answerer) == [("retired", 2)] * 3
    check(answerer)


def _refuse(*_: object) -> NoReturn:
    """Refuse a write, as a full disk does before the commit."""
    raise LedgerUnavailableError("the disk is full")


def test_draws_are_never_recorded_under_another_set(growing: GrowingRelease) -> None:
    """Another process has made a tick meanwhile: the hit that may be known of stops the server."""
    ledger = FaultyLedger(growing.small)
    answerer = growing.answerer([HIT], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1)])
    growing.now += MINUTE
    other = growing.open()
    other.ledger.close()
    with pytest.raises(UncountedDrawsError):
        answerer.answer_batch([ask(1)])
    assert ledger.read_state().halted is not None


def test_draws_that_left_no_trace_are_drawn_again_by_whoever_votes(
    growing: GrowingRelease,
) -> None:
    """A connection that was cut off tells nothing: the next set answers afresh."""
    ledger = FaultyLedger(growing.small)
    answerer = growing.answerer([HIT, STABLE], ledger=ledger)
    ledger.faults = ["cut off"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1)])
    growing.now += MINUTE
    growing.open().ledger.close()
    (decision,) = answerer.answer_batch([ask(1)])
    assert isinstance(decision, Fresh)
    assert decision.recorded.stable
    check(answerer)


def test_a_tick_first_records_what_was_drawn_before_it(growing: GrowingRelease) -> None:
    """The hit of a refused commit is charged to those that voted, and then the set changes."""
    ledger = FaultyLedger(growing.small)
    answerer = growing.answerer([HIT], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(1)])
    growing.pass_periods(answerer)
    assert standing(answerer) == [("active", 1)]
    kinds = [entry["kind"] for entry in check(answerer)][-2:]
    assert kinds == ["AnswersReleased", "SlotsChanged"]


def test_a_transaction_that_leaves_a_retirement_out_does_not_commit(
    growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an entry makes due is in its transaction, or nothing is."""
    answerer = growing.answerer([HIT, HIT])
    monkeypatch.setattr(generations_answerer, "_retire", lambda _: None)
    with pytest.raises(InvariantError, match="is in its transaction"):
        answerer.answer_batch([ask(1), ask(2)])
    assert answerer.release.ledger.read_state().answered == 0


def test_a_backup_draws_nothing_and_gives_recorded_answers(growing: GrowingRelease) -> None:
    """What waits in a closed copy is not fitted, no tick is made, and new queries are refused."""
    answerer = growing.answerer([STABLE])
    answerer.answer_batch([ask(1)])
    growing.append(answerer.release.ledger)
    copy = growing.folder / "copy.db"
    back_up(f"sqlite:///{growing.folder / 'conclave.db'}", copy)
    answerer.release.ledger.close()
    closed = GrowingRelease(growing.folder, ledger_url=f"sqlite:///{copy}", now=growing.now + 9e3)
    again = closed.answerer([])
    assert again.living.waiting.private_fitted == {}
    assert again.phase is Phase.HALTED
    replayed, refused = again.answer_batch([ask(1), ask(2)])
    assert isinstance(replayed, RecordedAnswer)
    assert isinstance(refused, BudgetExhaustedError)


@pytest.mark.parametrize("kind", ["trees", "thresholds"])
def test_later_generations_inherit_the_first_labelling(tmp_path: Path, kind: str) -> None:
    """Its rows are labelled by the kept draw, at no charge, after the first has retired too."""
    changes = {"generations__labelling": "inherit", "hypotheses__class": kind}
    growing = GrowingRelease(tmp_path, changes)
    answerer = growing.answerer([HIT, HIT], generations=2)
    known = generations_of(answerer.release.state.generations)
    assert [sorted(each.shares) for each in known.all] == [["answers", "relabel"], ["answers"]]
    assert [each.labelled_by for each in known.all] == [1, 1]
    labelling = answerer.release.ledger.private("labelling-1")
    answerer.answer_batch([ask(1), ask(2)])
    growing.append(answerer.release.ledger, seed=30)
    growing.pass_periods(answerer, 2)
    assert standing(answerer) == [("retired", 2), ("retired", 2), ("active", 0)]
    assert answerer.release.ledger.private("labelling-1") == labelling
    check(answerer)


COHORT: Final = {"generations__labelling": "cohort", "generations__quorum": "2"}


def test_a_cohort_has_one_draw_which_later_generations_inherit(tmp_path: Path) -> None:
    """The first waits until the second is there, and a restart; each pays once, a third nothing."""
    growing = GrowingRelease(tmp_path, COHORT)
    answerer = growing.answerer([])
    ledger = answerer.release.ledger
    growing.pass_periods(answerer, 3)
    assert standing(answerer) == [("waiting", 0)]
    assert [each.joins_at for each in budget_view(answerer.release).generations] == [None]
    ledger.close()
    answerer = growing.answerer([HIT, HIT], generations=2)
    ledger = answerer.release.ledger
    assert standing(answerer) == [("active", 0), ("active", 0)]
    growing.append(ledger, seed=30)
    growing.pass_periods(answerer, 2)
    known = generations_of(answerer.release.state.generations)
    paid = ["answers", "relabel"]
    assert [sorted(each.shares) for each in known.all] == [paid, paid, ["answers"]]
    assert [each.labelled_by for each in known.all] == [1, 1, 1]
    assert not {"labelling-2", "labelling-3"} & answerer.release.state.private_digests.keys()
    kept = [read_slots(ledger, each) for each in known.all]
    configuration = growing.small.configuration()
    for generation, slots in zip(known.all, kept, strict=True):
        again = given_labels(configuration, generation, slots, ledger=ledger, pieces={})
        assert slots.given_labels is not None
        assert slots.given_labels.tolist() == again.tolist()
    check(answerer)


def test_what_waits_behind_a_cohort_is_fitted_with_it(tmp_path: Path) -> None:
    """A third generation takes the labels of a draw that is not in the ledger yet."""
    growing = GrowingRelease(tmp_path, COHORT)
    answerer = growing.answerer([], generations=3)
    known = generations_of(answerer.release.state.generations)
    assert [each.labelled_by for each in known.all] == [1, 1, 1]
    check(answerer)


def test_a_cohort_is_drawn_from_all_rows_at_its_least_epsilon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a draw at the greatest epsilon is refused, since not every record pays for it."""
    growing = GrowingRelease(tmp_path, COHORT)
    ledger = growing.open().ledger
    configuration = growing.small.configuration()
    least = configuration.epsilon * Fraction(99, 100), configuration.delta
    append_generation(
        configuration,
        ledger=ledger,
        rows=private_rows(seed=8),
        noise=seeded_noise(8),
        period=growing.ticker(ledger).period,
        budget=least,
    )
    drawn: list[tuple[exponential.Parameters, int]] = []
    draw = exponential.draw

    def seen(
        parameters: exponential.Parameters,
        rows: tuple[EncodedRows, NDArray[np.int64]],
        noise: NoiseSource,
        weights: NDArray[np.float64] | None,
    ) -> Hypothesis:
        drawn.append((parameters, len(rows[1])))
        return draw(parameters, rows, noise, weights)

    monkeypatch.setattr(exponential, "draw", seen)
    growing.now += MINUTE
    growing.ticker(ledger).fit_waiting()
    members = generations_of(ledger.read_state().generations).all
    paid = [Fraction(each.shares["relabel"][0]) for each in members]
    ((parameters, row_count),) = drawn
    assert parameters.epsilon == paid[1] < paid[0]
    assert row_count == parameters.row_count == sum(each.slots for each in members)
    monkeypatch.setattr(first_labelling, "_at_least", lambda greatest, _: greatest)
    with pytest.raises(InvariantError, match="pays for the draw"):
        first_labelling.draw_for_cohort(configuration, ledger, seeded_noise(1))


def test_one_labelling_is_pooled_for_all_generations(tmp_path: Path) -> None:
    """At each join every generation is labelled by the sums of all counts, and fitted on them."""
    growing = GrowingRelease(
        tmp_path,
        {
            "generations__labelling": "pooled",
            "hypotheses__class": "cells",
            "hypotheses__cells": '["margin >= 0", "", ""]',
        },
    )
    answerer = growing.answerer([], generations=3)
    ledger = answerer.release.ledger
    known = generations_of(answerer.release.state.generations)
    labels = pooled_by(growing.small.configuration(), ledger).labels
    for each in known.all:
        slots = read_slots(ledger, each)
        assert slots.given_labels is not None
        in_second = slots.values[:, 0] >= 0
        assert set(slots.given_labels[~in_second].tolist()) == {labels[0]}
        assert set(slots.given_labels[in_second].tolist()) == {labels[1]}
    assert {
        f"labelling-{number}" for number in (1, 2, 3)
    } <= answerer.release.state.private_digests.keys()
    check(answerer)
