"""Linear models vote in one product as they do one by one, whatever asks beside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Perceptron

from app.learning.estimators.packing import linear_votes, pack_linear, packing_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.estimators.linear_votes import PackedLinear

COLUMNS = 6


def _estimator(
    coefficients: NDArray[np.float64], offsets: NDArray[np.float64], classes: list[int]
) -> LogisticRegression:
    """Return scikit-learn's own model with these numbers."""
    model = LogisticRegression()
    model.coef_, model.intercept_ = coefficients, offsets
    model.classes_ = np.array(classes)
    model.n_features_in_ = coefficients.shape[1]
    return model


def _models(
    generator: np.random.Generator, class_count: int, size: int, *, whole: bool
) -> list[LogisticRegression]:
    """Return models of all classes or of two, with small whole numbers or with any."""
    models = []
    for index in range(size):
        classes = list(range(class_count)) if index % 3 else [0, class_count - 1]
        rows = 1 if len(classes) == 2 else len(classes)
        numbers = generator.normal(size=(rows, COLUMNS + 1)) * 10.0 ** generator.integers(-9, 9)
        if whole:
            numbers = generator.integers(-2, 3, (rows, COLUMNS + 1)).astype(np.float64)
        models.append(_estimator(numbers[:, :-1], numbers[:, -1], classes))
    return models


def _loop(
    models: list[LogisticRegression], rows: NDArray[np.float64], class_count: int
) -> NDArray[np.int64]:
    votes = np.stack([model.predict(rows) for model in models])
    return np.stack([(votes == label).sum(axis=0) for label in range(class_count)], axis=1)


def _pack(models: list[LogisticRegression], class_count: int) -> PackedLinear:
    return pack_linear(models, column_count=COLUMNS, class_count=class_count, fallback=0)


@pytest.mark.parametrize("class_count", [2, 3, 5])
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 40), batch=st.integers(1, 90))
def test_votes_are_those_of_predict(class_count: int, seed: int, size: int, batch: int) -> None:
    """Random numbers of any scale give the counts of a loop over scikit-learn's `predict`."""
    # A score within rounding of a tie would be a coin there: about 1e-14 of its size, so
    # that of at most 360,000 votes of a run one comes as near once in 10^8 runs.
    generator = np.random.default_rng(seed)
    models = _models(generator, class_count, size, whole=False)
    rows = generator.random((batch, COLUMNS))
    assert np.array_equal(
        _pack(models, class_count).vote_counts(rows), _loop(models, rows, class_count)
    )


@pytest.mark.parametrize("class_count", [2, 3, 4])
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 40), batch=st.integers(1, 90))
def test_equal_scores_vote_as_predict_does(
    class_count: int, seed: int, size: int, batch: int
) -> None:
    """Small whole numbers on zeros and halves tie often, and without rounding."""
    generator = np.random.default_rng(seed)
    models = _models(generator, class_count, size, whole=True)
    rows = generator.integers(0, 3, (batch, COLUMNS)) / 2.0
    assert np.array_equal(
        _pack(models, class_count).vote_counts(rows), _loop(models, rows, class_count)
    )


@pytest.mark.parametrize("class_count", [2, 3])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), batch=st.integers(2, 150))
def test_a_vote_depends_on_its_own_query_and_model(class_count: int, seed: int, batch: int) -> None:
    """Alone, in any batch and beside any models, on scores of about the size of rounding."""
    generator = np.random.default_rng(seed)
    rows, models = _on_the_edge(generator, class_count, batch)
    counts = _pack(models, class_count).vote_counts(rows)
    alone = [_pack(models, class_count).vote_counts(row[np.newaxis])[0] for row in rows]
    assert np.array_equal(counts, alone)
    each = sum(_pack([model], class_count).vote_counts(rows) for model in models)
    assert np.array_equal(counts, each)


def test_scores_near_the_edge_are_summed_in_order() -> None:
    """Votes that the product alone would leave to its rounding are those of a plain sum."""
    generator = np.random.default_rng(5)
    rows, models = _on_the_edge(generator, 2, 300)
    packed = _pack(models, 2)
    weights = packed._weights[0]
    queries = np.append(rows, np.ones((len(rows), 1)), axis=1)
    plain = np.array(
        [
            [sum((q * w for q, w in zip(row, col, strict=True)), 0.0) for col in weights.T]
            for row in queries
        ]
    )
    assert np.array_equal(packed.vote_counts(rows)[:, 1], (plain > 0).sum(axis=1))
    doubtful = np.abs(plain) <= packed._error
    assert doubtful.sum() > 100, "the queries were made to be doubtful"
    assert np.any((queries @ weights > 0) != (plain > 0)), "and the product does round elsewhere"


@pytest.mark.parametrize("class_count", [2, 3])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), batch=st.integers(1, 90))
def test_columns_of_zeros_may_be_left_out(class_count: int, seed: int, batch: int) -> None:
    """On scores of about the size of rounding, no vote is another one without them."""
    generator = np.random.default_rng(seed)
    rows, models = _on_the_edge(generator, class_count, batch)
    zeros = np.array([1, 4])
    rows[:, zeros] = 0.0
    packed = _pack(models, class_count)
    smaller = packed.without(zeros).vote_counts(np.delete(rows, zeros, axis=1))
    assert np.array_equal(smaller, packed.vote_counts(rows))


