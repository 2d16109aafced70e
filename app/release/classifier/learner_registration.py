"""The interface that every learner of a published classifier has in ``learner_table.py``.

Some learners publish linear or kernel scores: weighted sums of inputs. The largest score, or the
sign of the only one, decides the label. Inputs are results of feature tests, values of numeric
features, and cosines of random weighted sums of these values. A public rule selects these inputs,
and another divides epsilon between the draw of a tree and the noisy counts in its leaves. A later
version of the program may change these rules, so each has a version number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from app.learning.trees.upper_level_weights import tell_nobody
from app.privacy.exponential.scored_tree import NEWEST_DIVISION

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.learning.hypothesis import HypothesisClass
    from app.learning.trees.upper_level_weights import Told
    from app.noise.source import NoiseSource
    from app.privacy.budget.composition import Charge
    from app.privacy.learner_properties import PublishedLearner
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
        """Return a text for the operator on the accuracy to expect from this draw.

        Args:
            source: words to insert into the text, which say from what the parameters of the draw
                follow, for example ``that the schema fixes``.

        """
        ...

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Return a drawn classifier in its published form; its budget was charged before.

        Args:
            schema: the public schema.
            rows: the private rows.
            noise: the source of randomness.
            told: a function that is given the finished and the total number of steps of a long
                draw; both are public.

        """
        ...


@dataclass(frozen=True, slots=True)
class ClassifierAsked:
    """The public values that fix a classifier's draw: settings, budget, points, number of rows.

    Attributes:
        settings: the whole configuration.
        charge: the classifier's share of epsilon and delta.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.
        row_count: the public number n of rows, or of persons.
        is_first: whether nothing is charged yet; then a draw that would take hours is refused.
        inputs: the version of the rule that selects a score's inputs.
        division: the version of the rule that divides epsilon between the draw of a tree and the
            counts in its leaves.

    """

    settings: Settings
    charge: Charge
    public_values: NDArray[np.float64]
    row_count: int
    is_first: bool = False
    inputs: int = NEWEST_INPUTS
    division: int = NEWEST_DIVISION


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerRegistration:
    """An entry of the table of learners: how a classifier is drawn, and how rare a label may be.

    Attributes:
        learner: the learner's name and public properties, for example whether it uses delta.
        prepare: a function that returns the draw for given public values, and raises an error if
            the draw would be impossible.
        smallest_share: a function that returns the fraction of rows that must have a label so that
            the label is learned despite the noise. This fraction can depend on the public points;
            if they are not known yet (empty ``public_values``), the result is an upper bound on it.
        drawn_class: a function that returns, for given public points, the hypothesis class from
            which the classifier is drawn; None if the learner draws from no class.

    """

    learner: PublishedLearner
    prepare: Callable[[ClassifierAsked], ClassifierDraw]
    smallest_share: Callable[[ClassifierAsked], float]
    drawn_class: Callable[[Settings, NDArray[np.float64]], HypothesisClass] | None = None
