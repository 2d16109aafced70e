"""A noisy descent on two records that move its sums as far as any two were found to.

The noise is discrete Gaussian, so wide that its law along the shift is the normal one;
what is wrong by that is far below a rounding of epsilon.  The shift is computed by the
mechanism's own sums, at the iterate where the descent starts; a record whose score is
zero at every iterate moves each step's sum as much.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.outcome_events import Bound
from app.learning.linear.integer_residuals import score_count
from app.privacy.noisy_gradient.mechanism import gradient_sum, whole_weights

if TYPE_CHECKING:
    from app.privacy.noisy_gradient.mechanism import Parameters

BISECTIONS: Final = 100
EPSILON_MAX: Final = 2000.0


def gradient_bound(parameters: Parameters, *, delta: float) -> Bound:
    """Return the epsilon that all steps together show, at delta, for one label replaced.

    Args:
        parameters: of the draw.
        delta: what the charge allows.

    """
    features = parameters.features
    vector = np.zeros((1, features.width), dtype=np.int16)
    vector[0, 0] = features.norm_bound
    weights = whole_weights(np.zeros((features.width, score_count(parameters.class_count))))
    sums = [
        gradient_sum(features, vector, np.array([label], dtype=np.int64), weights)
        for label in (0, 1)
    ]
    moved = float(np.sqrt(((sums[0] - sums[1]).astype(np.float64) ** 2).sum()))
    steps = parameters.step_count
    # Steps that move alike add up: squares of what each moves, in deviations of its noise.
    separation = sum(moved**2 / float(parameters.step_variance(step)) for step in range(steps))
    shown = shown_epsilon(math.sqrt(separation), delta)
    return Bound(shown, f"the label of one record at full length is replaced, in {steps} steps")


def shown_epsilon(separation: float, delta: float) -> float:
    """Return the epsilon at which two normal laws this many deviations apart show delta."""
    if _delta_at(0.0, separation) <= delta:
        return 0.0
    low, high = 0.0, EPSILON_MAX
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta_at(middle, separation) > delta else (low, middle)
    return low


def _delta_at(epsilon: float, separation: float) -> float:
    """Return the delta of two normal laws at an epsilon."""
    first = _above(epsilon / separation - separation / 2)
    second = _above(epsilon / separation + separation / 2)
    return first - math.exp(min(epsilon, 700.0)) * second


def _above(deviations: float) -> float:
    """Return the chance of a standard normal beyond so many deviations."""
    return math.erfc(deviations / math.sqrt(2)) / 2
