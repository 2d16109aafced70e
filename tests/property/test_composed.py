"""Composed budgets: exact sums of any decimals, whatever their sizes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.ledger.entries.fold import DELTA_KEY, EPSILON_KEY
from app.ledger.releases import composed, is_covered
from app.release.composed_budget import exact_text
from tests.builders.ledger.releases import opened

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ReleaseOpened

# Sizes that doubles cannot add: 10^20 and 10^-100 in one sum.
COSTS = st.builds(
    lambda digits, exponent: Fraction(digits) * Fraction(10) ** exponent,
    st.integers(1, 10**12),
    st.integers(-100, 8),
)
BUDGETS = st.lists(st.tuples(COSTS, COSTS), min_size=1, max_size=5)
NUDGES = st.sampled_from([Fraction(0), Fraction(1, 10**112), Fraction(-1, 10**112)])


def opening(
    budget: tuple[Fraction, Fraction], statement: tuple[Fraction, Fraction] | None
) -> ReleaseOpened:
    """Return a first entry with a budget, and what it states of all releases."""
    keys = (EPSILON_KEY, DELTA_KEY)
    stated = {} if statement is None else dict(zip(keys, map(str, statement), strict=True))
    return replace(opened(parameters=stated), epsilon=str(budget[0]), delta=str(budget[1]))


@given(earlier=BUDGETS, own=st.tuples(COSTS, COSTS), nudges=st.tuples(NUDGES, NUDGES))
def test_a_statement_covers_exactly_what_is_at_most_it(
    earlier: list[tuple[Fraction, Fraction]],
    own: tuple[Fraction, Fraction],
    nudges: tuple[Fraction, Fraction],
) -> None:
    """The sum itself is enough, and 10^-112 below it is not, in either number."""
    sums = [sum(costs, Fraction(0)) for costs in zip(*earlier, own, strict=True)]
    statement = (sums[0] + nudges[0], sums[1] + nudges[1])
    openings = [*(opening(budget, None) for budget in earlier), opening(own, statement)]
    assert is_covered(openings) == (min(nudges) >= 0)
    promise = composed(openings)
    assert promise is not None
    assert promise == (max(sums[0], statement[0]), max(sums[1], statement[1]))


@given(budget=st.tuples(COSTS, COSTS), statement=st.tuples(COSTS, COSTS))
def test_one_release_alone_needs_no_statement(
    budget: tuple[Fraction, Fraction], statement: tuple[Fraction, Fraction]
) -> None:
    """It is covered and says nothing, unless it says something of its own accord."""
    alone = [opening(budget, None)]
    assert is_covered(alone)
    assert composed(alone) is None
    promise = composed([opening(budget, statement)])
    assert promise == (max(budget[0], statement[0]), max(budget[1], statement[1]))


@given(cost=COSTS)
def test_a_sum_is_told_so_that_a_configuration_can_take_it(cost: Fraction) -> None:
    """What the refusal says is the exact number, read back."""
    assert Fraction(exact_text(cost)) == cost
