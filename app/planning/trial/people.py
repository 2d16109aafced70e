"""Made-up people, by public shares: on them planning tries out how learners agree.

No private row has a part in them.  A person's features are independent, each by its
public shares, or are those of a public point.  Seeds are public: the same people every
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.learning.learner_seeds import generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.learner_seeds import LearnerGenerator


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnLaw:
    """How one feature is distributed, as far as the public knows.

    Attributes:
        edges: ends of a number's intervals, rising, one more than ``shares``; uniform
            within each.  None for a category.
        shares: of people in each interval, or with each code from 0; not all zero.

    """

    edges: tuple[float, ...] | None
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Population:
    """People as the public knows them.

    Attributes:
        laws: one a feature.
        points: encoded public points, shape ``(m, d)``, which stand for people in place
            of the laws; None without any.

    """

    laws: Sequence[ColumnLaw]
    points: NDArray[np.float64] | None = None

    def resampled(self, seed: bytes) -> Population:
        """Return as many of the points, drawn anew: by how much points differ from people.

        The laws say nothing of that, and stay.
        """
        if self.points is None:
            return self
        places = generator(seed).integers(0, len(self.points), len(self.points))
        return Population(self.laws, self.points[places])

    def distinct(self, row_count: int, seed: bytes) -> NDArray[np.float64]:
        """Draw people who differ, at most so many: nobody is answered anew who asks again."""
        people = self.rows(row_count, seed) if self.points is None else self.points
        _, places = np.unique(np.nan_to_num(people), axis=0, return_index=True)
        picked = generator(seed).permutation(len(places))[:row_count]
        found: NDArray[np.float64] = people[places[picked]]
        return found

    def rows(self, row_count: int, seed: bytes) -> NDArray[np.float64]:
        """Draw people independently, encoded values of shape ``(n, d)``."""
        drawn = generator(seed)
        if self.points is not None:
            places = drawn.integers(0, len(self.points), row_count)
            people: NDArray[np.float64] = self.points[places]
            return people
        values = np.empty((row_count, len(self.laws)))
        for index, law in enumerate(self.laws):
            values[:, index] = _column(law, row_count, drawn)
        return values


def _column(law: ColumnLaw, row_count: int, drawn: LearnerGenerator) -> NDArray[np.float64]:
    """Draw the values of one feature, shape ``(n,)``."""
    ends = np.cumsum(law.shares)
    pieces = np.searchsorted(ends, drawn.random(row_count) * ends[-1], side="right")
    # Rounding may carry a draw onto the total; the last piece stands for it.
    pieces = np.minimum(pieces, len(ends) - 1)
    if law.edges is None:
        codes: NDArray[np.float64] = pieces.astype(np.float64)
        return codes
    edges, parts = np.array(law.edges), drawn.random(row_count)
    # Parts of each end: the distance of two bounds may be no double.
    within: NDArray[np.float64] = edges[pieces] * (1.0 - parts) + edges[pieces + 1] * parts
    return within
