"""Scores through the service: bins, units, precisions, restarts and commits that fail.

A query of margin m has 50 + m learners that score 1 and 50 - m that score 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec import structs

from app.answering.queries import Fresh
from app.answering.replays import released_bin
from app.errors import (
    BudgetExhaustedError,
    ConfigurationError,
    IdempotencyConflictError,
    InvariantError,
    LedgerUnavailableError,
)
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.planning.from_settings import warn_of_relabelled_scores
from app.privacy.soft_labels.mechanism import ScoreBin
from app.privacy.stability import mechanism as stability
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Outcome, Parameters, Phase, Sequel, State
from app.release.views.budget import budget_view
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.release.opened_release import NoNoise, kinds
from tests.builders.release.small_release import HIT, STABLE, RowAnswerer, SmallRelease, ask
from tests.builders.release.svt_release import HIT as NOISE_OF_HIT
from tests.builders.release.svt_release import REFRESHED, RELEASED, SVT, changed, svt_answerer
from tests.unit.release.test_threshold_noise import noises

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.batch_decisions import Decision
    from app.answering.queries import Query

SCORES = {"answers__output": "score"}
LAST = ScoreBin(10, 9, shifted=False)
LAST_SHIFTED = ScoreBin(10, 10, shifted=True)


@pytest.fixture
def scored(small_release: SmallRelease) -> SmallRelease:
    """Return a release of scores; T = 2, m = 4."""
    return changed(small_release, SCORES)


def ask_for(margin: int, precision: int | None = None, key: str | None = None) -> Query:
    """Return a query in bins of its own."""
    return structs.replace(ask(margin, key), precision=precision)


def scored_answer(
    query_id: int, label: int | None, released: ScoreBin | None, *, units: int = 0
) -> RecordedAnswer:
    """Return an answer in one of ten bins, or an unstable one."""
    index = None if released is None else released.index
    is_shifted = released is not None and released.shifted
    return RecordedAnswer(query_id, label, released is not None, 10, index, is_shifted, units)


def recorded(decisions: Sequence[Decision]) -> list[RecordedAnswer]:
    """Return the answers, fresh and replayed."""
    found = [each.recorded if isinstance(each, Fresh) else each for each in decisions]
    return [each for each in found if isinstance(each, RecordedAnswer)]


def unstable(answerer: RowAnswerer) -> object:
    """Return what ``GET /budget`` says of units."""
    return budget_view(answerer.release).model_dump()["unstable"]


# -- bins and units ----------------------------------------------------------------


def test_a_plain_bin_is_free(scored: SmallRelease) -> None:
    """A stable plain test releases its bin with the label of its mid-point."""
    answerer = scored.answerer([STABLE, STABLE])
    low, high = recorded(answerer.answer_batch([ask(-20), ask(20)]))
    assert low == scored_answer(1, 0, replace(LAST, index=0))
    assert high == scored_answer(2, 1, LAST)
    assert unstable(answerer) == {"count": 0, "cutoff": 2, "left": 2}
    verify(answerer.release.ledger)


def test_a_shifted_bin_costs_one_unit_and_is_stable(scored: SmallRelease) -> None:
    """A hit and a stable test after it: the shifted bin goes out."""
    answerer = scored.answerer([HIT, STABLE])
    (answer,) = recorded(answerer.answer_batch([ask(20)]))
    assert answer == scored_answer(1, 1, LAST_SHIFTED, units=1)
    assert unstable(answerer) == {"count": 1, "cutoff": 2, "left": 1}
    verify(answerer.release.ledger)


def test_two_hits_are_two_units(scored: SmallRelease) -> None:
    """An unstable answer has no bin, and with T = 2 it ends the run at once."""
    answerer = scored.answerer([HIT, HIT])
    (answer,) = recorded(answerer.answer_batch([ask(20)]))
    assert answer == scored_answer(1, None, None, units=2)
    assert answerer.phase is Phase.HALTED
    assert isinstance(answerer.answer_batch([ask(21)])[0], BudgetExhaustedError)
    verify(answerer.release.ledger)


def test_the_last_unit_leaves_the_second_test_out(scored: SmallRelease) -> None:
    """One unit is left: its hit ends the query and the run, and draws nothing more."""
    answerer = scored.answerer([HIT, STABLE, HIT])
    answers = recorded(answerer.answer_batch([ask(20), ask(21)]))
    assert [answer.stable for answer in answers] == [True, False]
    assert unstable(answerer) == {"count": 2, "cutoff": 2, "left": 0}
    assert answerer.phase is Phase.HALTED
    assert next(answerer.release.ledger.answers_after(1)).answer.units == 1
    verify(answerer.release.ledger)


def test_an_unstable_label_is_a_coin_where_asked(small_release: SmallRelease) -> None:
    """The coin follows both hits, and no bin goes with it."""
    release = changed(small_release, {**SCORES, "answers__unstable": "coin"})
    (answer,) = recorded(release.answerer([HIT, HIT, STABLE]).answer_batch([ask(20)]))
    assert (answer.label, answer.stable, released_bin(answer)) == (1, False, None)


# -- precision ---------------------------------------------------------------------


def test_every_precision_is_a_question(scored: SmallRelease) -> None:
    """Other bins are charged; the default's are the same, said or not, in and across batches."""
    answerer = scored.answerer([STABLE] * 3)
    first = recorded(answerer.answer_batch([ask(20), ask_for(20, 10), ask_for(20, 2)]))
    assert [answer.query_id for answer in first] == [1, 1, 2]
    again = recorded(answerer.answer_batch([ask_for(20, 2), ask_for(20, 3)]))
    assert [(answer.query_id, answer.precision) for answer in again] == [(2, 2), (3, 3)]
    assert released_bin(again[1]) == ScoreBin(3, 2, shifted=False)
    verify(answerer.release.ledger)


