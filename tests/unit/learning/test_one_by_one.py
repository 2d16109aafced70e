"""Estimators that are asked one by one: a vote and a score depend on the model and the query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.learning.chunks import chunk_offsets
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, fit_ensemble, read_ensemble_bytes
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from tests.builders.learners.enumeration import unit_tests

COLUMNS = (PublicColumn(bounds=(0.0, 1.0)), PublicColumn(category_count=2))
TREES = hypothesis_class(ClassAsked(kind="trees", tests=unit_tests(1), depth=1, class_count=2))
CHUNKS = 7
ROWS = 105
ODD = "tests.builders.learners.odd_estimators"
PLAIN = "tests.builders.learners.plain_estimators:Plain"
WAYS = ("keeps", "raises", "draws")
LIBRARY: dict[str, dict[str, object]] = {
    "sklearn.naive_bayes.GaussianNB": {},
    "sklearn.tree.ExtraTreeClassifier": {"max_features": 1},
    "sklearn.ensemble.RandomForestClassifier": {"n_estimators": 3},
    "sklearn.neighbors.KNeighborsClassifier": {},
    "sklearn.svm.SVC": {},
    "sklearn.ensemble.HistGradientBoostingClassifier": {"max_iter": 5},
    f"{ODD}:FailsToFit": {},
    f"{ODD}:CannotBeStored": {},
    f"{ODD}:PredictsOddly": {},
    f"{ODD}:SharesWhatItCan": {"steps": [0]},
    f"{ODD}:Talks": {},
    "tests.property.chunk_estimators:DrawsToPredict": {},
}
# Exact quarters are what an odd estimator fails on.
NUMBERS = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.6, 0.75, 0.9]), min_size=1, max_size=9)


def learner(path: str, **params: object) -> Learner:
    """Return the choice of an estimator for every chunk."""
    return Learner(hypothesis_class=TREES, estimator=path, params=params, columns=COLUMNS)


def fitted(chosen: Learner) -> EstimatorEnsemble:
    """Fit on rows that a threshold labels, but for some."""
    generator = np.random.default_rng(4)
    values = np.stack([generator.random(ROWS), generator.integers(0, 4, ROWS)], axis=1)
    labels = ((values[:, 0] >= 0.5) ^ (generator.random(ROWS) < 0.1)).astype(np.int64)
    labels[: ROWS // CHUNKS] = 1  # a chunk of one class has no model
    ensemble = fit_ensemble(
        chosen,
        values,
        labels,
        permutation=np.arange(ROWS),
        offsets=chunk_offsets(ROWS, CHUNKS),
        secret=b"s",
    )
    assert isinstance(ensemble, EstimatorEnsemble)
    return ensemble


@pytest.mark.parametrize("way", WAYS)
def test_votes_depend_on_their_own_query_only(way: str) -> None:
    """Fitted or read back, in any batch or alone, every query has the same counts."""
    check_votes(learner(PLAIN, way=way))


@pytest.mark.parametrize("path", LIBRARY)
def test_votes_of_a_librarys_estimators_depend_on_their_own_query_only(path: str) -> None:
    """The same of what people configure, and of more that fail, speak and draw."""
    check_votes(replace(learner(path), params=LIBRARY[path]))


def check_votes(chosen: Learner) -> None:
    """Ask batches that Hypothesis thinks of, of an ensemble and of the one that is read back."""
    here = fitted(chosen)
    again = read_ensemble_bytes(chosen, here.to_bytes())

    @settings(max_examples=6, deadline=None, database=None)
    @given(NUMBERS)
    def alike(numbers: list[float]) -> None:
        values = np.array([[number, index % 4] for index, number in enumerate(numbers)])
        counts = here.vote_counts(values)
        assert np.array_equal(again.vote_counts(values), counts)
        each = np.concatenate([here.vote_counts(values[[row]]) for row in range(len(values))])
        assert np.array_equal(each, counts)

    alike()


def test_scores_are_in_the_order_of_the_models() -> None:
    """Every model's score of every query, fitted or read back, to the last bit."""
    chosen = replace(learner(PLAIN), scored=True)
    here, values = fitted(chosen), np.array([[0.1, 0], [0.4, 1], [0.6, 2], [0.9, 3]])
    again = read_ensemble_bytes(chosen, here.to_bytes())
    assert np.array_equal(again.scores(values), here.scores(values))
    alone = [
        EstimatorEnsemble(COLUMNS, [model], class_count=2).scores(values) for model in here._models
    ]
    assert np.array_equal(np.concatenate(alone, axis=1), here.scores(values))
