"""By how much a model's probabilities miss a row's label, in integers of a public table.

A miss counts for half of a whole at most: the loss is the logistic one where a row is on
its label's side, and linear beyond.  So two rows differ by no more than a whole, whatever
the model.  The model's scores are integers on a public grid, and so is the result: what a row
gives depends on its own scores and its own label, and on nothing that is rounded by
circumstances.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINARY: Final = 2
# What a probability of one is written as.
WHOLE: Final = 1 << 10
HALF: Final = WHOLE // 2
# Scores are told apart on this grid, up to 16 above or below zero.
SCORE_STEPS: Final = 1 << 7
SCORE_MAX: Final = 16
# Odds of more than two classes, before they are divided.
ODDS: Final = 1 << 20

_PLACES: Final = SCORE_MAX * SCORE_STEPS
_ABOVE: Final = np.array(
    [round(WHOLE / (1 + math.exp(-(place + 0.5) / SCORE_STEPS))) for place in range(_PLACES)],
    dtype=np.int64,
)
# What lies below zero is what the mirrored place leaves of a whole, to the last unit.
_LOGISTIC: Final = np.concatenate([WHOLE - _ABOVE[::-1], _ABOVE])
_DECAY: Final = np.array(
    [round(ODDS * math.exp(-place / SCORE_STEPS)) for place in range(_PLACES + 1)],
    dtype=np.int64,
)


def score_count(class_count: int) -> int:
    """Return how many scores a row has: one of two classes, else one a class."""
    return 1 if class_count == BINARY else class_count


def squared_length_bound(class_count: int) -> int:
    """Bound the squared length of the residuals of one row.

    With two classes there is one, between -:data:`HALF` and :data:`HALF`.  With more the
    label's lies in [-:data:`HALF`, 0], the others are not negative, and they add up to
    no more than the label's magnitude.
    """
    return HALF**2 if class_count == BINARY else 2 * HALF**2


def logistic(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return probabilities of scores in steps, in units of 1/:data:`WHOLE`; never decreasing."""
    return np.asarray(_LOGISTIC[np.clip(scores, -_PLACES, _PLACES - 1) + _PLACES])


def residuals(scores: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return probabilities less the label's indicator, cut, in units of 1/:data:`WHOLE`.

    Args:
        scores: in steps of 1/:data:`SCORE_STEPS`, shape ``(n, s)``.
        labels: class indices, shape ``(n,)``.

    Returns:
        Shape ``(n, s)``: with one score, of the second of two classes.

    """
    if scores.shape[1] == 1:
        missed = np.clip(logistic(scores[:, 0]) - WHOLE * labels, -HALF, HALF)
        return np.asarray(missed, dtype=np.int64).reshape(-1, 1)
    behind = np.minimum(scores.max(axis=1, keepdims=True) - scores, _PLACES)
    odds = _DECAY[behind]
    shares = odds * WHOLE // odds.sum(axis=1, keepdims=True)
    own = np.arange(len(labels)), labels
    shares[own] -= WHOLE
    excess = np.maximum(-shares[own], HALF)[:, None]
    shares[own] = np.maximum(shares[own], -HALF)
    others = np.ones(shares.shape, dtype=bool)
    others[own] = False
    shares = np.where(others, shares * HALF // excess, shares)
    return np.asarray(shares, dtype=np.int64)
