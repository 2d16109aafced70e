"""Detection of features without information: out of range in every row, or always missing.

The result depends on private rows, so it is shown on the operator's terminal only.
"""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from app.data.schema import NumericFeature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.schema import CategoricalFeature, Feature, Schema

ALL_MISSING = "every value is missing"
NO_CATEGORY = "none of its categories occurs"
ON_ONE_BOUND = "every value lies on or beyond one bound"


class NumericSummary:
    """The smallest and largest value of a numeric feature, to find out if it has information."""

    def __init__(self, feature: NumericFeature) -> None:
        """Start with no values."""
        self._bounds = (feature.lower, feature.upper)
        self._lowest, self._highest = math.inf, -math.inf

    def add(self, encoded: NDArray[np.float64]) -> None:
        """Add encoded values of the feature to the summary; NaN stands for a missing value."""
        present = encoded[~np.isnan(encoded)]
        if len(present):
            self._lowest = min(self._lowest, float(present.min()))
            self._highest = max(self._highest, float(present.max()))

    def merge(self, other: NumericSummary) -> None:
        """Add the values of another summary of the same feature."""
        self._lowest = min(self._lowest, other._lowest)
        self._highest = max(self._highest, other._highest)

    @property
    def dead(self) -> str | None:
        """The reason why the feature has no information; None if it has."""
        if self._lowest > self._highest:
            return ALL_MISSING
        is_on_bound = self._lowest == self._highest and self._lowest in self._bounds
        return ON_ONE_BOUND if is_on_bound else None


class CategoricalSummary:
    """Whether any listed category of a feature occurs, to find out if it has information."""

    def __init__(self, feature: CategoricalFeature) -> None:
        """Start with no values."""
        self._other_code = feature.other_code
        self._has_category = self._has_other = False

    def add(self, encoded: NDArray[np.float64]) -> None:
        """Add encoded values of the feature to the summary."""
        self._has_category = self._has_category or bool((encoded < self._other_code).any())
        self._has_other = self._has_other or bool((encoded == self._other_code).any())

    def merge(self, other: CategoricalSummary) -> None:
        """Add the values of another summary of the same feature."""
        self._has_category = self._has_category or other._has_category
        self._has_other = self._has_other or other._has_other

    @property
    def dead(self) -> str | None:
        """The reason why the feature has no information; None if it has."""
        if self._has_category:
            return None
        return NO_CATEGORY if self._has_other else ALL_MISSING


FeatureSummary = NumericSummary | CategoricalSummary


def merged_summary(first: FeatureSummary, second: FeatureSummary) -> FeatureSummary:
    """Return one summary for the values of two summaries, without changing the two."""
    merged = copy(first)
    merged.merge(second)  # type: ignore[arg-type]  # of the same feature
    return merged


def summary_of(feature: Feature) -> FeatureSummary:
    """Return an empty summary for the values of a feature."""
    if isinstance(feature, NumericFeature):
        return NumericSummary(feature)
    return CategoricalSummary(feature)


def dead_features(schema: Schema, values: NDArray[np.float64]) -> dict[str, str]:
    """Return the name of each feature without information, and the reason.

    Args:
        schema: the public schema.
        values: feature values of the private rows, encoded by the public schema, shape
            ``(rows, features)``, at least one row.

    """
    summaries = [summary_of(feature) for feature in schema.features]
    for index, summary in enumerate(summaries):
        summary.add(values[:, index])
    return dead_of_summaries(schema, summaries)


def dead_of_summaries(schema: Schema, summaries: Sequence[FeatureSummary]) -> dict[str, str]:
    """Return the name of each feature without information, and the reason, from summaries.

    Args:
        schema: the public schema.
        summaries: one summary per feature, in the order of the schema.

    """
    found = {}
    for feature, summary in zip(schema.features, summaries, strict=True):
        if summary.dead is not None:
            found[feature.name] = summary.dead
    return found
