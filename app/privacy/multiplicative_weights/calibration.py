"""The noise, threshold and number of updates of a query release.

A query release publishes a table of counts, one for each hypothesis. The counts are first
estimated, and then corrected by a limited number of noisy counts (updates), in passes that test for
smaller and smaller errors. The paper is Bassily, Cheu, Moran, Nikolov, Ullman, Wu 2020; its
``alpha`` is the accuracy target of the table. A query is the number of the n rows that a hypothesis
labels 1; a query whose count in the table has too large an error fails a noisy test, and is then
counted with noise.

Claim: take the mechanism of ``app.privacy.multiplicative_weights.mechanism`` with U updates,
threshold noise of scale ``b1``, test noise of scale ``b2`` and noise of scale ``s`` on each noisy
count. Let the counts move by at most 1 between neighbours. There are two variants. With *one
threshold*, the threshold's noise is drawn once, and the mechanism is
``(1/b1 + 2U/b2 + U/s)``-differentially private, with delta 0. With *refreshed*, this noise is drawn
again after each update, and the mechanism is as private as U adaptive
``(1/b1 + 2/b2 + 1/s)``-private mechanisms together.

The proof, and that of the accuracy below, is in ``app/privacy/multiplicative_weights/proof.md``.

Queries are tested in passes, for errors of n/2 rows, then n/4, and so on down to ``threshold``.
Except with probability ``failure``, no test's noise exceeds L and no noisy count's noise exceeds A.
A count that passes a test for errors of t rows is then within ``t + L`` rows. The updates suffice
for all passes if ``2 U a^2 > ln(cells)``, where ``a n = threshold - L - 1/2`` and ``cells`` is the
number of public cells.

Scales are rationals, rounded up. :func:`check` decides every condition of the privacy claim from
them, with every rounding on the safe side. The division of epsilon, L and A only affect accuracy
and are computed in doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, invariant
from app.privacy.arithmetic import composed_delta, largest_pure_epsilon, reading, to_plain
from app.privacy.sparse_vector.calibration import EPSILON_PER_HIT_MIN, SCALE_GRID, Variant
from app.privacy.stability.profile_parameters import DELTA_KEY, EPSILON_KEY, EPSILON_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

UPDATE_COUNT_MAX: Final = 1024
ACCURACY_KEY: Final = "statistics.accuracy"
UPDATES_KEY: Final = "statistics.updates"
# Each part of epsilon is a multiple of this, rounded down.
PART_GRID: Final = 1 << 20
# The failure probability is divided evenly: tests, thresholds and answers.
FAILURE_PARTS: Final = 3
# A query is (1+h)/2, and half of the accuracy is the public points' own.
ACCURACY_PARTS: Final = 4
# What U updates leave is, on ordinary data, so many times less than on the worst.
WORST_CASE_FACTOR: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReleaseBudget:
    """The public numbers from which the noise of a query release is computed.

    Attributes:
        epsilon: the statistics' share of epsilon.
        delta: the statistics' share of delta.
        row_count: the number n of private rows.
        query_count: the number of hypotheses in H~, the class restricted to the public points.
        cell_count: the number of cells into which H~ divides the public feature space.
        failure: the probability with which the accuracy may fail.

    """

    epsilon: Fraction
    delta: Fraction
    row_count: int
    query_count: int
    cell_count: int
    failure: Fraction

    def __post_init__(self) -> None:
        """Raise an error for a budget that no parameters can keep, naming the setting to change."""
        if not 0 < self.epsilon <= EPSILON_MAX:
            raise ConfigurationError(EPSILON_KEY, f"must be above 0 and at most {EPSILON_MAX}")
        if not 0 < self.delta < 1:
            raise ConfigurationError(DELTA_KEY, "must lie between 0 and 1, both excluded")
        counts = (self.row_count, self.query_count, self.cell_count)
        invariant(min(counts) >= 1, "there are rows, queries and cells")
        invariant(0 < self.failure < 1, "a probability of failure lies between 0 and 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReleaseCalibration:
    """The parameters of a query release, with the budget that they keep.

    Attributes:
        epsilon: the statistics' share of epsilon.
        delta: the statistics' share of delta.
        row_count: the number n of private rows.
        query_count: the number of hypotheses in H~, the class restricted to the public points.
        cell_count: the number of cells into which H~ divides the public feature space.
        failure: the probability with which the accuracy may fail.
        update_count: U, the number of noisy counts after which the tests end.
        variant: whether the threshold's noise is drawn once or again after each update.
        threshold_scale: ``b1``, the scale of the threshold's noise, in rows.
        query_scale: ``b2``, the scale of a test's noise, in rows.
        answer_scale: ``s``, the scale of a noisy count's noise, in rows.
        threshold: the error, in rows, from which a query is meant to fail the last test.
        test_deviation: L, a bound on a test's noise, in rows.
        answer_deviation: A, a bound on a noisy count's noise, in rows.

    """

    epsilon: Fraction
    delta: Fraction
    row_count: int
    query_count: int
    cell_count: int
    failure: Fraction
    update_count: int
    variant: Variant
    threshold_scale: Fraction
    query_scale: Fraction
    answer_scale: Fraction
    threshold: int
    test_deviation: int
    answer_deviation: int

    @property
    def error_count(self) -> int:
        """The largest error of a count after the last pass, in rows, if noise keeps its bounds."""
        return self.threshold + self.test_deviation

    @property
    def thresholds(self) -> tuple[int, ...]:
        """For each pass over the queries, the error of a count (in rows) that it looks for."""
        return _passes(self.row_count, self.threshold)

    @property
    def accuracy(self) -> Fraction:
        """The paper's alpha: four times the largest error of a count, as a fraction of the rows."""
        return Fraction(ACCURACY_PARTS * self.error_count, self.row_count)

    @property
    def lasts(self) -> bool:
        """Whether the number of updates suffices for all passes over the queries."""
        if self.update_count >= self.query_count:
            return True
        proven = (self.threshold - self.test_deviation - 0.5) / self.row_count
        return 2 * self.update_count * proven * proven > math.log(self.cell_count)

    def to_plain(self) -> dict[str, str]:
        """Return the parameters as strings, without loss of precision."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, str]) -> QueryReleaseCalibration:
        """Return the calibration that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

        """
        with reading("parameters of the query release"):
            return cls(
                epsilon=Fraction(plain["epsilon"]),
                delta=Fraction(plain["delta"]),
                row_count=int(plain["row_count"]),
                query_count=int(plain["query_count"]),
                cell_count=int(plain["cell_count"]),
                failure=Fraction(plain["failure"]),
                update_count=int(plain["update_count"]),
                variant=Variant(plain["variant"]),
                threshold_scale=Fraction(plain["threshold_scale"]),
                query_scale=Fraction(plain["query_scale"]),
                answer_scale=Fraction(plain["answer_scale"]),
                threshold=int(plain["threshold"]),
                test_deviation=int(plain["test_deviation"]),
                answer_deviation=int(plain["answer_deviation"]),
            )


def calibrate(budget: QueryReleaseBudget, *, update_count: int) -> QueryReleaseCalibration:
    """Return the parameters with the smallest error for a number of updates.

    Args:
        budget: the privacy budget, and the numbers of rows, queries and cells.
        update_count: the number U of updates, at most 1024; a number above the number of queries is
            reduced to the number of queries.

    Returns:
        The variant with the smaller error; the updates need not suffice for all passes.

    Raises:
        ConfigurationError: no parameters exist for this number of updates.

    """
    if not 1 <= update_count <= UPDATE_COUNT_MAX:
        raise ConfigurationError(UPDATES_KEY, f"must be from 1 to {UPDATE_COUNT_MAX}")
    updates = min(update_count, budget.query_count)
    if budget.epsilon / updates < EPSILON_PER_HIT_MIN:
        raise ConfigurationError(EPSILON_KEY, "over the updates must be at least 2^-30")
    variants = [_calibrate_variant(budget, variant, updates) for variant in Variant]
    return min(variants, key=lambda each: (each.error_count, each.variant is Variant.REFRESHED))


def calibrate_accuracy(
    budget: QueryReleaseBudget, *, accuracy: Fraction
) -> QueryReleaseCalibration:
    """Return the parameters with the fewest updates that answer each query accurately.

    Args:
        budget: the privacy budget, and the numbers of rows, queries and cells.
        accuracy: the paper's alpha; counts are then within ``alpha n / 4`` rows.

    Raises:
        ConfigurationError: the budget does not reach this accuracy; the message says which accuracy
            it reaches.

    """
    candidates = [_lasting(calibrate(budget, update_count=count)) for count in _ladder(budget)]
    for candidate in candidates:
        if candidate.accuracy <= accuracy:
            return candidate
    reached = float(min(candidate.accuracy for candidate in candidates))
    problem = f"{float(accuracy)} is out of reach: this share and these rows reach {reached:.3g}"
    raise ConfigurationError(ACCURACY_KEY, problem)


def balanced_update_count(budget: QueryReleaseBudget) -> int:
    """Return the largest number of updates that improve the table by more than their noise.

    With few updates errors remain, and many updates need more noise. The result is at least 1, and
    is chosen from a fixed list by public numbers only: for each number of updates the error by
    noise is compared with the error that remains after so many updates in the worst case. No
    promise relies on the choice.
    """
    chosen = 1
    for updates in _ladder(budget):
        spread = math.sqrt(math.log(budget.cell_count) / (2 * updates))
        error = calibrate(budget, update_count=updates).error_count
        if error * WORST_CASE_FACTOR > spread * budget.row_count:
            break
        chosen = updates
    return chosen


def check(calibration: QueryReleaseCalibration) -> None:
    """Raise an error unless the parameters keep the privacy claim, before they are used.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    invariant(calibration.epsilon > 0, "epsilon is above zero")
    invariant(0 < calibration.delta < 1, "delta lies between zero and one")
    counts = (calibration.row_count, calibration.query_count, calibration.cell_count)
    invariant(min(counts) >= 1, "there are rows, queries and cells")
    invariant(1 <= calibration.update_count <= UPDATE_COUNT_MAX, "the updates are in their range")
    scales = (calibration.threshold_scale, calibration.query_scale, calibration.answer_scale)
    invariant(min(scales) > 0, "the scales are above zero")
    deviations = (calibration.test_deviation, calibration.answer_deviation)
    invariant(min(deviations) >= 0, "a deviation is not negative")
    invariant(calibration.threshold > sum(deviations), "a failed test proves an error")
    invariant(_updates_hold(calibration), "the scales cover every update")