def test_a_key_belongs_to_a_vector_and_a_precision(scored: SmallRelease) -> None:
    """The same vector in other bins is another question under the same key."""
    answerer = scored.answerer([STABLE] * 2)
    answerer.answer_batch([ask(20, "k")])
    replayed, conflict = answerer.answer_batch([ask_for(20, 10, "k"), ask_for(20, 2, "k")])
    assert isinstance(replayed, RecordedAnswer)
    assert isinstance(conflict, IdempotencyConflictError)


def test_a_release_of_labels_has_no_precision(small_release: SmallRelease) -> None:
    """A precision that comes all the same is passed by, and answers have labels only."""
    answerer = small_release.answerer([STABLE])
    assert (
        recorded(answerer.answer_batch([ask_for(20, 2), ask(20)]))
        == [RecordedAnswer(1, 1, stable=True)] * 2
    )
    assert kinds(small_release)[-1] == "AnswersReleased"


# -- restarts and failed commits ---------------------------------------------------


def test_a_restart_goes_on_from_the_units(scored: SmallRelease) -> None:
    """Bins replay, the counter is what it was, and the last unit still ends the run."""
    before = recorded(scored.answerer([HIT, STABLE]).answer_batch([ask(20)]))
    restarted = scored.answerer([HIT])
    assert recorded(restarted.answer_batch([ask(20)])) == before
    assert unstable(restarted) == {"count": 1, "cutoff": 2, "left": 1}
    assert recorded(restarted.answer_batch([ask(21)]))[0].stable is False
    assert scored.answerer([]).phase is Phase.HALTED


def test_a_refused_commit_keeps_its_bins_and_units(scored: SmallRelease) -> None:
    """What was drawn is recorded as it was, before anything new is drawn."""
    ledger = FaultyLedger(scored)
    answerer = scored.answerer([HIT, STABLE, STABLE], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(20)])
    answers = recorded(answerer.answer_batch([ask(20), ask(-20)]))
    assert [released_bin(answer) for answer in answers] == [LAST_SHIFTED, replace(LAST, index=0)]
    assert unstable(answerer) == {"count": 1, "cutoff": 2, "left": 1}
    verify(ledger)


