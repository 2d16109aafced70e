"""The noisy descent: exact sums of bounded parts, noise of the step's own law."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.auditing.hypothesis_draws import gradient_bound, shown_epsilon
from app.errors import InvariantError
from app.learning.linear.integer_vectors import score_count
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_gradient import mechanism as noisy_gradient
from app.privacy.noisy_gradient.mechanism import (
    Parameters,
    draw,
    gradient_sum,
    squared_sensitivity,
    whole_weights,
)
from tests.builders.mechanisms.descending import (
    DELTA,
    STEP_WEIGHTS,
    STEPS,
    TERM_COUNT,
    descent_parameters,
    descent_rows,
)
from tests.builders.mechanisms.kernel_descent import kernel_inputs, kernel_parameters, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.linear.integer_vectors import IntegerFeatures
    from app.noise.source import NoiseSource

ROWS = st.tuples(
    st.lists(st.integers(0, 1), min_size=TERM_COUNT, max_size=TERM_COUNT), st.integers(0, 2)
)


@settings(max_examples=60, deadline=None)
@given(
    others=st.lists(ROWS, min_size=1, max_size=12),
    pair=st.tuples(ROWS, ROWS),
    iterate=st.lists(st.floats(-30, 30), min_size=18, max_size=18),
    class_count=st.sampled_from([2, 3]),
    place=st.integers(0, 12),
)
def test_one_record_moves_a_sum_by_no_more_than_the_noise_is_for(
    others: list[tuple[list[int], int]],
    pair: tuple[tuple[list[int], int], tuple[list[int], int]],
    iterate: list[float],
    class_count: int,
    place: int,
) -> None:
    """The sums' difference is the two rows' own, to the last bit, and within the bound."""
    parameters = descent_parameters(class_count=class_count)
    features, width = parameters.features, score_count(class_count)
    weights = whole_weights(np.array(iterate[: 6 * width]).reshape(6, width))

    def part(rows: list[tuple[list[int], int]]) -> np.ndarray:
        bits = np.array([row for row, _ in rows], dtype=np.uint8)
        labels = np.array([label % class_count for _, label in rows], dtype=np.int64)
        return gradient_sum(features, features.coordinates(bits), labels, weights)

    sums = [part([*others[:place], row, *others[place:]]) for row in pair]
    alone = [part([row]) for row in pair]
    assert np.array_equal(sums[0] - sums[1], alone[0] - alone[1])
    moved = int(((sums[0] - sums[1]).astype(object) ** 2).sum())
    assert moved <= squared_sensitivity(features, class_count=class_count)


@pytest.mark.parametrize("class_count", [2, 3])
def test_one_record_moves_a_sum_of_waves_by_no_more_than_the_noise_is_for(
    class_count: int,
) -> None:
    """Of a kernel's features too: the two rows' own difference, and within the bound."""
    parameters = kernel_parameters(class_count=class_count)
    features, width = parameters.features, score_count(class_count)
    generator = np.random.default_rng(8)
    vectors = features.coordinates(kernel_inputs().encode(numbers(200, seed=5)))
    labels = generator.integers(0, class_count, 200)
    bound, largest = squared_sensitivity(features, class_count=class_count), 0
    for scale in (0.0, 0.3, 30.0):
        weights = whole_weights(generator.normal(size=(features.width, width)) * scale)

        def part(rows: list[int], weights: NDArray[np.float64] = weights) -> NDArray[np.int64]:
            return gradient_sum(features, vectors[rows], labels[rows], weights)

        for place in range(1, 100):
            company = list(range(100, 100 + place))
            difference = part([*company, place]) - part([*company, place - 1])
            assert np.array_equal(difference, part([place]) - part([place - 1]))
            moved = int((difference.astype(object) ** 2).sum())
            assert moved <= bound
            largest = max(largest, moved)
    assert largest > 0.2 * bound


def test_vectors_are_integers_no_longer_than_their_bound() -> None:
    """Of all 32 rows none is longer, the longest is nearly as long, and each is itself alone."""
    features = descent_parameters(length=0.5).features
    bits = np.array([[row >> term & 1 for term in range(TERM_COUNT)] for row in range(32)])
    vectors = features.coordinates(bits.astype(np.uint8))
    squares = (vectors.astype(np.int64) ** 2).sum(axis=1)
    assert squares.max() <= features.norm_bound**2
    assert math.isqrt(int(squares.max())) > 0.99 * features.norm_bound
    for row in range(32):
        alone = features.coordinates(bits[row : row + 1].astype(np.uint8))
        assert np.array_equal(alone[0], vectors[row])


def test_every_coordinate_of_every_step_gets_noise_of_the_steps_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T steps draw p numbers each; a step of twice the weight has half the variance."""
    drawn: list[Fraction] = []

    class Watched(DiscreteGaussian):
        def draw(self, noise: NoiseSource) -> int:
            drawn.append(self.variance)
            return super().draw(noise)

    monkeypatch.setattr(noisy_gradient, "DiscreteGaussian", Watched)
    parameters = descent_parameters()
    draw(parameters, descent_rows(), ScriptedNoise(seeded_words(2)))
    width = parameters.features.width
    assert len(drawn) == STEPS * width
    sensitivity = squared_sensitivity(parameters.features, class_count=2)
    for step, weight in enumerate(STEP_WEIGHTS):
        wanted = parameters.calibration.variance_ratio * sensitivity / weight + 16
        assert drawn[step * width : (step + 1) * width] == [wanted] * width


