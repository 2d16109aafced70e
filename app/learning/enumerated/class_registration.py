"""The table entries of the hypothesis classes ``thresholds``, ``intervals`` and ``rectangles``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.learning.encoding.row_codes import IntegerCodes
from app.learning.enumerated.boxes import (
    Boxes,
    axes_of,
    box_class,
    box_count,
    box_dichotomies,
    box_dimension,
)
from app.learning.enumerated.enumerated_class import EnumeratedClass, EnumeratedHypothesis
from app.learning.enumerated.enumerated_ensemble import EnumeratedEnsemble
from app.learning.enumerated.learners import fit_enumerated, fit_hypothesis
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.hypothesis import ClassRegistration
from app.learning.trees.class_registration import TREES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.hypothesis import ClassAsked


def _make(asked: ClassAsked) -> EnumeratedClass:
    return box_class(asked.kind, axes_of(asked.tests))


def _dichotomies(asked: ClassAsked, values: NDArray[np.float64]) -> EnumeratedClass:
    boxes = box_dichotomies(asked.kind, values, asked.numeric)
    dimension = box_dimension(asked.kind, len(asked.numeric), size=len(boxes))
    return EnumeratedClass(boxes, dimension)


def _bound(asked: ClassAsked, row_count: int) -> int:
    return box_count(asked.kind, [max(0, row_count - 1)] * len(asked.numeric))


def _codes(searched: EnumeratedClass) -> IntegerCodes | None:
    """Return the bytes of a row's ranks; None of a list that is not of boxes."""
    boxes = searched.hypotheses
    if not isinstance(boxes, Boxes):
        return None
    largest = max((len(axis.cuts) for axis in boxes.axes), default=0)
    return IntegerCodes(searched.encode, columns=len(boxes.axes) + 1, largest=largest)


INTERVALS: Final = ClassRegistration(
    kind="intervals",
    searched=EnumeratedClass,
    listed=Boxes,
    hypothesis=EnumeratedHypothesis,
    drawn="an interval",
    numbers=(1, None),
    covers=True,
    make=_make,
    dichotomies=_dichotomies,
    dichotomy_bound=_bound,
    fit=fit_enumerated,
    codes=_codes,
    joined=lambda searched, fitted: EnumeratedEnsemble.joined(searched.hypotheses, fitted),
    read=lambda searched, body: EnumeratedEnsemble.from_bytes(searched.hypotheses, body),
    best=fit_hypothesis,
)
RECTANGLES: Final = replace(INTERVALS, kind="rectangles", drawn="a rectangle", numbers=(2, None))
THRESHOLDS: Final = replace(
    TREES,
    kind="thresholds",
    searched=ThresholdClass,
    drawn="a threshold",
    numbers=(1, None),
    takes_tests=False,
    make=lambda asked: ThresholdClass(
        tests=tuple(test for test in asked.tests if test.cut is not None)
    ),
    dichotomies=_dichotomies,
    dichotomy_bound=_bound,
    counted=INTERVALS.counted,
    packed=None,
    search_seconds=None,
    refuse_search=INTERVALS.refuse_search,
    refuse_rows=INTERVALS.refuse_rows,
)
