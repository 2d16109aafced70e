"""What a public schema says of how its features are distributed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from app.data.schema import NumericFeature
from app.planning.trial.people import ColumnLaw

if TYPE_CHECKING:
    from app.data.schema import CategoricalFeature, Schema


def column_laws(schema: Schema) -> tuple[ColumnLaw, ...]:
    """Return one law a feature: by its public shares, and uniform where it has none.

    Shares that do not add up are scaled; nothing is missing.
    """
    return tuple(
        _number(feature) if isinstance(feature, NumericFeature) else _category(feature)
        for feature in schema.features
    )


def _number(feature: NumericFeature) -> ColumnLaw:
    """Return a number's law: uniform between cuts, as many people there as the shares say."""
    cuts, above = feature.thresholds, feature.threshold_shares
    if not cuts or not above:
        return ColumnLaw(edges=(feature.lower, feature.upper), shares=(1.0,))
    steps = (1.0, *above, 0.0)
    shares = [max(0.0, more - less) for more, less in pairwise(steps)]
    return ColumnLaw(edges=(feature.lower, *cuts, feature.upper), shares=tuple(shares))


def _category(feature: CategoricalFeature) -> ColumnLaw:
    """Return the law of a category's codes, of which the last counts any other string."""
    listed = feature.category_shares
    if not listed or not sum(listed):
        return ColumnLaw(edges=None, shares=(1.0,) * (len(feature.categories) + 1))
    return ColumnLaw(edges=None, shares=(*listed, max(0.0, 1.0 - sum(listed))))
