"""Scores of learners: shares of the second class in a chunk, stored beside the votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from app.errors import InvariantError, LedgerCorruptError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, fit_ensemble, read_ensemble_bytes
from app.learning.enumerated.enumerated_class import EnumeratedClass
from app.learning.enumerated.learners import side_scores
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.learning.trees import canonical_learner
from app.learning.trees.packed_trees import PackedTrees, leaf_scores, reached_leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble, HypothesisClass

SECRET = b"s" * 32
CHUNK_ROWS = 40
RULES = ("canonical", "halving")
KINDS = ("trees", "thresholds", "intervals")
QUERIES = np.array([[0.1], [0.3], [0.6], [0.9]])


def searched(kind: str) -> HypothesisClass:
    """Return a small class over one number, cut at each quarter."""
    tests = [
        BinaryTest(feature_index=0, cut=cut, category_code=None, public_frequency=1 - cut)
        for cut in (0.25, 0.5, 0.75)
    ]
    return hypothesis_class(ClassAsked(kind=kind, tests=tests, depth=2, class_count=2))


def learner(kind: str, rule: str = "canonical", *, scored: bool = True) -> Learner:
    """Return a rule over that class."""
    return Learner(hypothesis_class=searched(kind), rule=rule, scored=scored)


def rows(count: int, seed: int = 5) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return rows whose label is the second with a chance that grows along the line."""
    generator = np.random.default_rng(seed)
    values = generator.random((count, 1))
    return values, (generator.random(count) < values[:, 0]).astype(np.int64)


def fitted(chosen: Learner, values: Any, labels: Any, chunk_count: int) -> Ensemble:
    """Fit chunks of equal size in the rows' own order."""
    count = len(labels)
    return fit_ensemble(
        chosen,
        values,
        labels,
        permutation=np.arange(count),
        offsets=np.linspace(0, count, chunk_count + 1).astype(np.int64),
        secret=SECRET,
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_outlive_a_restart_beside_the_same_votes(kind: str, rule: str) -> None:
    """What is stored gives the scores again, and the votes of an ensemble without scores."""
    values, labels = rows(200)
    ensemble = fitted(learner(kind, rule), values, labels, 5)
    again = read_ensemble_bytes(learner(kind, rule), ensemble.to_bytes())
    scores = ensemble.scores(QUERIES)
    assert scores.shape == (4, 5)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert np.array_equal(again.scores(QUERIES), scores)
    without = fitted(learner(kind, rule, scored=False), values, labels, 5)
    assert np.array_equal(without.vote_counts(QUERIES), again.vote_counts(QUERIES))


@pytest.mark.parametrize("kind", KINDS)
def test_an_ensemble_of_votes_is_stored_as_ever(kind: str) -> None:
    """Without scores the bytes are those of the format before scores, and give none."""
    values, labels = rows(200)
    body = fitted(learner(kind, scored=False), values, labels, 5).to_bytes()
    assert body.startswith((b"CPT1", b"CEL1"))
    found = read_ensemble_bytes(learner(kind, scored=False), body)
    assert not found.is_scored
    with pytest.raises(InvariantError, match="votes only"):
        found.scores(QUERIES)
    with pytest.raises(LedgerCorruptError, match="no scores"):
        read_ensemble_bytes(learner(kind), body)


@pytest.mark.parametrize("cut", [1, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_stored_scores_that_were_cut_are_refused(kind: str, cut: int) -> None:
    """A body that lacks a byte or a score is no ensemble."""
    values, labels = rows(200)
    body = fitted(learner(kind), values, labels, 5).to_bytes()
    with pytest.raises(LedgerCorruptError, match="another length"):
        read_ensemble_bytes(learner(kind), body[:-cut])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_of_its_own_chunk(kind: str, rule: str) -> None:
    """Other rows in one chunk move that chunk's scores, and no other's by a bit."""
    values, labels = rows(200)
    before = fitted(learner(kind, rule), values, labels, 5).scores(QUERIES)
    changed = labels.copy()
    changed[:CHUNK_ROWS] = 1 - changed[:CHUNK_ROWS]
    after = fitted(learner(kind, rule), values, changed, 5).scores(QUERIES)
    assert np.array_equal(before[:, 1:], after[:, 1:])
    assert not np.array_equal(before[:, 0], after[:, 0])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_a_query_do_not_depend_on_its_batch(kind: str, rule: str) -> None:
    """Alone or among two hundred, a query gets the same k numbers."""
    values, labels = rows(400)
    ensemble = fitted(learner(kind, rule), values, labels, 5)
    together = ensemble.scores(values[:200])
    for place in (0, 63, 64, 199):
        assert np.array_equal(ensemble.scores(values[place : place + 1])[0], together[place])


def test_a_leafs_score_is_the_share_of_the_second_class() -> None:
    """Leaves with rows have their share, and an empty one the 0 or 1 of its label."""
    # Test 0 at the root, 1 and 2 below; the labels of four leaves.
    tree = np.array([[0, 1, 2, 0, 1, 0, 1]])
    bits = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1], [1, 0, 1]], dtype=np.uint8)
    labels = np.array([1, 0, 0, 1, 1])
    assert reached_leaves(tree[:, :3], bits, depth=2).tolist() == [[0, 0, 0, 3, 3]]
    assert leaf_scores(tree, bits, labels, depth=2)[0] == pytest.approx([1 / 3, 1, 0, 1])


