"""Made-up people and rules, by public shares: on them planning tries out how learners agree.

No private row has a part in them.  A person's features are independent, each by its
public shares, or are those of a public point; a rule is any hypothesis of the public
class, each as likely as any other, but for the constant ones.  Seeds are public: the
same people and rules every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from app.ensembles.learner_seeds import generator
from app.errors import invariant
from app.hypotheses.cell_class import CellClass, CellLabels
from app.hypotheses.enumerated_class import EnumeratedClass, EnumeratedHypothesis
from app.hypotheses.threshold_class import ThresholdClass
from app.hypotheses.tree_class import TreeClass
from app.hypotheses.trees import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.ensembles.learner_seeds import LearnerGenerator
    from app.hypotheses.hypothesis_class import Hypothesis, HypothesisClass
    from app.hypotheses.hypothesis_list import Encoded

# Draws after which a constant rule is taken: the class may have no other.
ATTEMPTS_MAX: Final = 32


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


def made_up_hypothesis(searched: HypothesisClass, people: Encoded, seed: bytes) -> Hypothesis:
    """Draw a hypothesis uniformly among those that do not label all ``people`` alike.

    Args:
        searched: the public class.
        people: made-up rows as the class encodes them.
        seed: public.

    Returns:
        A constant one only where so many draws gave no other.

    """
    drawn = generator(seed)
    for _ in range(ATTEMPTS_MAX):
        found = _hypothesis(searched, drawn)
        labels = found.predict(people)
        if (labels != labels[0]).any():
            break
    return found


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


def _hypothesis(searched: HypothesisClass, drawn: LearnerGenerator) -> Hypothesis:
    """Draw any hypothesis of a class, each as likely as any other."""
    if isinstance(searched, TreeClass):
        node_count = (1 << searched.depth) - 1
        tests = drawn.integers(0, max(1, len(searched.tests)), node_count)
        labels = drawn.integers(0, searched.class_count, node_count + 1)
        return Tree(test_indices=tuple(tests.tolist()), leaf_labels=tuple(labels.tolist()))
    if isinstance(searched, CellClass):
        cells = drawn.integers(0, searched.class_count, searched.splits.cell_count)
        return CellLabels(tuple(cells.tolist()))
    if isinstance(searched, ThresholdClass):
        return searched.hypotheses[int(drawn.integers(0, searched.size))]
    return _listed(searched, drawn)


def _listed(searched: HypothesisClass, drawn: LearnerGenerator) -> Hypothesis:
    """Draw from a list, as every class that is no other is one."""
    invariant(isinstance(searched, EnumeratedClass), "other classes are lists")
    listed = cast("EnumeratedClass", searched).hypotheses
    index = int(drawn.integers(0, searched.size))
    return EnumeratedHypothesis(listed.take(np.array([index], dtype=np.int64)), index)
