"""The cheapest release that gives what is wanted."""

from __future__ import annotations

from fractions import Fraction

from app.planning.trial.search_for_wanted import Wanted, search
from app.privacy.budget.composition import Shares
from tests.builders.schema.plan_requests import request


def test_an_epsilon_that_no_calibration_covers_gives_nothing() -> None:
    """A private grid costs 2 ln 2 at least, whatever epsilon is: the least ones are passed over."""
    shares = Shares(relabel=Fraction(1, 2), answers=Fraction(1, 2))
    offer = search(request(shares, 8, private=True), Wanted(answers=None, loss=0.9), None)
    assert offer.own.reached
    assert offer.by_epsilon.reached
    # Half of epsilon, for the grid and the draw over it.
    assert Fraction(138, 100) < offer.by_epsilon.request.epsilon / 2 < 4
