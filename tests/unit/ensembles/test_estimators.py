"""Any scikit-learn classifier votes, and none of its failures shows."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.ensembles.chunking import chunk_offsets
from app.ensembles.fit import Learner, check_learner, fit_ensemble, read_ensemble_bytes
from app.ensembles.public_columns import PublicColumn, encode_columns
from app.errors import ConfigurationError, InvariantError, LedgerCorruptError
from app.hypotheses.registry import hypothesis_class
from tests.unit.hypotheses.enumeration import unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.ensembles.ensemble import Ensemble

COLUMNS = (PublicColumn(bounds=(0.0, 1.0)), PublicColumn(category_count=2))
ODD = "tests.unit.ensembles.odd_estimators"
TREES = hypothesis_class("trees", unit_tests(1), depth=1, class_count=2)


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


def _random_states(ensemble: Ensemble) -> set[object]:
    _, models = pickle.loads(ensemble.to_bytes())  # noqa: S301 -- stored a line before
    return {model.random_state for model in models}


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
