"""The exponential mechanism on records that are all alike but for one label.

All records have the same features.  The event is that the hypothesis drawn gives them the
label that one record has on one side and none on the other.  Its probability follows from
the class's own sums of weights, so the law is that of the tables which the draw uses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.outcome_events import Bound, epsilon_shown, strongest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.privacy.exponential.mechanism import Parameters

LOG_ODDS: Final = 18.0
"""So rare is the event that its complement hardly moves, and still far above any delta."""
ROWS_MAX: Final = 20_000


def rows_wanted(epsilon: float) -> int:
    """Return how many equal records make the event rare."""
    return min(ROWS_MAX, math.ceil(LOG_ODDS / epsilon) + 1)


def draw_bound(parameters: Parameters, point: NDArray[np.float64]) -> Bound:
    """Return the most that one draw shows.

    Args:
        parameters: of the draw, over as many rows as are wanted.
        point: encoded features, shape (d,); a public choice.

    """
    rows = parameters.row_count
    encoded = parameters.hypotheses.encode(np.repeat(point[None, :], rows, axis=0))
    epsilon = parameters.mechanism_epsilon

    def log_sum(first: int, others: int) -> float:
        labels = np.full(rows, others, dtype=np.int64)
        labels[0] = first
        return parameters.hypotheses.log_normaliser(encoded, labels, epsilon)

    found = []
    for label, other in ((0, 1), (1, 0)):
        log_count = _log_count(parameters, log_sum(label, label), epsilon)
        log_chances = (
            log_count - epsilon * (rows - with_label) / 2 - log_sum(first, other)
            for with_label, first in ((1, label), (0, other))
        )
        likely, unlikely = (np.exp(np.array([chance])) for chance in log_chances)
        shown = epsilon_shown(likely, unlikely, float(parameters.delta_truncation))
        text = f"{rows} equal records, one of which alone has label {label}: its label is drawn"
        found.append(Bound(float(shown[0]), text))
    return strongest(found)


def _log_count(parameters: Parameters, log_sum: float, epsilon: float) -> float:
    """Return the log of how many hypotheses give all records the label that they have.

    Of the others each weighs ``e^(-epsilon rows / 2)``.
    """
    log_weight = -epsilon * parameters.row_count / 2
    others = math.exp(math.log(parameters.hypotheses.size) + log_weight - log_sum)
    if others >= 1.0:
        return -math.inf
    return log_sum + math.log1p(-others) - math.log1p(-math.exp(log_weight))
