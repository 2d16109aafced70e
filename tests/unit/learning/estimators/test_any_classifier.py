"""Every classifier of scikit-learn that needs no other estimator is a learner."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.utils import all_estimators

from app.errors import ConfigurationError
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, check_learner, fit_ensemble, read_ensemble_bytes
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSIFIERS = [
    "sklearn.calibration.CalibratedClassifierCV",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
    "sklearn.dummy.DummyClassifier",
    "sklearn.ensemble.AdaBoostClassifier",
    "sklearn.ensemble.BaggingClassifier",
    "sklearn.ensemble.ExtraTreesClassifier",
    "sklearn.ensemble.GradientBoostingClassifier",
    "sklearn.ensemble.HistGradientBoostingClassifier",
    "sklearn.ensemble.RandomForestClassifier",
    "sklearn.gaussian_process.GaussianProcessClassifier",
    "sklearn.linear_model.LogisticRegression",
    "sklearn.linear_model.LogisticRegressionCV",
    "sklearn.linear_model.PassiveAggressiveClassifier",
    "sklearn.linear_model.Perceptron",
    "sklearn.linear_model.RidgeClassifier",
    "sklearn.linear_model.RidgeClassifierCV",
    "sklearn.linear_model.SGDClassifier",
    "sklearn.naive_bayes.BernoulliNB",
    "sklearn.naive_bayes.CategoricalNB",
    "sklearn.naive_bayes.ComplementNB",
    "sklearn.naive_bayes.GaussianNB",
    "sklearn.naive_bayes.MultinomialNB",
    "sklearn.neighbors.KNeighborsClassifier",
    "sklearn.neighbors.NearestCentroid",
    "sklearn.neighbors.RadiusNeighborsClassifier",
    "sklearn.neural_network.MLPClassifier",
    "sklearn.semi_supervised.LabelPropagation",
    "sklearn.semi_supervised.LabelSpreading",
    "sklearn.svm.LinearSVC",
    "sklearn.svm.NuSVC",
    "sklearn.svm.SVC",
    "sklearn.tree.DecisionTreeClassifier",
    "sklearn.tree.ExtraTreeClassifier",
]
# They are given another estimator, which a configuration cannot hold.
NEED_AN_ESTIMATOR = [
    "sklearn.ensemble.StackingClassifier",
    "sklearn.ensemble.VotingClassifier",
    "sklearn.model_selection.FixedThresholdClassifier",
    "sklearn.model_selection.TunedThresholdClassifierCV",
    "sklearn.multiclass.OneVsOneClassifier",
    "sklearn.multiclass.OneVsRestClassifier",
    "sklearn.multiclass.OutputCodeClassifier",
    "sklearn.multioutput.ClassifierChain",
    "sklearn.multioutput.MultiOutputClassifier",
    "sklearn.semi_supervised.SelfTrainingClassifier",
]
# What only repeats their work: fewer rounds try the same shapes.
FEWER_ROUNDS: dict[str, dict[str, object]] = {
    "sklearn.ensemble.GradientBoostingClassifier": {"n_estimators": 10},
    "sklearn.ensemble.HistGradientBoostingClassifier": {"max_iter": 5},
    "sklearn.linear_model.LogisticRegressionCV": {"Cs": 2},
}
COLUMNS = (
    PublicColumn(bounds=(0.0, 1.0)),
    PublicColumn(bounds=(0.0, 1.0)),
    PublicColumn(category_count=2),
)
CLASS_COUNT = 3
ORDINARY, ONE_CLASS, CONSTANT_ROWS, TWO_CLASSES, ROW_A_CLASS, TWO_ROWS, EMPTY = range(7)


def _learner(path: str) -> Learner:
    trees = hypothesis_class(
        ClassAsked(kind="trees", tests=unit_tests(1), depth=1, class_count=CLASS_COUNT)
    )
    params = FEWER_ROUNDS.get(path, {})
    return Learner(
        hypothesis_class=trees, estimator=path, params=params, columns=COLUMNS, packed=False
    )


def _chunks() -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Return the rows and labels of an ordinary chunk and of six odd ones, as named above."""
    generator = np.random.default_rng(3)
    values = np.stack(
        [generator.random(40), generator.random(40), generator.integers(0, 4, 40)], axis=1
    )
    labels = np.minimum((values[:, 1] * CLASS_COUNT).astype(np.int64), CLASS_COUNT - 1)
    values[3, 0] = np.nan
    return [
        (values, labels),
        (values[:12], np.full(12, 2)),
        (np.tile([0.5, 0.5, 1.0], (12, 1)), np.arange(12) % CLASS_COUNT),
        (values[:12], np.where(labels[:12] > 0, 2, 0)),
        (values[:3], np.arange(3)),
        (values[:2], np.array([1, 2])),
        (values[:0], labels[:0]),
    ]


