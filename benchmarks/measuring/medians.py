"""Differences of medians: what a sample says of them, and what it could not have shown.

The samples that are compared come from one stream whose kinds are in random order, so
that what drifts (the machine's load, the size of the ledger) falls on both alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.stats import binom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

CONFIDENCE: Final = 0.99
RESAMPLES: Final = 20_000
MICRO: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the second sample's median lies above the first one's, in seconds.

    Attributes:
        first_median: of the first sample.
        second_median: of the second sample.
        low: the lower end of the bootstrap interval of the difference.
        high: the upper end.
        detection_limit: the smallest true difference that an interval of this width
            leaves zero out for with a probability equal to its confidence.

    """

    first_median: float
    second_median: float
    low: float
    high: float
    detection_limit: float

    def is_within(self, limit_seconds: float) -> bool:
        """Whether the whole interval lies closer to zero than the limit."""
        return -limit_seconds < self.low and self.high < limit_seconds

    def __str__(self) -> str:
        """Return the line that a benchmark prints, in microseconds."""
        found = self.second_median - self.first_median
        figures = (self.first_median, self.second_median, found, self.low, self.high)
        medians = [f"{figure / MICRO:.1f}" for figure in figures]
        return (
            f"{medians[0]:>9} {medians[1]:>9} {medians[2]:>7}   [{medians[3]}, {medians[4]}]".ljust(
                50
            )
            + f" {self.detection_limit / MICRO:>6.1f}"
        )


def difference_of_medians(
    first: Sequence[float], second: Sequence[float], *, confidence: float = CONFIDENCE
) -> Difference:
    """Compare two samples of times by the bootstrap.

    The lower median of a resample of n values is the one whose rank is n times the
    lower median of n uniform numbers, rounded down: a beta variable, so that nothing has
    to be resampled.

    Args:
        first: seconds, at least one.
        second: seconds, at least one.
        confidence: of the interval.

    """
    generator = np.random.default_rng()
    ordered = [np.sort(np.asarray(sample, dtype=np.float64)) for sample in (first, second)]
    medians = [_resampled_medians(sample, generator) for sample in ordered]
    tail = (1 - confidence) / 2
    low, high = np.quantile(medians[1] - medians[0], [tail, 1 - tail]).tolist()
    normal = NormalDist()
    errors = normal.inv_cdf(1 - tail)
    return Difference(
        first_median=float(ordered[0][_middle(len(ordered[0]))]),
        second_median=float(ordered[1][_middle(len(ordered[1]))]),
        low=low,
        high=high,
        detection_limit=(high - low) / 2 * (errors + normal.inv_cdf(confidence)) / errors,
    )


def certain_difference(
    first: Sequence[float], second: Sequence[float], *, false_alarm: float
) -> tuple[float, float]:
    """Return an interval that the difference of medians lies outside of this rarely.

    The median of each law lies between two of its order statistics whatever the law is:
    how many of n values are below it is binomial.  With kinds in random order and equal
    laws, a stream that drifts makes that count hypergeometric, which is narrower.

    Args:
        first: seconds.
        second: seconds.
        false_alarm: probability that the interval does not hold the difference.

    Returns:
        The ends; infinite where the samples are too small to say anything.

    """
    (low_first, high_first), (low_second, high_second) = (
        _certain_median(np.sort(np.asarray(sample, dtype=np.float64)), false_alarm / 2)
        for sample in (first, second)
    )
    return low_second - high_first, high_second - low_first


def _certain_median(ordered: NDArray[np.float64], false_alarm: float) -> tuple[float, float]:
    """Return two order statistics between which the median lies but for that probability."""
    count = len(ordered)
    below = int(binom.ppf(false_alarm / 2, count, 0.5)) - 1  # P(fewer below) is less
    if below < 0:
        return -np.inf, np.inf
    return float(ordered[below]), float(ordered[count - 1 - below])


def _resampled_medians(
    ordered: NDArray[np.float64], generator: np.random.Generator
) -> NDArray[np.float64]:
    count, rank = len(ordered), _middle(len(ordered)) + 1
    places = generator.beta(rank, count + 1 - rank, RESAMPLES)
    medians: NDArray[np.float64] = ordered[np.floor(places * count).astype(np.int64)]
    return medians


def _middle(count: int) -> int:
    """Return the index of the lower median."""
    return (count - 1) // 2
