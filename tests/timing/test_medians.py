"""The statistics of the timing tests: what an interval holds, and what it would show."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.measuring.medians import certain_difference, difference_of_medians

US = 1e-6


def times(count: int, *, seed: int, shift: float = 0.0) -> list[float]:
    """Return skewed times of about 200 microseconds with a heavy tail."""
    drawn = np.random.default_rng(seed).lognormal(0.0, 0.5, count)
    return [float(time) for time in 200 * US * drawn + shift]


def test_resampled_medians_are_those_of_resamples() -> None:
    """The interval is the one that resampling value by value gives, to a tenth of its width."""
    first, second = np.array(times(801, seed=1)), np.array(times(600, seed=2, shift=10 * US))
    generator = np.random.default_rng(3)
    medians = [
        [
            np.sort(generator.choice(sample, len(sample)))[(len(sample) - 1) // 2]
            for _ in range(4000)
        ]
        for sample in (first, second)
    ]
    low, high = np.quantile(np.subtract(medians[1], medians[0]), [0.005, 0.995])
    found = difference_of_medians(first.tolist(), second.tolist())
    # The ends of 4,000 and of 20,000 resamples scatter by less than 4 % of the width.
    assert found.low == pytest.approx(low, abs=(high - low) / 5)
    assert found.high == pytest.approx(high, abs=(high - low) / 5)
    assert found.first_median == np.sort(first)[400]


def test_intervals_hold_the_difference_as_often_as_they_say() -> None:
    """Of 300 intervals for two samples of one law, 99 in 100 hold zero."""
    # The number of intervals that miss is binomial with mean 3 if each misses once in
    # a hundred times; 15 or more have probability 1e-6.
    missed = 0
    for seed in range(300):
        found = difference_of_medians(times(300, seed=seed), times(300, seed=1000 + seed))
        missed += not found.low <= 0 <= found.high
    assert missed < 15


def test_a_difference_at_the_detection_limit_is_shown() -> None:
    """A shift by the detection limit leaves zero out of nearly all intervals."""
    # Each of 100 fails to with probability 1/100 or, the limit itself being estimated, a
    # little more; with 4/100 at most, 20 or more failures have probability 1e-8.
    limit = difference_of_medians(times(400, seed=1), times(400, seed=2)).detection_limit
    shown = sum(
        difference_of_medians(
            times(400, seed=seed), times(400, seed=500 + seed, shift=1.1 * limit)
        ).low
        > 0
        for seed in range(100)
    )
    assert shown > 80


def test_a_certain_interval_is_wider_and_shows_what_is_large() -> None:
    """It holds the bootstrap's interval, and leaves zero out where samples lie far apart."""
    first, second = times(400, seed=1), times(400, seed=2)
    near = difference_of_medians(first, second)
    low, high = certain_difference(first, second, false_alarm=1e-9)
    assert low < near.low < near.high < high
    apart, _ = certain_difference(first, times(400, seed=3, shift=1e-3), false_alarm=1e-9)
    assert apart > 500 * US


def test_samples_that_are_too_small_show_nothing() -> None:
    """Of few values no order statistic is certain to lie on one side of the median."""
    assert certain_difference([0.0] * 20, [1.0] * 20, false_alarm=1e-9) == (-np.inf, np.inf)


def test_certain_intervals_count_the_binomial() -> None:
    """Order statistics j and n - 1 - j miss the median with the binomial's tails."""
    values = [float(value) for value in range(100)]
    low, high = certain_difference([0.0] * 100, values, false_alarm=2e-3)
    # P(Binomial(100, 1/2) <= 33) = 4.4e-4 and P(<= 34) = 8.9e-4, by tables; each of four
    # ends may err with 2e-3 / 4 = 5e-4: the end is the order statistic with 33 below it.
    assert (low, high) == (33.0, 66.0)
