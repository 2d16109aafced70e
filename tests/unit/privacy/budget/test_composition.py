"""What a release is charged adds up to its budget exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from app.errors import InvariantError
from app.privacy.budget.composition import (
    WITHHELD_PART,
    Charge,
    Mechanism,
    Shares,
    charges,
    float_below,
    mechanism_epsilon,
    total,
)

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
USUAL = Shares(relabel=Fraction(1, 10), answers=Fraction(6, 10), classifier=Fraction(3, 10))


def by_mechanism(charged: tuple[Charge, ...]) -> dict[Mechanism, Charge]:
    """Charges by what they are for."""
    return {charge.mechanism: charge for charge in charged}


def test_charges_are_the_shares_and_sum_to_the_budget() -> None:
    """Relabelling, answers and classifier divide epsilon and delta without rest."""
    charged = charges(epsilon=EPSILON, delta=DELTA, shares=USUAL)
    assert [charge.mechanism for charge in charged] == ["relabel", "answers", "classifier"]
    assert [charge.epsilon for charge in charged] == [
        Fraction(1, 10),
        Fraction(6, 10),
        Fraction(3, 10),
    ]
    assert total(charged) == (EPSILON, DELTA)


def test_answers_get_delta_less_what_truncation_may_cost() -> None:
    """2^-20 of delta is withheld and split between the two exponential mechanisms."""
    charged = by_mechanism(charges(epsilon=EPSILON, delta=DELTA, shares=USUAL))
    assert charged[Mechanism.ANSWERS].delta == DELTA * (1 - WITHHELD_PART)
    assert charged[Mechanism.RELABEL].delta == DELTA * WITHHELD_PART / 2
    assert charged[Mechanism.CLASSIFIER].delta == DELTA * WITHHELD_PART / 2


def test_one_exponential_mechanism_gets_all_that_is_withheld() -> None:
    """Without relabelling the classifier has the withheld part alone."""
    shares = Shares(answers=Fraction(1, 2), classifier=Fraction(1, 2))
    charged = by_mechanism(charges(epsilon=EPSILON, delta=DELTA, shares=shares))
    assert charged[Mechanism.CLASSIFIER].delta == DELTA * WITHHELD_PART


def test_answers_alone_get_all_of_delta() -> None:
    """Nothing is withheld where no exponential mechanism runs."""
    (charge,) = charges(epsilon=EPSILON, delta=DELTA, shares=Shares(answers=Fraction(1)))
    assert (charge.epsilon, charge.delta) == (EPSILON, DELTA)


def test_statistics_take_a_tenth_of_delta_by_default() -> None:
    """Where statistics has a share, delta is split nine to one."""
    shares = Shares(answers=Fraction(1, 2), statistics=Fraction(1, 2))
    charged = by_mechanism(charges(epsilon=Fraction(4), delta=DELTA, shares=shares))
    assert charged[Mechanism.ANSWERS] == Charge(Mechanism.ANSWERS, Fraction(2), DELTA * 9 / 10)
    assert charged[Mechanism.STATISTICS].delta == DELTA / 10


def test_delta_shares_can_be_given() -> None:
    """A given split of delta replaces the default one, of what is not withheld."""
    shares = Shares(relabel=Fraction(1, 4), answers=Fraction(1, 2), statistics=Fraction(1, 4))
    split = Shares(answers=Fraction(1, 2), statistics=Fraction(1, 4))
    charged = by_mechanism(charges(epsilon=EPSILON, delta=DELTA, shares=shares, delta_shares=split))
    assert charged[Mechanism.ANSWERS].delta == DELTA * (1 - WITHHELD_PART) / 2
    assert charged[Mechanism.STATISTICS].delta == DELTA * (1 - WITHHELD_PART) / 4


def test_exponential_mechanisms_have_no_delta_share() -> None:
    """Their delta is the withheld part, never a share of the rest."""
    with pytest.raises(InvariantError):
        charges(epsilon=EPSILON, delta=DELTA, shares=USUAL, delta_shares=USUAL)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(Fraction(0), DELTA), (EPSILON, Fraction(0)), (EPSILON, Fraction(1))]
)
def test_budgets_out_of_range_are_refused(epsilon: Fraction, delta: Fraction) -> None:
    """A budget is a positive epsilon and a probability."""
    with pytest.raises(InvariantError):
        charges(epsilon=epsilon, delta=delta, shares=USUAL)


@pytest.mark.parametrize(
    ("relabel", "answers"), [(Fraction(-1, 10), Fraction(1)), (Fraction(1, 10), Fraction(1))]
)
def test_shares_out_of_range_are_refused(relabel: Fraction, answers: Fraction) -> None:
    """Shares are not negative and at most the whole together."""
    with pytest.raises(InvariantError):
        Shares(relabel=relabel, answers=answers)


def test_mechanism_runs_below_its_share() -> None:
    """Four times the error of the weights comes off the share."""
    found = mechanism_epsilon(share=Fraction(1, 10), log_weight_error=Fraction(1, 1000))
    assert found == Fraction(96, 1000)


@pytest.mark.parametrize("error", [Fraction(-1), Fraction(1, 4)])
def test_errors_that_use_the_share_up_are_refused(error: Fraction) -> None:
    """A share that its numerical error exceeds opens nothing."""
    with pytest.raises(InvariantError):
        mechanism_epsilon(share=Fraction(1), log_weight_error=error)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(1, 10), Fraction(3, 10), Fraction(1)])
def test_float_below_is_the_nearest_from_below(value: Fraction) -> None:
    """The double is at most the rational and the next one is above it."""
    found = float_below(value)
    assert Fraction(found) <= value < Fraction(math.nextafter(found, math.inf))
