"""How right labels are, and how well scores rank, over the runs of a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from benchmarks.panel.sets import Table
    from benchmarks.utility.results import Json


@dataclass(frozen=True, slots=True)
class Reached:
    """What the runs of a method reach at one epsilon.

    Attributes:
        accuracies: on all test rows, one a run.
        areas: under the curve of true and false positives, one a run; none without scores or
            with more than two labels.
        setting: that the runs had.
        area_setting: that the runs of ``areas`` had, where it is another one; else None.

    """

    accuracies: tuple[float, ...]
    areas: tuple[float, ...]
    setting: Mapping[str, Any]
    area_setting: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, runs: Sequence[tuple[float, float | None]], *, setting: Mapping[str, Any]
    ) -> Reached:
        """Return what so many runs reached."""
        areas = [area for _, area in runs if area is not None]
        return cls(tuple(accuracy for accuracy, _ in runs), tuple(areas), setting)

    def document(self) -> dict[str, Json]:
        """Return it as a file of results has it."""
        found: dict[str, Json] = {
            "accuracies": [round(each, 5) for each in self.accuracies],
            "areas": [round(each, 5) for each in self.areas],
            "setting": dict(self.setting),
        }
        if self.area_setting is not None:
            found["area_setting"] = dict(self.area_setting)
        return found


@dataclass(frozen=True, slots=True)
class Chosen:
    """The best of a few settings by accuracy, and the best by the area."""

    by_accuracy: int
    by_area: int

    @classmethod
    def of(cls, tried: Sequence[tuple[float, float | None]]) -> Chosen:
        """Return the places of the best of what the settings reached in one run each."""
        best = max(range(len(tried)), key=lambda each: tried[each][0])
        areas = [area for _, area in tried]
        if None in areas:
            return cls(best, best)
        return cls(best, max(range(len(tried)), key=lambda each: areas[each] or 0.0))


def scored(
    table: Table, labels: NDArray[np.int64], scores: NDArray[np.float64] | None
) -> tuple[float, float | None]:
    """Return the accuracy of labels on all test rows, and the area under the scores' curve.

    Args:
        table: of the panel.
        labels: predicted, shape ``(m,)``.
        scores: of the second of two labels, shape ``(m,)``; None where a method has none.

    """
    accuracy = float((labels == table.test_labels).mean())
    if scores is None or table.class_count > 2:
        return accuracy, None
    return accuracy, float(roc_auc_score(table.test_labels, np.nan_to_num(scores)))
