"""A release that answers by the noisy vote: no unstable answer, no cutoff, an end after m.

Two labels have a table.  Releases that earlier versions opened add noise to a count of two
labels, and go on so: most of these tests open one, since its noise can be prescribed.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from app.answering.batch_decisions import DEFERRED
from app.answering.queries import Fresh
from app.errors import (
    BudgetExhaustedError,
    InvariantError,
    LedgerCorruptError,
    LedgerUnavailableError,
)
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.privacy.mechanism_registration import RULE_KEY
from app.privacy.noisy_vote import bit_vote
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote.answering_registration import NOISY_VOTE as COUNTS
from app.privacy.voting.query_decision import Phase
from app.release.terms import answer_terms
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.ledger.old_ledgers import HISTORIES
from tests.builders.ledger.releases import tamper
from tests.builders.mechanisms.prescribed import PrescribedGaussian
from tests.builders.release.opened_release import NoNoise, kinds, pieces, statement_of
from tests.builders.release.small_release import (
    VOTES,
    RowAnswerer,
    SmallRelease,
    VotesByMargin,
    ask,
)
from tests.builders.release.svt_release import NOISY_VOTE, changed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from app.answering.batch_decisions import Decision
    from app.ledger.ledger import Ledger


@pytest.fixture
def voting(small_release: SmallRelease) -> SmallRelease:
    """Return a release of four noisy votes."""
    return changed(small_release, NOISY_VOTE)


def by_counts() -> AbstractContextManager[object]:
    """Let what opens open as earlier versions did, without a rule in the first entry."""
    return patch.object(answer_terms, "serving_row", lambda *_, **__: COUNTS)


def answerer(release: SmallRelease, *noise: int, ledger: Ledger | None = None) -> RowAnswerer:
    """Open or continue the release with votes by margin and this noise on them."""
    with by_counts():
        opened = release.open(ledger=ledger)
    opened.private_ensemble = VotesByMargin()
    answering = opened.mechanism.answering
    assert isinstance(answering, noisy_vote.Parameters)
    prescribed = replace(answering, ensemble_size=VOTES, vote_noise=PrescribedGaussian(noise))
    opened.mechanism = replace(opened.mechanism, answering=prescribed)
    return RowAnswerer(opened, ScriptedNoise([]))


def recorded(decisions: Sequence[Decision]) -> list[RecordedAnswer]:
    """Return what was answered, fresh or replayed."""
    found = [each.recorded if isinstance(each, Fresh) else each for each in decisions]
    assert all(isinstance(each, RecordedAnswer) for each in found)
    return [each for each in found if isinstance(each, RecordedAnswer)]


def test_every_answer_is_a_stable_label(voting: SmallRelease) -> None:
    """Noise may turn a label over, and never makes an answer unstable."""
    asked = answerer(voting, 0, -30, 30)
    given = recorded(asked.answer_batch([ask(20), ask(19), ask(-20)]))
    assert given == [
        RecordedAnswer(1, 1, stable=True),
        RecordedAnswer(2, 0, stable=True),
        RecordedAnswer(3, 1, stable=True),
    ]
    assert (asked.release.state.answered, asked.release.state.unstable) == (3, 0)
    verify(asked.release.ledger)


def test_a_vote_for_each_half_is_the_first_class(voting: SmallRelease) -> None:
    """Ties of noisy counts go to the smaller class index."""
    (given,) = recorded(answerer(voting, 0).answer_batch([ask(0)]))
    assert given.label == 0


@pytest.mark.parametrize(
    ("after", "phase"), [("halt", Phase.HALTED), ("classifier", Phase.CLASSIFIER)]
)
def test_the_run_ends_with_its_last_answer(voting: SmallRelease, after: str, phase: Phase) -> None:
    """After m answers the next query is refused, or left to the classifier; restarts know it."""
    release = changed(voting, {"answers__after": after})
    asked = answerer(release, *[0] * 4)
    *given, rest = asked.answer_batch([ask(margin) for margin in (1, 2, 3, 4, 5)])
    assert len(recorded(given)) == 4
    assert asked.phase is phase
    assert rest is DEFERRED if after == "classifier" else isinstance(rest, BudgetExhaustedError)
    assert release.open(noise=NoNoise()).phase is phase


def test_what_is_kept_has_no_threshold(voting: SmallRelease) -> None:
    """The calibration is the piece beside the learners, and no state is secret but they."""
    release = voting.open()
    assert set(pieces(voting)) == {
        "release-secret",
        "hypothesis",
        "permutation",
        "ensemble",
        "noisy-vote-table",
        "calibration-checked",
    }
    assert release.private_threshold_noise is None
    again = voting.open(noise=NoNoise())
    assert again.mechanism == release.mechanism
    assert kinds(voting).count("EnsembleFitted") == 1


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_calibration_that_is_not_what_was_written_refuses_to_start(
    voting: SmallRelease, damage: str
) -> None:
    """Nothing is served under a table that nobody bound."""
    voting.open().ledger.close()
    tamper(voting.folder / "conclave.db", statement_of(damage, "noisy-vote-table"))
    with pytest.raises(LedgerCorruptError, match="noisy-vote-table"):
        voting.open(noise=NoNoise())


def test_a_refused_commit_draws_nothing_anew(voting: SmallRelease) -> None:
    """What was drawn for it is recorded and counts before anything new."""
    ledger = FaultyLedger(voting)
    asked = answerer(voting, -30, 0, ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        asked.answer_batch([ask(20)])
    given = recorded(asked.answer_batch([ask(21), ask(20)]))
    assert given == [RecordedAnswer(2, 1, stable=True), RecordedAnswer(1, 0, stable=True)]
    verify(ledger)


def test_a_new_release_of_two_labels_draws_a_word_an_answer(voting: SmallRelease) -> None:
    """The word is compared with the table's, and the rule is in the first entry."""
    opened = voting.open()
    opened.private_ensemble = VotesByMargin()
    given = opened.mechanism.answering
    assert isinstance(given, bit_vote.Parameters)
    hundred = replace(given, ensemble_size=VOTES)
    opened.mechanism = replace(opened.mechanism, answering=hundred)
    words = [hundred.words_of_one(VOTES // 2 + margin) for margin in (1, -2)]
    asked = RowAnswerer(opened, ScriptedNoise([words[0] - 1, words[0], words[1]]))
    found = recorded(asked.answer_batch([ask(1), ask(1.5), ask(-2)]))
    assert [each.label for each in found] == [1, 0, 0]
    first = opened.state.release
    assert first is not None
    assert first.parameters[RULE_KEY] == "table"
    verify(opened.ledger)


def test_a_ledger_of_an_earlier_version_goes_on_by_its_noise(small_release: SmallRelease) -> None:
    """One that was written before there was a table is opened, answered and verified as before."""
    release = changed(small_release, NOISY_VOTE)
    path = release.folder / "conclave.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((HISTORIES / "noisy_counts.sql").read_text(encoding="utf-8"))
    path.chmod(0o600)
    opened = release.open(noise=NoNoise())
    given = opened.mechanism.answering
    assert isinstance(given, noisy_vote.Parameters)
    assert given.vote_noise.variance == Fraction(31255748839, 68719476736)
    asked = answerer(release, 0, 0, 0)
    replayed, *new = recorded(asked.answer_batch([ask(20), ask(3), ask(-3), ask(4)]))
    assert replayed == RecordedAnswer(1, 1, stable=True)
    assert [each.label for each in new] == [1, 0, 1]
    assert asked.release.mechanism.row is COUNTS
    verify(asked.release.ledger)


def test_a_rule_of_a_later_version_is_refused(voting: SmallRelease) -> None:
    """A first entry that names a rule which is not known opens nothing."""
    voting.open().ledger.close()
    with (
        patch.object(answer_terms, "RULE_KEY", "data.reading"),
        pytest.raises(InvariantError, match="this version knows"),
    ):
        voting.open(noise=NoNoise())
