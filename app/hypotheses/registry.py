"""Hypothesis classes by the name they have in a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.hypotheses.box_families import axes_of, box_class
from app.hypotheses.enumerated_class import refuse_labels
from app.hypotheses.threshold_class import ThresholdClass
from app.hypotheses.tree_class import TreeClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.hypotheses.binary_tests import BinaryTest
    from app.hypotheses.hypothesis_class import HypothesisClass

KINDS = ("thresholds", "stumps", "intervals", "rectangles", "trees")


def hypothesis_class(
    kind: str, tests: Sequence[BinaryTest], *, depth: int, class_count: int
) -> HypothesisClass:
    """Build the class ``kind`` over public tests.

    Args:
        kind: ``thresholds``, ``stumps`` (trees of depth 1), ``intervals``,
            ``rectangles`` or ``trees``.
        tests: the public tests; thresholds, intervals and rectangles use the
            numeric ones.  Without any test only the constants are left, as
            public points that are all alike leave them.
        depth: depth of ``trees``; the other kinds have their own.
        class_count: number of labels.

    Raises:
        ConfigurationError: an unknown kind, more than two labels for a class
            of two sides, or more hypotheses than exact weights can serve.

    """
    if kind not in KINDS:
        raise ConfigurationError(
            "hypotheses.class", f"unknown class {kind!r}: use one of {', '.join(KINDS)}"
        )
    if kind in {"trees", "stumps"}:
        levels = 1 if kind == "stumps" else depth
        return TreeClass(tests=tuple(tests), depth=levels if tests else 0, class_count=class_count)
    refuse_labels(kind, class_count)
    if kind == "thresholds":
        return ThresholdClass(tests=tuple(test for test in tests if test.cut is not None))
    return box_class(kind, axes_of(tests))
