"""The noise of a descent, against numbers that were worked out otherwise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from app.accounting.noisy_gradient import calibrate, check
from app.errors import ConfigurationError, InvariantError
from app.hypotheses.integer_residuals import HALF, SCORE_STEPS, residuals, squared_length_bound

# (epsilon, delta, steps).
KNOWN = [
    (Fraction(1), Fraction(1, 10**6), 30),
    (Fraction(1, 10), Fraction(1, 10**6), 10),
    (Fraction(8), Fraction(1, 100), 1),
]


def least_ln_delta(epsilon: float, rate: float) -> float:
    """Minimise the logarithm of the claim's left side by a grid of orders, independently."""
    excess = np.exp(np.linspace(-12, 14, 400_001))
    alpha = 1 + excess
    ln_delta = excess * (alpha * rate - epsilon) + excess * np.log(excess / alpha) - np.log(alpha)
    return float(ln_delta.min())


@pytest.mark.parametrize(("epsilon", "delta", "steps"), KNOWN)
def test_the_noise_is_the_least_that_covers_every_step(
    epsilon: Fraction, delta: Fraction, steps: int
) -> None:
    """At the ratio found the claim holds, and at one that is a millionth less it does not."""
    found = calibrate(epsilon=epsilon, delta=delta, step_weights=(1,) * steps)
    check(found)
    rate = steps / (2 * float(found.variance_ratio))
    # The grid's own error is second order: 1e-8 of a logarithm.
    assert least_ln_delta(float(epsilon), rate) == pytest.approx(math.log(delta), abs=1e-5)
    with pytest.raises(InvariantError, match="covers every step"):
        check(replace(found, variance_ratio=found.variance_ratio * (1 - Fraction(1, 10**6))))


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
