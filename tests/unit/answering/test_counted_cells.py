"""A release that decides each cell once pays for two decisions, whatever is asked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.answering.queries import Fresh
from app.errors import BudgetExhaustedError, ConfigurationError, InvariantError, LedgerCorruptError
from app.estimator.memory_release import MemoryRelease
from app.ledger.entries.fold import CELL, REPLAYED_BY
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.privacy.mechanism_registration import RULE_KEY
from app.privacy.mechanisms import MECHANISMS
from app.privacy.stability.cell_table import DECISIONS_MOVED, DecisionTable
from app.privacy.voting.query_decision import Phase
from app.release.terms.answer_terms import check_pieces, read_calibration
from app.release.views.budget import budget_view
from app.release.views.parameters_in_words import explained
from tests.builders.ledger.old_ledgers import HISTORIES
from tests.builders.ledger.releases import tamper
from tests.builders.release.opened_release import pieces
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from pathlib import Path

CELLS = {
    "hypotheses__class": "cells",
    "hypotheses__cells": '["margin >= 0", "margin >= -25", "", "", "group = a", "", ""]',
    "answers__queries": "9",
}
MORE_LABELS = {"answers__mechanism": "noisy-vote", "data__classes": '["no", "yes", "maybe"]'}


@pytest.fixture
def release(small_release: SmallRelease) -> SmallRelease:
    """Return a release on four cells, with T = 2, which it has no use for."""
    return replace(small_release, changes={**small_release.changes, **CELLS})


def parameters_of(release: SmallRelease) -> dict[str, str]:
    """Return what the first entry of a release that opens says."""
    opened = release.open().state.release
    assert opened is not None
    return dict(opened.parameters)


def test_any_number_of_decisions_may_be_unstable(release: SmallRelease) -> None:
    """Four unstable cells end nothing where T = 2, before a restart and after it."""
    answerer = release.answerer([HIT, HIT, HIT, STABLE])
    answerer.answer_batch([ask(10), ask(-10), ask(10, group="b")])
    assert (answerer.phase, answerer.release.state.unstable) == (Phase.ENSEMBLE, 3)
    again = release.answerer([HIT])
    (last, replayed) = again.answer_batch([ask(-40), ask(40)])
    assert isinstance(last, Fresh)
    assert replayed == RecordedAnswer(1, None, stable=False)
    assert again.phase is Phase.ENSEMBLE
    state, opened = again.release.state, again.release.state.release
    assert opened is not None
    assert (opened.cutoff, state.unstable, state.has_last_answer) == (None, 4, False)
    verify(again.release.ledger)
    check_pieces(release.settings(), again.release.ledger)


def test_the_first_entry_says_that_decisions_are_counted(release: SmallRelease) -> None:
    """By a rule of its own beside the key by cell; the table is for two, whatever T is."""
    found = parameters_of(release)
    assert (found[RULE_KEY], found[REPLAYED_BY]) == ("decisions", CELL)
    table = read_calibration(release.settings(), release.ledger())
    assert isinstance(table, DecisionTable)
    assert (table.decisions, table.cutoff) == (DECISIONS_MOVED, None)
    assert "decision-table" in pieces(release)


def test_the_budget_has_no_cutoff(release: SmallRelease) -> None:
    """Unstable decisions are counted, and nothing is left of them to run out."""
    answerer = release.answerer([HIT, HIT, HIT])
    answerer.answer_batch([ask(10), ask(-10), ask(-40)])
    unstable = budget_view(answerer.release).unstable
    assert (unstable.count, unstable.cutoff, unstable.left) == (3, None, None)


@pytest.mark.parametrize("queries", ["4", "100000"])
@pytest.mark.parametrize("changes", [{"answers__mechanism": "noisy-vote"}, MORE_LABELS])
def test_a_noisy_vote_is_for_two_decisions(
    release: SmallRelease, changes: dict[str, str], queries: str
) -> None:
    """Whatever number of answers is asked for, and both after a restart."""
    voting = replace(release, changes={**release.changes, **changes, "answers__queries": queries})
    rule = "decisions" if changes is MORE_LABELS else "table of decisions"
    assert parameters_of(voting)[RULE_KEY] == rule
    calibration = read_calibration(voting.settings(), voting.ledger())
    assert calibration.to_plain()["answer_limit"] == str(DECISIONS_MOVED)
    assert voting.open().mechanism.answer_limit == int(queries)


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy__calibration": "svt"},
        {"privacy__calibration": "certified"},
        {"privacy__sampling": "0.5"},
        {"learner__estimator": "sklearn.tree.DecisionTreeClassifier"},
        {"hypotheses__class": "trees", "hypotheses__cells": "[]"},
    ],
)
def test_other_releases_pay_for_each_hit(release: SmallRelease, changes: dict[str, str]) -> None:
    """A threshold's noise, a certificate, a sample, and learners that see the whole vector."""
    opened = replace(release, changes={**release.changes, **changes}).open()
    assert opened.state.release is not None
    assert RULE_KEY not in opened.state.release.parameters
    assert opened.mechanism.cutoff == 2