def test_a_tree_of_depth_zero_scores_its_chunk() -> None:
    """One leaf holds every row, and without a row its label."""
    tree = np.array([[1]])
    empty = np.zeros((0, 0), dtype=np.uint8)
    four = np.zeros((4, 0), dtype=np.uint8)
    assert leaf_scores(tree, four, np.array([0, 1, 0, 0]), depth=0).tolist() == [[0.25]]
    assert leaf_scores(tree, empty, np.array([], dtype=np.int64), depth=0).tolist() == [[1.0]]


def test_a_votes_score_is_the_mean_of_its_trees() -> None:
    """Three trees that score 0, 1/2 and 1 on a query score 1/2 together."""
    packed = PackedTrees(
        np.array([[0], [1], [1]]),
        depth=0,
        class_count=2,
        trees_per_vote=3,
        private_leaf_scores=np.array([[0.0], [0.5], [1.0]]),
    )
    assert packed.scores(np.zeros((2, 0), dtype=np.uint8)).tolist() == [[0.5], [0.5]]


def test_a_side_of_a_hypothesis_is_scored_by_its_rows() -> None:
    """Each side has its share, an empty one and a constant's the class itself."""
    listed = searched("intervals")
    assert isinstance(listed, EnumeratedClass)
    found = listed.hypotheses
    encoded = listed.encode(QUERIES)
    predicted = found.predict(encoded)
    labels = np.array([0, 1, 1, 0])
    places = np.arange(len(found))
    for place, scores in zip(places, side_scores(found, places, encoded, labels), strict=True):
        for side in (0, 1):
            inside = labels[predicted[place] == side]
            assert scores[side] == (inside.mean() if len(inside) else side)
    constant = np.full(3, len(found) + 1)
    assert side_scores(found, constant, encoded, labels).tolist() == [[0.0, 1.0]] * 3


def test_chunks_of_one_class_or_none_score_it() -> None:
    """One label scores 0 or 1 everywhere, and a chunk without rows scores 0."""
    values, _ = rows(40)
    labels = np.repeat([0, 1], 20)
    for kind in KINDS:
        ensemble = fit_ensemble(
            learner(kind),
            values,
            labels,
            permutation=np.arange(40),
            offsets=np.array([0, 20, 40, 40]),
            secret=SECRET,
        )
        assert ensemble.scores(QUERIES).tolist() == [[0.0, 1.0, 0.0]] * 4


def test_a_rule_that_fails_scores_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback of a failed fit is the constant 0, whatever its chunk holds."""

    def fail(*_: object, **__: object) -> None:
        raise ValueError

    monkeypatch.setattr(canonical_learner, "fit_tree", fail)
    values, labels = rows(40)
    assert fitted(learner("trees"), values, labels, 1).scores(QUERIES).tolist() == [[0.0]] * 4


# -- estimators --------------------------------------------------------------------


class Probabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # it ships no types
    """Knows the classes it is told, in the order it is told, and gives each its probability."""

    def __init__(self, known: tuple[int, ...], given: tuple[float, ...]) -> None:
        """Keep both."""
        self.known, self.given = known, given
        self.classes_ = np.array(known)

    def predict_proba(self, values: Any) -> Any:
        """Give every row the same; fail above 0.8."""
        if (values > 0.8).any():
            raise ValueError
        return np.tile(self.given, (len(values), 1))


class Labels(BaseEstimator):  # type: ignore[misc]  # as above
    """Predicts the second class from 1/2 on, and has no probabilities."""

    def predict(self, values: Any) -> Any:
        """Give labels."""
        return (values[:, 0] >= 0.5).astype(int)


def of_models(*models: Any) -> EstimatorEnsemble:
    """Return an ensemble of estimators over one number."""
    return EstimatorEnsemble([PublicColumn(bounds=(0.0, 1.0))], models, class_count=2)


def test_a_probability_is_found_by_the_value_of_its_class() -> None:
    """Columns in another order, and a model that never saw the second class, are read right."""
    models = (
        Probabilities((0, 1), (0.7, 0.3)),
        Probabilities((1, 0), (0.7, 0.3)),
        Probabilities((0,), (1.0,)),
        0,
        1,
    )
    assert of_models(*models).scores(QUERIES[:1]).tolist() == [[0.3, 0.7, 0.0, 0.0, 1.0]]


def test_without_probabilities_the_label_is_the_score() -> None:
    """An estimator that only predicts scores 0 or 1."""
    assert of_models(Labels()).scores(QUERIES).tolist() == [[0.0], [0.0], [1.0], [1.0]]


def test_a_failing_probability_scores_zero_for_its_own_query() -> None:
    """What fails on one query of a batch leaves the scores of the others."""
    model = Probabilities((0, 1), (0.6, 0.4))
    assert of_models(model).scores(QUERIES).tolist() == [[0.4], [0.4], [0.4], [0.0]]
    misshapen = Probabilities((0, 1), (0.2, 0.3, 0.5))
    assert of_models(misshapen).scores(QUERIES[:2]).tolist() == [[0.0], [0.0]]


def test_a_fitted_estimator_scores_after_a_restart() -> None:
    """A real classifier's probabilities are stored with it."""
    values, labels = rows(400)
    chosen = Learner(
        hypothesis_class=searched("trees"),
        estimator="sklearn.tree.DecisionTreeClassifier",
        params={"max_depth": 1},
        columns=[PublicColumn(bounds=(0.0, 1.0))],
        scored=True,
    )
    ensemble = fitted(chosen, values, labels, 4)
    again = read_ensemble_bytes(chosen, ensemble.to_bytes())
    assert np.array_equal(again.scores(QUERIES), ensemble.scores(QUERIES))
    assert 0 < ensemble.scores(QUERIES).min() < 0.5 < ensemble.scores(QUERIES).max() <= 1
