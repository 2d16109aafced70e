"""Relabelling and sampling charges against the vectors."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from app.accounting.amplification import relabelled_epsilon, sampled_delta, sampled_epsilon
from app.errors import InvariantError

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "privacy-vectors.json").read_text())


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
