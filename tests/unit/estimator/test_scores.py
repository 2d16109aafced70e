"""Probabilities where scores are answered, and no method where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.estimator import PrivateQueryClassifier
from tests.unit.estimator.private_rows import CLASSES, estimator

pytestmark = pytest.mark.filterwarnings("ignore::app.estimator.HopelessReleaseWarning")

ASKED = np.linspace(0, 1, 40)[:, None]


def scored(**changes: Any) -> PrivateQueryClassifier:
    """Return an estimator that answers scores, fitted on labels that follow a cut."""
    generator = np.random.default_rng(3)
    values = generator.random((6000, 1))
    labels = np.where(values[:, 0] > 0.5, "yes", "no")
    usual: dict[str, Any] = {
        "output": "score",
        "epsilon": 50.0,
        "ensemble": 300,
        "cutoff": 20,
        "unstable_label": "?",
    }
    return estimator(**{**usual, **changes}).fit(values, labels)


def test_there_is_none_without_scores() -> None:
    """Scikit-learn finds no method before and after a fit."""
    assert not hasattr(estimator(), "predict_proba")
    assert hasattr(estimator(output="score"), "predict_proba")
    assert not hasattr(scored(output="label").set_params(output="score"), "predict_proba")
    with pytest.raises(ValueError, match=r"^precision: is for answers.output"):
        scored(output="label", precision=4)


def test_probabilities_are_those_of_the_scores() -> None:
    """Each is the mid-point of a bin, asked and counted as any query."""
    private = scored()
    found = private.predict_proba(ASKED)
    answers = private.answer(ASKED)
    assert all(answer.replayed for answer in answers)
    scores = [0.5 if answer.score is None else answer.score for answer in answers]
    assert found[:, 1].tolist() == scores
    assert np.all(found.sum(axis=1) == 1)
    assert private.budget_["queries"]["answered"] == len(ASKED)
    # All 300 learners of 20 rows each score 0 or 1 far from the cut: at a distance of 300
    # an answer at epsilon 35 is unstable with a chance below 1e-9.
    assert found[0].tolist() == [0.95, pytest.approx(0.05)]
    assert private.predict(ASKED[[0, -1]]).tolist() == CLASSES


def test_an_unstable_answer_has_halves() -> None:
    """What no learner's score entered is even, whatever label is given to it."""
    generator = np.random.default_rng(3)
    values, coins = generator.random((3000, 1)), generator.random(3000) < 0.5
    private = estimator(output="score", ensemble=150, cutoff=50, unstable_label="?")
    private.fit(values, np.where(coins, "yes", "no"))
    answers, found = private.answer(ASKED[:20]), private.predict_proba(ASKED[:20])
    unstable = [not answer.stable for answer in answers]
    # On labels by a coin the two fullest bins are 20 votes apart at most, at which the table of
    # hits has .89: of twenty answers all pass one of two tests with a chance below 10**-13.
    assert any(unstable)
    assert {(answer.label, answer.score) for answer in answers if not answer.stable} == {
        ("?", None)
    }
    assert found[unstable].tolist() == [[0.5, 0.5]] * sum(unstable)


def test_labels_of_the_classifier_count_as_certain() -> None:
    """After the ensemble there are no scores: probabilities are 0 and 1."""
    private = scored(queries=1)
    private.predict([[0.5]])
    answers = private.answer(ASKED[1:])
    assert {answer.phase for answer in answers} == {"classifier"}
    expected = [[float(answer.label == name) for name in CLASSES] for answer in answers]
    assert private.predict_proba(ASKED[1:]).tolist() == expected


def test_a_precision_makes_bins_of_its_own() -> None:
    """Four bins have mid-points at odd eighths."""
    found = scored(precision=4).predict_proba(ASKED[[0, -1]])
    assert found[:, 1].tolist() == [0.125, 0.875]