def _updates_hold(calibration: QueryReleaseCalibration) -> bool:
    """Whether U updates cost no more than epsilon and delta."""
    once = 1 / calibration.threshold_scale
    each = 2 / calibration.query_scale + 1 / calibration.answer_scale
    if calibration.variant is Variant.ONE_THRESHOLD:
        return once + calibration.update_count * each <= calibration.epsilon
    delta = composed_delta(
        epsilon_each=once + each, count=calibration.update_count, epsilon=calibration.epsilon
    )
    return Fraction(delta) <= calibration.delta


def _calibrate_variant(
    budget: QueryReleaseBudget, variant: Variant, updates: int
) -> QueryReleaseCalibration:
    """Divide what one variant may spend, and set the lowest threshold."""
    whole = budget.epsilon
    if variant is Variant.REFRESHED:
        whole = largest_pure_epsilon(count=updates, epsilon=whole, delta=budget.delta)
    pass_count = 1
    while True:  # more passes raise the threshold, which leaves fewer to make
        calibration = _with_passes(budget, variant, updates, whole=whole, pass_count=pass_count)
        if len(calibration.thresholds) <= pass_count:
            return calibration
        pass_count += 1


def _with_passes(
    budget: QueryReleaseBudget,
    variant: Variant,
    updates: int,
    *,
    whole: Fraction,
    pass_count: int,
) -> QueryReleaseCalibration:
    """Divide a pure epsilon, of an epoch or of the run, for so many passes at most."""
    refreshed = variant is Variant.REFRESHED
    part = float(budget.failure) / FAILURE_PARTS
    counts = (updates if refreshed else 1, budget.query_count * pass_count, updates)
    logs = [math.log(2 * count / part) for count in counts]
    repeats = 1 if refreshed else updates
    scales = _scales(whole, costs=[1, 2 * repeats, repeats], weights=[2, 2, 1], logs=logs)
    first, second, third = (
        math.floor(float(scale) * log) for scale, log in zip(scales, logs, strict=True)
    )
    return QueryReleaseCalibration(
        epsilon=budget.epsilon,
        delta=budget.delta,
        row_count=budget.row_count,
        query_count=budget.query_count,
        cell_count=budget.cell_count,
        failure=budget.failure,
        update_count=updates,
        variant=variant,
        threshold_scale=scales[0],
        query_scale=scales[1],
        answer_scale=scales[2],
        threshold=first + second + third + 1,
        test_deviation=first + second,
        answer_deviation=third,
    )