def test_a_ledger_of_before_goes_on_by_its_cutoff(release: SmallRelease) -> None:
    """One that decided cells when hits were paid for is answered, halted and verified as before."""
    path = release.folder / "conclave.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((HISTORIES / "cells_by_cutoff.sql").read_text(encoding="utf-8"))
    path.chmod(0o600)
    answerer = release.answerer([HIT])
    assert answerer.release.mechanism.row is MECHANISMS["profile"]
    assert (answerer.release.mechanism.cutoff, answerer.release.state.decides_cells) == (2, True)
    replayed, last, refused = answerer.answer_batch([ask(49), ask(-40), ask(10, group="b")])
    assert replayed == RecordedAnswer(1, 1, stable=True)
    assert isinstance(last, Fresh)
    assert isinstance(refused, BudgetExhaustedError)
    verify(answerer.release.ledger)
    as_it_was = replace(release, changes={**release.changes, "privacy__accounting": "sum"})
    check_pieces(as_it_was.settings(), answerer.release.ledger)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE private_state SET body = x'7b7d' WHERE name = 'decision-table'", "an altered"),
        ("DELETE FROM private_state WHERE name = 'decision-table'", "is missing a piece"),
    ],
)
def test_a_table_that_is_not_what_was_written_stops_a_start(
    release: SmallRelease, statement: str, problem: str
) -> None:
    """A restart compares the table's digest, and serves by no other."""
    release.open().ledger.close()
    tamper(release.folder / "conclave.db", statement)
    with pytest.raises(LedgerCorruptError, match=problem):
        release.open()
    with pytest.raises(LedgerCorruptError, match=problem):
        check_pieces(release.settings(), release.ledger())


def test_an_opening_without_a_cutoff_may_be_hopeless(release: SmallRelease) -> None:
    """Where more than half of all answers would be unstable even if all agree, it is refused."""
    poor = replace(
        release, changes={**release.changes, "privacy__epsilon": "0.5"}, even_if_hopeless=False
    )
    with pytest.raises(ConfigurationError) as refused:
        poor.open()
    assert "an answer is unstable with probability" in str(refused.value)
    assert "T =" not in str(refused.value)
    assert poor.ledger().read_state().release is None
    rich = replace(poor, changes={**poor.changes, "privacy__epsilon": "200"})
    assert rich.open().mechanism.cutoff is None


def test_its_parameters_are_told_in_words(release: SmallRelease) -> None:
    """There are unstable answers and two decisions, and there is no cutoff."""
    told = {each.name: each for each in explained(release.open())}
    assert told["decisions that a record moves"].value == "2 decisions"
    assert "unstable answers" in told
    assert "cutoff (T)" not in told


def test_a_release_in_memory_has_no_cutoff_either(release: SmallRelease) -> None:
    """The estimator's release is calibrated alike."""
    memory = MemoryRelease(release.configuration(), rows=private_rows(), noise=seeded_noise())
    assert memory.budget()["unstable"] == {"count": 0, "cutoff": None, "left": None}


# -- planted faults ---------------------------------------------------------------


def test_counted_decisions_replayed_by_vector_are_refused(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first entry that counts decisions and keys answers by vector serves nothing."""
    problem = "decisions are counted where cells are decided"
    monkeypatch.setattr("app.release.opening.replay_parameter", lambda _: {})
    with pytest.raises(InvariantError, match=problem):
        release.open()
    assert release.ledger().read_state().release is None
    with monkeypatch.context() as careless:
        careless.setattr("app.release.opening._check_rule", lambda *_: None)
        release.open().ledger.close()
    with pytest.raises(InvariantError, match=problem):
        release.open()
    with pytest.raises(InvariantError, match=problem):
        check_pieces(release.settings(), release.ledger())


def test_a_table_for_other_decisions_is_refused(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that was made for a single decision opens nothing, and nothing is charged."""
    del tmp_path
    row = MECHANISMS["profile-of-cells"]

    def of_one(asked: object, **share: object) -> DecisionTable:
        table = row.calibrate(asked, **share)
        assert isinstance(table, DecisionTable)
        return replace(table, decisions=1)

    monkeypatch.setitem(MECHANISMS, "profile-of-cells", replace(row, calibrate=of_one))
    with pytest.raises(InvariantError, match="the calibration is the one of the answers' share"):
        release.open()
    assert release.ledger().read_state().release is None
