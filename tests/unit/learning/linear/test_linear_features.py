"""Terms, their whitening by public points, and the scores that are published of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.linear.conjunctions import PAIRS_MAX, RANK, SIZE, Terms, paired
from app.learning.linear.integer_vectors import IntegerFeatures
from app.learning.linear.linear_scores import SCORE_BOUND, AveragedDescent, LinearScores
from app.learning.linear.whitening import GRID, PublicMap, Shrinkage, whitened

TESTS = tuple(
    BinaryTest(feature_index=feature, cut=0.5, category_code=None, public_frequency=0.5)
    for feature in range(3)
)
SHRINKAGE = Shrinkage(noise=1e-4, ridge=400.0, length=6.0)


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
    found = whitened(PublicMap.of_points(bits), SHRINKAGE)
    vectors = found.features.coordinates(bits) / found.features.unit
    covariance = np.cov(vectors[:, :-1].T)
    assert np.allclose(np.diag(covariance), found.variances[:-1], rtol=0.01)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.01
    assert np.ptp(vectors[:, -1]) == 0


def test_much_noise_keeps_small_directions_small() -> None:
    """The direction in which alike terms differ is kept where noise is little, else it is not."""
    given = PublicMap.of_points(correlated_bits())
    least = [
        float(whitened(given, replace(SHRINKAGE, noise=noise)).variances[:-1].min())
        for noise in (1e-4, 0.01)
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
    given = PublicMap.of_shares([*nested, *parted])
    expected = np.zeros((4, 4))
    expected[:2, :2] = [[0.24, 0.08], [0.08, 0.16]]
    expected[2:, 2:] = [[0.25, -0.25], [-0.25, 0.25]]
    assert np.allclose(given.covariance, expected)


def test_a_finer_grid_gives_way_to_exact_sums() -> None:
    """Many terms are mapped on a coarser grid, too many are refused, none is a map too."""
    size = 1500
    many = PublicMap(matrix=np.eye(size), offset=np.full(size, -0.5), covariance=np.eye(size) / 4)
    features = whitened(many, SHRINKAGE).features
    assert features.unit * features.grid < (1 << 8) * GRID
    steep = PublicMap(matrix=np.eye(2) * 1e20, offset=np.zeros(2), covariance=np.eye(2))
    with pytest.raises(ConfigurationError, match="too many tests"):
        whitened(steep, SHRINKAGE)
    nothing = PublicMap(matrix=np.eye(0), offset=np.zeros(0), covariance=np.zeros((0, 0)))
    assert whitened(nothing, SHRINKAGE).features.width == 1


def test_a_map_that_is_not_exact_is_refused() -> None:
    """Fractions, vectors beyond 16 bits, and sums beyond what doubles hold."""
    matrix, offset = np.ones((2, 1)), np.zeros(1)
    numbers = {"grid": 1, "unit": 1, "norm_bound": 1}
    given: dict[str, Any] = {"matrix": matrix, "offset": offset, **numbers}
    for change in (
        {"matrix": matrix / 2},
        {"norm_bound": 1 << 15},
        {"matrix": matrix * 2.0**52},
        {"matrix": matrix * 2.0**40, "magnitude": 1 << 12},
        {"matrix": matrix * 2.0**40, "grid": 1 << 27},
        {"magnitude": 0},
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


def test_a_descent_ends_with_the_mean_of_its_later_half() -> None:
    """Of five steps the mean is that of the last three; an iterate too long is cut."""
    state = AveragedDescent(np.zeros((2, 1)), rate=0.5, step_count=5, length_max=10.0)
    seen = []
    for _ in range(5):
        state.update(state.weights - np.array([[1.0], [-2.0]]))
        seen.append(state.weights)
    assert np.allclose(seen[-1], [[1 - 2**-5], [-2 + 2**-4]])
    assert np.allclose(state.mean(), np.mean(seen[2:], axis=0))
    state.update(np.full((2, 1), -1e6))
    assert np.linalg.norm(state.weights) == pytest.approx(10.0)
    with pytest.raises(InvariantError, match="there is a step"):
        AveragedDescent(np.zeros((2, 1)), rate=0.5, step_count=0, length_max=10.0)


def test_pairs_are_of_different_features_and_their_map_is_of_centred_products() -> None:
    """Three tests of a feature at most; the map gives combinations of products, of the size."""
    generator = np.random.default_rng(8)
    levels = generator.integers(0, 6, 500)
    ladder = (levels[:, None] >= np.arange(1, 6)).astype(np.uint8)
    bits = np.hstack([ladder, generator.integers(0, 2, (500, 2)).astype(np.uint8)])
    found = paired(bits, [0] * 5 + [1, 2])
    assert found is not None
    assert len(found.pairs) == 3 + 3 + 1
    assert {one for one, _ in found.pairs} <= set(range(6))
    assert all(other in {5, 6} for _, other in found.pairs)
    both = np.array([bits[:, one] & bits[:, other] for one, other in found.pairs]).T
    given = np.hstack([bits, both]) @ found.public_map.matrix + found.public_map.offset
    assert np.allclose(given.mean(axis=0), 0)
    assert np.allclose(given[:, :7], bits - bits.mean(axis=0))
    assert np.allclose(np.cov(given.T, bias=True), found.public_map.covariance)
    centred = bits - bits.mean(axis=0)
    products = np.array([centred[:, one] * centred[:, other] for one, other in found.pairs]).T
    combined = given[:, 7:] - given[:, 7:].mean(axis=0)
    weights = np.linalg.lstsq(products - products.mean(axis=0), combined, rcond=None)[0]
    assert np.abs((products - products.mean(axis=0)) @ weights - combined).max() < 1e-9
    assert found.public_map.covariance[7:, 7:].trace() <= SIZE + 1e-9


def test_many_features_give_fewer_tests_each_and_one_gives_no_pairs() -> None:
    """Products stay below their number and their directions below theirs, whatever is given."""
    generator = np.random.default_rng(9)
    bits = generator.integers(0, 2, (400, 60)).astype(np.uint8)
    found = paired(bits, [column // 2 for column in range(60)])
    assert found is not None
    assert len(found.pairs) == 30 * 29 // 2 <= PAIRS_MAX
    assert found.public_map.matrix.shape == (60 + 435, 60 + RANK)
    assert paired(bits, [0] * 60) is None
    assert paired(bits, list(range(60))) is None  # 1,770 products
    constant = np.zeros((400, 2), dtype=np.uint8)
    assert paired(constant, [0, 1]) is None


def test_tests_that_repeat_each_other_stand_once_in_pairs() -> None:
    """Of a feature's many equal tests one is paired with other features."""
    first, second = np.random.default_rng(3).integers(0, 2, (2, 400), dtype=np.uint8)
    many = 50
    bits = np.column_stack([first] * many + [second])
    found = paired(bits, [0] * many + [1])
    assert found is not None
    assert found.pairs == ((0, many),)
