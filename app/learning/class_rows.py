"""What a hypothesis class brings to a release: one row of :mod:`app.learning.registry`.

A row lies in its class's folder, in ``class_row.py``.  How a hypothesis is published is
added under the row's name by ``app.release.classifier.written_hypotheses``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellSplits
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.hypothesis import Ensemble, FittedEnsemble, Hypothesis, HypothesisClass
    from app.learning.lists.enumerated_class import EnumeratedClass
    from app.learning.predictors.predictor_classes import PredictorSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAsked:
    """What a configuration asks of a class; all of it public.

    Attributes:
        kind: the name of the class.
        tests: the public tests.
        columns: the public encoding of every feature.
        depth: depth of ``trees``.
        class_count: the number L of labels.
        features: indices of the features in use; None for all.
        predictors: where a user's own predictors come from.
        splits: the public partition of ``cells``.
        public_values: encoded public points that a class of one's own may depend on.

    """

    kind: str
    tests: Sequence[BinaryTest] = ()
    columns: Sequence[PublicColumn] = ()
    depth: int
    class_count: int
    features: Sequence[int] | None = None
    predictors: PredictorSource | None = None
    splits: CellSplits | None = None
    public_values: NDArray[np.float64] | None = None

    @property
    def used(self) -> dict[int, PublicColumn]:
        """The columns of the features in use, by index."""
        indices = range(len(self.columns)) if self.features is None else self.features
        return {index: self.columns[index] for index in indices}

    @property
    def numeric(self) -> list[int]:
        """The indices of the numbers in use."""
        return [index for index, column in self.used.items() if column.bounds is not None]

    @property
    def source(self) -> PredictorSource:
        """Where predictors come from, which a class of predictors must be told."""
        if self.predictors is None:
            raise ConfigurationError("hypotheses.class", f"{self.kind} needs its predictors")
        return self.predictors


def no_dichotomies(asked: ClassAsked, *_: object) -> Never:
    """Refuse a private grid for a class that has none."""
    raise ConfigurationError("hypotheses.class", f"{asked.kind} has no private grid")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """A hypothesis class as learners search it; its functions take its own types.

    Attributes:
        kind: its name in a configuration.
        searched: the type of the class.
        listed: the type of its list; None for a class that is not listed.
        hypothesis: the type of what is drawn of it.
        drawn: what that is, in plain words.
        numbers: the least and the most numeric features with a test that it takes, where it
            is a class of two labels over numbers; the most is None for any.
        takes_tests: whether it needs a test, of whatever feature.
        covers: whether a grid meets its cells, so that a table of statistics may cover it.
        make: the class over public tests.
        dichotomies: the class of the labellings of private points.
        dichotomy_bound: how many those are at most, by the number of points.
        fit: learners on chunks, by a rule.
        read: those learners, from their bytes.
        best: the hypothesis of least errors, which a student learns.
        check: refuses a rule, or scores, that its learners do not have.
        tests: what its hypotheses ask.
        splits: the public cells that its learners vote by; None where they do not.
        search_seconds: what fitting learners takes; None for a search of a list.
        refuse_search: refuses learners that would take hours.
        refuse_rows: refuses a draw that would take hours.
        is_quick: whether the time of a learner is known.

    """

    kind: str
    searched: type
    listed: type | None = None
    hypothesis: type
    drawn: str
    numbers: tuple[int, int | None] | None = None
    takes_tests: bool = False
    covers: bool = False
    make: Callable[[ClassAsked], HypothesisClass]
    dichotomies: Callable[[ClassAsked, NDArray[np.float64]], EnumeratedClass] = no_dichotomies
    dichotomy_bound: Callable[[ClassAsked, int], int] = no_dichotomies
    fit: Callable[..., FittedEnsemble]
    read: Callable[..., Ensemble]
    best: Callable[..., Hypothesis]
    check: Callable[..., None] = lambda *_: None
    tests: Callable[..., Sequence[BinaryTest]] = lambda _: ()
    splits: Callable[..., CellSplits] | None = None
    search_seconds: Callable[..., float] | None = None
    refuse_search: Callable[..., None] = lambda *_, **__: None
    refuse_rows: Callable[..., None] = lambda *_: None
    is_quick: bool = True
