"""Any scikit-learn classifier votes, and none of its failures shows."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError, LedgerCorruptError
from app.learning.chunks import chunk_offsets
from app.learning.encoding.public_columns import PublicColumn, encode_columns
from app.learning.ensemble import Learner, check_learner, fit_ensemble, read_ensemble_bytes
from app.learning.estimators import estimator_fitting
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.ledger.transaction import PRIVATE_BODY_BYTES_MAX
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble

COLUMNS = (PublicColumn(bounds=(0.0, 1.0)), PublicColumn(category_count=2))
ODD = "tests.builders.learners.odd_estimators"
TREES = hypothesis_class(ClassAsked(kind="trees", tests=unit_tests(1), depth=1, class_count=2))


def _learner(path: str, **params: object) -> Learner:
    return Learner(hypothesis_class=TREES, estimator=path, params=params, columns=COLUMNS)


def _rows(row_count: int = 120) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(2)
    numbers = generator.random(row_count)
    codes = generator.integers(0, 4, row_count)
    return np.stack([numbers, codes], axis=1), (numbers >= 0.5).astype(np.int64)


def _fit(learner: Learner, chunk_count: int = 4) -> Ensemble:
    values, labels = _rows()
    return fit_ensemble(
        learner,
        values,
        labels,
        permutation=np.arange(len(values)),
        offsets=chunk_offsets(len(values), chunk_count),
        secret=b"e",
    )


def _models(ensemble: Ensemble) -> list[Any]:
    assert isinstance(ensemble, EstimatorEnsemble)
    return list(ensemble._models)


def _random_states(ensemble: Ensemble) -> set[object]:
    return {model.random_state for model in _models(ensemble)}


def _fit_with_labels(learner: Learner, labels: NDArray[np.int64], chunk_count: int) -> Ensemble:
    row_count = len(labels)
    return fit_ensemble(
        learner,
        np.zeros((row_count, 2)),
        labels,
        permutation=np.arange(row_count),
        offsets=chunk_offsets(row_count, chunk_count),
        secret=b"e",
    )


def test_columns_are_scaled_flagged_and_one_hot() -> None:
    """A missing number is 0 with its flag; other and missing categories have columns."""
    columns = (PublicColumn(bounds=(10.0, 30.0)), PublicColumn(category_count=1))
    values = np.array([[15.0, 0.0], [np.nan, 1.0], [30.0, 2.0]])
    assert encode_columns(columns, values).tolist() == [
        [0.25, 0, 1, 0, 0],
        [0, 1, 0, 1, 0],
        [1, 0, 0, 0, 1],
    ]


def test_a_column_has_one_kind() -> None:
    """Neither kind is a broken schema."""
    with pytest.raises(InvariantError):
        PublicColumn()


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("sklearn.tree.DecisionTreeClassifier", {"max_depth": 2}),
        ("sklearn.linear_model:LogisticRegression", {"C": 100.0}),
        ("sklearn.ensemble.RandomForestClassifier", {"n_estimators": 3}),
    ],
)
def test_estimators_learn_their_chunks_and_survive_storage(
    path: str, params: dict[str, object]
) -> None:
    """Four votes agree on clear queries; the stored models vote alike."""
    learner = _learner(path, **params)
    check_learner(learner)
    ensemble = _fit(learner)
    queries = np.array([[0.05, 0.0], [0.95, 3.0]])
    assert ensemble.vote_counts(queries).tolist() == [[4, 0], [0, 4]]
    again = read_ensemble_bytes(learner, ensemble.to_bytes())
    assert np.array_equal(again.vote_counts(_rows()[0]), ensemble.vote_counts(_rows()[0]))
    assert (again.size, again.class_count) == (4, 2)


def test_random_estimators_are_fitted_alike_twice_and_differ_between_chunks() -> None:
    """The chunk's seed is the estimator's random_state, unless the operator set one."""
    learner = _learner("sklearn.tree.ExtraTreeClassifier", max_features=1)
    assert _fit(learner).to_bytes() == _fit(learner).to_bytes()
    assert len(_random_states(_fit(learner))) == 4
    fixed = _learner("sklearn.tree.ExtraTreeClassifier", random_state=5)
    assert _random_states(_fit(fixed)) == {5}


@pytest.mark.parametrize("name", ["FailsToFit", "CannotBeStored"])
def test_a_failed_fit_votes_class_zero(name: str) -> None:
    """Exceptions, warnings and unstorable models are the constant vote."""
    ensemble = _fit(_learner(f"{ODD}:{name}"))
    assert ensemble.vote_counts(np.array([[0.9, 0.0]])).tolist() == [[4, 0]]


def test_a_failed_prediction_moves_its_own_query_only() -> None:
    """NaN, a label outside and an exception are class 0; the others keep their vote."""
    ensemble = _fit(_learner(f"{ODD}:PredictsOddly"))
    queries = np.array([[0.1, 0.0], [0.25, 0.0], [0.5, 0.0], [0.75, 0.0]])
    assert ensemble.vote_counts(queries).tolist() == [[0, 4], [4, 0], [4, 0], [4, 0]]
    assert ensemble.vote_counts(queries[:3]).tolist() == [[0, 4], [4, 0], [4, 0]]


def test_a_model_shares_nothing_with_another_chunk() -> None:
    """Neither numpy's global generator nor a parameter carries one chunk into the next."""
    learner = _learner(f"{ODD}:SharesWhatItCan", steps=[0])
    labels = np.array([1, 1, 1, 0, 0, 1, 0, 1])
    neighbour = np.array([1, 1, 0, 0, 0, 1, 0, 1])
    _, second = _models(_fit_with_labels(learner, labels, 2))
    _, same = _models(_fit_with_labels(learner, neighbour, 2))
    assert second.drawn_ == same.drawn_
    assert second.steps == [0, 4]