def _passes(row_count: int, threshold: int) -> tuple[int, ...]:
    """Return n/2, n/4 and so on, as long as they exceed the threshold, and the threshold."""
    halves, half = [], row_count // 2
    while half > threshold:
        halves.append(half)
        half //= 2
    return (*halves, threshold)


def _scales(
    whole: Fraction, *, costs: list[int], weights: list[int], logs: list[float]
) -> list[Fraction]:
    """Return the scales b with the least sum of ``weight log b`` and ``sum cost/b = whole``.

    By Lagrange the part of each is proportional to ``sqrt(cost weight log)``.
    """
    roots = [
        math.sqrt(cost * weight * log)
        for cost, weight, log in zip(costs, weights, logs, strict=True)
    ]
    parts = [Fraction(math.floor(PART_GRID * root / sum(roots)), PART_GRID) for root in roots]
    return [
        Fraction(math.ceil(cost / (part * whole) * SCALE_GRID), SCALE_GRID)
        for cost, part in zip(costs, parts, strict=True)
    ]


def _ladder(budget: QueryReleaseBudget) -> Iterator[int]:
    """Yield numbers of updates to try, each about a quarter more than the one before."""
    most, updates = min(budget.query_count, UPDATE_COUNT_MAX), 1
    while updates < most:
        yield updates
        updates += 1 + updates // 4
    yield most


def _lasting(calibration: QueryReleaseCalibration) -> QueryReleaseCalibration:
    """Raise the threshold to where the updates last for all passes."""
    if calibration.lasts:
        return calibration
    floor = math.sqrt(math.log(calibration.cell_count) / (2 * calibration.update_count))
    needed = math.floor(floor * calibration.row_count + 0.5) + 1 + calibration.test_deviation
    return replace(calibration, threshold=max(calibration.threshold, needed))
