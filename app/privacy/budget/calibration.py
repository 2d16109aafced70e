"""The calibrations of the answers: what is common to them.

Each holds the parameters that serve with the budget that they were made for.  Its
module says and proves the claim, and has a ``check`` that decides it again from what
was persisted, every rounding going against us.
"""

from __future__ import annotations

from typing import TypeAlias

from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector.calibration import SvtCalibration
from app.privacy.stability import hit_table as profile
from app.privacy.stability.hit_table import ProfileTable

Calibration: TypeAlias = ProfileTable | SvtCalibration | NoisyVoteCalibration


def check(calibration: Calibration) -> None:
    """Assert everything that a calibration's claim needs, before it serves.

    Raises:
        InvariantError: at the first thing that does not hold.

    """
    if isinstance(calibration, ProfileTable):
        profile.check(calibration)
    elif isinstance(calibration, SvtCalibration):
        svt.check(calibration)
    else:
        noisy_vote.check(calibration)
