"""An oracle in decimals for the auditor's sums over the noise of calibration ``svt``.

Independence is the point: each probability is summed anew over all of the threshold's
noise with fifty digits, every value of it asked by a bisection of its own, with nothing
left out that a double would round away.  The auditor's own sums, in doubles over fewer
values, have to agree; what correct and faulty mechanisms show by them is in
``test_fault_table``.
"""

from __future__ import annotations

import math
from decimal import MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.auditing.bounds.threshold_bound import event_probability, hit_law
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.mechanism import State, step
from tests.audit.planted import planted_systems as planted
from tests.audit.planted.planted_systems import DELTA, ONE_THRESHOLD, REFRESHED, system
from tests.builders.mechanisms.prescribed import NOTHING, PrescribedLaplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.auditing.audited_mechanism import Audited

    Fault = Callable[[Audited], Audited]

RELEASE_COUNTS = np.array([1.0, 1e3, 1e7])
NOISE_MAX = 1 << 13
# What lies beyond is less than 1e-12 of any probability that is summed.
SCALES_SUMMED = 60
AGREED = 1e-9

pytestmark = pytest.mark.audit

Law = dict[int, Decimal]


def answering(audited: Audited) -> sparse_vector.Parameters:
    """Return the sparse vector that answers."""
    found = audited.parameters.answering
    assert isinstance(found, sparse_vector.Parameters)
    return found


def ratio(scale: Fraction) -> Decimal:
    """Return ``e^(-1/scale)`` in the current decimal context."""
    return (-Decimal(scale.denominator) / scale.numerator).exp()


def at_most(top: int, base: Decimal) -> Decimal:
    """Return the probability that discrete Laplace noise is at most ``top``."""
    return base**-top / (1 + base) if top < 0 else 1 - base ** (top + 1) / (1 + base)


def threshold_law(audited: Audited) -> Law:
    """Return the law of the threshold's noise."""
    scale = answering(audited).threshold_noise.scale
    base, end = ratio(scale), math.ceil(SCALES_SUMMED * scale)
    return {x: (1 - base) / (1 + base) * base ** abs(x) for x in range(-end, end + 1)}


def hits(audited: Audited, lead: int) -> Law:
    """Return the probability of a hit for each value of the threshold's noise."""
    value, base = audited.tally_of(lead).distance, ratio(answering(audited).query_noise.scale)
    return {
        noise: at_most(largest_noise_of_a_hit(audited, value, noise), base)
        for noise in threshold_law(audited)
    }


def largest_noise_of_a_hit(audited: Audited, value: int, threshold_noise: int) -> int:
    """Ask the code, by bisection, for the largest noise with which a query is a hit."""
    noise = PrescribedLaplace()
    parameters = sparse_vector.Parameters(
        threshold=answering(audited).threshold,
        threshold_noise=noise,
        query_noise=noise,
        cutoff=1,
        refreshed=False,
    )
    low, high = -NOISE_MAX, NOISE_MAX
    while high - low > 1:
        middle = (low + high) // 2
        noise.prescribe([middle])
        hit = step(parameters, State(0, threshold_noise), value, NOTHING)[1].hit
        low, high = (middle, high) if hit else (low, middle)
    return low


def event(audited: Audited, *, released: int, hit: int, count: int) -> list[Decimal]:
    """Return the probability of releases at one lead and then hits at another, by releases."""
    release, follow = hits(audited, released), hits(audited, hit)
    return [
        sum(
            (
                (1 - release[noise]) ** int(releases) * weight * follow[noise] ** count
                for noise, weight in threshold_law(audited).items()
            ),
            Decimal(0),
        )
        for releases in RELEASE_COUNTS
    ]


@pytest.mark.parametrize("fault", [planted.real, planted.with_printed_gap, planted.with_half_gap])
@pytest.mark.parametrize("cutoff", [1, 3])
def test_the_auditors_sums_are_those_of_the_oracle(fault: Fault, cutoff: int) -> None:
    """Probabilities of releases followed by hits agree in nine digits, however rare."""
    audited = fault(system(ONE_THRESHOLD, cutoff, Fraction(1)))
    released, hit = max(1, answering(audited).threshold // 4), answering(audited).threshold + 3
    with localcontext(Context(prec=50, Emin=MIN_EMIN)):
        expected = event(audited, released=released, hit=hit, count=cutoff)
    release, follow = (
        hit_law(audited, answering(audited), lead, left_out=1e-26) for lead in (released, hit)
    )
    found = event_probability(release, follow, RELEASE_COUNTS, cutoff)
    assert found == pytest.approx([float(each) for each in expected], rel=AGREED)


@pytest.mark.parametrize("fault", [planted.real, planted.with_half_gap, planted.with_low_threshold])
@pytest.mark.parametrize(("calibration", "part"), [(ONE_THRESHOLD, 1), (REFRESHED, Fraction(1, 2))])
def test_a_differing_label_gets_out_as_often_as_is_paid_for(
    fault: Fault, calibration: str, part: Fraction
) -> None:
    """Two differing queries get a label out below their part of delta, and near it."""
    audited = fault(system(calibration, 2, Fraction(1)))
    with localcontext(Context(prec=50)):
        laws = [hits(audited, lead) for lead in (-1, 0)]
        weights = threshold_law(audited)
        leaks = [sum(weights[x] * (1 - law[x]) for x in weights) for law in laws]
    paid = float(2 * max(leaks)) / float(part * DELTA)
    assert 0.5 < paid <= 1 if fault is planted.real else paid > 1
