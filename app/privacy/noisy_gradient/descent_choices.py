"""Public choices for noisy gradient descent, as functions of n and the privacy budget.

No private number is used; ``docs/utility.md`` names the data on which the constants were tried.

A linear score is a weighted sum of a row's features, by which a linear classifier chooses a label.
A kernel score is a linear score whose features include waves, which are random cosine features of
the numeric features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fractions import Fraction

# Steps at so many rows times epsilon, ...
STEPS: Final = 8.0
ROWS: Final = 3000.0
# ... and the power with which they grow: more steps cost noise, and fewer leave the way unfinished.
STEPS_POWER: Final = 0.4
STEPS_MIN: Final = 6
STEPS_MAX: Final = 30
# A step goes so many times the mean gradient along whitened coordinates.
RATE: Final = 1.5
# Rows are cut to this times half the usual length of public points.
LENGTH: Final = 1.2
# How many times the noise's power a direction's curvature is held to be.
RIDGE: Final = 432.0
# A kernel score takes more steps where there is more, cuts rows to the public points' median
# length, and has so many waves.
KERNEL_STEPS_MAX: Final = 60
KERNEL_LENGTH: Final = 1.0
WAVE_COUNT: Final = 300
# Its waves follow numbers, so it cuts them into so many intervals, where the configuration does
# not say.
KERNEL_BINS: Final = 8
# Rows times epsilon from which noise on sums costs less than a tree's coarseness, on people
# who are made up: docs/utility.md, "Which learner".
LINEAR_FROM: Final = 1000
# Waves of more numbers find less that tests do not, ...
NUMBERS_MAX: Final = 8
# ... and of more than so many they take so many rows times epsilon a number: docs/utility.md.
FEW_NUMBERS: Final = 4
KERNEL_FROM_A_NUMBER: Final = 1500
# All numbers together are cut into so many times the fourth root of rows times epsilon, ...
CUTS: Final = 10.0
CUTS_POWER: Final = 0.25
# ... and each into at least and at most so many intervals: docs/utility.md, "Cuts and numbers".
BINS_MIN: Final = 4
BINS_MAX: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentChoice:
    """The public choices for one gradient descent: steps, and clipping and scaling of rows.

    Attributes:
        step_count: the number of steps, all with the same noise.
        rate: the length of a step, as a multiple of the mean gradient.
        length: the length to which row vectors are clipped, as a multiple of a typical length of
            the public points' vectors: half their root mean square length or, for a kernel score,
            their median length.
        ridge: a factor of the constant that is added to the curvature of the loss in every
            direction, so that noise does not dominate where the curvature is small; more noise
            needs a larger constant.

    """

    step_count: int
    rate: float = RATE
    length: float = LENGTH
    ridge: float = RIDGE


def descent_choice(*, row_count: int, epsilon: float) -> DescentChoice:
    """Return the descent choices for a linear score; a larger budget gives more steps.

    Args:
        row_count: the public number n of rows.
        epsilon: the epsilon of the whole descent.

    """
    wanted = _steps_wanted(row_count, epsilon)
    return DescentChoice(step_count=min(STEPS_MAX, max(STEPS_MIN, wanted)))


def kernel_choice(*, row_count: int, epsilon: float) -> DescentChoice:
    """Return the descent choices for a kernel score; a larger budget gives more steps."""
    wanted = _steps_wanted(row_count, epsilon)
    step_count = min(KERNEL_STEPS_MAX, max(STEPS_MIN, wanted))
    return DescentChoice(step_count=step_count, length=KERNEL_LENGTH)


def choice_of(*, row_count: int, epsilon: float, has_waves: bool) -> DescentChoice:
    """Return the descent choices for a linear score, or for one with random cosine features."""
    chosen = kernel_choice if has_waves else descent_choice
    return chosen(row_count=row_count, epsilon=epsilon)


def score_bins(*, row_count: int, epsilon: float, number_count: int) -> int:
    """Return the default number of intervals into which a numeric feature is divided.

    Args:
        row_count: the public number n of rows.
        epsilon: the epsilon of the whole descent.
        number_count: the number of numeric features without feature tests in the configuration.

    """
    cuts = CUTS * math.pow(row_count * epsilon, CUTS_POWER)
    return min(BINS_MAX, max(BINS_MIN, round(cuts / max(number_count, 1))))


def _steps_wanted(row_count: int, epsilon: float) -> int:
    return round(STEPS * math.pow(row_count * epsilon / ROWS, STEPS_POWER))


def descends(*, row_count: int, epsilon: Fraction) -> bool:
    """Return whether gradient descent is expected to give a better classifier than a drawn tree.

    The tree is a decision tree drawn by the exponential mechanism.
    """
    return row_count * epsilon >= LINEAR_FROM


def waves_pay(*, row_count: int | None, epsilon: Fraction, number_count: int) -> bool:
    """Return whether a kernel score is expected to be the best classifier.

    Args:
        row_count: the public number n of rows; None if it is unknown, which counts as large.
        epsilon: the classifier's epsilon.
        number_count: the number of numeric features.

    """
    if not 1 <= number_count <= NUMBERS_MAX:
        return False
    least = LINEAR_FROM if number_count <= FEW_NUMBERS else KERNEL_FROM_A_NUMBER * number_count
    return row_count is None or row_count * epsilon >= least
