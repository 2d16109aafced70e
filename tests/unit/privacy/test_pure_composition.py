"""Composition of equal pure mechanisms: against randomised responses one by one."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import product

import pytest

from app.errors import InvariantError
from app.privacy.arithmetic import (
    COUNT_MAX,
    EPSILON_GRID,
    composed_delta,
    exponential_down,
    exponential_up,
    largest_pure_epsilon,
)

MILLIONTH = Fraction(1, 10**6)


@pytest.mark.parametrize("exponent", ["-3", "-1/7", "0", "1/3", "50"])
def test_directed_exponentials_enclose_the_value(exponent: str) -> None:
    """At 90 digits the exponential lies between its bounds."""
    with localcontext(Context(prec=90)):
        value = (Decimal(Fraction(exponent).numerator) / Fraction(exponent).denominator).exp()
        low, high = exponential_down(Fraction(exponent)), exponential_up(Fraction(exponent))
        assert low < value < high
        assert high - low < value * Decimal("1e-57")


@pytest.mark.parametrize("count", [1, 2, 5, 8])
@pytest.mark.parametrize(("each", "epsilon"), [("1/2", "0"), ("1/2", "1"), ("3/10", "7/10")])
def test_delta_is_the_divergence_of_responses(count: int, each: str, epsilon: str) -> None:
    """Summed over all answers of that many randomised responses, the divergence is delta."""
    truth = 1 / (1 + math.exp(-Fraction(each)))
    divergence = 0.0
    for lies in product((False, True), repeat=count):
        lie_count = sum(lies)
        honest = truth ** (count - lie_count) * (1 - truth) ** lie_count
        lying = truth**lie_count * (1 - truth) ** (count - lie_count)
        divergence += max(0.0, honest - math.exp(Fraction(epsilon)) * lying)
    found = composed_delta(epsilon_each=Fraction(each), count=count, epsilon=Fraction(epsilon))
    assert float(found) == pytest.approx(divergence, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("index", [0, 1, 3, 7])
def test_delta_is_that_of_the_printed_theorem(index: int) -> None:
    """At the theorem's own epsilons the printed sum gives the same delta."""
    each, count = 0.3, 15
    printed = (
        sum(
            math.comb(count, lies)
            * (math.exp((count - lies) * each) - math.exp((count - 2 * index + lies) * each))
            for lies in range(index)
        )
        / (1 + math.exp(each)) ** count
    )
    found = composed_delta(
        epsilon_each=Fraction(3, 10), count=count, epsilon=Fraction(3, 10) * (count - 2 * index)
    )
    assert float(found) == pytest.approx(printed, rel=1e-12)


def test_one_mechanism_has_a_closed_form() -> None:
    """For one mechanism the largest epsilon solves ``e^x = (e^epsilon + delta)/(1 - delta)``."""
    found = largest_pure_epsilon(count=1, epsilon=Fraction(1), delta=Fraction(1, 100))
    assert float(found) == pytest.approx(math.log((math.e + 0.01) / 0.99), rel=1e-13)


@pytest.mark.parametrize(("count", "epsilon"), [(1, "1/2"), (2, "3"), (20, "1"), (300, "2")])
def test_the_largest_epsilon_is_the_largest(count: int, epsilon: str) -> None:
    """It composes to the budget and one step of the grid more does not."""
    found = largest_pure_epsilon(count=count, epsilon=Fraction(epsilon), delta=MILLIONTH)
    assert found >= Fraction(epsilon) / count - Fraction(1, EPSILON_GRID)
    step = Fraction(1, EPSILON_GRID)
    for each, holds in ((found, True), (found + step, False)):
        delta = composed_delta(epsilon_each=each, count=count, epsilon=Fraction(epsilon))
        assert (Fraction(delta) <= MILLIONTH) is holds


def test_many_mechanisms_cost_the_square_root_of_their_number() -> None:
    """Four times as many get about half the epsilon each, and the range is kept."""
    few, many = (
        largest_pure_epsilon(count=count, epsilon=Fraction(1), delta=MILLIONTH)
        for count in (1000, 4000)
    )
    assert 1.9 < few / many < 2.1
    assert 0 < composed_delta(epsilon_each=few, count=20_000, epsilon=Fraction(1)) < 1


@pytest.mark.parametrize("count", [0, COUNT_MAX + 1])
def test_a_number_of_mechanisms_out_of_range_is_refused(count: int) -> None:
    """No mechanism, or so many that decimals end, is a broken invariant."""
    with pytest.raises(InvariantError, match="mechanisms"):
        composed_delta(epsilon_each=Fraction(1), count=count, epsilon=Fraction(1))


@pytest.mark.parametrize(("each", "epsilon"), [(0, 1), (1, -1)])
def test_an_epsilon_out_of_range_is_refused(each: int, epsilon: int) -> None:
    """A mechanism's epsilon is above zero and a budget's is not below it."""
    with pytest.raises(InvariantError, match="epsilon"):
        composed_delta(epsilon_each=Fraction(each), count=2, epsilon=Fraction(epsilon))
