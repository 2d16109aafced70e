"""One number for many: the one within a factor of two of which most of them lie.

On a cliff made-up rules part into some that run to the end and some that fall off, and a
mean or a median lies where none of them does.  What is printed is then the number that is
most likely to be right within a factor of two, with how likely that is, and what the rest
gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FACTOR: Final = 2.0
# Fewer labels than half of one are none, whatever the factor.
LEAST: Final = 0.5
# What rounds to the ends is within them.
SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Likely:
    """What many numbers come to.

    Attributes:
        number: within a factor of two of which most of them lie.
        share: how many do, as a share of all.
        otherwise: the middle one of all others; None where there is none.

    """

    number: float
    share: float
    otherwise: float | None


def likely(numbers: NDArray[np.float64]) -> Likely:
    """Return the number that is within a factor of two of most, shape ``(H,)``, H at least 1.

    Of windows from a number to four times it the fullest is taken, the highest of equal
    ones, and in it the median, moved so far that the whole window is within the factor.
    """
    rising = np.sort(np.maximum(numbers, LEAST))
    ends = np.searchsorted(rising, rising * FACTOR**2 * (1 + SLACK), side="right")
    held = ends - np.arange(len(rising))
    first = int(np.flatnonzero(held == held.max())[-1])
    window = rising[first : ends[first]]
    lowest, highest = float(window[-1]) / FACTOR, float(window[0]) * FACTOR
    number = float(np.clip(np.median(window), lowest, highest))
    inside = (rising >= number / FACTOR * (1 - SLACK)) & (rising <= number * FACTOR * (1 + SLACK))
    others = rising[~inside]
    return Likely(number, float(inside.mean()), float(np.median(others)) if len(others) else None)
