"""Calibration ``svt``: the vectors, the exact check, the choice, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import exp
from pathlib import Path

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.sparse_vector.calibration import (
    SvtCalibration,
    Variant,
    calibrate,
    calibrate_variant,
    check,
)

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "privacy-vectors.json").read_text())
ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)
BUDGETS = [
    (ONE, MILLIONTH, 1),
    (Fraction(3, 5), MILLIONTH * (1 - Fraction(1, 1 << 20)), 20),
    (Fraction(8), Fraction(1, 1000), 3),
    (Fraction(1, 10), Fraction(1, 10**9), 70),
]


def served(variant: Variant, case: dict[str, dict[str, float]]) -> SvtCalibration:
    """The parameters that serve for a case of the vectors."""
    given = case["in"]
    return calibrate_variant(
        variant,
        epsilon=Fraction(str(given["epsilon"])),
        delta=Fraction(str(given["delta"])),
        cutoff=int(given["T"]),
    )


def variants(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> list[SvtCalibration]:
    """The parameters of both variants."""
    return [
        calibrate_variant(variant, epsilon=epsilon, delta=delta, cutoff=cutoff)
        for variant in Variant
    ]


@pytest.mark.parametrize("case", VECTORS["svt_refresh"])
def test_refreshed_parameters_agree_with_the_vectors(case: dict[str, dict[str, float]]) -> None:
    """The epsilon of an epoch, the scales and the threshold are those of the vectors."""
    calibration, expected = served(Variant.REFRESHED, case), case["out"]
    first, second = calibration.threshold_scale, calibration.query_scale
    assert float(1 / first + 2 / second) == pytest.approx(expected["eps0"], rel=1e-9)
    assert first == second
    assert float(first) == pytest.approx(expected["b"], rel=1e-9)
    assert calibration.threshold == expected["w_discrete"]
    assert calibration.delta_svt == calibration.delta_release == calibration.delta / 2
    check(calibration)


def continuous_tail(point: float, *, first: float, second: float) -> float:
    """Return the tail of a difference of two continuous Laplace variables."""
    scaled = second**2 * exp(-point / second) - first**2 * exp(-point / first)
    return scaled / (2 * (second**2 - first**2))


@pytest.mark.parametrize("case", VECTORS["svt_one_threshold"])
def test_one_thresholds_parameters_agree_with_the_vectors(
    case: dict[str, dict[str, float]],
) -> None:
    """The scales are those of the vectors, and so is the threshold, by the continuous tail."""
    calibration, expected = served(Variant.ONE_THRESHOLD, case), case["out"]
    first, second = float(calibration.threshold_scale), float(calibration.query_scale)
    assert first == pytest.approx(expected["b1"], rel=1e-9)
    assert second == pytest.approx(expected["b2"], rel=1e-9)
    # Ten digits of the point give the tail to nine.
    tail = continuous_tail(expected["w_continuous"], first=first, second=second)
    assert tail * calibration.cutoff == pytest.approx(float(calibration.delta), rel=1e-8)
    assert abs(calibration.threshold - expected["w_continuous"]) < 1
    assert calibration.delta_release == calibration.delta
    check(calibration)


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize(("epsilon", "delta", "cutoff"), BUDGETS)
def test_parameters_are_the_smallest_that_hold(
    variant: Variant, epsilon: Fraction, delta: Fraction, cutoff: int
) -> None:
    """The check accepts them, and neither a smaller threshold nor smaller scales."""
    calibration = calibrate_variant(variant, epsilon=epsilon, delta=delta, cutoff=cutoff)
    check(calibration)
    smaller = 1 - Fraction(1, 10**6)
    for tighter in (
        replace(calibration, threshold=calibration.threshold - 1),
        replace(calibration, threshold_scale=calibration.threshold_scale * smaller),
        replace(calibration, query_scale=calibration.query_scale * smaller),
    ):
        with pytest.raises(InvariantError):
            check(tighter)


@pytest.mark.parametrize(
    ("cutoff", "variant"),
    [(1, "one-threshold"), (20, "one-threshold"), (45, "one-threshold"), (60, "refreshed")],
)
def test_the_variant_with_the_smaller_threshold_serves(cutoff: int, variant: str) -> None:
    """At epsilon 1 one threshold serves up to a cutoff of about 50, then the refreshed one."""
    chosen = calibrate(epsilon=ONE, delta=MILLIONTH, cutoff=cutoff)
    both = variants(epsilon=ONE, delta=MILLIONTH, cutoff=cutoff)
    assert chosen in both
    assert chosen.threshold == min(candidate.threshold for candidate in both)
    assert chosen.variant == variant


def test_equal_thresholds_are_served_by_one() -> None:
    """Where both variants need the same threshold the pure one is taken."""
    epsilon, delta = Fraction(8), Fraction(1, 10**9)
    both = variants(epsilon=epsilon, delta=delta, cutoff=1)
    assert both[0].threshold == both[1].threshold
    assert calibrate(epsilon=epsilon, delta=delta, cutoff=1).variant is Variant.ONE_THRESHOLD


def test_a_threshold_is_never_negative() -> None:
    """A delta so large that no threshold were needed still gets one of zero."""
    calibration = calibrate_variant(
        Variant.ONE_THRESHOLD, epsilon=Fraction(100), delta=Fraction(9, 10), cutoff=1
    )
    assert calibration.threshold == 0
    check(calibration)


def test_hits_at_a_distance_are_as_probable_as_counted() -> None:
    """The probability of a hit is the sum over both noises, on either side of the threshold."""
    calibration = replace(
        calibrate(epsilon=Fraction(4), delta=Fraction(1, 100), cutoff=1),
        threshold_scale=Fraction(1),
        query_scale=Fraction(2),
        threshold=6,
    )
    first, second = exp(-1), exp(-1 / 2)
    constant = (1 - first) / (1 + first) * (1 - second) / (1 + second)
    for distance in range(14):
        hits = sum(
            constant * first ** abs(rho) * second ** abs(nu)
            for rho in range(-60, 61)
            for nu in range(-80, 81)
            if distance + nu <= 6 + rho
        )
        assert calibration.hit_probability(distance) == pytest.approx(hits, rel=1e-9)


@pytest.mark.parametrize("probability", [0.3, 1e-2, 1e-4])
def test_distance_at_is_the_smallest(probability: float) -> None:
    """The distance found is within the probability and the one before is not."""
    calibration = calibrate(epsilon=ONE, delta=MILLIONTH, cutoff=5)
    found = calibration.distance_at(probability)
    assert calibration.hit_probability(found) <= probability
    assert calibration.hit_probability(found - 1) > probability


def test_distance_at_a_likely_hit_lies_beyond_the_threshold() -> None:
    """A probability of a half or more is answered as a half is."""
    calibration = calibrate(epsilon=ONE, delta=MILLIONTH, cutoff=5)
    assert calibration.distance_at(0.99) == calibration.distance_at(0.5) > calibration.threshold


@pytest.mark.parametrize("variant", Variant)
def test_plain_form_is_lossless(variant: Variant) -> None:
    """Parameters survive their plain form, JSON included."""
    calibration = calibrate_variant(variant, epsilon=ONE, delta=MILLIONTH, cutoff=7)
    assert SvtCalibration.from_plain(json.loads(json.dumps(calibration.to_plain()))) == calibration


@pytest.mark.parametrize(
    "spoiled",
    [{"threshold": "x"}, {"query_scale": "1/0"}, {"variant": "none"}, {"epsilon": ""}, {}],
)
def test_plain_form_refuses_what_is_no_calibration(spoiled: dict[str, str]) -> None:
    """A missing or senseless value is refused."""
    plain = calibrate(epsilon=ONE, delta=MILLIONTH, cutoff=2).to_plain()
    with pytest.raises(InvariantError, match="persisted"):
        SvtCalibration.from_plain({**plain, **spoiled} if spoiled else {})


@pytest.mark.parametrize("variant", Variant)
def test_check_refuses_every_tampered_calibration(variant: Variant) -> None:
    """A calibration off in one thing that matters does not open a release."""
    good = calibrate_variant(variant, epsilon=ONE, delta=MILLIONTH, cutoff=3)
    check(good)
    for tampered in (
        replace(good, epsilon=Fraction(0)),
        replace(good, epsilon=good.epsilon - MILLIONTH),
        replace(good, cutoff=0),
        replace(good, cutoff=4),
        replace(good, delta=good.delta * Fraction(999, 1000)),
        replace(good, delta=ONE, delta_release=ONE),
        replace(good, delta_svt=-good.delta, delta_release=2 * good.delta),
        replace(good, delta_release=Fraction(0)),
        replace(good, delta_release=good.delta_release * Fraction(1, 2)),
        replace(good, threshold_scale=Fraction(0)),
        replace(good, query_scale=Fraction(-1)),
        replace(good, threshold=-1),
    ):
        with pytest.raises(InvariantError):
            check(tampered)


def test_check_tells_the_variants_apart() -> None:
    """Refreshed scales do not pay for one threshold, nor the other way round."""
    both = variants(epsilon=ONE, delta=MILLIONTH, cutoff=100)
    for calibration, other in zip(both, reversed(Variant), strict=True):
        with pytest.raises(InvariantError, match="hits"):
            check(replace(calibration, variant=other))


@pytest.mark.parametrize(
    ("epsilon", "delta", "cutoff", "key"),
    [
        (Fraction(0), MILLIONTH, 2, "privacy.epsilon"),
        (Fraction(1001), MILLIONTH, 2, "privacy.epsilon"),
        (Fraction(1, 1 << 30), MILLIONTH, 2, "privacy.epsilon"),
        (ONE, Fraction(0), 2, "privacy.delta"),
        (ONE, ONE, 2, "privacy.delta"),
        (ONE, MILLIONTH, 0, "answers.cutoff"),
        (ONE, MILLIONTH, 10**5 + 1, "answers.cutoff"),
    ],
)
def test_budgets_without_parameters_are_refused(
    epsilon: Fraction, delta: Fraction, cutoff: int, key: str
) -> None:
    """A budget out of range is refused by the key that has to change."""
    with pytest.raises(ConfigurationError) as refusal:
        calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff)
    assert refusal.value.key == key


@pytest.mark.parametrize(
    ("epsilon", "delta", "cutoff"),
    [
        (Fraction(1000), Fraction(999, 1000), 1),
        (Fraction(1, 1 << 29), Fraction(1, 10**30), 2),
        (Fraction(1, 3), Fraction(1, 10**100), 40),
    ],
)
def test_the_ends_of_the_range_have_parameters(
    epsilon: Fraction, delta: Fraction, cutoff: int
) -> None:
    """The largest and the smallest budgets get parameters that check, in both variants."""
    for variant in Variant:
        check(calibrate_variant(variant, epsilon=epsilon, delta=delta, cutoff=cutoff))
