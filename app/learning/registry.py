"""Hypothesis classes by the name they have in a configuration.

A class of a public grid is finite and fixed without the data.  The class of
the dichotomies of private points has one hypothesis for each labelling that
the whole class, with cuts anywhere, gives those points; how many there may be
is bounded by public numbers before a row is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.learning.cells.class_row import CELLS
from app.learning.halfspaces.class_row import HALFSPACES
from app.learning.hypothesis import ClassAsked
from app.learning.lists.class_row import INTERVALS, RECTANGLES, THRESHOLDS
from app.learning.lists.enumerated_class import refuse_labels, refuse_size
from app.learning.predictors.class_row import OWN_PREDICTORS
from app.learning.predictors.predictor_classes import is_predictor_kind
from app.learning.trees.class_row import STUMPS, TREES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellSplits
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.hypothesis import ClassRow, HypothesisClass
    from app.learning.lists.enumerated_class import EnumeratedClass
    from app.learning.predictors.predictor_classes import PredictorSource

CLASSES: dict[str, ClassRow] = {
    row.kind: row
    for row in (
        THRESHOLDS,
        STUMPS,
        INTERVALS,
        RECTANGLES,
        HALFSPACES,
        TREES,
        CELLS,
        OWN_PREDICTORS,
    )
}
FEWER_POINTS = (
    'use a public grid (hypotheses.grid = "public"), a smaller sample, or leave a feature out by '
    "an empty list of its tests"
)


def class_row(kind: str) -> ClassRow:
    """Return the row of a class by its name, or by the import path of one's own.

    Raises:
        ConfigurationError: there is no such class.

    """
    row = OWN_PREDICTORS if is_predictor_kind(kind) else CLASSES.get(kind)
    if row is None:
        problem = f"unknown class {kind!r}: use one of {', '.join(CLASSES)}"
        raise ConfigurationError("hypotheses.class", problem)
    return row


def row_of(searched: HypothesisClass) -> ClassRow:
    """Return the row of a class that was made: by its list, where it is one of a known list.

    Raises:
        ConfigurationError: no rule searches it.

    """
    rows = [row for row in CLASSES.values() if row.searched is type(searched)]
    if not rows:
        raise ConfigurationError("learner.rule", "no rule searches this hypothesis class")
    listed = type(getattr(searched, "hypotheses", None))
    return next((row for row in rows if row.listed is listed), rows[0])


def hypothesis_class(
    kind: str,
    tests: Sequence[BinaryTest],
    *,
    depth: int,
    class_count: int,
    columns: Sequence[PublicColumn] = (),
    predictors: PredictorSource | None = None,
    splits: CellSplits | None = None,
    public_values: NDArray[np.float64] | None = None,
) -> HypothesisClass:
    """Build the class ``kind`` over public tests.

    Args:
        kind: ``thresholds``, ``stumps`` (trees of depth 1), ``intervals``,
            ``rectangles``, ``halfspaces``, ``trees``, ``cells``, ``finite`` or
            ``package.module:Class``.
        tests: the public tests; all kinds but trees and stumps use the
            numeric ones.  Without any test only the constants are left, as
            public points that are all alike leave them.
        depth: depth of ``trees``; the other kinds have their own.
        class_count: number of labels.
        columns: the public encoding of every feature, for halfspaces.
        predictors: where a user's own predictors come from, for the last two.
        splits: the public partition, for cells.
        public_values: encoded public points that a class of one's own may
            depend on, shape ``(m, d)``; None where it may not.

    Raises:
        ConfigurationError: an unknown kind, more than two labels for a class
            of two sides, or more hypotheses than exact weights can serve.

    """
    asked = ClassAsked(
        kind=kind,
        tests=tests,
        columns=columns,
        depth=depth,
        class_count=class_count,
        predictors=predictors,
        splits=splits,
        public_values=public_values,
    )
    return _known(asked).make(asked)


def dichotomy_class(
    kind: str,
    values: NDArray[np.float64],
    columns: Sequence[PublicColumn],
    *,
    depth: int,
    class_count: int,
    features: Sequence[int] | None = None,
    predictors: PredictorSource | None = None,
) -> EnumeratedClass:
    """Build the class of the dichotomies of private points by the whole class ``kind``.

    Args:
        kind: as for :func:`hypothesis_class`.
        values: the points, encoded by the public schema, shape ``(m, d)``.
        columns: the public encoding of every feature.
        depth: depth of ``trees``.
        class_count: number of labels.
        features: indices of the features in use; None for all.
        predictors: where a user's own predictors come from, whose class is
            told nothing of the points.

    Returns:
        Exactly one hypothesis for every labelling of the points.  Secret, as
        the points are; its size must not be told either.

    Raises:
        ConfigurationError: what :func:`dichotomy_count_bound` tells is too
            much to list; it depends on public numbers only.

    """
    asked = ClassAsked(
        kind=kind,
        columns=columns,
        depth=depth,
        class_count=class_count,
        features=features,
        predictors=predictors,
    )
    row = _known(asked)
    if not is_predictor_kind(kind):
        bound = row.dichotomy_bound(asked, len(values))
        refuse_size(bound, f"labellings by {kind} of {len(values)} rows", advice=FEWER_POINTS)
    return row.dichotomies(asked, values)


def dichotomy_count_bound(
    kind: str,
    row_count: int,
    columns: Sequence[PublicColumn],
    *,
    depth: int,
    class_count: int,
    features: Sequence[int] | None = None,
    predictors: PredictorSource | None = None,
) -> int:
    """Bound the hypotheses that :func:`dichotomy_class` lists for any rows of a number.

    For thresholds and intervals on one feature, and for halfspaces, it is the
    number for points in general position.  Rectangles and trees are listed
    before those that label the points alike are told apart, and it is the
    number listed, as it is for predictors.

    Raises:
        ConfigurationError: an unknown kind, or labels that it cannot give.

    """
    asked = ClassAsked(
        kind=kind,
        columns=columns,
        depth=depth,
        class_count=class_count,
        features=features,
        predictors=predictors,
    )
    return _known(asked).dichotomy_bound(asked, row_count)


def _known(asked: ClassAsked) -> ClassRow:
    """Return the row of a class that is asked, once its labels can be given."""
    row = class_row(asked.kind)
    if row.numbers is not None:
        refuse_labels(asked.kind, asked.class_count)
    return row
