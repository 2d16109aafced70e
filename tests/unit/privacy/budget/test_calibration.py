"""What every calibration of the answers can do: be kept, be read back and be checked."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError
from app.privacy.mechanisms import row_of
from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.sparse_vector import calibration as svt
from app.privacy.stability import hit_table as profile
from app.privacy.stability.certified import certified_table as certified

if TYPE_CHECKING:
    from app.privacy.noisy_vote.calibration import NoisyVoteCalibration
    from app.privacy.sparse_vector.calibration import SvtCalibration
    from app.privacy.stability.certified.certified_table import CertifiedTable
    from app.privacy.stability.hit_table import ProfileTable

    Calibration = ProfileTable | CertifiedTable | SvtCalibration | NoisyVoteCalibration

EPSILON, DELTA = Fraction(4), Fraction(1, 1000)
CALIBRATIONS: list[Calibration] = [
    profile.calibrate(epsilon=EPSILON, delta=DELTA, cutoff=2),
    svt.calibrate(epsilon=EPSILON, delta=DELTA, cutoff=2),
    noisy_vote.calibrate(epsilon=EPSILON, delta=DELTA, answer_limit=9, class_count=3),
    certified.calibrate(epsilon=EPSILON, delta=DELTA, cutoff=2),
]


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_what_was_calibrated_holds_for_its_budget(calibration: Calibration) -> None:
    """It passes its check, names its budget, and has a cutoff unless nothing is unstable."""
    row_of(calibration).check(calibration)
    assert (calibration.epsilon, calibration.delta) == (EPSILON, DELTA)
    assert calibration.cutoff == (None if calibration is CALIBRATIONS[2] else 2)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_a_budget_that_is_not_covered_is_refused(calibration: Calibration) -> None:
    """Parameters that claim half of the epsilon that they cost do not pass."""
    with pytest.raises(InvariantError):
        row_of(calibration).check(replace(calibration, epsilon=EPSILON / 2))


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_it_is_kept_as_text(calibration: Calibration) -> None:
    """Through JSON and back it is the same, to the last digit."""
    plain = json.loads(json.dumps(calibration.to_plain()))
    assert type(calibration).from_plain(plain) == calibration
