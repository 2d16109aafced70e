"""The table of hypothesis classes, by their names in a configuration.

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
from app.learning.lists.class_row import INTERVALS, RECTANGLES, THRESHOLDS
from app.learning.lists.enumerated_class import refuse_labels, refuse_size
from app.learning.predictors.class_row import OWN_PREDICTORS
from app.learning.predictors.predictor_classes import is_predictor_kind
from app.learning.trees.class_row import STUMPS, TREES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.hypothesis import ClassAsked, ClassRow, HypothesisClass
    from app.learning.lists.enumerated_class import EnumeratedClass

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
    """Return the table entry of a class, by its name or by a user's import path.

    Raises:
        ConfigurationError: there is no such class.

    """
    row = OWN_PREDICTORS if is_predictor_kind(kind) else CLASSES.get(kind)
    if row is None:
        problem = f"unknown class {kind!r}: use one of {', '.join(CLASSES)}"
        raise ConfigurationError("hypotheses.class", problem)
    return row


def row_of(searched: HypothesisClass) -> ClassRow:
    """Return the table entry of an existing class object.

    Raises:
        ConfigurationError: no rule searches it.

    """
    rows = [row for row in CLASSES.values() if row.searched is type(searched)]
    if not rows:
        raise ConfigurationError("learner.rule", "no rule searches this hypothesis class")
    listed = type(getattr(searched, "hypotheses", None))
    return next((row for row in rows if row.listed is listed), rows[0])


def hypothesis_class(asked: ClassAsked) -> HypothesisClass:
    """Return a configured hypothesis class over public binary tests.

    Trees and stumps take every test, and the others the numeric ones.  Without any test only
    the constants are left, as public points that are all alike leave them.

    Raises:
        ConfigurationError: an unknown kind, more than two labels for a class
            of two sides, or more hypotheses than exact weights can serve.

    """
    return _known(asked).make(asked)


def dichotomy_class(asked: ClassAsked, values: NDArray[np.float64]) -> EnumeratedClass:
    """Return a listed class: one hypothesis for each way in which a class labels private rows.

    Args:
        asked: of whose features in use the points are labelled by cuts anywhere; a class of
            a user's own predictors is told nothing of the points.
        values: the points, encoded by the public schema, shape ``(m, d)``.

    Returns:
        Exactly one hypothesis for every labelling of the points.  Secret, as
        the points are; its size must not be told either.

    Raises:
        ConfigurationError: what :func:`dichotomy_count_bound` tells is too
            much to list; it depends on public numbers only.

    """
    row = _known(asked)
    if not is_predictor_kind(asked.kind):
        bound = row.dichotomy_bound(asked, len(values))
        refuse_size(bound, f"labellings by {asked.kind} of {len(values)} rows", advice=FEWER_POINTS)
    return row.dichotomies(asked, values)


def dichotomy_count_bound(asked: ClassAsked, row_count: int) -> int:
    """Return a public bound on the number of ways in which a class can label private rows.

    For thresholds and intervals on one feature, and for halfspaces, it is the
    number for points in general position.  Rectangles and trees are listed
    before those that label the points alike are told apart, and it is the
    number listed, as it is for predictors.

    Raises:
        ConfigurationError: an unknown kind, or labels that it cannot give.

    """
    return _known(asked).dichotomy_bound(asked, row_count)


def _known(asked: ClassAsked) -> ClassRow:
    """Return the row of a class that is asked, once its labels can be given."""
    row = class_row(asked.kind)
    if row.numbers is not None:
        refuse_labels(asked.kind, asked.class_count)
    return row
