"""The noise scales and the threshold of the sparse vector technique, with proof.

The distance of a query is the number of votes that may change without changing the leading label.
The answer is stable if the distance plus noise ``nu`` exceeds the threshold ``w`` plus noise
``rho``, and unstable otherwise.

The noise ``nu`` on a query is discrete Laplace of scale ``b2``, and the noise ``rho`` on the
threshold is discrete Laplace of scale ``b1``.

Claim (Theorem B): let the mechanism of ``app.privacy.sparse_vector.mechanism`` test each query's
distance, and let it release the label of every stable query. It is (epsilon, delta_svt +
delta_release)-differentially private for any number of adaptive queries under replacement of one
record. Proof: ``app/privacy/sparse_vector/proof.md``. Below, T is the cutoff, the number of
unstable answers after which the models stop. There are two variants.

In the variant *refreshed*, the threshold's noise is drawn again after each unstable answer. The
queries up to and including one unstable answer are together ``(1/b1 + 2/b2)``-private, and T of
these runs, each up to one unstable answer, are composed optimally. In the variant *one threshold*,
the threshold's noise is drawn once. The unstable answers are ``(1/b1 + 2T/b2)``-private, with delta
0, and the whole delta covers the labels.

In both variants a label that differs between two neighbouring data sets is released with
probability at most ``T P(nu - rho > w)``, w being the threshold. The scales are rationals, rounded
up. :func:`check` decides every condition of the claim, with every rounding on the safe side,
whenever a release opens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, invariant
from app.privacy.arithmetic import (
    COUNT_MAX,
    DOWN,
    UP,
    composed_delta,
    exponential_down,
    exponential_up,
    largest_pure_epsilon,
    reading,
    rounded,
    to_plain,
)
from app.privacy.stability.profile_parameters import CUTOFF_KEY, DELTA_KEY, EPSILON_KEY, EPSILON_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

_ONE: Final = Decimal(1)


class DifferenceTail:
    """The tail probabilities of a difference of two discrete Laplace variables."""

    def __init__(self, *, threshold_scale: Fraction, query_scale: Fraction) -> None:
        """Compute the bounds that are the same at every point of the tail.

        Args:
            threshold_scale: the scale ``b1`` of the threshold's noise ``rho``, above 0.
            query_scale: the scale ``b2`` of a query's noise ``nu``, above 0.

        """
        invariant(threshold_scale > 0 < query_scale, "scales are above zero")
        self._first = exponential_up(-1 / threshold_scale)
        self._second = exponential_up(-1 / query_scale)
        self._constant = UP.multiply(
            _mass_at_zero(exponential_down(-1 / threshold_scale)),
            _mass_at_zero(exponential_down(-1 / query_scale)),
        )
        product = UP.multiply(self._first, self._second)
        self._cross = UP.divide(product, DOWN.subtract(_ONE, product))

    def above(self, point: int) -> Decimal:
        """Return ``P(nu - rho > point)`` for a point of at least -1, rounded up.

        The variables ``nu`` and ``rho`` are discrete Laplace, with the scales given at
        construction.
        """
        invariant(point >= -1, "the closed form begins at zero")
        # With a1 = e^(-1/b1) and a2 = e^(-1/b2),
        #     P(nu - rho > w) = C [ g (a2^(w+1)/(1-a2) + a1^(w+1)/(1-a1)) + H ]
        #     C = product of (1-a)/(1+a),  g = a1 a2 / (1 - a1 a2),
        #     H = (a2^(w+2)/(1-a2) - a1^(w+2)/(1-a1)) / (a2 - a1).
        # H is the sum of a1^x a2^(z-x) over z > w and 0 <= x <= z. If it is summed by z first it
        # has positive terms only, so that every operation can be rounded up, even if the two scales
        # are equal or nearly equal:
        #     H = (a2 G + a1^(w+1)/(1-a1)) / (1-a2),  G = sum of a1^x a2^(w-x), 0 <= x <= w.
        geometric, first_power, second_power = _power_sum(self._first, self._second, point + 1)
        first_rest = UP.divide(first_power, DOWN.subtract(_ONE, self._first))
        second_rest = UP.divide(second_power, DOWN.subtract(_ONE, self._second))
        by_size = UP.divide(
            UP.add(UP.multiply(self._second, geometric), first_rest),
            DOWN.subtract(_ONE, self._second),
        )
        crossed = UP.multiply(self._cross, UP.add(first_rest, second_rest))
        return UP.multiply(self._constant, UP.add(crossed, by_size))

    def smallest_point(self, limit: Decimal) -> int:
        """Return the smallest point, -1 or more, at which the tail is at most ``limit``.

        The tail at a point is the probability that the difference of the two variables exceeds the
        point.

        Args:
            limit: a probability above 0.

        """
        invariant(limit > 0, "a tail has mass everywhere")
        within = 1
        while self.above(within) > limit:
            within *= 2
        beyond = -2
        while within - beyond > 1:
            middle = (within + beyond) // 2
            within, beyond = (middle, beyond) if self.above(middle) <= limit else (within, middle)
        return within


def _mass_at_zero(ratio_below: Decimal) -> Decimal:
    """Return ``(1-a)/(1+a)``, rounded up by a lower bound of ``a``."""
    return UP.divide(UP.subtract(_ONE, ratio_below), DOWN.add(_ONE, ratio_below))


def _power_sum(first: Decimal, second: Decimal, count: int) -> tuple[Decimal, Decimal, Decimal]:
    """Return the sum of ``first^x second^(count-1-x)``, and both powers, rounded up.

    By doubling: with ``S_n`` for that sum, ``S_2n = S_n (first^n + second^n)`` and
    ``S_(n+1) = second S_n + first^n``.
    """
    total, first_power, second_power = Decimal(0), _ONE, _ONE
    for bit in f"{count:b}":
        total = UP.multiply(total, UP.add(first_power, second_power))
        first_power = UP.multiply(first_power, first_power)
        second_power = UP.multiply(second_power, second_power)
        if bit == "1":
            total = UP.add(UP.multiply(total, second), first_power)
            first_power = UP.multiply(first_power, first)
            second_power = UP.multiply(second_power, second)
    return total, first_power, second_power


# A scale on this grid is a short exact decimal and, as a rule, exactly a double.
SCALE_GRID: Final = 1 << 32
ROOT_BITS: Final = 64
EPSILON_PER_HIT_MIN: Final = Fraction(1, 1 << 30)
HITS_PART_REFRESHED: Final = Fraction(1, 2)


class Variant(StrEnum):
    """When the sparse vector draws threshold noise: once, or again after each unstable answer."""

    REFRESHED = "refreshed"
    ONE_THRESHOLD = "one-threshold"


@dataclass(frozen=True, slots=True, kw_only=True)
class SvtCalibration:
    """The parameters of the sparse vector technique, with the budget that they keep.

    Attributes:
        epsilon: the answers' share of epsilon.
        delta: the answers' share of delta.
        cutoff: T, the number of unstable answers after which the models stop.
        variant: whether the threshold's noise is drawn once or again after each unstable answer.
        threshold_scale: ``b1``, the scale of the threshold's noise, in votes.
        query_scale: ``b2``, the scale of a query's noise, in votes.
        threshold: ``w``, the threshold of the distance, in votes.
        delta_svt: the part of delta that covers the unstable answers.
        delta_release: the part of delta that covers the release of a label that differs between two
            neighbouring data sets.

    """

    epsilon: Fraction
    delta: Fraction
    cutoff: int
    variant: Variant
    threshold_scale: Fraction
    query_scale: Fraction
    threshold: int
    delta_svt: Fraction
    delta_release: Fraction

    def hit_probability(self, distance: int) -> float:
        """Return the probability that the answer to a query at ``distance`` is unstable.

        The result is the probability before any unstable answer is known. With one threshold, the
        unstable answers of a run depend on each other.
        """
        excess = distance - self.threshold
        if excess > 0:
            return float(self._tail().above(excess - 1))
        return 1.0 - float(self._tail().above(-excess))

    def distance_at(self, probability: float) -> int:
        """Return the smallest distance at which an answer is unstable with at most this chance."""
        point = self._tail().smallest_point(Decimal(min(probability, 0.5)))
        return self.threshold + 1 + point

    def _tail(self) -> DifferenceTail:
        return DifferenceTail(threshold_scale=self.threshold_scale, query_scale=self.query_scale)

    def to_plain(self) -> dict[str, str]:
        """Return the parameters as strings, without loss of precision."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, str]) -> SvtCalibration:
        """Return the calibration that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

        """
        with reading("parameters of the sparse vector"):
            return cls(
                epsilon=Fraction(plain["epsilon"]),
                delta=Fraction(plain["delta"]),
                cutoff=int(plain["cutoff"]),
                variant=Variant(plain["variant"]),
                threshold_scale=Fraction(plain["threshold_scale"]),
                query_scale=Fraction(plain["query_scale"]),
                threshold=int(plain["threshold"]),
                delta_svt=Fraction(plain["delta_svt"]),
                delta_release=Fraction(plain["delta_release"]),
            )


