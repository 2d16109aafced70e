"""What a noisy descent is given: public functions of n and of the budget.

No private number enters; ``docs/learn.md`` says what the constants were tried on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Rows times epsilon from which there is enough for steps towards ever larger weights.
PLENTY: Final = 10_000.0
# Below it steps are equal: the filter averages over them, so that many cost little; ...
STEPS_EQUAL: Final = (1,) * 16
DISCOUNT_EQUAL: Final = 1.0
# ... above it later steps, whose iterates are nearer, are more precise.
STEPS_GROWING: Final = tuple(range(1, 31))
DISCOUNT_GROWING: Final = 2.0
# The variance of a weight that is held likely is one for so many rows times epsilon.
ROWS_PER_VARIANCE: Final = 400.0
VARIANCE_MIN: Final = 3.0
VARIANCE_MAX: Final = 100.0
INTERCEPT_PRECISION: Final = 0.1
# Rows are cut to this times the usual length of public points.
LENGTH: Final = 0.8
# How much of the noise's power the smallest direction worth keeping has.
RIDGE: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentChoice:
    """The public choices of one descent.

    Attributes:
        step_weights: how precise each step is.
        discount: power with which early steps lose weight.
        weight_variance: of a weight in the scaled terms' directions, held likely.
        intercept_precision: with which the intercept is held to be zero.
        length: rows are cut to, times the usual length of public points.
        ridge: of a direction's variance, relative to what noise allows.

    """

    step_weights: tuple[int, ...]
    discount: float
    weight_variance: float
    intercept_precision: float = INTERCEPT_PRECISION
    length: float = LENGTH
    ridge: float = RIDGE


def descent_choice(*, row_count: int, epsilon: float) -> DescentChoice:
    """Return the choices for a budget: larger weights are held likely where there is more.

    Args:
        row_count: the public n.
        epsilon: of the whole descent.

    """
    weight = row_count * epsilon
    variance = min(VARIANCE_MAX, max(VARIANCE_MIN, weight / ROWS_PER_VARIANCE))
    if weight < PLENTY:
        return DescentChoice(
            step_weights=STEPS_EQUAL, discount=DISCOUNT_EQUAL, weight_variance=variance
        )
    return DescentChoice(
        step_weights=STEPS_GROWING, discount=DISCOUNT_GROWING, weight_variance=variance
    )
