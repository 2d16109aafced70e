"""A release whose answers would take too long does not open, whatever its rows are."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pytest
import structlog

from app.data.rows import PrivateRows
from app.errors import ConfigurationError
from app.learning.ensemble import fit_ensemble
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.release.terms import answer_time
from app.release.terms.answer_time import (
    LEARNERS_FITTED,
    SECONDS_MEASURED_MAX,
    AnswerTime,
    measure_answer_time,
)
from app.release.terms.configuration import configure
from tests.builders.release.opened_release import changed
from tests.builders.release.small_release import private_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.builders.release.small_release import SmallRelease

TELLING = "tests.builders.learners.telling_estimator:SlowWhereMarked"


def telling(release: SmallRelease, *, limit: float = 2.0, **params: float) -> SmallRelease:
    """Return a release of estimators that sleep, unpadded."""
    return changed(
        release,
        learner__estimator=TELLING,
        learner__params=json.dumps(params),
        answers__reply_padding_milliseconds="0",
        answers__query_seconds_max=str(limit),
    )


def is_charged(release: SmallRelease) -> bool:
    """Tell whether the ledger holds a release."""
    return release.ledger().read_state().release is not None


def test_answers_that_take_too_long_are_refused_before_a_charge(
    small_release: SmallRelease,
) -> None:
    """Five learners that sleep 20 ms each take 100 ms, and 50 are allowed."""
    slow = telling(small_release, limit=0.05, seconds=0.02)
    with pytest.raises(ConfigurationError) as refused:
        slow.open()
    assert str(refused.value).startswith(
        "answers.query_seconds_max: is 50 ms, and the 5 votes on a query take about 1"
    )
    assert "one learner after the other: raise it, or choose a smaller" in str(refused.value)
    assert not is_charged(slow)


def test_answers_within_the_limit_are_not_refused(small_release: SmallRelease) -> None:
    """The same learners open where the limit is two minutes."""
    assert telling(small_release, limit=120, seconds=0.02).open().ensemble.size == 5


def test_a_padding_beyond_the_limit_is_refused(small_release: SmallRelease) -> None:
    """What a reply is padded to counts, however fast the learners are."""
    slow = changed(small_release, answers__reply_padding_milliseconds="3000")
    with pytest.raises(ConfigurationError, match=r"padded 3 s: raise it, .* shorter padding"):
        slow.open()
    assert not is_charged(slow)


def test_no_private_row_decides_whether_a_release_opens(small_release: SmallRelease) -> None:
    """Learners that are slow on every row of the release, but on no made-up one, open."""
    values = private_rows().values.copy()
    values[:, 0] = 7.0
    rows = PrivateRows(values=values, labels=np.arange(len(values)) % 2)
    kept = changed(small_release, privacy__shares__relabel="0")
    release = telling(kept, limit=1.0, seconds_marked=1000.0)
    ensemble = release.open(rows=rows).ensemble
    assert isinstance(ensemble, EstimatorEnsemble)
    assert all(getattr(model, "is_marked_", False) for model in ensemble._models)


def test_a_release_that_is_open_continues_beyond_the_limit(small_release: SmallRelease) -> None:
    """Its budget is spent: a limit that was lowered, or a slower machine, stops no answer."""
    first = small_release.open()
    again = changed(
        small_release,
        answers__reply_padding_milliseconds="3000",
        answers__query_seconds_max="0.001",
    ).open()
    assert again.ensemble.size == first.ensemble.size


def test_an_opening_says_how_long_answers_take(small_release: SmallRelease) -> None:
    """One line, once: a later start says nothing."""
    with structlog.testing.capture_logs() as lines:
        small_release.open()
        small_release.open()
    said = [line["answer_time"] for line in lines if line["event"] == "answer_time_measured"]
    assert len(said) == 1
    assert said[0].startswith("the 5 votes on a query take about ")
    assert said[0].endswith("on this machine, worked out together")


@pytest.mark.parametrize("output", ["label", "score"])
def test_all_learners_are_evaluated_where_that_is_fast(
    small_release: SmallRelease, output: str
) -> None:
    """With a clock of one millisecond an evaluation, k learners take one."""
    settings = changed(
        small_release, answers__output=output, privacy__shares__relabel="0"
    ).settings()
    learner = configure(settings).learner
    ticks = count()
    measured = measure_answer_time(
        settings, learner, row_count=6000, ensemble_size=80, clock=lambda: next(ticks) * 1e-3
    )
    assert measured.evaluation_seconds == pytest.approx(1e-3)
    assert measured.seconds == measured.evaluation_seconds
    assert measured.together


def test_cells_take_as_long_with_a_million_learners(small_release: SmallRelease) -> None:
    """Their votes are sums: with a clock of a second an evaluation, a million take one."""
    cells = {"hypotheses__class": "cells", "hypotheses__cells": '["margin >= 0", "", ""]'}
    settings = changed(small_release, **cells).settings()
    ticks = count()
    measured = measure_answer_time(
        settings,
        configure(settings).learner,
        row_count=10**6,
        ensemble_size=10**6,
        clock=lambda: next(ticks) * 1.0,
    )
    assert measured.evaluation_seconds == pytest.approx(1.0)


def test_a_few_learners_stand_for_all_where_they_are_slow(small_release: SmallRelease) -> None:
    """With a clock of a second an evaluation of eight, eighty take ten."""
    settings = small_release.settings()
    ticks = count()
    measured = measure_answer_time(
        settings,
        configure(settings).learner,
        row_count=6000,
        ensemble_size=80,
        clock=lambda: float(next(ticks)),
    )
    assert SECONDS_MEASURED_MAX < 1.0
    assert measured.evaluation_seconds == pytest.approx(80 / LEARNERS_FITTED)


def test_learners_of_a_sample_are_measured_on_as_many_rows(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of a thousand rows, of which each learner is given twenty."""
    nearest = {
        "learner__estimator": "sklearn.neighbors.KNeighborsClassifier",
        "learner__rows_max": "20",
    }
    settings = changed(small_release, **nearest).settings()
    sizes: list[list[int]] = []

    def noted(*given: object, offsets: NDArray[np.int64], **named: object) -> object:
        sizes.append(np.diff(offsets).tolist())
        return fit_ensemble(*given, offsets=offsets, **named)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(answer_time, "fit_ensemble", noted)
    learner = configure(settings).learner
    measure_answer_time(settings, learner, row_count=80_000, ensemble_size=80)
    assert sizes == [[20] * LEARNERS_FITTED]


def test_times_are_told_as_people_read_them() -> None:
    """Milliseconds below a second, and what padding makes of them."""
    padded = AnswerTime(
        seconds=1.5, evaluation_seconds=0.0314159, ensemble_size=1000, together=False
    )
    assert str(padded) == (
        "the 1000 votes on a query take about 31.4 ms on this machine, "
        "one learner after the other, padded 1.5 s"
    )
