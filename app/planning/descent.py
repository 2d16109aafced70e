"""What a noisy descent is given: public functions of n, the budget and the tests.

No private number enters.  The constants were found on Adult, whose labels are public,
and hold for every data set: ``docs/learn.md`` says what they were tried on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.mechanisms.noisy_gradient import Descent


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentChoice:
    """The public choices of one descent.

    Attributes:
        ridge: added to every variance of a whitened direction.
        norm: length that whitened rows are cut to.
        constant: the coordinate that all rows share.
        descent: steps, rate, decay and averaging.

    """

    ridge: float
    norm: float
    constant: float
    descent: Descent


# Rows times epsilon at which noise and fit weigh alike, ...
WEIGHT_MIDDLE = 10_000.0
# ... and the choices far below it and far above.
RIDGES = (0.4, 0.02)
NORMS = (4.0, 8.0)
RATES = (0.8, 4.0)
STEPS = (10, 30)


def descent_choice(*, row_count: int, epsilon: float) -> DescentChoice:
    """Return the choices for a budget: finer directions and longer rows where there is more.

    Args:
        row_count: the public n.
        epsilon: of the whole descent.

    """
    weight = row_count * epsilon
    share = weight / (weight + WEIGHT_MIDDLE)
    step_count = round(_between(STEPS, share))
    return DescentChoice(
        ridge=_geometric(RIDGES, share),
        norm=_geometric(NORMS, share),
        constant=1.0,
        descent=Descent(
            step_count=step_count,
            rate=_geometric(RATES, share),
            decay=0.0,
            averaged_count=max(1, step_count // 2),
        ),
    )


def _between(ends: tuple[float, float], share: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * share


def _geometric(ends: tuple[float, float], share: float) -> float:
    return math.exp(_between((math.log(ends[0]), math.log(ends[1])), share))
