"""What serves stays within its claim and uses most of it.

Bounds and conditions are exact: nothing is left to chance, so nothing here can fail by
it.  What faults are caught by is in ``test_fault_table``.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from app.auditing.adaptive_bound import adaptive_bound
from app.auditing.conditions import broken_conditions
from app.auditing.events import ROUNDING
from app.auditing.exact import exact_bound
from app.auditing.profile_bound import hit_table
from tests.audit import planted_systems as planted
from tests.audit.planted_systems import system

pytestmark = pytest.mark.audit

EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))
# What the exact adversaries show of a correct mechanism, as parts of its claim.
SHOWN = {
    ("svt", 1): (0.998, 1.0),
    ("svt", 2): (0.99, 1.0),
    ("svt", 3): (0.96, 1.0),
    ("refreshed", 1): (0.998, 1.0),
    ("refreshed", 2): (0.96, 1.0),
    ("refreshed", 3): (0.84, 0.92),
    ("refreshed", 60): (0.2, 0.3),
    ("noisy-vote", 1): (0.91, 0.94),
    ("noisy-vote", 10): (0.75, 0.78),
    ("noisy-vote", 1000): (0.72, 0.75),
    ("profile", 1): (0.62, 0.74),
    ("profile", 2): (0.71, 0.81),
    ("profile", 3): (0.76, 0.86),
    ("profile", 5): (0.80, 0.88),
    ("profile", 20): (0.87, 0.90),
}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("calibration", "cutoff"), SHOWN)
def test_the_claim_holds_and_is_nearly_used(
    calibration: str, cutoff: int, epsilon: Fraction
) -> None:
    """The bound never exceeds the claim, is as near it as was found, and nothing is broken."""
    audited = system(calibration, cutoff, epsilon)
    low, high = SHOWN[calibration, cutoff]
    assert low * epsilon < exact_bound(audited).epsilon <= high * epsilon + ROUNDING
    assert broken_conditions(audited) == []


def test_an_adaptive_adversary_stays_within_and_catches_the_gap() -> None:
    """It shows what a constant one does or more, never above the claim, but with the gap."""
    audited = system("profile", 2, Fraction(1))
    shown = adaptive_bound(audited, hit_table(audited), start=0.74).epsilon
    assert 0.75 < shown <= 1
    faulty = planted.with_printed_gap(audited)
    assert adaptive_bound(faulty, hit_table(faulty), start=1.5).epsilon > 1.5


def test_an_adaptive_adversary_is_spared_many_hits() -> None:
    """Beyond three hits it is not asked, and it says nothing where it shows no more."""
    many, few = system("profile", 5, Fraction(2)), system("profile", 1, Fraction(2))
    assert adaptive_bound(many, hit_table(many), start=0.5).epsilon == 0
    assert adaptive_bound(few, hit_table(few), start=1.9).epsilon == 0
