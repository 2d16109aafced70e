"""Estimators that are fitted together, through the front door."""

from __future__ import annotations

import numpy as np
import pytest

from app.errors import InvariantError, LedgerCorruptError
from app.learning.chunks import chunk_offsets
from app.learning.encoding.public_columns import PackedColumns, PublicColumn
from app.learning.ensemble import Learner, fit_ensemble, read_ensemble_bytes
from app.learning.estimators import packed_fit
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.estimators.packed_ensemble import LinearForm, PackedEnsemble, joined
from app.learning.estimators.packed_fit import block_fit_of
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from tests.builders.learners.enumeration import unit_tests

LOGISTIC = "sklearn.linear_model.LogisticRegression"
TREE = "sklearn.tree.DecisionTreeClassifier"
COLUMNS = (PublicColumn(bounds=(0.0, 1.0)), PublicColumn(category_count=2))
KINDS = [(LOGISTIC, {}), (LOGISTIC, {"C": 10}), (TREE, {"max_depth": 2})]
GENERATOR = np.random.default_rng(8)
VALUES = np.stack([GENERATOR.random(400), GENERATOR.integers(0, 4, 400)], axis=1)
LABELS = (VALUES[:, 0] + 0.2 * GENERATOR.normal(size=400) > 0.5).astype(np.int64)


def _learner(path: str, params: dict[str, object], *, packed: bool = True) -> Learner:
    trees = hypothesis_class(ClassAsked(kind="trees", tests=unit_tests(1), depth=1, class_count=2))
    return Learner(
        hypothesis_class=trees, estimator=path, params=params, columns=COLUMNS, packed=packed
    )


def _fit(learner: Learner, labels: np.ndarray[tuple[int], np.dtype[np.int64]] = LABELS) -> object:
    return fit_ensemble(
        learner,
        VALUES,
        labels,
        permutation=np.arange(len(VALUES)),
        offsets=chunk_offsets(len(VALUES), 9),
        secret=b"e",
    )


@pytest.mark.parametrize(("path", "params"), KINDS)
def test_votes_are_nearly_those_of_its_own_fit(path: str, params: dict[str, object]) -> None:
    """Of 3,600 votes 99 in a hundred are scikit-learn's; the rest are ties and its tolerance."""
    ours, theirs = _fit(_learner(path, params)), _fit(_learner(path, params, packed=False))
    assert isinstance(ours, PackedEnsemble)
    assert isinstance(theirs, EstimatorEnsemble)
    moved = np.abs(ours.vote_counts(VALUES) - theirs.vote_counts(VALUES)).sum() / 2
    assert moved <= 0.01 * ours.size * len(VALUES)


@pytest.mark.parametrize(("path", "params"), KINDS)
def test_the_models_survive_storage(path: str, params: dict[str, object]) -> None:
    """What is read back votes alike, and is the same bytes again."""
    learner = _learner(path, params)
    ensemble = _fit(learner)
    assert isinstance(ensemble, PackedEnsemble)
    again = read_ensemble_bytes(learner, ensemble.to_bytes())
    assert np.array_equal(again.vote_counts(VALUES), ensemble.vote_counts(VALUES))
    assert (again.size, again.class_count) == (9, 2)
    assert again.to_bytes() == ensemble.to_bytes()


