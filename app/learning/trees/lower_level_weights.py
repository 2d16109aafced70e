"""Summed weights of all subtrees of depth one and two, from counts of rows.

The weight of a tree is ``exp(-decay * errors)`` with ``decay = epsilon / 2``. A region is the set
of rows that reach a node; let N be its number of rows, and N_l the number with label l. Let
``Z(region, d)`` be the summed weight of all trees of depth d on the region. ``Z(region, 0)`` is the
sum over the labels l of ``exp(-decay (N - N_l))``. ``Z(region, d)`` is the sum over all feature
tests of ``Z(true side, d - 1) Z(false side, d - 1)``. Every test is used in every region, also in
an empty one.

To avoid underflow, a sum is stored as two numbers, ``factor`` and ``errors``, whose value is
``factor * exp(-decay * errors)``.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from app.learning.enumerated.enumerated_class import EXPONENT_MAX, FUNCTION_ROUNDOFFS, ScaledSums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.trees.regions import RegionStatistics

# A tree of depth 1 that gives label l where its test e is true, and label l' elsewhere, has
# N - N_l' - delta_e errors, where delta_e is the number of rows of l less that of l' where e is
# true.  So with t tests
#
#     Z(region, 1) = t sum_l exp(-decay (N - N_l))
#                    + sum_(l != l') exp(-decay (N - N_l')) sum_e exp(decay delta_e).
#
# All numbers delta_e, on both sides of every test, come from one matrix product per region.

# Twice that, and the logarithm of the number of tests, is the exponent of a double.
EXPONENT_NARROW = 340.0
DECAY_NARROW = 1.0
# A weight that small beside 1 is far below what is rounded anyway.
EXPONENT_KEPT = 700.0
# So that the logarithm of a sum over decay is a double.
DECAY_LEAST = 1e-100

# Sums over e of exp(decay delta_e) and of exp(-decay delta_e), for each test.
Gains = tuple[ScaledSums, ScaledSums]


def leaf_terms(label_counts: NDArray[np.float64]) -> ScaledSums:
    """Return the weight of each label in a leaf, shape ``(labels, ...)``.

    Args:
        label_counts: the number of rows of each label in the leaf, shape ``(labels, ...)``.

    """
    errors = label_counts.sum(axis=0) - label_counts
    return ScaledSums(errors, np.ones_like(errors))


def single_terms(
    singles: NDArray[np.float64], totals: NDArray[np.float64], decay: float
) -> ScaledSums:
    """Return, for each feature test, the summed weights of the trees of depth 1 that use this test.

    Args:
        singles: the number of rows of each label that pass each test, shape ``(labels, tests)``.
        totals: the number of rows of each label, shape ``(labels,)``.
        decay: half of epsilon.

    Returns:
        Sums, shape ``(tests,)``.

    """
    true_side = leaf_terms(singles).total(decay, 0)
    return true_side.times(leaf_terms(totals[:, np.newaxis] - singles).total(decay, 0))


def pair_terms(statistics: RegionStatistics, decay: float) -> ScaledSums:
    """Return, for each feature test, the summed weights of depth-2 trees with this test as root.

    Args:
        statistics: the counts of rows in several regions (sets of rows).
        decay: half of epsilon.

    Returns:
        Sums, shape ``(regions, tests)``.

    """
    inside = statistics.singles
    sides = (inside, statistics.totals[:, :, np.newaxis] - inside)
    sums = [[_constant_trees(side)] for side in sides]
    narrow = is_narrow(statistics.totals, decay).all()
    for low, high in combinations(range(inside.shape[1]), 2):
        deltas = statistics.signed[:, high - 1]
        if low:
            deltas = deltas - statistics.signed[:, low - 1]
        singles = inside[:, high] - inside[:, low]
        gains = (_narrow_gains if narrow else _wide_gains)(deltas, singles, decay)
        for trees, side, (of_high, of_low) in zip(sums, sides, gains, strict=True):
            errors = _errors(side)
            trees += [_shifted(of_high, errors[:, low]), _shifted(of_low, errors[:, high])]
    true_side, false_side = (_total(trees, decay) for trees in sums)
    return true_side.times(false_side)


def is_narrow(totals: NDArray[np.floating], decay: float) -> NDArray[np.bool_]:
    """Return for which regions a faster formula for the weights neither over- nor underflows.

    A region is a set of rows. The formula may be used if ``decay`` times the number of rows of each
    label is at most 340, and if ``decay`` is at least 1e-100 and at most 1.

    Args:
        totals: the number of rows of each label, shape ``(regions, labels)``.
        decay: half of epsilon.

    """
    # The formula computes one exponential per pair of tests; it and its reciprocal give the sums
    # for both sides of a test.  The factors of the sums are then larger than otherwise by at most
    # a factor of exp(decay), so decay must be at most 1.  It must also be at least 1e-100, so that
    # the log of a sum divided by decay does not overflow.
    exponent_max = EXPONENT_NARROW if DECAY_LEAST <= decay <= DECAY_NARROW else -1.0
    narrow: NDArray[np.bool_] = decay * totals.max(axis=1) <= exponent_max
    return narrow


def gain_roundoffs(test_count: int) -> int:
    """Return a bound on the relative rounding error of a sum of ``exp(decay * delta)``.

    The sum has one term for each feature test: delta is the number of rows of one label less that
    of another, among the rows on which the test is true. The bound is in units of ``2**-53``.

    Args:
        test_count: the number of tests.

    """
    # Wide: the terms are computed relative to the largest one.  The errors are those of an
    # exponent of at most 746 in size, of exp, and of one term per feature test.  Narrow (where
    # is_narrow holds): those of two exponents of at most 340 in size with exp, two reciprocals, a
    # product, one term per test, and a last exponent of at most 341 in size with exp and a product.
    wide = EXPONENT_MAX + FUNCTION_ROUNDOFFS + test_count
    narrow = 3 * (round(EXPONENT_NARROW) + 1 + FUNCTION_ROUNDOFFS) + 4 + test_count
    return max(wide, narrow)


def _errors(label_counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the errors of each answer to a whole side, both of shape ``(k, L, t)``."""
    errors: NDArray[np.float64] = label_counts.sum(axis=1, keepdims=True) - label_counts
    return errors


