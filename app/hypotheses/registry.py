"""Hypothesis classes by the name they have in a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.hypotheses.threshold_class import CLASS_COUNT, ThresholdClass
from app.hypotheses.tree_class import TreeClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.hypotheses.binary_tests import BinaryTest
    from app.hypotheses.hypothesis_class import HypothesisClass

KINDS = ("thresholds", "stumps", "trees")


def hypothesis_class(
    kind: str, tests: Sequence[BinaryTest], *, depth: int, class_count: int
) -> HypothesisClass:
    """Build the class ``kind`` over public tests.

    Args:
        kind: ``thresholds``, ``stumps`` (trees of depth 1) or ``trees``.
        tests: the public tests; thresholds use the numeric ones.  Without any
            test only the constants are left, as public points that are all
            alike leave them.
        depth: depth of ``trees``; the other kinds have their own.
        class_count: number of labels.

    Returns:
        The class; its ``tests`` are the ones that ``bits`` are columns of.

    Raises:
        ConfigurationError: an unknown kind, thresholds with more than two
            labels, or trees too many for exact weights.

    """
    if kind == "thresholds":
        if class_count != CLASS_COUNT:
            raise ConfigurationError(
                "hypotheses.class", f"thresholds need two classes, not {class_count}: use trees"
            )
        return ThresholdClass(tests=tuple(test for test in tests if test.cut is not None))
    if kind not in KINDS:
        raise ConfigurationError(
            "hypotheses.class", f"unknown class {kind!r}: use one of {', '.join(KINDS)}"
        )
    levels = 1 if kind == "stumps" else depth
    return TreeClass(tests=tuple(tests), depth=levels if tests else 0, class_count=class_count)
