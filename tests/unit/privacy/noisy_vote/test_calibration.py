"""The noise of the noisy vote: smallest, checked, and never short of its claim."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from app.errors import ConfigurationError, InvariantError
from app.privacy.noisy_vote.calibration import (
    NoisyVoteCalibration,
    calibrate,
    check,
    least_variance,
    voted,
)
from app.privacy.stability import hit_table as profile

ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)
BUDGETS = [
    (ONE, MILLIONTH),
    (Fraction(1, 10), Fraction(1, 100)),
    (Fraction(8), MILLIONTH),
    (Fraction(1000), Fraction(1, 2)),
    (MILLIONTH, Fraction(1, 10**200)),
]


def largest_rate(epsilon: Fraction, delta: Fraction) -> Decimal:
    """Return the largest r of the claim, by golden section over orders at 40 digits.

    For the r of a given order the claim's left side equals delta; that r has one
    maximum over orders, since its level sets are those of a convex function.
    """
    with localcontext(Context(prec=60)):
        share, log_delta = (
            Decimal(epsilon.numerator) / epsilon.denominator,
            (Decimal(delta.numerator) / delta.denominator).ln(),
        )

        def rate(log_excess: Decimal) -> Decimal:
            excess = log_excess.exp()
            alpha = 1 + excess
            budget = log_delta + excess * (share + (alpha / excess).ln()) + alpha.ln()
            return budget / (alpha * excess)

        golden = (Decimal(5).sqrt() - 1) / 2
        low, high = Decimal(-20), Decimal(60)
        while high - low > Decimal("1e-12"):
            width = golden * (high - low)
            if rate(high - width) > rate(low + width):
                high = low + width
            else:
                low = high - width
        return rate(low)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize(("answer_limit", "class_count", "moved"), [(1, 2, 1), (70, 5, 2)])
def test_the_variance_is_barely_above_the_smallest(
    epsilon: Fraction, delta: Fraction, answer_limit: int, class_count: int, moved: int
) -> None:
    """It lies above the smallest real variance, by 1e-9 of it at most."""
    calibration = calibrate(
        epsilon=epsilon, delta=delta, answer_limit=answer_limit, class_count=class_count
    )
    check(calibration)
    smallest = answer_limit * moved / (2 * Fraction(largest_rate(epsilon, delta)))
    _, variance = least_variance(epsilon=epsilon, delta=delta, squared_shift=answer_limit * moved)
    assert 0 <= variance / smallest - 1 <= Fraction(1, 10**9)
    assert Fraction(float(variance)) == variance
    # By the other condition it may be less; a calibration without an order keeps that one.
    assert (calibration.variance == variance) == (calibration.alpha is not None)
    assert calibration.variance <= variance


def test_normal_noise_is_smaller_than_that_of_a_divergence() -> None:
    """Accounted as normal, many answers take some 12 % less variance, 16 included; few do not."""
    few, many = (
        calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=limit, class_count=3)
        for limit in (1, 1000)
    )
    _, variance = least_variance(epsilon=ONE, delta=MILLIONTH, squared_shift=2000)
    assert many.alpha is None
    assert 0.84 < many.variance / variance < 0.90
    assert few.variance < 60
    wide = replace(many, variance=many.variance - 1)
    with pytest.raises(InvariantError, match="covers every answer"):
        check(wide)


def test_more_draws_than_the_rounding_allows_keep_an_order() -> None:
    """Beyond 2^40 draws normal noise is not accounted, and a claim of it is refused."""
    most = calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=2**39, class_count=3)
    assert most.alpha is not None
    with pytest.raises(InvariantError, match="covers every answer"):
        check(replace(most, alpha=None))


def test_the_variance_is_proportional_to_the_answers() -> None:
    """Twice the answers, or a second count that moves, take twice the variance but for the 16."""
    base, answers, labels = (
        calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=limit, class_count=classes).variance
        - 16
        for limit, classes in ((100, 2), (200, 2), (100, 3))
    )
    assert answers == labels == pytest.approx(2 * float(base), rel=1e-6)


def gaussian_masses(variance: float) -> tuple[np.ndarray, int]:
    """Return the probabilities of the discrete Gaussian on ``-end .. end``, and the end.

    What lies beyond has probability below 1e-40.
    """
    end = math.ceil(14 * math.sqrt(variance)) + 2
    weights = np.exp(-(np.arange(-end, end + 1, dtype=np.float64) ** 2) / (2 * variance))
    return weights / weights.sum(), end


def exact_delta(variance: float, *, epsilon: float, answer_limit: int, moved: int) -> float:
    """Return the divergence of all noisy counts of a run whose every query differs.

    With all counts in view the likelihood ratio depends on the sum of the noises
    only, each taken with the sign of its count's move.

    Args:
        variance: of one count's noise.
        epsilon: at which the divergence is taken.
        answer_limit: queries.
        moved: counts that move by one in each.

    """
    masses, end = gaussian_masses(variance)
    total, count = np.ones(1), answer_limit * moved
    for _ in range(count):
        total = np.convolve(total, masses)
    sums = np.arange(-count * end, count * end + 1)
    log_ratio = (count - 2.0 * sums) / (2.0 * variance)
    return float(np.sum(total * -np.expm1(np.minimum(0.0, epsilon - log_ratio))))


@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-6"), ("1", "1e-2"), ("8", "1e-6")])
@pytest.mark.parametrize(("class_count", "moved"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("answer_limit", [1, 2, 3])
def test_the_exact_delta_is_within_the_claim(
    epsilon: str, delta: str, class_count: int, moved: int, answer_limit: int
) -> None:
    """Even with every noisy count in view the divergence stays below delta."""
    calibration = calibrate(
        epsilon=Fraction(epsilon),
        delta=Fraction(delta),
        answer_limit=answer_limit,
        class_count=class_count,
    )
    found = exact_delta(
        float(calibration.variance),
        epsilon=float(calibration.epsilon),
        answer_limit=answer_limit,
        moved=moved,
    )
    assert 0.01 * float(calibration.delta) < found < float(calibration.delta)


@pytest.mark.parametrize("answer_limit", [1, 2])
def test_less_noise_breaks_the_claim(answer_limit: int) -> None:
    """With half the variance, as if one query fewer differed, the divergence exceeds delta."""
    variance = calibrate(
        epsilon=ONE, delta=MILLIONTH, answer_limit=answer_limit, class_count=2
    ).variance
    found = exact_delta(float(variance) / 2, epsilon=1.0, answer_limit=answer_limit, moved=1)
    assert found > 2e-6


def test_a_gaussians_formula_would_break_the_claim() -> None:
    """The continuous Gaussian's smallest deviation gives the discrete one thrice its delta."""
    epsilon, delta = 8.0, 1e-6

    def continuous_delta(deviation: float) -> float:
        mu = 1 / deviation
        passed = norm.cdf(mu / 2 - epsilon / mu)
        return float(passed - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))

    low, high = 0.1, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if continuous_delta(middle) > delta else (low, middle)
    found = exact_delta(high**2, epsilon=epsilon, answer_limit=1, moved=1)
    assert 2.5 * delta < found < 3.5 * delta


