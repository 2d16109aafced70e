"""Hypothesis classes by the name they have in a configuration.

A class of a public grid is finite and fixed without the data.  The class of
the dichotomies of private points has one hypothesis for each labelling that
the whole class, with cuts anywhere, gives those points; how many there may be
is bounded by public numbers before a row is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.learning.cells.cell_class import CellClass
from app.learning.lists.boxes import axes_of, box_class, box_count, box_dichotomies, box_dimension
from app.learning.lists.enumerated_class import EnumeratedClass, refuse_labels, refuse_size
from app.learning.lists.thresholds import ThresholdClass
from app.learning.predictors.predictor_classes import FINITE, is_predictor_kind, predictor_class
from app.learning.trees.listed import tree_count_bound, tree_dichotomies
from app.learning.trees.tree_class import TreeClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellSplits
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.halfspaces.lattice import Lattice
    from app.learning.hypothesis import HypothesisClass
    from app.learning.predictors.predictor_classes import PredictorSource

CELLS = "cells"
KINDS = ("thresholds", "stumps", "intervals", "rectangles", "halfspaces", "trees", CELLS, FINITE)
TREE_KINDS = ("stumps", "trees")
FEWER_POINTS = (
    'use a public grid (hypotheses.grid = "public"), a smaller sample, or leave a feature out by '
    "an empty list of its tests"
)


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
    if is_predictor_kind(kind):
        return predictor_class(_given(predictors, kind), public_values)
    if kind == CELLS and splits is not None:
        return CellClass(splits=splits, class_count=class_count)
    _check_kind(kind, class_count)
    if kind in TREE_KINDS:
        levels = _levels(kind, depth) if tests else 0
        return TreeClass(tests=tuple(tests), depth=levels, class_count=class_count)
    if kind == "thresholds":
        return ThresholdClass(tests=tuple(test for test in tests if test.cut is not None))
    if kind == "halfspaces":
        # Imported only here: other classes start without it.
        from app.learning.halfspaces.halfspaces import grid_halfspaces  # noqa: PLC0415 -- as above

        return grid_halfspaces(tests, columns)
    return box_class(kind, axes_of(tests))


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
    if is_predictor_kind(kind):
        return predictor_class(_given(predictors, kind)).restricted_to(values)
    bound = dichotomy_count_bound(
        kind, len(values), columns, depth=depth, class_count=class_count, features=features
    )
    refuse_size(bound, f"labellings by {kind} of {len(values)} rows", advice=FEWER_POINTS)
    used = _used(columns, features)
    if kind in TREE_KINDS:
        levels = _levels(kind, depth)
        trees = tree_dichotomies(values, used, depth=levels, class_count=class_count)
        return EnumeratedClass(trees, len(trees).bit_length() - 1)
    numeric = [index for index, column in used.items() if column.bounds is not None]
    if kind == "halfspaces":
        from app.learning.halfspaces.halfspaces import halfspace_dichotomies  # noqa: PLC0415 -- as above

        return halfspace_dichotomies(_lattice(columns, numeric), values)
    boxes = box_dichotomies(kind, values, numeric)
    return EnumeratedClass(boxes, box_dimension(kind, len(numeric), size=len(boxes)))


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
    if is_predictor_kind(kind):
        return predictor_class(_given(predictors, kind)).size
    _check_kind(kind, class_count)
    used = _used(columns, features)
    if kind in TREE_KINDS:
        levels = _levels(kind, depth)
        return tree_count_bound(row_count, used, depth=levels, class_count=class_count)
    numeric = [index for index, column in used.items() if column.bounds is not None]
    if kind == "halfspaces":
        from app.learning.halfspaces.halfspaces import dichotomy_bound  # noqa: PLC0415 -- as above

        return dichotomy_bound(row_count, _lattice(columns, numeric).dimension)
    return box_count(kind, [max(0, row_count - 1)] * len(numeric))


def _given(predictors: PredictorSource | None, kind: str) -> PredictorSource:
    """Return where predictors come from, which a class of predictors must be told."""
    if predictors is None:
        raise ConfigurationError("hypotheses.class", f"{kind} needs its predictors")
    return predictors


def _check_kind(kind: str, class_count: int) -> None:
    """Refuse an unknown kind, and labels that it cannot give."""
    if kind not in KINDS or kind == CELLS:
        raise ConfigurationError(
            "hypotheses.class", f"unknown class {kind!r}: use one of {', '.join(KINDS)}"
        )
    if kind not in TREE_KINDS:
        refuse_labels(kind, class_count)


def _levels(kind: str, depth: int) -> int:
    """Return the depth of trees or of stumps."""
    return 1 if kind == "stumps" else depth


def _used(
    columns: Sequence[PublicColumn], features: Sequence[int] | None
) -> dict[int, PublicColumn]:
    """Return the columns of the features in use, by index."""
    indices = range(len(columns)) if features is None else features
    return {index: columns[index] for index in indices}


def _lattice(columns: Sequence[PublicColumn], numeric: Sequence[int]) -> Lattice:
    """Return the lattice over numeric features."""
    from app.learning.halfspaces.lattice import Lattice  # noqa: PLC0415 -- as above

    bounds = tuple(columns[index].bounds or (0.0, 1.0) for index in numeric)
    return Lattice(tuple(numeric), bounds)
