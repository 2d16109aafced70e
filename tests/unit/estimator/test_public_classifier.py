"""The published classifier of an estimator: public, asked and exported as any document is."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import onnxruntime
import pytest

from app.errors import ContainedError, NotPublishedError
from app.estimator import memory_release
from tests.unit.estimator.private_rows import CLASSES, fitted
from tests.unit.estimator.test_frame_columns import frame, published

pytestmark = pytest.mark.filterwarnings("ignore::app.estimator.HopelessReleaseWarning")


def test_there_is_one_once_the_release_has_drawn_it() -> None:
    """It is absent while the ensemble answers, and there after the answer that ends it."""
    private = fitted()
    assert private.learner_ == "exponential"
    assert not hasattr(private, "classifier_")
    with pytest.raises(NotPublishedError, match="no classifier is published yet"):
        private.export_onnx()
    private.predict(np.linspace(0, 1, 2000)[:, None])
    assert private.budget_["phase"] == "classifier"
    assert private.classifier_.classes_.tolist() == CLASSES


def test_one_answer_that_ends_the_ensemble_publishes_it() -> None:
    """Nobody has to ask once more."""
    private = fitted(queries=1)
    private.predict(np.array([[0.5]]))
    assert [each["mechanism"] for each in private.budget_["charged"]] == ["answers", "classifier"]
    assert private.classifier_.learner == "exponential"


def test_a_release_without_one_says_so() -> None:
    """Where the classifier has no share there is no learner and never a classifier."""
    private = fitted(shares={"answers": 1.0}, after="halt", on_cutoff="halt")
    assert private.learner_ is None
    assert not hasattr(private, "classifier_")


def test_a_draw_that_fails_is_charged_and_says_nothing_of_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fit ends with one fixed text, and the object is used up."""

    def fails(*_: object) -> None:
        message = "row 17 has 0.123"
        raise ValueError(message)

    monkeypatch.setattr(memory_release, "draw_published", fails)
    private = published()
    with pytest.raises(ContainedError) as failed:
        private.fit(*frame())
    assert str(failed.value) == memory_release.FAILED
    assert failed.value.__cause__ is None
    assert [each["mechanism"] for each in private.budget_["charged"]] == ["classifier"]
    assert not hasattr(private, "classifier_")
    with pytest.raises(RuntimeError, match="second fit"):
        private.fit(*frame())


def test_columns_without_names_are_found_by_place() -> None:
    """A frame whose columns are numbers, and an array, have the columns of the fit in order."""
    people, labels = frame()
    unnamed = people.set_axis(range(3), axis=1)
    private = published(bounds={0: (0, 120)}, categories={1: ["f", "m"], 2: [False, True]})
    classifier = private.fit(unnamed, labels).classifier_
    expected = private.predict(unnamed).tolist()
    assert classifier.predict(unnamed).tolist() == expected
    assert classifier.predict(people.to_numpy(dtype=object)).tolist() == expected


@pytest.mark.parametrize("learner", ["exponential", "linear"])
def test_it_predicts_as_the_estimator_and_the_model_do(learner: str) -> None:
    """Labels of all rows agree among the estimator, the classifier and the ONNX model."""
    people, labels = frame()
    private = published(classifier_learner=learner).fit(people, labels)
    expected = private.predict(people).tolist()
    classifier = private.classifier_
    assert classifier.predict(people).tolist() == expected
    session = onnxruntime.InferenceSession(private.export_onnx())
    given: dict[str, Any] = {
        "age": people[["age"]].to_numpy(dtype=np.float64),
        "sex": people[["sex"]].to_numpy(dtype=object),
        "smoker": people[["smoker"]].astype(str).to_numpy(dtype=object),
    }
    inputs = {each.name: given[each.name] for each in session.get_inputs()}
    assert session.run(["label"], inputs)[0].tolist() == expected
    document = json.loads(classifier.json)
    assert [each["name"] for each in document["features"]] == ["age", "sex", "smoker"]
    assert document["classes"] == ["no", "yes"]


def test_it_names_its_learner() -> None:
    """Which learner `auto` took stands in an attribute and where the classifier is shown."""
    private = published(classifier_learner="auto", wanted="ranking").fit(*frame())
    assert private.learner_ == "linear"
    assert repr(private.classifier_) == (
        "<published classifier: learner 'linear', classes 'no', 'yes', 3 columns>"
    )


def test_it_may_be_copied() -> None:
    """It is public: what is read back from a file predicts alike."""
    people, labels = frame()
    classifier = published().fit(people, labels).classifier_
    read = pickle.loads(pickle.dumps(classifier))  # noqa: S301 -- its own bytes
    assert read.predict(people).tolist() == classifier.predict(people).tolist()


def test_columns_of_a_frame_are_found_by_name() -> None:
    """Their order and others beside them change nothing; one that is absent is named."""
    people, labels = frame()
    classifier = published().fit(people, labels).classifier_
    turned = people.assign(more=1)[["more", "smoker", "sex", "age"]]
    assert classifier.predict(turned).tolist() == classifier.predict(people).tolist()
    with pytest.raises(ValueError, match=r"^X has no column 'age'$"):
        classifier.predict(turned.drop(columns="age"))
    with pytest.raises(ValueError, match=r"^X: must be rows of 3 columns"):
        classifier.predict([[1, 2]])


@pytest.mark.parametrize("learner", ["linear", "scored-tree"])
def test_scores_are_given_where_the_learner_has_scores(learner: str) -> None:
    """They are above 0 for the second class, and a learner without scores has no method."""
    people, labels = frame()
    private = published(classifier_learner=learner).fit(people, labels)
    scores = private.decision_function(people)
    assert scores.shape == (len(people),)
    assert np.where(scores > 0, "yes", "no").tolist() == private.predict(people).tolist()
    assert not hasattr(published(), "decision_function")
    assert not hasattr(published().fit(people, labels), "decision_function")


def test_scores_of_more_classes_are_one_for_each() -> None:
    """The greatest is that of the label."""
    people, labels = frame()
    labels = np.where(people["age"] > 80, "old", labels)
    private = published(classifier_learner="linear", classes=["no", "old", "yes"])
    scores = private.fit(people, labels).decision_function(people)
    assert scores.shape == (len(people), 3)
    best = private.classes_[scores.argmax(axis=1)]
    assert best.tolist() == private.predict(people).tolist()
