"""The noise of a descent, against numbers that were worked out otherwise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from app.accounting.gradient_sensitivity import squared_sensitivity
from app.accounting.noisy_gradient import calibrate, check
from app.errors import ConfigurationError, InvariantError
from app.hypotheses.integer_residuals import SCORE_STEPS, WHOLE, residuals

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
    found = calibrate(epsilon=epsilon, delta=delta, step_count=steps)
    check(found)
    rate = steps / (2 * float(found.variance_ratio))
    # The grid's own error is second order: 1e-8 of a logarithm.
    assert least_ln_delta(float(epsilon), rate) == pytest.approx(math.log(delta), abs=1e-5)
    with pytest.raises(InvariantError, match="covers every step"):
        check(replace(found, variance_ratio=found.variance_ratio * (1 - Fraction(1, 10**6))))


def test_noise_for_one_step_does_not_cover_two() -> None:
    """A descent that forgets that steps add up is refused."""
    one = calibrate(epsilon=Fraction(1), delta=Fraction(1, 10**6), step_count=1)
    with pytest.raises(InvariantError, match="covers every step"):
        check(replace(one, step_count=2))


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
        calibrate(epsilon=epsilon, delta=delta, step_count=1)
    assert refused.value.key == key


def test_more_classes_are_bounded_whatever_the_iterate() -> None:
    """With three labels the bound is that of opposite products of full length."""
    assert squared_sensitivity(norm_bound=10, class_count=3, steps=0.0) == 800 * WHOLE**2


@pytest.mark.parametrize("steps", [0.0, 0.5, 3.0, 20.0, 150.0, 10**9])
def test_no_two_rows_differ_by_more_than_the_bound(steps: float) -> None:
    """Over all pairs of some thousand rows of a plane, with either label, none is further apart."""
    norm = 40
    angles = np.linspace(-math.pi, math.pi, 721)
    vectors = np.trunc(norm * np.stack([np.cos(angles), np.sin(angles)], axis=1))
    products = []
    for label in (0, 1):
        scores = np.floor(vectors[:, :1] * steps).astype(np.int64)
        missed = residuals(scores, np.full(len(vectors), label))
        products.append(missed * vectors)
    rows = np.concatenate(products)
    squares = (rows**2).sum(axis=1)
    furthest = (squares[:, None] + squares[None, :] - 2 * rows @ rows.T).max()
    bound = squared_sensitivity(norm_bound=norm, class_count=2, steps=steps)
    assert furthest <= bound
    # The bound is worth having: within a tenth of what was found, in length.
    assert math.sqrt(bound) <= 1.1 * math.sqrt(furthest)


def test_the_bound_is_half_at_the_start() -> None:
    """Where the iterate is zero a residual is half of a whole, and so is the sensitivity."""
    bounds = [
        squared_sensitivity(norm_bound=8000, class_count=2, steps=steps / 1000 * SCORE_STEPS)
        for steps in (0, 1, 2, 4, 1000)
    ]
    assert bounds == sorted(bounds)
    assert math.sqrt(bounds[0]) == pytest.approx(8000 * WHOLE, rel=0.02)
    assert bounds[-1] == 4 * (8000 * WHOLE) ** 2


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
        assert ((missed**2).sum(axis=1) <= 2 * WHOLE**2).all()