def _fit(path: str) -> EstimatorEnsemble:
    chunks = _chunks()
    values, labels = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    ensemble = fit_ensemble(
        _learner(path),
        values,
        labels,
        permutation=np.arange(len(values)),
        offsets=np.cumsum([0, *(len(rows) for _, rows in chunks)]),
        secret=b"s",
    )
    assert isinstance(ensemble, EstimatorEnsemble)
    return ensemble


def _votes(ensemble: EstimatorEnsemble, chunk: int, query: list[float]) -> int:
    """Return the vote of one chunk's model."""
    alone = EstimatorEnsemble(COLUMNS, ensemble._models[chunk : chunk + 1], class_count=CLASS_COUNT)
    return int(alone.vote_counts(np.array([query])).argmax())


def test_no_classifier_is_left_out() -> None:
    """What scikit-learn has is listed above: those that are tried, and those that cannot be."""
    there = {kind for _, kind in all_estimators(type_filter="classifier")}
    listed = [path.rpartition(".") for path in CLASSIFIERS + NEED_AN_ESTIMATOR]
    assert {getattr(importlib.import_module(module), name) for module, _, name in listed} == there


@pytest.mark.parametrize("path", CLASSIFIERS)
def test_a_classifier_votes_on_odd_chunks(
    path: str, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """Every model casts one vote, nothing is raised or heard, and storage changes no vote."""
    check_learner(_learner(path))
    ensemble = _fit(path)
    queries = np.array([[0.1, 0.1, 0.0], [0.9, 0.9, 3.0], [0.5, 0.5, 1.0], [np.nan, np.nan, 2.0]])
    counts = ensemble.vote_counts(queries)
    assert counts.shape == (len(queries), CLASS_COUNT)
    assert (counts.sum(axis=1) == len(_chunks())).all()
    again = read_ensemble_bytes(_learner(path), ensemble.to_bytes())
    np.testing.assert_array_equal(again.vote_counts(queries), counts)
    assert _votes(ensemble, ONE_CLASS, [0.1, 0.1, 0.0]) == 2
    assert _votes(ensemble, EMPTY, [0.9, 0.9, 0.0]) == 0
    heard = capfd.readouterr()
    assert (heard.out, heard.err, list(recwarn)) == ("", "", [])


def test_labels_are_mapped_by_value() -> None:
    """A chunk without class 1 votes 2 where its rows say 2, not the second of its labels."""
    ensemble = _fit("sklearn.tree.DecisionTreeClassifier")
    assert _votes(ensemble, TWO_CLASSES, [0.5, 0.95, 1.0]) == 2
    assert _votes(ensemble, TWO_ROWS, _chunks()[TWO_ROWS][0][0].tolist()) == 1


def test_a_learner_that_fails_on_some_chunks_votes_class_zero_there() -> None:
    """Where there is a row a class, discriminant analysis fails; elsewhere it votes as fitted."""
    ensemble = _fit("sklearn.discriminant_analysis.LinearDiscriminantAnalysis")
    for query in ([0.1, 0.1, 0.0], [0.9, 0.9, 3.0]):
        assert _votes(ensemble, ROW_A_CLASS, query) == 0
        assert _votes(ensemble, CONSTANT_ROWS, query) == 0
    assert _votes(ensemble, ORDINARY, [0.5, 0.95, 1.0]) == 2


@pytest.mark.parametrize("path", NEED_AN_ESTIMATOR)
def test_what_needs_another_estimator_is_refused(path: str) -> None:
    """The operator is told before any row is read."""
    with pytest.raises(ConfigurationError, match=f"^learner.params: {path}: "):
        check_learner(_learner(path))
