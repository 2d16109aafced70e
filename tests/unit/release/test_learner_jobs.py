"""A release whose learners run in processes: the same answers, the same halt, no other binding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.answering.answer_query import CONTAINED, FAILED_AFTER_VOTE, QueryAnswerer
from app.answering.queries import Fresh
from app.errors import BudgetExhaustedError, ContainedError
from app.learning.estimators.estimators import EstimatorEnsemble
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.release.terms.answer_time import AnswerTime, measure_answer_time
from app.release.terms.configuration import configure
from tests.builders.release.opened_release import NoNoise, changed
from tests.builders.release.small_release import STABLE, SmallRelease, ask, scripted_noise

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN = "tests.builders.learners.plain_estimators:Plain"
STARVED = "tests.builders.learners.plain_estimators:Starved"
SLEEPS = "tests.builders.learners.telling_estimator:SlowWhereMarked"
ENDING = 50.0  # scaled to one, where such an estimator ends its process


def of_estimators(release: SmallRelease, path: str, **changes: str) -> SmallRelease:
    """Return a release of such estimators, unpadded."""
    given: Mapping[str, str] = {
        "learner__estimator": path,
        "answers__reply_padding_milliseconds": "0",
        "answers__query_seconds_max": "120",
    }
    return changed(release, **{**given, **changes})


def test_a_vote_that_ends_its_process_halts_the_release_for_good(
    small_release: SmallRelease,
) -> None:
    """Opened by one process it goes on with two, alike; then the server lives, and asks no more."""
    ways = '{"way": "ends"}'
    alone = of_estimators(small_release, PLAIN, learner__jobs="1", learner__params=ways)
    first, release = alone.open().ensemble, changed(alone, learner__jobs="2")
    answerer = QueryAnswerer(release.open(), scripted_noise(STABLE))
    again = answerer.release.ensemble
    assert isinstance(first, EstimatorEnsemble)
    assert isinstance(again, EstimatorEnsemble)
    assert (first._processes is None, again._processes is None) == (True, False)
    values = np.array([[-20.0, 0.0], [20.0, 1.0]])
    assert np.array_equal(again.vote_counts(values), first.vote_counts(values))
    (given,) = answerer.answer_batch([ask(1)])
    with pytest.raises(ContainedError) as contained:
        answerer.answer_batch([ask(ENDING)])
    assert str(contained.value) == CONTAINED
    assert contained.value.__cause__ is None
    halted = answerer.release.ledger.read_state().halted
    assert halted == ReleaseHalted(reason=FAILED_AFTER_VOTE)
    restarted = QueryAnswerer(release.open(), NoNoise())
    replayed, refused = restarted.answer_batch([ask(1), ask(ENDING)])
    assert isinstance(given, Fresh)
    assert replayed == given.recorded
    assert isinstance(refused, BudgetExhaustedError)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_vote_that_the_machine_fails_halts_the_release_for_good(
    small_release: SmallRelease, jobs: str
) -> None:
    """Nothing is answered in its place, class 0 least of all; what was charged stays."""
    at = '{"at": "predict"}'
    release = of_estimators(small_release, STARVED, learner__jobs=jobs, learner__params=at)
    answerer = QueryAnswerer(release.open(), scripted_noise(STABLE))
    before = answerer.release.ledger.read_state()
    answerer.answer_batch([ask(1)])
    with pytest.raises(ContainedError) as contained:
        answerer.answer_batch([ask(ENDING)])
    assert str(contained.value) == CONTAINED
    after = answerer.release.ledger.read_state()
    assert after.halted == ReleaseHalted(reason=FAILED_AFTER_VOTE)
    assert (after.answered, after.charged) == (1, before.charged)
    (refused,) = QueryAnswerer(release.open(), NoNoise()).answer_batch([ask(ENDING)])
    assert isinstance(refused, BudgetExhaustedError)


@pytest.mark.long
def test_an_answer_is_measured_in_the_processes_that_will_work_it_out(
    small_release: SmallRelease,
) -> None:
    """Forty learners that sleep 25 ms take a second in turn, and half of it in two processes."""
    slow = {"learner__params": '{"seconds": 0.025}'}
    one, two = (
        _measured(of_estimators(small_release, SLEEPS, learner__jobs=jobs, **slow))
        for jobs in ("1", "2")
    )
    assert (one.processes, two.processes) == (1, 2)
    assert one.evaluation_seconds >= 40 * 0.025
    assert 20 * 0.025 <= two.evaluation_seconds < one.evaluation_seconds
    assert str(two).endswith("one learner after the other in each of 2 processes")


def _measured(release: SmallRelease) -> AnswerTime:
    settings = release.settings()
    learner = configure(settings).learner
    return measure_answer_time(settings, learner, row_count=800, ensemble_size=40)