def test_much_budget_learns_what_tells_the_labels() -> None:
    """With an epsilon of 100 the first term's weight has the sign that the rows have."""
    parameters = descent_parameters(epsilon=100, row_count=600)
    bits, labels = descent_rows(row_count=600)
    weights = draw(parameters, (bits, labels), ScriptedNoise(seeded_words(4))).values
    scores = bits.astype(float) @ (parameters.features.matrix @ weights) + (
        parameters.features.offset @ weights
    )
    assert ((scores[:, 0] > 0) == labels).mean() > 0.75


def test_the_audit_stays_below_its_claim_and_catches_planted_faults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One label shows nearly the claim; beside too little noise, or a longer row, it shows more."""
    # The bound is computed and not sampled, so no alarm is false.
    parameters = descent_parameters()
    delta, epsilon = float(DELTA), float(parameters.calibration.epsilon)
    honest = gradient_bound(parameters, delta=delta).epsilon
    assert 0.9 * epsilon < honest <= epsilon

    variance = Parameters.step_variance

    def planted(factor: Fraction) -> float:
        def faulty(self: Parameters, step: int) -> Fraction:
            return variance(self, step) * factor

        with monkeypatch.context() as patched:
            patched.setattr(Parameters, "step_variance", faulty)
            return gradient_bound(parameters, delta=delta).epsilon

    assert planted(Fraction(1, sum(STEP_WEIGHTS))) > 2 * epsilon  # noise for one step alone
    assert planted(Fraction(1, 4)) > 1.7 * epsilon  # half of the sensitivity
    assert planted(Fraction(4, 9)) > 1.3 * epsilon  # rows half as long again as their bound


def test_the_normal_laws_epsilon_is_the_published_one() -> None:
    """Balle and Wang's analytic calibration gives a deviation of 4.2247 at (1, 1e-6)."""
    assert shown_epsilon(1 / 4.2247, 1e-6) == pytest.approx(1.0, abs=2e-3)
    assert shown_epsilon(0.0001, 0.5) == 0.0


def test_a_descent_goes_on_from_a_public_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sum is at the start, whose shape is that of the weights."""
    parameters = descent_parameters(class_count=2)
    seen: list[NDArray[np.float64]] = []

    def at(
        features: IntegerFeatures,
        vectors: NDArray[np.int16],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        person_row_counts: NDArray[np.int64] | None,
    ) -> NDArray[np.int64]:
        seen.append(weights)
        return gradient_sum(features, vectors, labels, weights, person_row_counts)

    monkeypatch.setattr(noisy_gradient, "gradient_sum", at)
    start = np.linspace(-1.0, 1.0, parameters.features.width).reshape(-1, 1)
    draw(parameters, descent_rows(), ScriptedNoise(seeded_words(3)), start=start)
    assert np.array_equal(seen[0], whole_weights(start))
    with pytest.raises(InvariantError, match="a weight for each coordinate"):
        draw(parameters, descent_rows(), ScriptedNoise(seeded_words(3)), start=start[1:])


def test_slots_that_hold_nothing_add_nothing() -> None:
    """Fewer rows than slots are taken where slots may be empty, and more never."""
    parameters = descent_parameters(class_count=2)
    bits, labels = descent_rows()
    fewer = bits[1:], labels[1:]
    with pytest.raises(InvariantError, match="of the public n rows"):
        draw(parameters, fewer, ScriptedNoise(seeded_words(3)))
    holed = replace(parameters, has_holes=True)
    assert draw(holed, fewer, ScriptedNoise(seeded_words(3))).values.shape[1] == 1
    more = np.vstack([bits, bits[:1]]), np.append(labels, labels[:1])
    with pytest.raises(InvariantError, match="of the public n rows"):
        draw(holed, more, ScriptedNoise(seeded_words(3)))
