"""The rule by which an opening is hopeless: it would spend its budget on next to no label.

An opening is hopeless where some chunks get no row, or where the T-th unstable answer comes
before stable ones even though all k learners agree on every query.  Let u be the chance that
one such query is unstable, by the calibration that serves.  A stable answer uses up nothing of
T, so ``T (1 - u) / u`` stable answers come before the T-th unstable one on average.  With scores
a query at unanimity uses ``u (1 + u)`` units on average and is stable with probability
``(1 - u) (1 + u)``, which comes to the same figure.

A noisy vote has no unstable answers: only chunks without rows make it hopeless.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from app.privacy.budget.ensemble_size import distance_at_unanimity
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration

if TYPE_CHECKING:
    from app.privacy.budget.calibration import Calibration

STABLE_ANSWERS_MIN: Final = 50
"""Stable answers at unanimity that an opening needs to be worth its charge."""


def stable_answers(*, cutoff: int, unstable_probability: float) -> float:
    """Return how many stable answers come before the T-th unstable one, on average."""
    if unstable_probability <= 0:
        return math.inf
    return cutoff * (1 - unstable_probability) / unstable_probability


def hopeless_reasons(
    calibration: Calibration, *, ensemble_size: int, sampled_row_count: int
) -> tuple[str, ...]:
    """Say why an opening is hopeless; nothing where it is not.

    Args:
        calibration: of the answers' share, as it serves.
        ensemble_size: k.
        sampled_row_count: n', the rows that are cut into chunks.

    """
    if ensemble_size > sampled_row_count:
        learners = f"{ensemble_size} learners need at least as many rows"
        return (f"{learners}; there are {sampled_row_count}",)
    if isinstance(calibration, NoisyVoteCalibration):
        return ()
    probability = calibration.hit_probability(distance_at_unanimity(ensemble_size))
    expected = stable_answers(cutoff=calibration.cutoff, unstable_probability=probability)
    if expected >= STABLE_ANSWERS_MIN:
        return ()
    reason = (
        f"even if all k = {ensemble_size} learners agree, an answer is unstable with probability"
        f" {probability:.3g}, and T = {calibration.cutoff} unstable ones come after"
        f" {expected:.3g} stable ones on average, fewer than {STABLE_ANSWERS_MIN}"
    )
    return (reason,)
