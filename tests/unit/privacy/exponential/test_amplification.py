"""Relabelling and sampling charges against the vectors."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from app.errors import InvariantError
from app.privacy.exponential.amplification import (
    copied_delta,
    rate_at,
    relabel_cost_floor,
    relabel_parameter,
    relabelled_epsilon,
    sampled_delta,
    sampled_epsilon,
    sampling_holds,
    unsampled_epsilon,
)

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "privacy-vectors.json").read_text())


@pytest.mark.parametrize("case", VECTORS["relabel"])
def test_relabelling_agrees_with_the_vectors(case: dict[str, dict[str, float]]) -> None:
    """Lemma L's charge is met within 1e-9."""
    found = relabelled_epsilon(
        relabel_epsilon=Fraction(str(case["in"]["eps_t"])),
        inner_epsilon=Fraction(str(case["in"]["eps_i"])),
        class_count=2,
    )
    assert float(found) == pytest.approx(case["eps_out"], rel=1e-9)


@pytest.mark.parametrize("case", VECTORS["sampling"])
def test_sampling_agrees_with_the_vectors(case: dict[str, dict[str, float]]) -> None:
    """Amplification by sampling is met within 1e-9."""
    found = sampled_epsilon(
        inner_epsilon=Fraction(str(case["in"]["eps0"])), rate=Fraction(case["in"]["rate"])
    )
    assert float(found) == pytest.approx(case["eps_out"], rel=1e-9)


def test_more_labels_cost_more() -> None:
    """With L labels the charge grows as 2 ln(L - 1 + e^(eps/2))."""
    found = relabelled_epsilon(
        relabel_epsilon=Fraction(1), inner_epsilon=Fraction(0), class_count=5
    )
    assert float(found) == pytest.approx(2 * math.log(4 + math.exp(0.5)), rel=1e-12)


def test_sampling_every_row_costs_the_inner_charge_rounded_up() -> None:
    """At rate one nothing is gained, and the rounding goes up."""
    found = sampled_epsilon(inner_epsilon=Fraction(1), rate=Fraction(1))
    assert 1 <= found < 1 + Fraction(1, 1 << 70)


@pytest.mark.parametrize("row_count", [2, 5, 100])
def test_randomised_response_on_a_sample_costs_exactly_the_bound(row_count: int) -> None:
    """One row of n, answered truthfully with odds e^epsilon, attains the sampled charge."""
    truthful = math.e**2 / (1 + math.e**2)
    without, rate = 1 - truthful, Fraction(1, row_count)
    with_one = float(rate) * truthful + (1 - float(rate)) * without
    charged = sampled_epsilon(inner_epsilon=Fraction(2), rate=rate)
    assert math.log(with_one / without) == pytest.approx(float(charged), rel=1e-12)


def test_sampled_delta_is_the_rate_times_delta() -> None:
    """Delta is scaled exactly."""
    assert sampled_delta(inner_delta=Fraction(1, 10), rate=Fraction(1, 3)) == Fraction(1, 30)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(3, 2)])
def test_rates_out_of_range_are_refused(rate: Fraction) -> None:
    """A rate is a fraction of the rows."""
    with pytest.raises(InvariantError):
        sampled_epsilon(inner_epsilon=Fraction(1), rate=rate)
    with pytest.raises(InvariantError):
        sampled_delta(inner_delta=Fraction(1, 10), rate=rate)


def test_negative_charges_are_refused() -> None:
    """No charge is below zero, and one label is no classification."""
    zero, below = Fraction(0), Fraction(-1)
    with pytest.raises(InvariantError):
        sampled_epsilon(inner_epsilon=below, rate=Fraction(1))
    with pytest.raises(InvariantError):
        relabelled_epsilon(relabel_epsilon=below, inner_epsilon=zero, class_count=2)
    with pytest.raises(InvariantError):
        relabelled_epsilon(relabel_epsilon=zero, inner_epsilon=below, class_count=2)
    with pytest.raises(InvariantError):
        relabelled_epsilon(relabel_epsilon=zero, inner_epsilon=zero, class_count=1)


