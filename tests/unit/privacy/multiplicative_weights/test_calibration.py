"""The numbers of a query release: that they hold, by hand, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.arithmetic import composed_delta
from app.privacy.multiplicative_weights.calibration import (
    UPDATE_COUNT_MAX,
    QueryReleaseBudget,
    QueryReleaseCalibration,
    balanced_update_count,
    calibrate,
    calibrate_accuracy,
    check,
)
from app.privacy.sparse_vector.calibration import Variant

MILLIONTH = Fraction(1, 10**6)


def budget(**changes: int | Fraction) -> QueryReleaseBudget:
    """Return a budget of epsilon 1 for 20 queries on 30 cells over 30,000 rows."""
    numbers: dict[str, int | Fraction] = {
        "epsilon": Fraction(1),
        "delta": MILLIONTH,
        "row_count": 30_000,
        "query_count": 20,
        "cell_count": 30,
        "failure": Fraction(1, 20),
    }
    return QueryReleaseBudget(**(numbers | changes))  # type: ignore[arg-type]  # each has its own type


BUDGETS = [
    (budget(), 1),
    (budget(), 7),
    (budget(query_count=500), 90),
    (budget(epsilon=Fraction(1, 7), query_count=5000), 30),
    (budget(epsilon=Fraction(8), row_count=100), 3),
    (budget(row_count=1, query_count=1, cell_count=1, failure=Fraction(99, 100)), 5),
]


@pytest.mark.parametrize(("given", "updates"), BUDGETS)
def test_a_calibration_holds_and_keeps_its_budget(given: QueryReleaseBudget, updates: int) -> None:
    """What is found is accepted, carries the budget, and uses no more updates than queries."""
    calibration = calibrate(given, update_count=updates)
    check(calibration)
    assert calibration.update_count == min(updates, given.query_count)
    assert (calibration.epsilon, calibration.delta) == (given.epsilon, given.delta)
    assert QueryReleaseCalibration.from_plain(calibration.to_plain()) == calibration


@pytest.mark.parametrize(("given", "updates"), BUDGETS)
def test_little_of_epsilon_is_left_over(given: QueryReleaseBudget, updates: int) -> None:
    """The scales spend more than 99.999 % of what the variant may spend, and never more."""
    served = calibrate(given, update_count=updates)
    once = 1 / served.threshold_scale
    each = 2 / served.query_scale + 1 / served.answer_scale
    count = served.update_count
    if served.variant is Variant.ONE_THRESHOLD:
        spent = once + count * each
        assert Fraction(99_999, 100_000) * given.epsilon < spent <= given.epsilon
        return
    assert composed_delta(epsilon_each=once + each, count=count, epsilon=given.epsilon) <= (
        given.delta
    )
    more = Fraction(100_002, 100_000) * (once + each)
    assert composed_delta(epsilon_each=more, count=count, epsilon=given.epsilon) > given.delta


def test_few_updates_take_one_threshold_and_many_refresh_it() -> None:
    """Composition wins where there is much to compose, for the same budget."""
    few, many = (calibrate(budget(query_count=500), update_count=count) for count in (5, 90))
    assert (few.variant, many.variant) == (Variant.ONE_THRESHOLD, Variant.REFRESHED)


@pytest.mark.parametrize(("given", "updates"), BUDGETS)
def test_deviations_fail_as_rarely_as_is_said(given: QueryReleaseBudget, updates: int) -> None:
    """Tests, thresholds and answers stay within L and A but for the probability of failure."""
    served = calibrate(given, update_count=updates)
    epochs = served.update_count if served.variant is Variant.REFRESHED else 1
    tests = served.query_count * len(served.thresholds)

    def outside(scale: Fraction, deviation: float) -> float:
        return 2 * math.exp(-(deviation + 1) / scale) / (1 + math.exp(-1 / scale))

    rest = math.floor(served.threshold_scale * math.log(6 * epochs / served.failure))
    failure = epochs * outside(served.threshold_scale, rest)
    failure += tests * outside(served.query_scale, served.test_deviation - rest)
    failure += served.update_count * outside(served.answer_scale, served.answer_deviation)
    assert failure <= served.failure


@pytest.mark.parametrize(("given", "updates"), BUDGETS)
def test_passes_halve_down_to_the_threshold(given: QueryReleaseBudget, updates: int) -> None:
    """The first pass tests against half of the rows, unless the threshold is above that."""
    served = calibrate(given, update_count=updates)
    *halves, last = served.thresholds
    assert last == served.threshold
    assert halves == [served.row_count >> place for place in range(1, len(halves) + 1)]
    assert served.row_count >> (len(halves) + 1) <= last
    assert served.threshold == served.test_deviation + served.answer_deviation + 1


def test_the_numbers_of_one_update_by_hand() -> None:
    """For one query, one update and one pass the division of epsilon is worked out again."""
    served = calibrate(budget(query_count=1, row_count=50, failure=Fraction(3, 10)), update_count=1)
    assert served.variant is Variant.ONE_THRESHOLD
    # All logarithms are ln 20; costs 1, 2, 1 and weights 2, 2, 1.
    roots = [math.sqrt(2), 2.0, 1.0]
    scales = [cost * sum(roots) / root for cost, root in zip((1, 2, 1), roots, strict=True)]
    found = (served.threshold_scale, served.query_scale, served.answer_scale)
    assert [float(scale) for scale in found] == pytest.approx(scales, rel=1e-5)
    log = math.log(20)
    assert served.test_deviation == sum(math.floor(scale * log) for scale in scales[:2])
    assert served.answer_deviation == math.floor(scales[2] * log)
    assert served.error_count == 2 * served.test_deviation + served.answer_deviation + 1
    assert served.accuracy == Fraction(4 * served.error_count, 50)


def test_updates_last_where_each_gains_enough() -> None:
    """``2 U a^2 > ln C`` decides, or as many updates as queries."""
    served = replace(
        calibrate(budget(row_count=10**6), update_count=8),
        update_count=8,
        test_deviation=0,
        cell_count=5,
    )
    edge = math.ceil(10**6 * math.sqrt(math.log(5) / 16) + 0.5)
    assert replace(served, threshold=edge).lasts
    assert not replace(served, threshold=edge - 1).lasts
    assert replace(served, threshold=1, update_count=served.query_count).lasts


def test_an_accuracy_within_reach_is_promised() -> None:
    """Updates last for all passes, answers are within alpha n / 4, and fewer would not do."""
    given = budget(row_count=10**7, query_count=10**4)
    served = calibrate_accuracy(given, accuracy=Fraction(1, 2))
    check(served)
    assert served.lasts
    assert served.accuracy <= Fraction(1, 2)
    assert 4 * served.error_count <= served.row_count // 2
    # A quarter of the updates, at the threshold that a hit would then have to prove.
    fewer = replace(served, update_count=served.update_count // 4)
    assert not fewer.lasts


def test_as_many_updates_as_queries_always_last() -> None:
    """Where every query may have an answer of its own, the lowest threshold stays."""
    served = calibrate_accuracy(budget(query_count=3, row_count=10**6), accuracy=Fraction(1, 100))
    assert served.update_count == 3
    assert served.threshold == served.test_deviation + served.answer_deviation + 1


def test_an_accuracy_out_of_reach_says_what_is_reached() -> None:
    """The refusal names the smallest accuracy, and that one is accepted."""
    given = budget(query_count=100)
    with pytest.raises(ConfigurationError, match="out of reach") as refused:
        calibrate_accuracy(given, accuracy=Fraction(1, 1000))
    reached = Fraction(str(refused.value).split()[-1])
    assert calibrate_accuracy(given, accuracy=reached * Fraction(101, 100)).lasts


@pytest.mark.parametrize(
    ("changes", "updates"),
    [
        ({"row_count": 100}, 1),  # even one update is more noise than it mends
        ({"query_count": 500}, 14),
        ({"query_count": 500, "row_count": 300_000}, 74),
        ({"query_count": 4, "row_count": 10**7}, 4),  # an answer for every query
        ({"query_count": 500, "cell_count": 1}, 1),  # nothing to learn
    ],
)
def test_updates_are_as_many_as_noise_allows(changes: dict[str, int], updates: int) -> None:
    """The number grows with the rows, is one where they are few, and no more than the queries."""
    assert balanced_update_count(budget(**changes)) == updates


def test_one_more_step_of_updates_would_be_mostly_noise() -> None:
    """The number chosen satisfies the rule, and the next one tried does not."""
    given = budget(query_count=500)
    chosen = balanced_update_count(given)
    for updates, allowed in ((chosen, True), (chosen + 1 + chosen // 4, False)):
        error = calibrate(given, update_count=updates).error_count
        left = given.row_count * math.sqrt(math.log(given.cell_count) / (2 * updates))
        assert (6 * error <= left) is allowed


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(1001)},
        {"delta": Fraction(0)},
        {"delta": Fraction(1)},
    ],
)
def test_a_budget_out_of_range_is_refused(changes: dict[str, Fraction]) -> None:
    """Without an epsilon or a delta in their range there are no parameters."""
    with pytest.raises(ConfigurationError):
        budget(**changes)


@pytest.mark.parametrize(
    "changes",
    [{"row_count": 0}, {"query_count": 0}, {"cell_count": 0}, {"failure": Fraction(1)}],
)
def test_numbers_that_there_cannot_be_are_refused(changes: dict[str, int | Fraction]) -> None:
    """No rows, no queries, no cells and a certain failure raise."""
    with pytest.raises(InvariantError):
        budget(**changes)


@pytest.mark.parametrize("updates", [0, UPDATE_COUNT_MAX + 1])
def test_a_number_of_updates_out_of_range_is_refused(updates: int) -> None:
    """No update, and too many to compose, are configuration errors."""
    with pytest.raises(ConfigurationError, match=r"statistics\.updates"):
        calibrate(budget(), update_count=updates)


def test_too_small_an_epsilon_for_its_updates_is_refused() -> None:
    """Below 2^-30 an update there is no composition to compute."""
    with pytest.raises(ConfigurationError, match=r"privacy\.epsilon"):
        calibrate(budget(epsilon=Fraction(1, 1 << 28)), update_count=9)


SERVED = calibrate(budget(), update_count=7)
REFRESHED = calibrate(budget(query_count=500), update_count=90)


@pytest.mark.parametrize(
    "faulty",
    [
        replace(SERVED, epsilon=Fraction(0)),
        replace(SERVED, delta=Fraction(1)),
        replace(SERVED, row_count=0),
        replace(SERVED, update_count=0),
        replace(SERVED, update_count=8),
        replace(SERVED, answer_scale=Fraction(0)),
        replace(SERVED, answer_scale=SERVED.answer_scale * Fraction(999, 1000)),
        replace(SERVED, query_scale=SERVED.query_scale * Fraction(999, 1000)),
        replace(SERVED, threshold_scale=SERVED.threshold_scale * Fraction(999, 1000)),
        replace(SERVED, answer_deviation=-1),
        replace(SERVED, threshold=SERVED.threshold - 1),
        replace(REFRESHED, update_count=91),
        replace(REFRESHED, query_scale=REFRESHED.query_scale * Fraction(999, 1000)),
        replace(REFRESHED, variant=Variant.ONE_THRESHOLD),
    ],
)
def test_what_does_not_hold_is_refused_before_it_serves(faulty: QueryReleaseCalibration) -> None:
    """Less noise, more updates or a lower threshold than was found for the budget raises."""
    with pytest.raises(InvariantError):
        check(faulty)


def test_what_is_no_calibration_is_refused() -> None:
    """A key that is absent, or a value that is no number, raises."""
    with pytest.raises(InvariantError, match="query release"):
        QueryReleaseCalibration.from_plain(SERVED.to_plain() | {"threshold": "none"})