def calibrate(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> SvtCalibration:
    """Return the sparse vector's variant with the smaller threshold, by public numbers only.

    Args:
        epsilon: the answers' share of epsilon, above 0.
        delta: the answers' share of delta, in (0, 1).
        cutoff: T, the number of unstable answers after which the models stop, at least 1.

    Returns:
        Parameters that :func:`check` accepts; if both variants need the same threshold, the variant
        with one threshold.

    Raises:
        ConfigurationError: the budget is out of range.

    """
    candidates = [
        calibrate_variant(variant, epsilon=epsilon, delta=delta, cutoff=cutoff)
        for variant in (Variant.ONE_THRESHOLD, Variant.REFRESHED)
    ]
    return min(candidates, key=lambda candidate: candidate.threshold)


def calibrate_variant(
    variant: Variant, *, epsilon: Fraction, delta: Fraction, cutoff: int
) -> SvtCalibration:
    """Return noise scales and threshold of one variant; see :func:`calibrate`.

    The variants differ in whether the threshold's noise is drawn once, or again after each unstable
    answer.
    """
    _refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=cutoff)
    delta_svt = delta * HITS_PART_REFRESHED if variant is Variant.REFRESHED else Fraction(0)
    if variant is Variant.REFRESHED:
        first, second = _refreshed_scales(epsilon, delta_svt, cutoff)
    else:
        first, second = _one_threshold_scales(epsilon, cutoff)
    delta_release = delta - delta_svt
    tail = DifferenceTail(threshold_scale=first, query_scale=second)
    return SvtCalibration(
        epsilon=epsilon,
        delta=delta,
        cutoff=cutoff,
        variant=variant,
        threshold_scale=first,
        query_scale=second,
        threshold=max(0, tail.smallest_point(rounded(delta_release / cutoff, DOWN))),
        delta_svt=delta_svt,
        delta_release=delta_release,
    )


