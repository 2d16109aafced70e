"""A lower bound on epsilon of calibration ``profile``, on worst-case neighbours.

Between neighbours one vote moves.  The event is that n queries with the same
votes do not end the run; on one side their plurality has a vote more.  Its
probability is that of fewer than T hits in n independent trials, and that of a
hit is what the code itself says of all 2**64 words: nothing is sampled.  The
logarithm of (P - delta) / Q bounds epsilon from below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import betainc, betaincc

from app.accounting.profile import calibrate
from app.mechanisms.stability import Parameters, State
from app.mechanisms.subsample_aggregate import aggregate
from app.noise.scripted import ScriptedNoise
from tests.audit.planted_faults import (
    gap_as_distance,
    gap_less_one_as_distance,
    real_step,
    step_with_sixteen_bits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

    Step = Callable[[Parameters, State, int, NoiseSource], tuple[State, bool]]
    Aggregate = Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]

pytestmark = pytest.mark.audit

DELTA = Fraction(1, 10**6)
WORD_COUNT = 1 << 64
QUERY_COUNTS = np.unique(np.round(np.logspace(0, 12, 160)))
ROUNDING = 1e-6
"""More than the doubles of the incomplete beta function are off by."""


@dataclass(frozen=True)
class Audited:
    """A mechanism, faithful or with a planted fault, and how it is run.

    Attributes:
        epsilon: its claim.
        cutoff: what its table was calibrated for.
        hit_count: the hits that a run allows.
        step: decides one query.
        aggregate: turns votes into a distance.

    """

    epsilon: Fraction = Fraction(1)
    cutoff: int = 2
    hit_count: int = 2
    step: Step = real_step
    aggregate: Aggregate = aggregate

    def hit_words(self) -> NDArray[np.float64]:
        """Return how many words are hits, for a plurality of 0, 1, 2 ... votes beyond half.

        Returns:
            Shape (leads, 2): the words that are hits, and those that are not.

        """
        table = thresholds(self.epsilon, self.cutoff)
        leads = np.arange(len(table) + 2)
        half = len(leads)
        votes = np.stack([half + leads, half - leads], axis=1)
        _, distances = self.aggregate(votes)
        words = {away: self._hit_words(table, away) for away in set(distances.tolist())}
        hits = [words[away] for away in distances.tolist()]
        return np.array([[float(hit), float(WORD_COUNT - hit)] for hit in hits])

    def _hit_words(self, table: tuple[int, ...], distance: int) -> int:
        """Ask the code, by bisection, how many of the 2**64 words are hits."""
        parameters, low, high = Parameters(table, self.cutoff), 0, WORD_COUNT
        while low < high:
            middle = (low + high) // 2
            if self.step(parameters, State(), distance, ScriptedNoise([middle]))[1]:
                low = middle + 1
            else:
                high = middle
        return low


@cache
def thresholds(epsilon: Fraction, cutoff: int) -> tuple[int, ...]:
    """Return the table that serves."""
    return calibrate(epsilon=epsilon, delta=DELTA, cutoff=cutoff).thresholds


def lower_bound(audited: Audited) -> float:
    """Return the largest lower bound on epsilon, over the number of queries and their votes."""
    hit, stable = (audited.hit_words() / WORD_COUNT).T
    best = -math.inf
    for count in QUERY_COUNTS[audited.hit_count <= QUERY_COUNTS]:
        lasting = lasting_probability(hit, stable, count=count, hit_count=audited.hit_count)
        excess, other = lasting[1:] - float(DELTA), lasting[:-1]
        seen = excess > 0
        if (other[seen] == 0).any():
            return math.inf
        if seen.any():
            best = max(best, float(np.log(excess[seen] / other[seen]).max()))
    return best


def lasting_probability(
    hit: NDArray[np.float64], stable: NDArray[np.float64], *, count: float, hit_count: int
) -> NDArray[np.float64]:
    """Return the probability of fewer than ``hit_count`` hits in ``count`` trials."""
    rest = count - hit_count + 1
    lasting: NDArray[np.float64] = np.where(
        hit < stable, betaincc(hit_count, rest, hit), betainc(rest, hit_count, stable)
    )
    return lasting


# What a correct mechanism reads, as parts of its claim, for epsilon 1/2 to 2.
BANDS = {1: (0.6, 0.75), 2: (0.7, 0.82), 5: (0.8, 0.89), 20: (0.85, 0.95)}


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize("cutoff", BANDS)
def test_the_claim_survives_and_is_not_loose(epsilon: Fraction, cutoff: int) -> None:
    """The bound lies below the claim and so near it that the audit has power."""
    low, high = BANDS[cutoff]
    bound = lower_bound(Audited(epsilon=epsilon, cutoff=cutoff, hit_count=cutoff))
    assert low * epsilon < bound < high * epsilon + ROUNDING


@pytest.mark.parametrize("fault", [gap_as_distance, gap_less_one_as_distance])
@pytest.mark.parametrize(("cutoff", "read"), [(1, 1.4), (2, 1.6), (5, 1.75)])
def test_the_printed_distance_is_caught(fault: Aggregate, cutoff: int, read: float) -> None:
    """With the gap as distance one vote costs two steps: far more than the claim of 1."""
    audited = Audited(cutoff=cutoff, hit_count=cutoff, aggregate=fault)
    assert lower_bound(audited) > read


def test_noise_that_is_not_scaled_by_the_cutoff_is_caught() -> None:
    """A table for one hit, used for ten, exceeds the claim by a quarter."""
    assert lower_bound(Audited(cutoff=1, hit_count=10)) > 1.25


@pytest.mark.parametrize(("cutoff", "read"), [(5, 1.05), (20, 1.15)])
def test_a_counter_lost_at_a_restart_is_caught(cutoff: int, read: float) -> None:
    """A run that starts counting again allows twice the hits, and exceeds the claim."""
    assert lower_bound(Audited(cutoff=cutoff, hit_count=2 * cutoff)) > read


def test_words_of_sixteen_bits_are_caught() -> None:
    """Where hits become impossible one vote further, a hit tells all: the bound is infinite."""
    audited = Audited(cutoff=1, hit_count=1, step=step_with_sixteen_bits)
    assert lower_bound(audited) == math.inf


@pytest.mark.parametrize("cutoff", [1, 2, 5, 20])
def test_a_differing_label_hardly_ever_gets_out(cutoff: int) -> None:
    """Where one vote changes the plurality, T queries are all hits but for a tenth of delta."""
    stable_words = WORD_COUNT - thresholds(Fraction(1), cutoff)[0]
    kept_in = (1 - Fraction(stable_words, WORD_COUNT)) ** cutoff
    assert 1 - kept_in <= DELTA / 10
