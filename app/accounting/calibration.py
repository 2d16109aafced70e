"""The calibrations of the answers: what is common to them.

Each holds the parameters that serve with the budget that they were made for.  Its
module says and proves the claim, and has a ``check`` that decides it again from what
was persisted, every rounding going against us.
"""

from __future__ import annotations

from typing import TypeAlias

from app.accounting import noisy_vote, profile, svt
from app.accounting.noisy_vote import NoisyVoteCalibration
from app.accounting.profile import ProfileTable
from app.accounting.svt import SvtCalibration

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