def check(calibration: SvtCalibration) -> None:
    """Raise an error unless the parameters keep the privacy claim, before they are used.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    invariant(calibration.epsilon > 0, "epsilon is above zero")
    invariant(1 <= calibration.cutoff <= COUNT_MAX, "the cutoff is in its range")
    parts = (calibration.delta_svt, calibration.delta_release)
    invariant(parts[0] >= 0 < parts[1], "no part of delta is negative, and labels have one")
    invariant(sum(parts) <= calibration.delta < 1, "both parts stay within delta")
    invariant(
        calibration.threshold_scale > 0 < calibration.query_scale, "both scales are above zero"
    )
    invariant(calibration.threshold >= 0, "the threshold is not negative")
    invariant(_hits_hold(calibration), "the scales cover the cutoff's hits")
    invariant(_release_holds(calibration), "the threshold keeps differing labels in")


def _hits_hold(calibration: SvtCalibration) -> bool:
    """Whether T hits cost no more than epsilon and delta_svt."""
    first, second = 1 / calibration.threshold_scale, 2 / calibration.query_scale
    if calibration.variant is Variant.ONE_THRESHOLD:
        return first + calibration.cutoff * second <= calibration.epsilon
    delta = composed_delta(
        epsilon_each=first + second, count=calibration.cutoff, epsilon=calibration.epsilon
    )
    return Fraction(delta) <= calibration.delta_svt


def _release_holds(calibration: SvtCalibration) -> bool:
    """Whether T differing queries get a label out with probability delta_release at most."""
    tail = DifferenceTail(
        threshold_scale=calibration.threshold_scale, query_scale=calibration.query_scale
    )
    one_label = Fraction(tail.above(calibration.threshold))
    return calibration.cutoff * one_label <= calibration.delta_release


def _refuse_out_of_range(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> None:
    """Refuse a budget for which there are no parameters, naming what to change."""
    if not 0 < epsilon <= EPSILON_MAX:
        raise ConfigurationError(EPSILON_KEY, f"must be above 0 and at most {EPSILON_MAX}")
    if not 0 < delta < 1:
        raise ConfigurationError(DELTA_KEY, "must lie between 0 and 1, both excluded")
    if not 1 <= cutoff <= COUNT_MAX:
        raise ConfigurationError(CUTOFF_KEY, f"must be at least 1 and at most {COUNT_MAX}")
    if epsilon / cutoff < EPSILON_PER_HIT_MIN:
        raise ConfigurationError(EPSILON_KEY, "over the cutoff must be at least 2^-30")


def _refreshed_scales(
    epsilon: Fraction, delta_svt: Fraction, cutoff: int
) -> tuple[Fraction, Fraction]:
    """Return ``b1 = b2 = 3 / eps0``, eps0 being the largest that composes to the budget."""
    epsilon_each = largest_pure_epsilon(count=cutoff, epsilon=epsilon, delta=delta_svt)
    scale = _on_grid_above(3 / epsilon_each)
    return scale, scale


def _one_threshold_scales(epsilon: Fraction, cutoff: int) -> tuple[Fraction, Fraction]:
    """Return the scales at ``t = 1 / (1 + (2T)^(2/3))``, which is near the best share.

    ``b1 = 1/(t epsilon) = (1 + (2T)^(2/3)) / epsilon`` and
    ``b2 = 2T/((1-t) epsilon) = (2T + (2T)^(1/3)) / epsilon``.
    """
    hits = 2 * cutoff
    first = (1 + _cube_root_above(hits * hits)) / epsilon
    second = (hits + _cube_root_above(hits)) / epsilon
    return _on_grid_above(first), _on_grid_above(second)


def _on_grid_above(scale: Fraction) -> Fraction:
    return Fraction(math.ceil(scale * SCALE_GRID), SCALE_GRID)


def _cube_root_above(radicand: int) -> Fraction:
    """Return the smallest multiple of ``2**-64`` that is at least the cube root."""
    scaled = radicand << (3 * ROOT_BITS)
    below, root = 0, 1 << (scaled.bit_length() // 3 + 1)
    while root - below > 1:
        middle = (below + root) // 2
        below, root = (below, middle) if middle**3 >= scaled else (middle, root)
    return Fraction(root, 1 << ROOT_BITS)
