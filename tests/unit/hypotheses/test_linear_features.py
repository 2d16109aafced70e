"""Terms, their whitening by public points, and the scores that are published of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError
from app.hypotheses.binary_tests import BinaryTest
from app.hypotheses.integer_features import IntegerFeatures
from app.hypotheses.linear_scores import SCORE_BOUND, LinearScores
from app.hypotheses.score_filter import PublicDirections, ScoreFilter
from app.hypotheses.terms import Terms
from app.hypotheses.whitening import GRID, PublicMoments, Shrinkage, whitened

TESTS = tuple(
    BinaryTest(feature_index=feature, cut=0.5, category_code=None, public_frequency=0.5)
    for feature in range(3)
)
SHRINKAGE = Shrinkage(
    noise=1e-4, weight_variance=10.0, ridge=1.0, length=3.0, intercept_precision=0.1
)


def correlated_bits(count: int = 4000) -> np.ndarray:
    """Return bits (count, 3), of which two are mostly alike."""
    generator = np.random.default_rng(5)
    first = generator.integers(0, 2, count)
    second = np.where(generator.random(count) < 0.9, first, 1 - first)
    return np.stack([first, second, generator.integers(0, 2, count)], axis=1).astype(np.uint8)


def test_a_term_holds_where_all_its_tests_are_as_asked() -> None:
    """Conjunctions, of outcomes that have to fail too, row by row."""
    terms = Terms(
        TESTS, (((0, True),), ((0, True), (1, False)), ((0, False), (1, False), (2, True)))
    )
    values = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert terms.encode(values).tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    for wrong in (((),), (((3, True),),)):
        with pytest.raises(InvariantError):
            Terms(TESTS, wrong)


def test_public_points_become_uncorrelated() -> None:
    """Coordinates have the variances that are said, to a percent, and hardly any covariance."""
    bits = correlated_bits()
    found = whitened(PublicMoments.of_points(bits), np.ones(3), SHRINKAGE)
    vectors = found.features.coordinates(bits) / found.features.unit
    covariance = np.cov(vectors[:, :-1].T)
    assert np.allclose(np.diag(covariance), found.variances[:-1], rtol=0.01)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.01
    assert np.ptp(vectors[:, -1]) == 0


def test_much_noise_keeps_small_directions_small() -> None:
    """The direction in which alike terms differ is kept where noise is little, else it is not."""
    moments = PublicMoments.of_points(correlated_bits())
    least = [
        float(whitened(moments, np.ones(3), replace(SHRINKAGE, noise=noise)).variances[:-1].min())
        for noise in (1e-4, 0.3)
    ]
    assert least[0] > 3.9  # of at most 4
    assert least[1] < 1.0


def test_shares_stand_in_for_points() -> None:
    """Nested cuts and parted categories of a feature go together as they must."""
    nested = [replace(TESTS[0], public_frequency=share) for share in (0.6, 0.2)]
    parted = [
        BinaryTest(feature_index=1, cut=None, category_code=code, public_frequency=0.5)
        for code in (0, 1)
    ]
    moments = PublicMoments.of_shares([*nested, *parted])
    expected = np.zeros((4, 4))
    expected[:2, :2] = [[0.24, 0.08], [0.08, 0.16]]
    expected[2:, 2:] = [[0.25, -0.25], [-0.25, 0.25]]
    assert np.allclose(moments.covariance, expected)


def test_a_finer_grid_gives_way_to_exact_sums() -> None:
    """Many terms are mapped on a coarser grid, too many are refused, none is a map too."""
    moments = PublicMoments(np.full(1500, 0.5), np.eye(1500) / 4, 1000)
    features = whitened(moments, np.ones(1500), SHRINKAGE).features
    assert features.unit * features.grid < (1 << 8) * GRID
    steep = PublicMoments(np.full(2, 0.5), np.eye(2) * 1e-40, 1000)
    with pytest.raises(ConfigurationError, match="too many tests"):
        whitened(steep, np.ones(2), SHRINKAGE)
    nothing = PublicMoments(np.zeros(0), np.zeros((0, 0)), 10)
    assert whitened(nothing, np.ones(0), SHRINKAGE).features.width == 1


def test_a_map_that_is_not_exact_is_refused() -> None:
    """Fractions, vectors beyond 16 bits, and squares beyond what doubles hold."""
    matrix, offset = np.ones((2, 1)), np.zeros(1)
    numbers = {"grid": 1, "unit": 1, "norm_bound": 1}
    given: dict[str, Any] = {"matrix": matrix, "offset": offset, **numbers}
    for change in (
        {"matrix": matrix / 2},
        {"norm_bound": 1 << 15},
        {"matrix": matrix * 2.0**40},
        {"grid": 0},
    ):
        with pytest.raises(InvariantError):
            IntegerFeatures(**{**given, **change})


def test_scores_are_rounded_on_a_grid_on_which_sums_are_exact() -> None:
    """Ordinary weights finely, enormous ones coarsely, and what would not fit is cut."""
    terms = Terms.single(TESTS)
    weights = np.array([[0.5], [-1.25], [2.0]])
    fine = LinearScores.rounded(terms, weights, np.array([-1.0]), class_count=2)
    assert fine.weights[1][0] == -1.25 * fine.unit
    bits = np.array([[1, 0, 0], [0, 0, 1]], dtype=np.uint8)
    assert fine.predict(bits).tolist() == [0, 1]
    coarse = LinearScores.rounded(terms, weights * 1e30, np.array([0.0]), class_count=2)
    assert (coarse.unit, coarse.predict(bits).tolist()) == (1, [1, 1])
    assert sum(abs(weight) for (weight,) in coarse.weights) < SCORE_BOUND
    three = LinearScores.rounded(terms, np.eye(3), np.zeros(3), class_count=3)
    assert three.predict(bits).tolist() == [0, 2]
    with pytest.raises(InvariantError):
        replace(fine, weights=fine.weights[:2])
    with pytest.raises(InvariantError):
        replace(fine, intercepts=(1, 2))


def test_the_filter_finds_the_optimum_of_a_quadratic() -> None:
    """Gradients of little noise are believed over the prior; of much noise, hardly at all."""
    directions = PublicDirections(variances=np.ones(3), prior=np.full(3, 0.1), discount=1.0)
    optimum = np.array([[0.3], [-0.2], [0.1]])
    found = []
    for deviation in (1e-3, 1e3):
        state = ScoreFilter(directions, class_count=2)
        for _ in range(20):
            state.update((state.weights - optimum) / 4, deviation=deviation)
        found.append(state.weights)
    assert np.allclose(found[0], optimum, atol=0.01)
    assert np.abs(found[1]).max() < 1e-3
    state.weights = np.full((3, 1), 1e6)
    state.shorten(2.0)
    assert np.linalg.norm(state.weights) == pytest.approx(2.0)