@pytest.mark.parametrize("probability", [0.1, 1e-3])
def test_a_lead_of_two_labels_is_lost_no_more_often(probability: float) -> None:
    """Summed over the law, the noise makes up for the lead with at most this probability."""
    calibration = calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=20, class_count=2)
    masses, end = gaussian_masses(float(calibration.variance))
    lead = calibration.lead_at(probability)
    lost, before = (float(masses[end + math.ceil(each / 2) :].sum()) for each in (lead, lead - 1))
    assert lost <= probability < before


@pytest.mark.parametrize("probability", [0.1, 1e-3])
def test_a_lead_of_more_labels_is_lost_no_more_often(probability: float) -> None:
    """Added over the other labels, differences of noise make up for the lead no more often."""
    calibration = calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=20, class_count=4)
    masses, end = gaussian_masses(float(calibration.variance))
    difference = np.convolve(masses, masses)
    lead = calibration.lead_at(probability)
    union = 3 * float(difference[2 * end + lead :].sum())
    # Three labels seldom come up together: added, they are a little more than either of them.
    assert 0.8 * probability < union < 1.3 * probability


def test_plain_form_is_lossless() -> None:
    """Parameters survive their plain form, JSON included."""
    calibration = calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=9, class_count=3)
    plain = json.loads(json.dumps(calibration.to_plain()))
    assert NoisyVoteCalibration.from_plain(plain) == calibration


@pytest.mark.parametrize("spoiled", [{"variance": "x"}, {"alpha": "1/0"}, {"epsilon": ""}, {}])
def test_plain_form_refuses_what_is_no_calibration(spoiled: dict[str, str]) -> None:
    """A missing or senseless value is refused."""
    plain = calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=9, class_count=3).to_plain()
    with pytest.raises(InvariantError, match="persisted"):
        NoisyVoteCalibration.from_plain({**plain, **spoiled} if spoiled else {})


def test_check_refuses_every_tampered_calibration() -> None:
    """A calibration off in one thing that matters does not open a release."""
    good = calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=9, class_count=2)
    check(good)
    slightly = Fraction(1, 10**6)
    for tampered in (
        replace(good, epsilon=Fraction(0)),
        replace(good, epsilon=good.epsilon * (1 - slightly)),
        replace(good, delta=Fraction(0)),
        replace(good, delta=ONE),
        replace(good, delta=good.delta * (1 - Fraction(1, 10**5))),
        replace(good, answer_limit=0),
        replace(good, answer_limit=10),
        replace(good, class_count=1),
        replace(good, class_count=3),
        replace(good, alpha=ONE),
        replace(good, alpha=Fraction(2)),
        replace(good, variance=Fraction(0)),
        replace(good, variance=good.variance * (1 - slightly)),
    ):
        with pytest.raises(InvariantError):
            check(tampered)


@pytest.mark.parametrize(
    ("epsilon", "delta", "answer_limit", "key"),
    [
        (Fraction(0), MILLIONTH, 1, "privacy.epsilon"),
        (Fraction(1001), MILLIONTH, 1, "privacy.epsilon"),
        (ONE, Fraction(0), 1, "privacy.delta"),
        (ONE, Fraction(3, 5), 1, "privacy.delta"),
        (ONE, MILLIONTH, 0, "answers.queries"),
    ],
)
def test_budgets_without_noise_are_refused(
    epsilon: Fraction, delta: Fraction, answer_limit: int, key: str
) -> None:
    """A budget out of range is refused by the key that has to change."""
    with pytest.raises(ConfigurationError) as refusal:
        calibrate(epsilon=epsilon, delta=delta, answer_limit=answer_limit, class_count=2)
    assert refusal.value.key == key


def test_a_calibration_without_a_lead_is_no_noisy_vote() -> None:
    """What has leads is returned as it is; a table of hits is not planned as a vote."""
    calibration = calibrate(epsilon=ONE, delta=MILLIONTH, answer_limit=10, class_count=3)
    assert voted(calibration) is calibration
    with pytest.raises(InvariantError, match="by the lead of its plurality"):
        voted(profile.calibrate(epsilon=ONE, delta=MILLIONTH, cutoff=1))