def _constant_trees(label_counts: NDArray[np.float64]) -> ScaledSums:
    """Return the sums over trees of depth 1 with the same label in both leaves."""
    errors = _errors(label_counts)
    return ScaledSums(errors, np.full(errors.shape, float(errors.shape[2])))


def _wide_gains(
    deltas: NDArray[np.float64], singles: NDArray[np.float64], decay: float
) -> tuple[Gains, Gains]:
    """Return, for both sides of each test, the sums of exp of ``decay delta`` and its negative.

    Args:
        deltas: rows of one label less those of another where e and the test
            are true, shape ``(k, e, t)``, symmetric.
        singles: the same where the test is true, shape ``(k, t)``.
        decay: epsilon / 2.

    """
    return _side_gains(deltas, decay), _side_gains(singles[:, :, np.newaxis] - deltas, decay)


def _side_gains(deltas: NDArray[np.float64], decay: float) -> Gains:
    """Return the sums over e, each against its largest term."""
    most, least = deltas.max(axis=1, keepdims=True), deltas.min(axis=1, keepdims=True)
    weights = deltas - most
    rising = _sum_of_weights(weights, decay)
    np.subtract(least, deltas, out=weights)
    falling = _sum_of_weights(weights, decay)
    return ScaledSums(-most[:, 0], rising), ScaledSums(least[:, 0], falling)


def _sum_of_weights(gains: NDArray[np.float64], decay: float) -> NDArray[np.float64]:
    """Return the sums over e of exp of ``decay gains``, of which the largest is 1; overwrites.

    Exponents below -700 count as -700: ``2**-1000`` of the sum, while exp would
    take ten times as long where it underflows, which would show in the time.
    """
    np.multiply(gains, decay, out=gains)
    np.maximum(gains, -EXPONENT_KEPT, out=gains)
    np.exp(gains, out=gains)
    sums: NDArray[np.float64] = (np.ones((1, gains.shape[1])) @ gains)[:, 0]
    return sums


def _narrow_gains(
    deltas: NDArray[np.float64], singles: NDArray[np.float64], decay: float
) -> tuple[Gains, Gains]:
    """Return what :func:`_wide_gains` does, from one exponential a pair of tests."""
    rising = np.multiply(deltas, decay)
    np.exp(rising, out=rising)
    falling = 1.0 / rising
    of_single = np.exp(singles * decay)
    true_high, false_low = _weighted_sums(rising, 1.0 / of_single)
    true_low, false_high = _weighted_sums(falling, of_single)
    test_count = deltas.shape[1]
    return (
        (_scaled(true_high, test_count, decay), _scaled(true_low, test_count, decay)),
        (_scaled(false_high, test_count, decay), _scaled(false_low, test_count, decay)),
    )


def _weighted_sums(
    weights: NDArray[np.float64], of_single: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums over e of weights, and of weights times e's own."""
    factors = np.stack([np.ones_like(of_single), of_single], axis=1)
    sums = factors @ weights
    return sums[:, 0], sums[:, 1]


def _scaled(sums: NDArray[np.float64], term_count: int, decay: float) -> ScaledSums:
    """Take the mean's whole number of errors out of sums of positive terms."""
    errors = -np.floor(np.log(sums / term_count) / decay)
    return ScaledSums(errors, sums * np.exp(errors * decay))


def _shifted(gain: ScaledSums, errors: NDArray[np.float64]) -> ScaledSums:
    """Return sums over trees that err so often but for what they gain, with a second axis."""
    return ScaledSums((gain.errors + errors)[:, np.newaxis], gain.factors[:, np.newaxis])


def _total(parts: Sequence[ScaledSums], decay: float) -> ScaledSums:
    """Add sums that lie along the second axis."""
    errors = np.concatenate([part.errors for part in parts], axis=1)
    factors = np.concatenate([part.factors for part in parts], axis=1)
    return ScaledSums(errors, factors).total(decay, 1)