@pytest.mark.parametrize("drawn", [[HIT, STABLE], [HIT, HIT]])
def test_a_hit_that_has_become_the_last_unit_ends_the_run(
    scored: SmallRelease, drawn: list[int]
) -> None:
    """Where another process used a unit meanwhile, the first hit ends the query unstable."""
    ledger = FaultyLedger(scored)
    answerer = scored.answerer(drawn, ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(20)])
    scored.answerer([HIT, STABLE]).answer_batch([ask(-20)])
    (answer,) = recorded(answerer.answer_batch([ask(20)]))
    assert answer == scored_answer(2, None, None, units=1)
    assert unstable(answerer) == {"count": 2, "cutoff": 2, "left": 0}
    verify(ledger)


def test_an_answer_whose_second_test_was_left_out_needs_the_last_unit() -> None:
    """With more units left than where it was drawn it cannot be recorded."""
    parameters = Parameters(
        stability.Parameters((1,), 3),
        2,
        9,
        Sequel.HALT,
        Sequel.HALT,
        unstable_gets_coin=False,
        with_scores=True,
    )
    drawn = (State(1, 2), State(2, 3))
    with pytest.raises(InvariantError, match="second test"):
        query_decision.redo(
            parameters, State(1, 0), Outcome(None, stable=False), drawn=drawn, noise=NoNoise()
        )


# -- the threshold's noise ---------------------------------------------------------


def test_each_hit_draws_the_thresholds_next_noise(small_release: SmallRelease) -> None:
    """Two hits of one query draw twice; the newest is kept, under the count of units."""
    release = changed(small_release, {**REFRESHED, **SCORES})
    answerer = svt_answerer(release, [NOISE_OF_HIT] * 2 + [RELEASED], [7, -8])
    first = answerer.release.private_threshold_noise
    answerer.answer_batch([ask(20)])
    assert noises(release) == {"0": first, "2": -8}
    assert kinds(release)[-2:] == ["ScoresReleased", "ThresholdRefreshed"]
    restarted = svt_answerer(release, [NOISE_OF_HIT, RELEASED], [9])
    assert restarted.release.private_threshold_noise == -8
    (answer,) = recorded(restarted.answer_batch([ask(21)]))
    assert released_bin(answer) == LAST_SHIFTED
    assert noises(release) == {"0": first, "2": -8, "3": 9}
    verify(restarted.release.ledger)


def test_the_second_test_sees_the_new_noise(small_release: SmallRelease) -> None:
    """A threshold that the first hit raised beyond reach makes the second test a hit."""
    release = changed(small_release, {**REFRESHED, **SCORES})
    answerer = svt_answerer(release, [NOISE_OF_HIT, RELEASED], [10**9, 0])
    (answer,) = recorded(answerer.answer_batch([ask(20)]))
    assert not answer.stable
    assert answerer.release.state.unstable == 2