def _on_the_edge(
    generator: np.random.Generator, class_count: int, batch: int
) -> tuple[NDArray[np.float64], list[LogisticRegression]]:
    """Return queries, and models whose second class's score is next to where it wins.

    Intercepts cancel the score of one query of each model up to the small step by which
    the packed form lowers a class.
    """
    rows = generator.random((batch, COLUMNS))
    models = []
    for index in range(12):
        coefficients = generator.normal(size=(1, COLUMNS))
        target = rows[index % batch] @ coefficients[0]
        norm = np.abs(coefficients).sum() + abs(target)
        _, exponent = np.frexp(norm)
        step = 8.0 * (COLUMNS + 2) * 2.0**-53 * 2.0**exponent
        classes = [0, class_count - 1]
        models.append(_estimator(coefficients, np.array([step - target]), classes))
    rows[:] = rows[generator.integers(0, min(batch, 12), batch)]
    return rows, models


def test_constants_and_broken_numbers_vote_their_label() -> None:
    """A label in place of a model is voted; numbers that are not finite vote the fallback."""
    broken = SimpleNamespace(
        coef_=np.full((1, 1), np.nan), intercept_=np.zeros(1), classes_=np.array([0, 1])
    )
    huge = SimpleNamespace(
        coef_=np.full((1, 1), 1e308), intercept_=1.7e308, classes_=np.array([0, 1])
    )
    for class_count in (2, 3):
        packed = pack_linear(
            [1, 0, 1, broken, huge], column_count=1, class_count=class_count, fallback=0
        )
        counts = packed.vote_counts(np.array([[0.3], [0.0]]))
        assert counts[:, :2].tolist() == [[3, 2], [3, 2]]


def test_one_class_is_counted_in_more_than_one_word_sum() -> None:
    """Several thousand votes overflow no byte."""
    packed = pack_linear([1] * 5000 + [0] * 3, column_count=2, class_count=2, fallback=0)
    assert packed.vote_counts(np.zeros((2, 2))).tolist() == [[3, 5000]] * 2


def test_an_ensemble_of_many_is_worked_in_blocks() -> None:
    """Several blocks of queries give what each gives alone."""
    generator = np.random.default_rng(1)
    models = _models(generator, 3, 900, whole=False)
    rows = generator.random((300, COLUMNS))
    packed = _pack(models, 3)
    parts = [packed.vote_counts(rows[start : start + 7]) for start in range(0, 300, 7)]
    assert np.array_equal(packed.vote_counts(rows), np.concatenate(parts))


def test_a_fitted_estimator_without_intercept_is_packed() -> None:
    """A float in place of an array of intercepts is one too."""
    rows = np.eye(4)
    model = Perceptron(fit_intercept=False).fit(rows, np.array([0, 1, 0, 1]))
    packed = pack_linear([model], column_count=4, class_count=2, fallback=0)
    assert packed.vote_counts(rows)[:, 1].tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize(
    ("path", "packs"),
    [
        ("sklearn.linear_model.LogisticRegression", True),
        ("sklearn.discriminant_analysis:LinearDiscriminantAnalysis", True),
        ("elsewhere.LogisticRegression", False),
        ("sklearn.naive_bayes.GaussianNB", False),
    ],
)
def test_what_packs_is_told_by_the_configuration(path: str, packs: bool) -> None:  # noqa: FBT001 -- a column
    """The import path alone decides, before anything is fitted."""
    assert (packing_of(path, {}) is not None) == packs


def test_votes_of_three_classes_near_the_edge_are_summed_in_order() -> None:
    """Where two classes score alike up to rounding, the plain sums of each decide."""
    generator = np.random.default_rng(6)
    rows, coefficients = generator.random((12, COLUMNS)), generator.normal(size=(12, COLUMNS))
    weights, intercepts = np.zeros((12, 3, COLUMNS)), np.zeros((12, 3))
    weights[:, 2], intercepts[:, 1] = coefficients, -9.0
    intercepts[:, 2] = -(rows * coefficients).sum(axis=1)
    # Class 2 of each model is moved to where it scores as class 0 does on one row.
    for _ in range(2):
        packed = linear_votes(weights, intercepts, class_count=3)
        plain = _plain_scores(packed, rows)
        scales = packed._weights[2][0] / coefficients[:, 0]
        intercepts[:, 2] -= np.diagonal(plain[2] - plain[0]) / scales
    packed = linear_votes(weights, intercepts, class_count=3)
    plain = _plain_scores(packed, rows)
    doubtful = np.abs(plain[2] - plain[0]) <= 2 * packed._error
    assert doubtful.sum() >= 12, "a row of each model was made to be doubtful"
    winners = plain.argmax(axis=0)
    counts = np.stack([(winners == label).sum(axis=1) for label in range(3)], axis=1)
    assert np.array_equal(packed.vote_counts(rows), counts)


def _plain_scores(packed: PackedLinear, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each class's score by each model, summed in order, shape ``(L, B, k)``."""
    queries = np.append(rows, np.ones((len(rows), 1)), axis=1)
    return np.array(
        [
            [
                [sum((q * w for q, w in zip(row, col, strict=True)), 0.0) for col in part.T]
                for row in queries
            ]
            for part in packed._weights
        ]
    )
