"""What any list of hypotheses does to points, without its own arithmetic."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.enumerated.hypothesis_list import HypothesisList


def labelings(hypotheses: HypothesisList, values: NDArray[np.float64]) -> NDArray[np.generic]:
    """Return the distinct labelings of points, one a row."""
    return np.unique(hypotheses.predict(hypotheses.encode(values)), axis=0)


def shatters(labels: NDArray[np.generic], size: int) -> bool:
    """Return whether some ``size`` of the points have all ``2**size`` labelings."""
    return any(
        len(np.unique(labels[:, list(chosen)], axis=0)) == 1 << size
        for chosen in combinations(range(labels.shape[1]), size)
    )