@pytest.mark.parametrize(("path", "params"), KINDS)
def test_blocks_of_chunks_change_nothing(
    path: str, params: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One chunk at a time gives the same bytes, and tells of every block."""
    learner = _learner(path, params)
    together = _fit(learner)
    assert isinstance(together, PackedEnsemble)
    monkeypatch.setattr(packed_fit, "NUMBERS_PER_BLOCK", 1)
    alone = _fit(learner)
    assert isinstance(alone, PackedEnsemble)
    assert alone.to_bytes() == together.to_bytes()


@pytest.mark.parametrize(("path", "params"), KINDS)
def test_one_record_moves_one_vote_at_most(path: str, params: dict[str, object]) -> None:
    """A row of another label moves the numbers of its own chunk and of no other."""
    learner = _learner(path, params)
    before = _fit(learner)
    labels = LABELS.copy()
    labels[100] = 1 - labels[100]
    after = _fit(learner, labels)
    assert isinstance(before, PackedEnsemble)
    assert isinstance(after, PackedEnsemble)
    moved = np.abs(before.vote_counts(VALUES) - after.vote_counts(VALUES)).sum(axis=1) / 2
    assert moved.max() <= 1
    first, second = (
        each.form.weights if isinstance(each.form, LinearForm) else each.form.cuts
        for each in (before, after)
    )
    assert np.flatnonzero(np.any(first != second, axis=tuple(range(1, first.ndim)))).size <= 1


@pytest.mark.parametrize(("path", "params"), KINDS)
def test_empty_chunks_and_chunks_of_one_class_are_constants(
    path: str, params: dict[str, object]
) -> None:
    """One label is voted everywhere; a chunk without rows votes class 0."""
    told: list[tuple[int, int]] = []
    ensemble = fit_ensemble(
        _learner(path, params),
        VALUES[:3],
        np.ones(3, dtype=np.int64),
        permutation=np.arange(3),
        offsets=chunk_offsets(3, 4),
        secret=b"e",
        progress=lambda done, total: told.append((done, total)),
    )
    assert ensemble.vote_counts(VALUES[:2]).tolist() == [[1, 3]] * 2
    assert told[-1] == (4, 4)


@pytest.mark.parametrize(
    ("path", "params", "packs"),
    [
        (LOGISTIC, {"C": 2, "fit_intercept": False, "max_iter": 50}, True),
        (LOGISTIC, {"solver": "liblinear"}, False),
        (LOGISTIC, {"class_weight": "balanced"}, False),
        (TREE, {"max_depth": 3, "criterion": "gini", "random_state": 4}, True),
        (TREE, {"max_depth": 3, "criterion": "entropy"}, False),
        (TREE, {"max_depth": 3, "splitter": "random"}, False),
        (TREE, {}, False),
        ("sklearn.tree.ExtraTreeClassifier", {"max_depth": 3}, False),
        ("elsewhere.LogisticRegression", {}, False),
    ],
)
def test_what_is_fitted_together_is_told_by_the_configuration(
    path: str, params: dict[str, object], *, packs: bool
) -> None:
    """Whatever else is asked of an estimator, its own `fit` does."""
    assert (block_fit_of(path, params) is not None) == packs


def test_with_scores_an_estimator_is_fitted_by_itself() -> None:
    """Probabilities are asked of the estimators themselves, which packed models do not keep."""
    trees = hypothesis_class(ClassAsked(kind="trees", tests=unit_tests(1), depth=1, class_count=2))
    learner = Learner(hypothesis_class=trees, estimator=LOGISTIC, columns=COLUMNS, scored=True)
    assert isinstance(_fit(learner), EstimatorEnsemble)
    packed = _fit(_learner(LOGISTIC, {}))
    assert isinstance(packed, PackedEnsemble)
    with pytest.raises(InvariantError):
        packed.scores(VALUES)
    with pytest.raises(LedgerCorruptError):
        read_ensemble_bytes(learner, packed.to_bytes())


def _body(path: str, params: dict[str, object]) -> bytes:
    ensemble = _fit(_learner(path, params))
    assert isinstance(ensemble, PackedEnsemble)
    return ensemble.to_bytes()


@pytest.mark.parametrize(
    "body",
    [
        b"CPE1",
        _body(LOGISTIC, {})[:-1],
        _body(LOGISTIC, {})[:4] + b"\x07" + _body(LOGISTIC, {})[5:],
        _body(TREE, {"max_depth": 1})[:-8] + np.float64(2).tobytes(),
    ],
)
def test_other_bytes_are_corruption(body: bytes) -> None:
    """A cut, another kind and a label that does not exist are refused."""
    with pytest.raises(LedgerCorruptError):
        PackedEnsemble.from_bytes(COLUMNS, body)
    with pytest.raises(LedgerCorruptError):
        PackedEnsemble.from_bytes(COLUMNS, b"other")


def test_models_of_two_kinds_are_no_ensemble() -> None:
    """Linear models and trees do not follow one another."""
    linear, trees = _fit(_learner(LOGISTIC, {})), _fit(_learner(TREE, {"max_depth": 1}))
    assert isinstance(linear, PackedEnsemble)
    assert isinstance(trees, PackedEnsemble)
    with pytest.raises(InvariantError):
        joined([linear.form, trees.form])


def test_a_missing_value_changes_no_vote_on_other_queries() -> None:
    """Queries of numbers leave out the columns of missing values, unless one of a batch is."""
    columns = tuple(PublicColumn(bounds=(-1.0, 2.0)) for _ in range(3))
    generator = np.random.default_rng(4)
    form = LinearForm(generator.normal(size=(50, 2, 6)), generator.normal(size=(50, 2)))
    ensemble = PackedEnsemble(columns, form, class_count=2)
    values = generator.uniform(-1, 2, (40, 3))
    with_one = np.append(values, [[np.nan, 0.5, 1.0]], axis=0)
    assert np.array_equal(ensemble.vote_counts(with_one)[:-1], ensemble.vote_counts(values))
    alone = [ensemble.vote_counts(row[np.newaxis])[0] for row in with_one]
    assert np.array_equal(ensemble.vote_counts(with_one), alone)
    encoder = PackedColumns(columns)
    scaled = encoder.scaled(values)
    assert scaled is not None
    assert np.array_equal(encoder.encode(values)[:, ::2], scaled)
    assert encoder.scaled(with_one) is None
