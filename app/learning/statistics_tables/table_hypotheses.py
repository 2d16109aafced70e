"""The public feature tests and hypotheses from which a statistics table is built.

A statistics table contains one number for every labelling of public points (feature vectors) by
hypotheses of a class: the number of private rows to which the hypothesis gives label 1, with noise.
A table may use the classes ``COVERED_KINDS``: thresholds, stumps, intervals, rectangles and trees.
The labels of these hypotheses on all cells (parts of the feature space) are listed too. Therefore
the hypotheses and the cells must be few. If the operator lists tests of a feature, all of them are
used. For the other features, tests are chosen, at most the same number for each feature, so that
the table stays small.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import evaluate
from app.learning.enumerated.boxes import axes_of, box_class, box_count
from app.learning.statistics_tables.representative_domain import LABEL_COUNT_MAX, cover, refuse_grid
from app.learning.trees.tree_lists import covering_trees, tree_candidate_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.enumerated.hypothesis_list import HypothesisList

TREE_KINDS: Final = ("stumps", "trees")
COVERED_KINDS: Final = ("thresholds", "stumps", "intervals", "rectangles", "trees")
# What may be listed at all, and what tests are chosen for where they are not listed.
QUERY_COUNT_MAX: Final = 1 << 20
CHOSEN_QUERY_COUNT_MAX: Final = 1 << 14
CHOSEN_POINT_COUNT_MAX: Final = 1 << 14
TESTS_KEY: Final = "statistics.tests"
FEWER: Final = (
    "list fewer tests, leave a feature out by an empty list in [statistics.tests], or lower "
    "statistics.depth"
)


def levels_of(kind: str, depth: int) -> int:
    """Return the depth of the trees of a class: 1 for ``stumps``, else the given depth."""
    return 1 if kind == "stumps" else depth


def tests_of_kind(kind: str, tests: Iterable[BinaryTest]) -> tuple[BinaryTest, ...]:
    """Return the tests that a class uses: all for trees and stumps, else only numeric ones.

    Args:
        kind: the name of the hypothesis class.
        tests: all tests of features.

    """
    return tuple(test for test in tests if kind in TREE_KINDS or test.cut is not None)


def covering(
    kind: str, tests: Sequence[BinaryTest], public_values: NDArray[np.float64], *, depth: int
) -> HypothesisList:
    """Return one hypothesis of a class for each way in which the class can label public points.

    Args:
        kind: the name of the hypothesis class, one of ``COVERED_KINDS``.
        tests: the feature tests that the hypotheses use, as :func:`tests_of_kind` returns them.
        public_values: feature values of the points, encoded by the public schema, shape
            ``(points, features)``, at least one point.
        depth: the depth of trees.

    """
    if kind in TREE_KINDS:
        return covering_trees(tests, public_values, depth=levels_of(kind, depth))
    boxes = box_class(kind, axes_of(tests)).hypotheses
    return cover(boxes, boxes.encode(public_values))


def query_count_bound(kind: str, tests: Sequence[BinaryTest], *, depth: int) -> int:
    """Return an upper bound on the number of hypotheses in a table, for any public points.

    Args:
        kind: the name of the hypothesis class, one of ``COVERED_KINDS``.
        tests: the feature tests that the hypotheses use.
        depth: the depth of trees.

    """
    if kind in TREE_KINDS:
        return tree_candidate_count(len(tests), depth=levels_of(kind, depth))
    return box_count(kind, list(_counts(tests).values()))


def point_count(tests: Sequence[BinaryTest]) -> int:
    """Return the number of joint outcomes of feature tests, a bound on the number of cells."""
    return math.prod(count + 1 for count in _counts(tests).values())


def refuse_table(kind: str, tests: Sequence[BinaryTest], *, depth: int) -> None:
    """Refuse a statistics table that could be too large to list.

    Args:
        kind: the name of the hypothesis class, one of ``COVERED_KINDS``.
        tests: the feature tests that the hypotheses use.
        depth: the depth of trees.

    Raises:
        ConfigurationError: the table could be too large; the message says its size, and what to
            lower.

    """
    refuse_grid(point_count(tests))
    queries, cells = query_count_bound(kind, tests, depth=depth), point_count(tests)
    if queries > QUERY_COUNT_MAX or queries * cells > LABEL_COUNT_MAX:
        problem = (
            f"{len(tests)} tests make up to {_shown(queries)} hypotheses on {cells} cells, and a "
            f"table holds at most {QUERY_COUNT_MAX} and {LABEL_COUNT_MAX} labels: {FEWER}"
        )
        raise ConfigurationError(TESTS_KEY, problem)


def chosen_tests(
    kind: str,
    tests: Sequence[BinaryTest],
    public_values: NDArray[np.float64],
    *,
    depth: int,
    listed: Iterable[int] = (),
) -> tuple[BinaryTest, ...]:
    """Return the tests that the operator listed, and as many others as keep the table small.

    Every other feature keeps at most the same number of tests: the cuts (thresholds) next to
    quantiles of the public points, or the most frequent categories. Tests that are true on no point
    or on every point are left out first. If even one test per feature is too much, one is kept, and
    :func:`refuse_table` raises the error.

    Args:
        kind: the name of the hypothesis class, one of ``COVERED_KINDS``.
        tests: all tests of features.
        public_values: feature values of the points, encoded by the public schema, shape
            ``(points, features)``. Without points, one test per feature is kept.
        depth: the depth of trees.
        listed: the indices of the features whose tests the operator listed.

    """
    asked = tests_of_kind(kind, tests)
    fixed = set(listed)
    shares = evaluate(asked, public_values).mean(axis=0) if len(public_values) else None
    free: dict[int, list[tuple[float, BinaryTest]]] = {}
    for index, test in enumerate(asked):
        share = test.public_frequency if shares is None else float(shares[index])
        if test.feature_index not in fixed and (shares is None or 0 < share < 1):
            free.setdefault(test.feature_index, []).append((share, test))
    most = max(map(len, free.values()), default=1) if len(public_values) else 1
    for count in range(most, 0, -1):
        kept = {test for found in free.values() for test in _spread(found, count)}
        chosen = tuple(test for test in asked if test.feature_index in fixed or test in kept)
        if _is_small(kind, chosen, depth):
            break
    return chosen


def _is_small(kind: str, tests: Sequence[BinaryTest], depth: int) -> bool:
    queries, points = query_count_bound(kind, tests, depth=depth), point_count(tests)
    return (
        queries <= CHOSEN_QUERY_COUNT_MAX
        and points <= CHOSEN_POINT_COUNT_MAX
        and queries * points <= LABEL_COUNT_MAX
    )


def _spread(found: Sequence[tuple[float, BinaryTest]], count: int) -> list[BinaryTest]:
    """Return some tests of one feature: cuts near quantiles, or the commonest categories."""
    if len(found) <= count:
        return [test for _, test in found]
    if found[0][1].cut is None:
        ordered = sorted(found, key=lambda each: -each[0])
        return [test for _, test in ordered[:count]]
    left, kept = list(found), []
    for number in range(1, count + 1):
        wanted = 1 - number / (count + 1)
        nearest = min(left, key=lambda each: abs(each[0] - wanted))
        left.remove(nearest)
        kept.append(nearest[1])
    return kept


def _counts(tests: Iterable[BinaryTest]) -> Counter[int]:
    """Return the number of tests by feature."""
    return Counter(test.feature_index for test in tests)


def _shown(count: int) -> str:
    return str(count) if count < 10**9 else f"10^{math.log10(count):.0f}"
