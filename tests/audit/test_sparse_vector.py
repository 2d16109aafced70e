"""An exact lower bound on epsilon of calibration ``svt``, on worst-case neighbours.

Between neighbours one vote moves.  The event is that many queries are all released,
which shows that the threshold's noise is low, and that T queries are then all hits;
on one side the former have a vote more for their plurality and the latter a vote
less.  Both probabilities are sums over the threshold's noise in which the code itself
says which noise of a query makes it a hit.  The logarithm of their ratio bounds
epsilon from below, and nothing about it is left to chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.accounting.svt import SvtCalibration, Variant, calibrate_variant
from app.mechanisms.sparse_vector import Parameters, State, step
from app.mechanisms.subsample_aggregate import aggregate
from tests.unit.mechanisms.prescribed import NOTHING, PrescribedLaplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.noise.discrete_laplace import DiscreteLaplace

HALF_OF_VOTES = 500
RELEASE_COUNTS = (1, 10**3, 10**7)
NOISE_MAX = 1 << 13
# What lies beyond is less than 1e-12 of any probability that is summed.
SCALES_SUMMED = 60
DELTA = Fraction(1, 10**6)
ROUNDING = 1e-9

pytestmark = pytest.mark.audit

Law = dict[int, Decimal]


@dataclass(frozen=True)
class Audited:
    """A calibration, and how it is run: faithfully, or with a planted fault.

    Attributes:
        calibration: of the noise and the threshold.
        hit_count: hits that the run allows.
        value: what is tested of a plurality with this many votes beyond half.
        noisy_threshold: whether the threshold has noise.

    """

    calibration: SvtCalibration
    hit_count: int
    value: Callable[[int], int]
    noisy_threshold: bool = True

    def threshold_law(self) -> Law:
        """Return the law of the threshold's noise."""
        if not self.noisy_threshold:
            return {0: Decimal(1)}
        base = ratio(self.calibration.threshold_scale)
        end = math.ceil(SCALES_SUMMED * self.calibration.threshold_scale)
        return {x: (1 - base) / (1 + base) * base ** abs(x) for x in range(-end, end + 1)}

    def hit_law(self, lead: int) -> Law:
        """Return the probability of a hit for each value of the threshold's noise."""
        base, value = ratio(self.calibration.query_scale), self.value(lead)
        return {
            noise: at_most(self._largest_noise_of_a_hit(value, noise), base)
            for noise in self.threshold_law()
        }

    def _largest_noise_of_a_hit(self, value: int, threshold_noise: int) -> int:
        """Ask the code, by bisection, for the largest noise with which a query is a hit."""
        noise = PrescribedLaplace()
        parameters, state = self._parameters(noise), State(0, threshold_noise)
        low, high = -NOISE_MAX, NOISE_MAX
        while high - low > 1:
            middle = (low + high) // 2
            noise.prescribe([middle])
            hit = step(parameters, state, value, NOTHING)[1].hit
            low, high = (middle, high) if hit else (low, middle)
        return low

    def _parameters(self, query_noise: DiscreteLaplace) -> Parameters:
        return Parameters(
            threshold=self.calibration.threshold,
            threshold_noise=query_noise,
            query_noise=query_noise,
            cutoff=self.hit_count,
            refreshed=False,
        )


def distance(lead: int) -> int:
    """Return the distance to instability of a plurality with ``lead`` votes beyond half."""
    votes = np.array([[HALF_OF_VOTES + lead, HALF_OF_VOTES - lead]])
    return int(aggregate(votes)[1][0])


def printed_gap(lead: int) -> int:
    """Return the printed value of the same votes: a vote moves it by two."""
    return 2 * lead


def ratio(scale: Fraction) -> Decimal:
    """Return ``e^(-1/scale)`` in the current decimal context."""
    return (-Decimal(scale.denominator) / scale.numerator).exp()


def at_most(top: int, base: Decimal) -> Decimal:
    """Return the probability that discrete Laplace noise is at most ``top``."""
    return base**-top / (1 + base) if top < 0 else 1 - base ** (top + 1) / (1 + base)


def event(audited: Audited, *, released: Law, hits: Law) -> list[Decimal]:
    """Return the event's probability for each number of released queries."""
    sequel = {
        noise: weight * hits[noise] ** audited.hit_count
        for noise, weight in audited.threshold_law().items()
    }
    return [
        sum(
            ((1 - released[noise]) ** count * weight for noise, weight in sequel.items()),
            Decimal(0),
        )
        for count in RELEASE_COUNTS
    ]


