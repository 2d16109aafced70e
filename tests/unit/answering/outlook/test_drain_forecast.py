"""The band of the unstable rate and the forecast, against the binomial law itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from app.answering.outlook.drain_forecast import (
    ANSWERS_MAX,
    CUTOFF,
    EITHER,
    FORECAST_CONFIDENCE,
    LIMIT,
    MISS,
    Counts,
    band,
    forecast,
)
from app.errors import InvariantError


def counts(
    answered: int,
    hits: int,
    *,
    limit: int = 1000,
    double_hits: int = 0,
    cutoff: int | None = 5,
    with_scores: bool = False,
) -> Counts:
    """Return counts of a release of a thousand answers, five of them unstable."""
    return Counts(answered, limit, hits, double_hits, cutoff, with_scores)


def test_no_band_before_the_first_answer() -> None:
    """Nothing is said of a rate that nothing was seen of."""
    assert band(counts(0, 0)) is None


def test_the_band_of_labels_is_clopper_and_pearsons() -> None:
    """One unstable answer of ten gives the printed 95 % bounds."""
    found = band(counts(10, 1))
    assert found is not None
    assert (found.mean, found.lower, found.upper) == pytest.approx((0.1, 0.0025, 0.4450), abs=5e-5)


def test_the_band_of_scores_adds_two_shares() -> None:
    """With scores the mean counts units, and each share misses half as often."""
    found = band(counts(10, 3, double_hits=1, with_scores=True))
    assert found is not None
    assert found.mean == pytest.approx(0.4)
    one, two = counts(10, 3), counts(10, 1)
    narrower = [band(one), band(two)]
    assert all(each is not None for each in narrower)
    assert found.lower < sum(each.lower for each in narrower if each)
    assert found.upper > sum(each.upper for each in narrower if each)


def test_the_band_holds_as_often_as_it_says() -> None:
    """Of releases whose answers are unstable one in fifty, 95 % or more lie in their band."""
    truth, answered = 0.02, 300
    share = 0.0
    for hits in range(answered + 1):
        found = band(counts(answered, hits, cutoff=301))
        assert found is not None
        if found.lower <= truth <= found.upper:
            share += binom.pmf(hits, answered, truth)
    assert share >= 0.95


def test_a_forecast_turns_where_the_binomial_does() -> None:
    """Earliest and latest are the first answers at which the chance of T passes its mark."""
    seen = counts(100, 2, cutoff=5)
    rate, found = band(seen), forecast(seen)
    assert rate is not None
    assert found.earliest is not None
    assert found.latest is not None
    assert (
        binom.sf(2, found.earliest - 1, rate.upper)
        <= MISS
        < binom.sf(2, found.earliest, rate.upper)
    )
    assert (
        binom.sf(2, found.latest - 1, rate.lower)
        < 1 - MISS
        <= binom.sf(2, found.latest, rate.lower)
    )
    assert found.expected == pytest.approx(150)
    assert (found.by_limit, found.first) == (900, EITHER)


def test_the_forecast_holds_as_often_as_it_says() -> None:
    """The answer at which T comes lies between earliest and latest in 90 % of releases or more."""
    # The counts so far and the answers to come are summed over exactly: no sample is drawn.
    truth, answered, cutoff = 0.03, 200, 12
    inside = 0.0
    for hits in range(cutoff):
        found = forecast(counts(answered, hits, cutoff=cutoff, limit=10**6))
        needed = cutoff - hits
        assert found.earliest is not None
        too_early = binom.sf(needed - 1, found.earliest - 1, truth)
        too_late = 0.0 if found.latest is None else binom.cdf(needed - 1, found.latest, truth)
        inside += binom.pmf(hits, answered, truth) * (1 - too_early - too_late)
    reached = binom.cdf(cutoff - 1, answered, truth)
    assert inside / reached >= FORECAST_CONFIDENCE


def test_before_the_first_answer_t_may_come_at_once() -> None:
    """With nothing seen, T may come with the next T answers, or never."""
    found = forecast(counts(0, 0))
    assert (found.earliest, found.expected, found.latest) == (5, None, None)


def test_the_limit_comes_first_where_few_are_unstable() -> None:
    """T that cannot come before the limit is not what ends the run."""
    found = forecast(counts(990, 1, cutoff=50))
    assert found.first == LIMIT
    assert found.earliest is not None
    assert found.earliest > found.by_limit == 10


def test_the_cutoff_comes_first_where_many_are_unstable() -> None:
    """T that must come before the limit is what ends the run."""
    found = forecast(counts(100, 50, cutoff=60))
    assert found.first == CUTOFF


def test_a_score_may_use_two_units_at_once() -> None:
    """The earliest is that of answers with two units, the latest that of one each."""
    labels = forecast(counts(100, 4, cutoff=10))
    scores = forecast(counts(100, 4, cutoff=10, with_scores=True))
    assert scores.earliest is not None
    assert labels.earliest is not None
    assert scores.earliest < labels.earliest
    assert scores.latest == labels.latest


def test_nothing_is_forecast_of_a_cutoff_that_is_not_there() -> None:
    """The noisy vote ends with its answers alone."""
    found = forecast(counts(10, 0, cutoff=None))
    assert (found.by_limit, found.earliest, found.latest, found.first) == (990, None, None, LIMIT)


def test_a_cutoff_that_is_reached_is_not_ahead() -> None:
    """After the last unit nothing is left to wait for."""
    found = forecast(counts(10, 5))
    assert (found.earliest, found.latest) == (0, 0)


def test_a_forecast_beyond_all_bounds_is_none() -> None:
    """A rate that may be next to nothing gives no latest answer."""
    found = forecast(counts(10**12, 1, cutoff=5, limit=2 * 10**12))
    assert found.latest is None
    assert found.earliest is not None
    assert found.earliest < ANSWERS_MAX


@pytest.mark.parametrize(
    "wrong",
    [
        {"answered": 3, "hits": 4},
        {"answered": 1001, "hits": 0},
        {"answered": 3, "hits": 1, "double_hits": 1},
        {"answered": 3, "hits": 1, "double_hits": 2, "with_scores": True},
    ],
)
def test_counts_that_no_run_has_are_refused(wrong: dict[str, int]) -> None:
    """An answer counts once, and with a label it uses one unit at most."""
    with pytest.raises(InvariantError):
        counts(**wrong)  # type: ignore[arg-type]  # the flag is a bool among numbers


def test_a_band_is_a_number_of_python() -> None:
    """What goes to JSON is no array."""
    found = band(counts(10, 1))
    assert found is not None
    assert not isinstance(found.lower, np.ndarray)
