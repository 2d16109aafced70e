"""The noise of a descent, against numbers that were worked out otherwise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.special import log_ndtr

from app.errors import ConfigurationError, InvariantError
from app.learning.linear.integer_vectors import HALF, SCORE_STEPS, residuals, squared_length_bound
from app.privacy.noisy_gradient.calibration import (
    DRAWS_MAX,
    LN_ROUNDING,
    ROUNDING_VARIANCE,
    calibrate,
    check,
    covers,
    delta_bound,
    least_ratio,
)

# (epsilon, delta, steps).
KNOWN = [
    (Fraction(1), Fraction(1, 10**6), 30),
    (Fraction(1, 10), Fraction(1, 10**6), 10),
    (Fraction(8), Fraction(1, 100), 1),
]


# Deviations of normal noise for a shift of one, by dp-accounting 0.6 (get_sigma_gaussian).
PUBLISHED = [
    ("0.01", "1e-9", 458.50849749732123),
    ("0.1", "1e-6", 36.304690426195194),
    ("0.5", "1e-6", 8.057618480725024),
    ("1", "1e-6", 4.224678889326822),
    ("2", "1e-6", 2.2304762711864172),
    ("8", "0.01", 0.40836299474750304),
]


def normal_delta(epsilon: float, separation: float) -> float:
    """Return the delta of two normal laws from library functions, in logarithms."""
    first, second = (log_ndtr(sign * separation / 2 - epsilon / separation) for sign in (1.0, -1.0))
    return float(-math.exp(first) * math.expm1(epsilon + second - first))


@pytest.mark.parametrize(("epsilon", "delta", "steps"), KNOWN)
def test_the_noise_is_the_least_that_covers_every_step(
    epsilon: Fraction, delta: Fraction, steps: int
) -> None:
    """At the ratio found the claim holds, and at one that is a millionth less it does not."""
    found = calibrate(epsilon=epsilon, delta=delta, step_weights=(1,) * steps)
    check(found)
    separation = math.sqrt(steps / float(found.variance_ratio))
    # A ratio is rounded up by 2^-23 at most, which moves delta by less than a hundred times that.
    assert normal_delta(float(epsilon), separation) == pytest.approx(float(delta), rel=2e-5)
    with pytest.raises(InvariantError, match="covers every step"):
        check(replace(found, variance_ratio=found.variance_ratio * (1 - Fraction(1, 10**6))))


@pytest.mark.parametrize(("epsilon", "delta", "deviation"), PUBLISHED)
def test_the_noise_is_what_another_library_finds(
    epsilon: str, delta: str, deviation: float
) -> None:
    """Above its deviation by rounding alone: by 2^-24, and never below by more than its own."""
    found = calibrate(epsilon=Fraction(epsilon), delta=Fraction(delta), step_weights=(1,))
    assert -1e-9 < math.sqrt(found.variance_ratio) / deviation - 1 < 1e-7


@pytest.mark.parametrize(
    ("epsilon", "separation"),
    [
        ("0.000001", 0.02),
        ("0.000001", 2.0),
        ("0.1", 0.03),
        ("0.1", 7.0),
        ("1", 0.3),
        ("1", 7.0),
        ("30", 2.0),
        ("30", 12.0),
        ("1000", 20.0),
        ("1000", 60.0),
    ],
)
def test_the_delta_of_normal_laws_is_bounded_from_above_and_closely(
    epsilon: str, separation: float
) -> None:
    """Twice the digits give a smaller bound, and the coarser one is above it by its last digits."""
    known = {"epsilon": Fraction(epsilon), "squared_separation": Fraction(separation) ** 2}
    coarse = Fraction(delta_bound(**known, digits=30))
    fine = Fraction(delta_bound(**known, digits=60))
    assert 0 < fine < coarse < fine + Fraction(1, 10**29)
    expected = normal_delta(float(epsilon), separation)
    assert float(fine) == pytest.approx(expected, rel=1e-6, abs=1e-28)


@pytest.mark.parametrize(("ratio", "hidden"), [(10**12, True), (Fraction(1, 10**12), False)])
def test_noise_far_from_what_is_wanted_is_told_at_once(ratio: Fraction, hidden: bool) -> None:  # noqa: FBT001 -- a column of the table
    """Much too much hides a shift, and nearly none does not, without a long series."""
    assert (
        covers(
            epsilon=Fraction(1),
            delta=Fraction(1, 10**6),
            squared_shift=30,
            variance_ratio=Fraction(ratio),
        )
        is hidden
    )


def test_normal_noise_rounded_at_random_has_the_law_that_is_drawn() -> None:
    """With the variance that is added the laws agree to many digits; with less they do not."""
    grid = np.arange(-120.0, 120.0, 1 / 64)
    integers = np.arange(-120.0, 121.0)

    def apart(rounding: float) -> float:
        spread = 30.0
        kernel = np.exp(-((integers[:, None] - grid) ** 2) / (2 * rounding))
        normal = np.exp(-(grid**2) / (2 * spread))
        rounded = (kernel / kernel.sum(axis=0)) @ normal
        discrete = np.exp(-(integers**2) / (2 * (spread + rounding)))
        near = np.abs(integers) < 20
        laws = rounded[near] / rounded.sum(), discrete[near] / discrete.sum()
        return float(np.abs(np.log(laws[0] / laws[1])).max())

    assert apart(float(ROUNDING_VARIANCE)) < 1e-12
    assert apart(0.05) > 1e-3
    # The factor that is charged covers every draw that is allowed.
    ln_draw = math.log(3 * 2.1) - 2 * math.pi**2 * ROUNDING_VARIANCE
    assert ln_draw + math.log(DRAWS_MAX) < math.log(LN_ROUNDING.numerator) - math.log(
        LN_ROUNDING.denominator
    )


def test_noise_for_one_step_does_not_cover_two() -> None:
    """A descent that forgets that steps add up is refused."""
    one = calibrate(epsilon=Fraction(1), delta=Fraction(1, 10**6), step_weights=(1,))
    with pytest.raises(InvariantError, match="covers every step"):
        check(replace(one, step_weights=(1, 1)))


@pytest.mark.parametrize(
    ("epsilon", "delta", "key"),
    [
        (Fraction(2000), Fraction(1, 10), "privacy.shares.classifier"),
        (Fraction(1), Fraction(2, 3), "privacy.delta_shares.classifier"),
    ],
)
def test_a_budget_out_of_range_is_refused(epsilon: Fraction, delta: Fraction, key: str) -> None:
    """The line names the share to change."""
    with pytest.raises(ConfigurationError) as refused:
        calibrate(epsilon=epsilon, delta=delta, step_weights=(1,))
    assert refused.value.key == key


@pytest.mark.parametrize("class_count", [2, 3])
def test_residuals_stay_within_their_bound(class_count: int) -> None:
    """Whatever scores and label, a row's residuals are no longer than what noise is for."""
    places = range(-20 * SCORE_STEPS, 20 * SCORE_STEPS, 331)
    free = max(1, class_count - 1)
    scores = np.array(list(product(places, repeat=free)), dtype=np.int64)
    if free > 1:
        scores = np.concatenate([scores, np.zeros((len(scores), 1), dtype=np.int64)], axis=1)
    squares = [
        (residuals(scores, np.full(len(scores), label)) ** 2).sum(axis=1).max()
        for label in range(class_count)
    ]
    bound = squared_length_bound(class_count)
    assert 0.9 * bound < max(squares) <= bound


def test_residuals_add_up_to_less_than_nothing_and_stay_within_their_bound() -> None:
    """With three labels the label's residual is the largest, and the others' sum is no more."""
    places = range(-2 * SCORE_STEPS, 2 * SCORE_STEPS, 37)
    scores = np.array(list(product(places, repeat=3)), dtype=np.int64)
    for label in range(3):
        missed = residuals(scores, np.full(len(scores), label))
        others = np.delete(missed, label, axis=1)
        assert (missed[:, label] <= 0).all()
        assert (others >= 0).all()
        assert (others.sum(axis=1) <= -missed[:, label]).all()
        assert (missed[:, label] >= -HALF).all()


@pytest.mark.parametrize("delta", ["0.5", "0.999"])
def test_the_least_ratio_is_found_from_above(delta: str) -> None:
    """With a large delta less noise is enough than where the search begins."""
    hides = partial(covers, epsilon=Fraction(1), delta=Fraction(delta), squared_shift=4)
    found = least_ratio(epsilon=Fraction(1), delta=Fraction(delta), squared_shift=4)
    assert found < 4 / 2
    assert hides(variance_ratio=found)
    assert not hides(variance_ratio=found * (1 - Fraction(1, 2**20)))