def test_nothing_is_heard_of_a_learner(
    capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """What estimators print and warn in fitting, predicting and storing goes nowhere."""
    learner = _learner(f"{ODD}:Talks")
    again = read_ensemble_bytes(learner, _fit(learner).to_bytes())
    assert again.vote_counts(np.array([[0.9, 0.0]])).tolist() == [[0, 4]]
    heard = capsys.readouterr()
    assert (heard.out, heard.err, list(recwarn)) == ("", "", [])


def test_a_model_too_large_for_its_part_votes_class_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chunk has its part of what can be stored, so that rows never decide if all fits."""
    monkeypatch.setattr(estimator_fitting, "ENSEMBLE_BYTES_MAX", 2 * 1500)
    labels = np.array([1, 1, 0, 1, 0, 0])
    ensemble = _fit_with_labels(_learner(f"{ODD}:KeepsItsRows"), labels, 2)
    assert ensemble.vote_counts(np.zeros((1, 2))).tolist() == [[1, 1]]


def test_the_largest_models_fit_into_the_ledger() -> None:
    """All parts together, with a hundred bytes a model around them, are one private piece."""
    models_max = 10**5
    whole = estimator_fitting.ENSEMBLE_BYTES_MAX + 100 * models_max
    assert whole < PRIVATE_BODY_BYTES_MAX


def test_chunks_with_one_class_or_no_row_are_constants() -> None:
    """One label is voted everywhere; an empty chunk votes class 0."""
    values = np.zeros((3, 2))
    told: list[tuple[int, int]] = []
    ensemble = fit_ensemble(
        _learner("sklearn.tree.DecisionTreeClassifier"),
        values,
        np.ones(3, dtype=np.int64),
        permutation=np.arange(3),
        offsets=chunk_offsets(3, 4),
        secret=b"e",
        progress=lambda done, total: told.append((done, total)),
    )
    assert ensemble.vote_counts(values[:1]).tolist() == [[1, 3]]
    assert told[-1] == (4, 4)


@pytest.mark.parametrize(
    ("path", "params", "line"),
    [
        ("nowhere.Missing", {}, "learner.estimator: nowhere.Missing cannot be imported"),
        ("sklearn.tree.Missing", {}, "learner.estimator: sklearn.tree.Missing cannot be imported"),
        ("Missing", {}, "learner.estimator: Missing cannot be imported"),
        (
            "sklearn.tree.export_text",
            {},
            "learner.estimator: sklearn.tree.export_text is no scikit-learn classifier",
        ),
        (
            "sklearn.svm.SVR",
            {},
            "learner.estimator: sklearn.svm.SVR is no scikit-learn classifier",
        ),
        (
            "sklearn.tree.DecisionTreeClassifier",
            {"depth": 3},
            "learner.params: sklearn.tree.DecisionTreeClassifier: .*depth",
        ),
        (
            "sklearn.tree.DecisionTreeClassifier",
            {"max_depth": "deep"},
            "learner.params: sklearn.tree.DecisionTreeClassifier: .*max_depth",
        ),
        (
            "sklearn.neural_network.MLPClassifier",
            {"verbose": True},
            "learner.params: verbose would print what private rows give; leave it out",
        ),
    ],
)
def test_a_bad_choice_is_refused_before_any_row(
    path: str, params: dict[str, object], line: str
) -> None:
    """Import path and parameters are public, so their errors may speak."""
    with pytest.raises(ConfigurationError, match=line):
        check_learner(_learner(path, **params))


def test_other_bytes_are_corruption() -> None:
    """What was stored is a pair, or it is refused."""
    with pytest.raises(LedgerCorruptError):
        read_ensemble_bytes(
            _learner("sklearn.tree.DecisionTreeClassifier"), pickle.dumps([1, 2, 3])
        )