def lower_bound(audited: Audited) -> float:
    """Return the largest log-ratio of an event, whichever neighbour it is likelier on."""
    threshold = audited.calibration.threshold
    with localcontext(Context(prec=50, Emin=MIN_EMIN)):
        leads = (max(1, threshold // 4), threshold + 3)
        laws = {lead: audited.hit_law(lead) for pair in leads for lead in (pair, pair + 1)}
        log_ratios = []
        for released, hit in product(leads, leads):
            one = event(audited, released=laws[released + 1], hits=laws[hit])
            other = event(audited, released=laws[released], hits=laws[hit + 1])
            log_ratios += [abs(a.ln() - b.ln()) for a, b in zip(one, other, strict=True)]
        return float(max(log_ratios))


def one_threshold(cutoff: int) -> Audited:
    """Return the faithful run at epsilon 1."""
    calibration = calibrate_variant(
        Variant.ONE_THRESHOLD, epsilon=Fraction(1), delta=DELTA, cutoff=cutoff
    )
    return Audited(calibration, cutoff, distance)


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_one_threshold_uses_its_claim_and_stays_within(cutoff: int) -> None:
    """The bound is at most epsilon and at least 95 % of it: the audit has power."""
    assert 0.95 < lower_bound(one_threshold(cutoff)) <= 1 + ROUNDING


def test_an_epoch_uses_its_claim_and_stays_within() -> None:
    """A refreshed threshold's epoch costs at most 1/b1 + 2/b2, and nearly that."""
    calibration = calibrate_variant(Variant.REFRESHED, epsilon=Fraction(1), delta=DELTA, cutoff=2)
    claim = float(1 / calibration.threshold_scale + 2 / calibration.query_scale)
    assert 0.95 * claim < lower_bound(Audited(calibration, 1, distance)) <= claim + ROUNDING


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_the_printed_gap_is_caught(cutoff: int) -> None:
    """A value that moves by two reads about twice the claim."""
    bound = lower_bound(replace(one_threshold(cutoff), value=printed_gap))
    assert 1.9 < bound <= 2 + ROUNDING


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_a_hit_beyond_the_cutoff_is_caught(cutoff: int) -> None:
    """``c <= T`` reads a hit more than was paid for, and with the printed gap twice that."""
    audited = replace(one_threshold(cutoff), hit_count=cutoff + 1)
    assert 1.2 < lower_bound(audited) < 1.65
    assert 2.4 < lower_bound(replace(audited, value=printed_gap)) < 3.3


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_a_threshold_without_noise_is_caught(cutoff: int) -> None:
    """Without noise on the threshold every release costs, and many cost any epsilon."""
    assert lower_bound(replace(one_threshold(cutoff), noisy_threshold=False)) > 100


def test_noise_that_is_not_scaled_by_the_cutoff_is_caught() -> None:
    """The noise of one hit, run for three, reads more than twice the claim."""
    assert lower_bound(replace(one_threshold(1), hit_count=3)) > 2


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_differing_labels_get_out_as_often_as_is_paid_for(cutoff: int) -> None:
    """The chance that one of T differing queries is released is below delta, and near it."""
    audited = one_threshold(cutoff)
    with localcontext(Context(prec=50)):
        hits = audited.hit_law(0)
        law = audited.threshold_law()
        leak = sum((weight * (1 - hits[x] ** cutoff) for x, weight in law.items()), Decimal(0))
        assert 0.5 < float(leak / Decimal("1e-6")) <= 1


def test_a_threshold_for_the_querys_noise_alone_is_caught() -> None:
    """A threshold that leaves the threshold's own noise out lets labels out too often."""
    audited = one_threshold(1)
    scale = audited.calibration.query_scale
    forgetful = math.ceil(scale * Fraction(math.log(1 / (2 * DELTA))))
    faulty = replace(audited, calibration=replace(audited.calibration, threshold=forgetful))
    with localcontext(Context(prec=50)):
        hits, law = faulty.hit_law(0), faulty.threshold_law()
        leak = sum((weight * (1 - hits[x]) for x, weight in law.items()), Decimal(0))
        assert leak > Decimal("1.2e-6")