@pytest.mark.parametrize("class_count", [2, 3, 10])
@pytest.mark.parametrize("parameter", [Fraction(1, 100), Fraction(1), Fraction(20)])
def test_a_relabelling_cost_gives_its_parameter_back(class_count: int, parameter: Fraction) -> None:
    """Solved for the parameter, Lemma L's cost gives it back, never more than what costs so."""
    cost = relabelled_epsilon(
        relabel_epsilon=parameter, inner_epsilon=Fraction(0), class_count=class_count
    )
    found = relabel_parameter(cost=cost, class_count=class_count)
    assert found is not None
    assert abs(found - parameter) < Fraction(1, 1 << 60)
    again = relabelled_epsilon(
        relabel_epsilon=found, inner_epsilon=Fraction(0), class_count=class_count
    )
    assert again <= cost + Fraction(2, 1 << 80)


@pytest.mark.parametrize("class_count", [2, 5])
def test_no_parameter_costs_less_than_the_floor(class_count: int) -> None:
    """At ``2 ln L`` and below there is no parameter, above it there is one."""
    floor = relabel_cost_floor(class_count)
    assert float(floor) == pytest.approx(2 * math.log(class_count), rel=1e-15)
    assert relabel_parameter(cost=floor - Fraction(1, 10**9), class_count=class_count) is None
    assert relabel_parameter(cost=Fraction(0), class_count=class_count) is None
    above = relabel_parameter(cost=floor + Fraction(1, 10**9), class_count=class_count)
    assert above is not None
    assert above > 0


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**30), Fraction(1, 10), Fraction(3)])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 3), Fraction(1, 10**6)])
def test_what_a_sample_may_cost_is_what_costs_the_whole(epsilon: Fraction, rate: Fraction) -> None:
    """The inner charge is at least the outer one, holds, and is the largest that does."""
    inner = unsampled_epsilon(epsilon=epsilon, rate=rate)
    assert inner >= epsilon
    assert sampling_holds(inner_epsilon=inner, rate=rate, epsilon=epsilon)
    more = inner * (1 + Fraction(1, 10**9)) + Fraction(1, 10**20)
    assert not sampling_holds(inner_epsilon=more, rate=rate, epsilon=epsilon)


def test_the_rate_for_an_inner_charge_is_the_largest() -> None:
    """At the rate found an inner charge just costs the outer one; none above 1 is found."""
    rate = rate_at(inner_epsilon=Fraction(4), epsilon=Fraction(1))
    assert float(rate) == pytest.approx(math.expm1(1) / math.expm1(4), rel=1e-12)
    assert sampling_holds(inner_epsilon=Fraction(4), rate=rate, epsilon=Fraction(1))
    assert rate_at(inner_epsilon=Fraction(1), epsilon=Fraction(4)) == 1


def test_copies_cost_as_group_privacy_does() -> None:
    """A record in three rows costs three times e to three epsilon times delta, rounded up."""
    found = copied_delta(epsilon=Fraction(1, 5), delta=Fraction(1, 10**8), copies=3)
    assert float(found) == pytest.approx(3e-8 * math.exp(0.6), rel=1e-12)
    assert found > Fraction(3, 10**8) * Fraction(math.exp(0.6)) * (1 - Fraction(1, 10**15))


def test_what_is_no_charge_is_refused_in_reverse_too() -> None:
    """Rates, costs and counts are checked where charges are divided, as where they add up."""
    one, zero = Fraction(1), Fraction(0)
    with pytest.raises(InvariantError):
        relabel_parameter(cost=-one, class_count=2)
    with pytest.raises(InvariantError):
        relabel_parameter(cost=one, class_count=1)
    with pytest.raises(InvariantError):
        unsampled_epsilon(epsilon=zero, rate=one)
    with pytest.raises(InvariantError):
        unsampled_epsilon(epsilon=one, rate=zero)
    with pytest.raises(InvariantError):
        rate_at(inner_epsilon=zero, epsilon=one)
    with pytest.raises(InvariantError):
        copied_delta(epsilon=one, delta=one, copies=0)
