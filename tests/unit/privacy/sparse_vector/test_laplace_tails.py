"""Tails of a difference of discrete Laplace variables: against sums from the definition."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from app.errors import InvariantError
from app.privacy.sparse_vector.calibration import DifferenceTail

SCALES = [("1/3", "1/2"), ("2", "2"), ("3", "5"), ("5", "2"), ("4", "4000000001/1000000000")]


def ratio(scale: Fraction) -> Decimal:
    """Return ``e^(-1/scale)`` in the current decimal context."""
    return (-Decimal(scale.denominator) / scale.numerator).exp()


def mass(point: int, base: Decimal) -> Decimal:
    """Return the probability of one value."""
    return (1 - base) / (1 + base) * base ** abs(point)


def above_by_summation(point: int, *, threshold_scale: Fraction, query_scale: Fraction) -> Decimal:
    """Sum ``P(rho = x) P(nu > point + x)`` over x, at 70 digits."""
    with localcontext(Context(prec=70)):
        first, second = ratio(threshold_scale), ratio(query_scale)
        total = Decimal(0)
        for value in range(-900, 901):
            limit = point + value
            tail = second ** (limit + 1) / (1 + second)
            if limit < 0:
                tail = 1 - second**-limit / (1 + second)
            total += mass(value, first) * tail
        return total


@pytest.mark.parametrize(("first", "second"), SCALES)
@pytest.mark.parametrize("point", [-1, 0, 1, 7, 40])
def test_tails_are_the_sums_rounded_up(first: str, second: str, point: int) -> None:
    """The closed form is above the direct sum, and by less than 1e-50 of it."""
    scales = {"threshold_scale": Fraction(first), "query_scale": Fraction(second)}
    found = DifferenceTail(**scales).above(point)
    summed = above_by_summation(point, **scales)
    with localcontext(Context(prec=80)):
        assert summed * (1 - Decimal("1e-60")) <= found <= summed * (1 + Decimal("1e-50"))


def test_summation_by_one_variable_is_the_sum_over_both() -> None:
    """The oracle itself agrees with a plain double sum over both noises."""
    with localcontext(Context(prec=70)):
        first, second = ratio(Fraction(1, 3)), ratio(Fraction(1, 2))
        pairs = ((x, y) for x in range(-60, 61) for y in range(-60, 61) if y - x > 2)
        total = sum(mass(x, first) * mass(y, second) for x, y in pairs)
        oracle = above_by_summation(2, threshold_scale=Fraction(1, 3), query_scale=Fraction(1, 2))
        assert abs(total / oracle - 1) < Decimal("1e-40")


@pytest.mark.parametrize("point", [0, 3, 25])
def test_tails_are_those_of_the_designs_closed_form(point: int) -> None:
    """For unequal scales the difference quotient of the design gives the same."""
    with localcontext(Context(prec=70)):
        a1, a2 = ratio(Fraction(3)), ratio(Fraction(7))
        constant = (1 - a1) / (1 + a1) * (1 - a2) / (1 + a2)
        cross = a1 * a2 / (1 - a1 * a2)
        printed = constant * (
            cross * (a2 ** (point + 1) / (1 - a2) + a1 ** (point + 1) / (1 - a1))
            + (a2 ** (point + 2) / (1 - a2) - a1 ** (point + 2) / (1 - a1)) / (a2 - a1)
        )
        found = DifferenceTail(threshold_scale=Fraction(3), query_scale=Fraction(7)).above(point)
        assert abs(found / printed - 1) < Decimal("1e-50")


@pytest.mark.parametrize("limit", ["0.9", "0.55", "0.3", "1e-3", "1e-30"])
def test_the_smallest_point_is_the_smallest(limit: str) -> None:
    """Beyond the point lies no more than the limit, and beyond the one before more."""
    tail = DifferenceTail(threshold_scale=Fraction(3), query_scale=Fraction(5))
    point = tail.smallest_point(Decimal(limit))
    assert tail.above(point) <= Decimal(limit)
    assert point == -1 or tail.above(point - 1) > Decimal(limit)


def test_what_has_no_tail_is_refused() -> None:
    """Scales, points and limits out of range are broken invariants."""
    with pytest.raises(InvariantError, match="scales"):
        DifferenceTail(threshold_scale=Fraction(0), query_scale=Fraction(1))
    with pytest.raises(InvariantError, match="scales"):
        DifferenceTail(threshold_scale=Fraction(1), query_scale=Fraction(0))
    tail = DifferenceTail(threshold_scale=Fraction(1), query_scale=Fraction(1))
    with pytest.raises(InvariantError, match="closed form"):
        tail.above(-2)
    with pytest.raises(InvariantError, match="mass"):
        tail.smallest_point(Decimal(0))