def test_a_refused_commit_keeps_the_noise_of_both_hits(small_release: SmallRelease) -> None:
    """The draws of a failed commit are recorded with the noise after the last of them."""
    release = changed(small_release, {**REFRESHED, **SCORES})
    ledger = FaultyLedger(release)
    answerer = svt_answerer(release, [NOISE_OF_HIT] * 2, [7, -8], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        answerer.answer_batch([ask(20)])
    assert list(noises(release)) == ["0"]
    assert not recorded(answerer.answer_batch([ask(20)]))[0].stable
    assert noises(release)["2"] == answerer.release.private_threshold_noise == -8
    verify(ledger)


def test_one_threshold_draws_nothing_at_a_unit(small_release: SmallRelease) -> None:
    """In the variant of one threshold two units end the run and bind no noise."""
    release = changed(small_release, {**SVT, **SCORES})
    answerer = svt_answerer(release, [NOISE_OF_HIT, RELEASED, NOISE_OF_HIT])
    answers = recorded(answerer.answer_batch([ask(20), ask(21)]))
    assert [answer.stable for answer in answers] == [True, False]
    assert answerer.phase is Phase.HALTED
    assert kinds(release)[-1] == "ScoresReleased"


# -- configuration -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"answers__mechanism": "noisy-vote"}, "answers.output"),
        ({"privacy__calibration": "paper"}, "answers.output"),
        ({"data__classes": '["no", "yes", "maybe"]'}, "answers.output"),
        ({"privacy__shares__answers": "0"}, "answers.output"),
        ({"answers__output": "label", "answers__precision": "20"}, "answers.precision"),
        ({"answers__precision": "1"}, "answers.precision"),
        ({"answers__precision": "1001"}, "answers.precision"),
        ({"answers__output": "bin"}, "answers.output"),
    ],
)
def test_what_cannot_have_scores_is_refused_by_its_key(
    small_release: SmallRelease, changes: dict[str, str], key: str
) -> None:
    """Every configuration without a served meaning is one line that names the key."""
    with pytest.raises(ConfigurationError) as refused:
        changed(small_release, {**SCORES, **changes}).configuration()
    assert str(refused.value).startswith(key)
    assert "\n" not in str(refused.value)


def test_relabelled_scores_are_warned_of(small_release: SmallRelease) -> None:
    """A relabel share takes the shares out of the rows, which a line says; without, none."""
    told: list[str] = []
    warn_of_relabelled_scores(small_release.settings(), told.append)
    release = changed(small_release, {**SCORES, "privacy__shares__relabel": "0"})
    warn_of_relabelled_scores(release.settings(), told.append)
    assert told == []
    warn_of_relabelled_scores(changed(small_release, SCORES).settings(), told.append)
    assert "privacy.shares.relabel" in told[0]


def test_the_ensemble_of_a_release_of_scores_has_them(scored: SmallRelease) -> None:
    """The fitted learners give k scores in [0, 1], after a restart the same."""
    release = scored.open()
    again = scored.open(noise=NoNoise())
    values = [[-30.0, 0.0], [30.0, 1.0]]
    found = [opened.ensemble.scores(np.array(values)) for opened in (release, again)]
    assert found[0].shape == (2, 5)
    assert found[0].tolist() == found[1].tolist()
    assert ((found[0] >= 0) & (found[0] <= 1)).all()


def test_words_are_drawn_as_the_mechanism_draws_them(scored: SmallRelease) -> None:
    """A query draws one word, or two where the first is a hit that leaves a unit."""
    noise = ScriptedNoise([STABLE, HIT, STABLE, HIT])
    answerer = RowAnswerer(scored.answerer().release, noise)
    drawn = []
    for margin in (20, 21, 22):
        answerer.answer_batch([ask(margin)])
        drawn.append(noise.drawn_count)
    assert drawn == [1, 3, 4]


def test_an_estimator_answers_the_share_that_it_computes(small_release: SmallRelease) -> None:
    """An estimator's probabilities go through the same bins, and replay after a restart."""
    release = changed(
        small_release,
        {
            **SCORES,
            "learner__estimator": "sklearn.tree.DecisionTreeClassifier",
            "learner__params": '{"max_depth": 1}',
            "privacy__shares__relabel": "0",
        },
    )
    answerer = RowAnswerer(release.open(), ScriptedNoise([STABLE] * 2))
    low, high = recorded(answerer.answer_batch([ask(-40), ask(40)]))
    assert released_bin(low) == ScoreBin(10, 0, shifted=False)
    assert released_bin(high) == LAST
    again = RowAnswerer(release.open(noise=NoNoise()), NoNoise())
    assert recorded(again.answer_batch([ask(40)])) == [high]
