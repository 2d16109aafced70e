"""Theorem A's table over the reals: what a change would give, without its exact search.

The integers that serve take seconds to find where epsilon is small or T is large, and a
plot asks for dozens of tables.  In doubles a table takes a fifth of that, and differs
from the one that serves by about 1e-5 of each probability (a test compares them).  No
release rests on it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.privacy.stability.curve import HELD_BELOW
from app.privacy.stability.hit_table import real_valued_hit_probability
from app.privacy.stability.profile_parameters import EPSILON_KEY, refuse_out_of_range

if TYPE_CHECKING:
    from fractions import Fraction

ENTRY_COUNT_MAX: Final = 12_000
"""Distances after which a table is given up: about a second of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateProfile:
    """A table in doubles.

    Attributes:
        cutoff: unstable answers T until the halt.
        hits: probability of a hit at each distance; beyond the end the last holds.

    """

    cutoff: int
    hits: tuple[float, ...]

    def hit_probability(self, distance: int) -> float:
        """Return the probability of a hit at this distance."""
        return self.hits[min(distance, len(self.hits) - 1)]

    def distance_at(self, probability: float) -> int:
        """Return the smallest distance whose hits are at most this probable, or the last."""
        found = bisect_left(self.hits, -probability, key=lambda hit: -hit)
        return min(found, len(self.hits) - 1)


@lru_cache(maxsize=64)
def approximate_profile(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> ApproximateProfile:
    """Return the table of a budget, in doubles.

    Args:
        epsilon: share of epsilon for the answers, above 0.
        delta: share of delta for the answers, in (0, 1).
        cutoff: T, at least 1.

    Raises:
        ConfigurationError: where a table that serves would be refused, or is too long
            for a quick look.

    """
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=cutoff)
    points = real_valued_hit_probability(
        epsilon=float(epsilon), delta=float(delta), cutoff=cutoff, count_max=ENTRY_COUNT_MAX
    )
    if points[-1].hit >= HELD_BELOW:
        problem = f"needs a table of more than {ENTRY_COUNT_MAX} entries at this cutoff"
        raise ConfigurationError(EPSILON_KEY, problem)
    return ApproximateProfile(cutoff=cutoff, hits=tuple(point.hit for point in points))
