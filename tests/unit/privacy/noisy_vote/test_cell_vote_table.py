"""What a noisy vote of counted decisions says of its pluralities, whatever is asked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from app.privacy.noisy_vote.cell_vote_table import (
    DecisionNoise,
    DecisionVotes,
    calibrate_noise,
    calibrate_table,
)

EPSILON, DELTA = Fraction(9, 10), Fraction(1, 10**6)


@pytest.mark.parametrize(
    "calibration",
    [
        calibrate_table(epsilon=EPSILON, delta=DELTA),
        calibrate_noise(epsilon=EPSILON, delta=DELTA, class_count=3),
    ],
)
def test_a_plurality_loses_by_its_lead_alone(calibration: DecisionVotes | DecisionNoise) -> None:
    """At the lead of a loss it is lost so often, and however many answers there are."""
    lead = calibration.lead_at(1e-2)
    leads = np.array([lead, 10 * lead], dtype=np.float64)
    few, many = (calibration.lost(leads, answers=count) for count in (1, 10**6))
    assert few.tolist() == many.tolist()
    assert few[1] < few[0] <= 1e-2
