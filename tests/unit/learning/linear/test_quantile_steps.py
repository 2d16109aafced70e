"""Numbers as inputs of a score: public steps of a row alone, and exact sums with tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.linear import quantile_steps as module
from app.learning.linear.conjunctions import Terms
from app.learning.linear.cosine_features import MAGNITUDE
from app.learning.linear.integer_vectors import EXACT_BOUND
from app.learning.linear.kernel_scores import KernelScores, NumberedTerms, numbered_features
from app.learning.linear.quantile_steps import NO_NUMBERS, Numbers
from app.learning.linear.whitening import PublicMap
from app.privacy.noisy_gradient.mechanism import gradient_sum, whole_weights
from tests.builders.mechanisms.kernel_descent import POINT_COUNT, SHRINKAGE, TESTS, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.linear.integer_vectors import IntegerFeatures

POINTS = numbers(POINT_COUNT, seed=9)


def known() -> NumberedTerms:
    """Return two tests beside all four numbers, as public points tell them."""
    return NumberedTerms(Terms.single(TESTS), Numbers.known(POINTS, range(4)))


def features() -> IntegerFeatures:
    """Return their public map."""
    return numbered_features(known(), PublicMap.of_shares(TESTS), POINTS, SHRINKAGE)


def test_a_number_counts_between_public_quantiles() -> None:
    """One point in a hundred lies below the lowest step, and one above the highest."""
    points = np.array([[float(each), 7.0, np.nan] for each in range(200)])
    found = Numbers.known(points, (0, 1, 2))
    assert found == Numbers((0,), ((2.0, 197.0),))  # the others are told apart by no point
    asked = np.array([[-np.inf], [2.0], [99.5], [197.0], [1e308], [np.nan]])
    assert found.encode(asked)[:, 0].tolist() == [0, 0, MAGNITUDE // 2, MAGNITUDE, MAGNITUDE, 0]
    assert Numbers.known(points[:0], (0, 1, 2)) == NO_NUMBERS
    assert NO_NUMBERS.encode(asked).shape == (6, 0)
    assert len(Numbers.known(points[:2], (0,))) == 1


@pytest.mark.parametrize(
    ("indices", "bounds"), [((0,), ()), ((0,), ((1.0, 1.0),)), ((0,), ((2.0, 1.0),))]
)
def test_bounds_that_are_none_are_refused(
    indices: tuple[int, ...], bounds: tuple[tuple[float, float], ...]
) -> None:
    """A number has two bounds, one above the other."""
    with pytest.raises(InvariantError):
        Numbers(indices, bounds)


def differing(blocks: int) -> int:
    """Return how many random blocks of rows are other bytes whole than row by row."""
    inputs, public_map, generator = known(), features(), np.random.default_rng(4)
    found = 0
    for _ in range(blocks):
        values = numbers(int(generator.integers(2, 60)), seed=int(generator.integers(1 << 30)))
        whole = inputs.encode(values)
        alone = [inputs.encode(row[None]) for row in values]
        found += whole.tobytes() != b"".join(row.tobytes() for row in alone) or (
            public_map.coordinates(whole).tobytes()
            != b"".join(public_map.coordinates(row).tobytes() for row in alone)
        )
    return found


def test_a_rows_numbers_are_the_same_alone_and_in_company() -> None:
    """Blocks of any rows give the bytes, of features and of vectors, that the rows give alone."""
    assert differing(60) == 0


def test_bounds_of_private_rows_are_found_to_depend_on_their_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: a number in steps between the rows' own extremes moves when another row does."""

    def of_block(inputs: Numbers, values: NDArray[np.float64]) -> NDArray[np.int16]:
        chosen = np.nan_to_num(values[:, inputs.feature_indices])
        lower, upper = chosen.min(axis=0), chosen.max(axis=0)
        shares = (chosen - lower) / np.maximum(upper - lower, 1)
        return np.asarray(np.rint(shares * MAGNITUDE), dtype=np.int16)

    monkeypatch.setattr(module.Numbers, "encode", of_block)
    assert differing(20) > 10


def test_no_vector_is_longer_than_its_bound_and_sums_are_exact() -> None:
    """Rows far beyond the bounds too; a block's sum is the sum of its rows, to the last unit."""
    public_map, inputs = features(), known()
    values = np.vstack([numbers(50), np.full((1, 4), np.inf), np.full((1, 4), -np.inf)])
    encoded = inputs.encode(values)
    assert int(np.abs(encoded).max()) <= public_map.magnitude == MAGNITUDE
    vectors = public_map.coordinates(encoded)
    assert (vectors.astype(np.int64) ** 2).sum(axis=1).max() <= public_map.norm_bound**2
    reach = public_map.norm_bound * public_map.grid
    assert len(public_map.offset) * reach**2 < EXACT_BOUND
    labels = np.arange(len(values)) % 2
    weights = whole_weights(np.linspace(-20, 20, public_map.width).reshape(-1, 1))
    whole = gradient_sum(public_map, vectors, labels, weights)
    alone = sum(
        gradient_sum(public_map, vectors[row : row + 1], labels[row : row + 1], weights)
        for row in range(len(values))
    )
    assert np.array_equal(whole, alone)


def test_the_map_is_as_fine_as_exact_squares_allow() -> None:
    """Coordinates of public points are what the real map gives, to a few thousandths."""
    public_map, encoded = features(), known().encode(POINTS)
    assert public_map.grid > 1 << 6
    image = (encoded @ public_map.matrix + public_map.offset) / public_map.grid / public_map.unit
    covariance = np.cov(image[:, :-1].T, bias=True)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.01
    assert np.ptp(image[:, -1]) == 0


def test_scores_of_numbers_are_exact_sums_of_integers() -> None:
    """A number weighs in proportion to its steps, beside a test that weighs 256 of them."""
    inputs = known()
    weights = np.linspace(-0.01, 0.01, len(inputs)).reshape(-1, 1)
    encoded = inputs.encode(numbers(40))
    fine = KernelScores.rounded(inputs, weights, np.array([0.25]), class_count=2)
    real = encoded @ weights[:, 0] + 0.25
    assert np.allclose(fine.scores(encoded)[:, 0] / fine.unit, real, atol=1e-4)
