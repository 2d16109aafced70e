"""Waves in integers, their whitening by public points, and scores of tests and waves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.linear import cosine_features as module
from app.learning.linear.cosine_features import (
    MAGNITUDE,
    PHASES,
    PLACES,
    ROUGHNESS,
    SPREAD_MIN,
    SPREAD_WITHOUT_POINTS,
    Waves,
    cosine_table,
    drawn_waves,
    spreads,
)
from app.learning.linear.integer_vectors import IntegerFeatures
from app.learning.linear.kernel_scores import KernelScores, kernel_features
from app.learning.linear.linear_scores import SCORE_BOUND
from app.learning.linear.whitening import PublicMap
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_gradient.mechanism import gradient_sum, whole_weights
from tests.builders.mechanisms.kernel_descent import (
    BOUNDS,
    POINT_COUNT,
    SHRINKAGE,
    TESTS,
    WAVE_COUNT,
    kernel_inputs,
    kernel_parameters,
    numbers,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS = 1 << 16


def test_the_table_has_the_cosines_of_the_middles_of_its_places() -> None:
    """Each of 1,024 is the nearest integer, and half a turn on its negative."""
    table = cosine_table().tolist()
    middles = [math.tau * (place + 0.5) / PLACES for place in range(PLACES)]
    # Doubles are right to far more than what separates a cosine here from a half.
    assert table == [round(MAGNITUDE * math.cos(middle)) for middle in middles]
    halves = [MAGNITUDE * math.cos(middle) % 1 for middle in middles]
    assert min(abs(each - 0.5) for each in halves) > 1e-6
    assert table[PLACES // 2 :] == [-each for each in table[: PLACES // 2]]


def test_a_wave_is_the_cosine_of_its_phase() -> None:
    """It misses the real cosine by half a place and half a unit at most."""
    waves, values = kernel_inputs().waves, numbers(300)
    phases = waves.steps(values).astype(np.float64) @ _signed(waves.frequencies) + waves.shifts
    real = MAGNITUDE * np.cos(math.tau * phases / PHASES)
    missed = np.abs(waves.encode(values) - real)
    assert missed.max() <= 0.5 + MAGNITUDE * math.pi / PLACES + 1e-6


def _signed(frequencies: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return frequencies as they were drawn, around zero."""
    return np.where(frequencies < PHASES // 2, frequencies, frequencies - PHASES).astype(float)


def test_what_is_no_number_between_the_bounds_is_public_before_the_cast() -> None:
    """Missing counts as the lower bound, and what is infinite or far off as the bound beyond."""
    waves = kernel_inputs().waves
    lower, upper = np.array(BOUNDS).T
    given = np.stack([np.full(4, each) for each in (np.nan, -np.inf, np.inf, 1e308, -1e308)])
    assert waves.steps(given).tolist() == [[0] * 4, [0] * 4, [STEPS] * 4, [STEPS] * 4, [0] * 4]
    assert waves.steps(np.stack([lower, upper])).tolist() == [[0] * 4, [STEPS] * 4]


def test_no_sum_of_phases_wraps_in_64_bits() -> None:
    """The largest frequencies and steps give what integers without bounds give."""
    waves = kernel_inputs().waves
    largest = Waves(
        waves.feature_indices,
        waves.bounds,
        np.full((4, 1), PHASES - 1, dtype=np.int64),
        np.array([PHASES - 1], dtype=np.int64),
    )
    phase = (4 * STEPS * (PHASES - 1) + PHASES - 1) % PHASES
    found = largest.encode(np.full((1, 4), np.inf))
    assert found.tolist() == [[cosine_table()[phase * PLACES // PHASES]]]
    many = 1 << 15
    nothing = np.zeros((many, 1), dtype=np.int64)
    for wrong in (
        {"shifts": np.full(WAVE_COUNT, PHASES, dtype=np.int64)},
        {"frequencies": np.full((4, WAVE_COUNT), -1, dtype=np.int64)},
        {"frequencies": waves.frequencies[:, 1:]},
        {"feature_indices": (0,)},
    ):
        given: dict[str, Any] = wrong
        with pytest.raises(InvariantError):
            replace(waves, **given)
    with pytest.raises(InvariantError, match="sums of phases are exact"):
        Waves(tuple(range(many)), ((0.0, 1.0),) * many, nothing, nothing[:1, 0])


def test_frequencies_go_by_the_spread_of_public_points() -> None:
    """Their deviation is the rule's: phases over the points' deviation, few for many numbers."""
    points = np.array([[0, 100, 5], [2000, 60_000, 5]], dtype=np.int64)
    assert spreads(points) == (SPREAD_MIN, 29_950.0, SPREAD_MIN)
    assert spreads(points[:0]) == (SPREAD_WITHOUT_POINTS,) * 3
    spread = (1000.0, 20_000.0)
    noise = ScriptedNoise(seeded_words(3))
    waves = drawn_waves((0, 1), BOUNDS[:2], spread, count=2000, noise=noise)
    wanted = ROUGHNESS / (2 * 2) / math.tau * PHASES / np.array(spread)
    # The words are fixed; a deviation of 2,000 draws misses by 1.6 % in the mean.
    assert np.allclose(_signed(waves.frequencies).std(axis=1), wanted, rtol=0.06)
    assert np.ptp(waves.shifts) > 0.99 * PHASES


def differing(blocks: int, *, seed: int) -> int:
    """Return how many random blocks of rows are other bytes whole than row by row."""
    inputs, generator = kernel_inputs(), np.random.default_rng(seed)
    features = kernel_parameters().features
    found = 0
    for _ in range(blocks):
        values = numbers(int(generator.integers(2, 60)), seed=int(generator.integers(1 << 30)))
        whole = inputs.encode(values)
        alone = [inputs.encode(row[None]) for row in values]
        found += whole.tobytes() != b"".join(row.tobytes() for row in alone) or (
            features.coordinates(whole).tobytes()
            != b"".join(features.coordinates(row).tobytes() for row in alone)
        )
    return found


def test_a_rows_features_are_the_same_alone_and_in_company() -> None:
    """Blocks of any rows give the bytes, of features and of vectors, that the rows give alone."""
    assert differing(60, seed=4) == 0


def test_float_features_are_found_to_depend_on_their_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cosine of a product of doubles, and one of a block's own scale, differ in company."""

    def of_doubles(waves: Waves, values: NDArray[np.float64]) -> NDArray[np.float64]:
        turns = waves.steps(values) / 3 @ (waves.frequencies / 7)
        return np.asarray(np.cos(turns / PHASES))

    def of_block(waves: Waves, values: NDArray[np.float64]) -> NDArray[np.float64]:
        steps = waves.steps(values).astype(np.float64)
        turns = steps / np.maximum(steps.max(axis=0), 1.0) @ (waves.frequencies / PHASES)
        return np.asarray(np.rint(MAGNITUDE * np.cos(turns)))

    for fault in (of_doubles, of_block):
        with monkeypatch.context() as patched:
            patched.setattr(module.Waves, "encode", fault)
            assert differing(20, seed=4) > 10


@pytest.mark.parametrize("class_count", [2, 3])
def test_a_sum_over_a_block_is_the_sum_of_its_rows(class_count: int) -> None:
    """What rows add at any iterate is added up exactly, in whatever blocks they come."""
    parameters = kernel_parameters(class_count=class_count)
    features, width = parameters.features, 1 if class_count == 2 else class_count
    generator = np.random.default_rng(6)
    vectors = features.coordinates(kernel_inputs().encode(numbers(50)))
    labels = generator.integers(0, class_count, 50)
    weights = whole_weights(generator.normal(size=(features.width, width)) * 20)
    whole = gradient_sum(features, vectors, labels, weights)
    alone = sum(
        gradient_sum(features, vectors[row : row + 1], labels[row : row + 1], weights)
        for row in range(50)
    )
    assert np.array_equal(whole, alone)


def test_rows_are_cut_to_the_median_length_of_public_points() -> None:
    """Half of the public points are cut, and none is longer than the bound."""
    features = kernel_parameters().features
    points = kernel_inputs().encode(numbers(POINT_COUNT, seed=9))
    image = points.astype(np.float64) @ features.matrix + features.offset
    lengths = np.sqrt((image**2).sum(axis=1)) / features.grid
    assert abs((lengths > features.norm_bound).mean() - 0.5) <= 0.02
    vectors = features.coordinates(points).astype(np.int64)
    assert (vectors**2).sum(axis=1).max() <= features.norm_bound**2


def test_public_points_whiten_waves_and_tests_together() -> None:
    """Coordinates of the points before they are cut hardly go together."""
    features = kernel_parameters().features
    points = kernel_inputs().encode(numbers(POINT_COUNT, seed=9)).astype(np.float64)
    image = (points @ features.matrix + features.offset) / (features.grid * features.unit)
    covariance = np.cov(image[:, :-1].T, bias=True)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.01
    assert np.diag(covariance).max() > 3.5  # of at most 4
    assert np.ptp(image[:, -1]) == 0


def test_without_points_waves_are_whitened_between_the_bounds() -> None:
    """Rows anywhere between the bounds have nearly the length that they are cut to."""
    features = kernel_parameters(points=numbers(0)).features
    vectors = features.coordinates(kernel_inputs().encode(numbers(500)))
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    assert np.median(lengths) > 0.8 * features.norm_bound


def test_squares_of_long_images_stay_exact() -> None:
    """A coordinate that would leave the exact squares is cut to the reach, and so is the row."""
    matrix = np.array([[2.0**40, 0.0], [0.0, 1.0]])
    features = IntegerFeatures(
        matrix=matrix, offset=np.zeros(2), grid=1, unit=1, norm_bound=1000, magnitude=256
    )
    rows = np.array([[256, 0], [-256, 256], [0, 256]], dtype=np.int16)
    assert features.coordinates(rows).tolist() == [[999, 0], [-999, 0], [0, 255]]


def test_scores_of_waves_are_exact_sums_of_integers() -> None:
    """Ordinary weights finely, enormous ones coarsely, and no sum of weights is too large."""
    inputs = kernel_inputs()
    weights = np.linspace(-0.01, 0.01, len(inputs)).reshape(-1, 1)
    encoded = inputs.encode(numbers(40))
    far = KernelScores.rounded(inputs, weights, np.array([-1000.0]), class_count=2)
    assert np.allclose(far.scores(encoded)[:, 0] / far.unit, encoded @ weights[:, 0] - 1000)
    fine = KernelScores.rounded(inputs, weights, np.array([0.25]), class_count=2)
    real = encoded @ weights[:, 0] + 0.25
    assert np.allclose(fine.scores(encoded)[:, 0] / fine.unit, real, atol=1e-4)
    assert fine.predict(encoded).tolist() == (real > 0).astype(int).tolist()
    coarse = KernelScores.rounded(inputs, weights * 1e30, np.array([0.0]), class_count=2)
    assert coarse.unit == 1
    assert MAGNITUDE * int(np.abs(coarse.weights).sum()) < SCORE_BOUND
    three = KernelScores.rounded(inputs, np.eye(len(inputs), 3), np.zeros(3), class_count=3)
    assert np.array_equal(three.predict(encoded), encoded[:, :3].argmax(axis=1))
    for wrong in (
        {"weights": fine.weights[1:]},
        {"intercepts": np.zeros(2, dtype=np.int64)},
        {"weights": fine.weights + SCORE_BOUND},
        {"intercepts": np.array([SCORE_BOUND])},
    ):
        given: dict[str, Any] = wrong
        with pytest.raises(InvariantError):
            replace(fine, **given)


def test_steep_maps_of_terms_are_cut_to_exact_integers() -> None:
    """Public weights that no double sums exactly are clipped, and nothing is refused."""
    given = PublicMap.of_shares(TESTS)
    steep = PublicMap(
        matrix=given.matrix * 1e30, offset=given.offset * 1e30, covariance=given.covariance
    )
    features = kernel_features(kernel_inputs(), steep, numbers(0), SHRINKAGE)
    assert np.abs(features.matrix).max() > 2**30
    assert features.coordinates(kernel_inputs().encode(numbers(5))).shape == (5, features.width)
