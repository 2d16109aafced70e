"""The interface that every learner of a published classifier has in ``learner_table.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from app.learning.trees.region_tables import tell_nobody
from app.privacy.exponential.scored_tree import NEWEST_DIVISION

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from app.data.plane.streamed_rows import AnyRows
    from app.data.schema import Schema
    from app.learning.hypothesis import HypothesisClass
    from app.learning.trees.region_tables import Told
    from app.noise.source import NoiseSource
    from app.privacy.budget.composition import Charge
    from app.privacy.published_learners import PublishedLearner
    from app.release.classifier.written_hypotheses import Written
    from app.settings.settings import Settings


FIRST_INPUTS: Final = 1
NEWEST_INPUTS: Final = 2
"""Versions of the rule by which public numbers and points give a score its inputs.

By the first there are tests of `bins` as configured, and waves; by the second there are numbers
too, values that many points share have cuts, and `bins` that are not configured follow n.
"""


class ClassifierDraw(Protocol):
    """The interface of a random draw of a classifier, whose parameters are public."""

    def worth(self, source: str) -> str:
        """Return a text on the accuracy to expect; ``source`` says where the inputs come from."""
        ...

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Return a drawn classifier in its published form; its budget was charged before.

        Args:
            schema: the public schema.
            rows: private.
            noise: where the draw comes from.
            told: of how far it has come, by public numbers, where it takes long.

        """
        ...


@dataclass(frozen=True, slots=True)
class ClassifierAsked:
    """The public values that fix a classifier's draw: settings, budget, points, number of rows.

    Attributes:
        settings: the whole configuration.
        charge: of the classifier.
        public_values: encoded public points, shape (m, d); m may be 0.
        row_count: the public n.
        is_first: whether nothing is charged yet, so that a draw of hours is refused.
        inputs: version of the release's rule of inputs.
        division: version of the rule that divides epsilon over a tree and its leaves.

    """

    settings: Settings
    charge: Charge
    public_values: NDArray[np.float64]
    row_count: int
    is_first: bool = False
    inputs: int = NEWEST_INPUTS
    division: int = NEWEST_DIVISION


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerRow:
    """A row of the table of learners: how a classifier is drawn, and how rare a label may be.

    Attributes:
        learner: its public row, by whose name it is chosen.
        prepare: the draw that public numbers and points fix; refuses what could not be drawn.
        smallest_share: the share of the rows that a label must have, lest the noise hide it;
            ``public_values`` may be none, which gives a bound of it.
        drawn_class: the class that it draws from, as public points fix it; None without one.

    """

    learner: PublishedLearner
    prepare: Callable[[ClassifierAsked], ClassifierDraw]
    smallest_share: Callable[[ClassifierAsked], float]
    drawn_class: Callable[[Settings, NDArray[np.float64]], HypothesisClass] | None = None
