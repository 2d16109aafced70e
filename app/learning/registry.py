"""The table of hypothesis classes, by their names in a configuration.

A hypothesis class over a public grid is finite and fixed without the private rows. The other kind
of class lists every labelling that hypotheses with cuts (thresholds) at any value can give to the
private rows. Before a row is read, a bound on the number of these labellings is computed from the
public number of rows and the public choices of the configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.learning.cells.class_registration import CELLS
from app.learning.enumerated.class_registration import INTERVALS, RECTANGLES, THRESHOLDS
from app.learning.enumerated.enumerated_class import refuse_labels, refuse_size
from app.learning.halfspaces.class_registration import HALFSPACES
from app.learning.predictors.class_registration import OWN_PREDICTORS
from app.learning.predictors.predictor_classes import is_predictor_kind
from app.learning.trees.class_registration import STUMPS, TREES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.enumerated.enumerated_class import EnumeratedClass
    from app.learning.hypothesis import ClassAsked, ClassRegistration, HypothesisClass

CLASSES: dict[str, ClassRegistration] = {
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


def class_registration(kind: str) -> ClassRegistration:
    """Return the table entry of a hypothesis class, by the class's name or the user's import path.

    Raises:
        ConfigurationError: there is no such class.

    """
    row = OWN_PREDICTORS if is_predictor_kind(kind) else CLASSES.get(kind)
    if row is None:
        problem = f"unknown class {kind!r}: use one of {', '.join(CLASSES)}"
        raise ConfigurationError("hypotheses.class", problem)
    return row


def row_of(searched: HypothesisClass) -> ClassRegistration:
    """Return the table entry of a hypothesis class, given the class itself and not its name.

    Raises:
        ConfigurationError: no built-in learner searches a class of this type.

    """
    rows = [row for row in CLASSES.values() if row.searched is type(searched)]
    if not rows:
        raise ConfigurationError("learner.rule", "no rule searches this hypothesis class")
    listed = type(getattr(searched, "hypotheses", None))
    return next((row for row in rows if row.listed is listed), rows[0])


def hypothesis_class(asked: ClassAsked) -> HypothesisClass:
    """Return a configured hypothesis class over public yes-or-no tests of features.

    Trees and stumps use every test, and the other classes use the tests of numeric features.
    Without tests, the class has only the hypotheses that give every row the same label.

    Args:
        asked: the public choices of the configuration.

    Raises:
        ConfigurationError: the class is unknown, has more than two labels although it supports only
            two, or has too many hypotheses for an exact random draw.

    """
    return _known(asked).make(asked)


def dichotomy_class(asked: ClassAsked, values: NDArray[np.float64]) -> EnumeratedClass:
    """Return a class with one hypothesis for each way in which a class labels private rows.

    Args:
        asked: the public choices of the configuration. The hypotheses may cut the features in use
            at any value. Predictors that a user wrote are listed without looking at the rows.
        values: feature values of the rows, encoded by the public schema, shape
            ``(rows, features)``.

    Returns:
        Exactly one hypothesis for every labelling of the rows. The class is secret, since it
        depends on the rows; its size must not be revealed either.

    Raises:
        ConfigurationError: there may be too many labellings to list. This depends only on
            the public bound that :func:`dichotomy_count_bound` returns.

    """
    row = _known(asked)
    if not is_predictor_kind(asked.kind):
        bound = row.dichotomy_bound(asked, len(values))
        refuse_size(bound, f"labellings by {asked.kind} of {len(values)} rows", advice=FEWER_POINTS)
    return row.dichotomies(asked, values)


def dichotomy_count_bound(asked: ClassAsked, row_count: int) -> int:
    """Return a public bound on the number of ways in which a class can label private rows.

    For halfspaces, and for thresholds and intervals on one feature, it is the number of labellings
    of points in general position. For rectangles, trees and predictors it is the number of
    listed hypotheses, even if several of them label all rows equally.

    Args:
        asked: the public choices of the configuration.
        row_count: the public number of rows.

    Raises:
        ConfigurationError: the class is unknown, or does not support the number of labels.

    """
    return _known(asked).dichotomy_bound(asked, row_count)


def _known(asked: ClassAsked) -> ClassRegistration:
    """Return the row of a class that is asked, once its labels can be given."""
    row = class_registration(asked.kind)
    if row.numbers is not None:
        refuse_labels(asked.kind, asked.class_count)
    return row
