"""The features of a public schema in the form that hypothesis classes and learners accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.schema import NumericFeature
from app.learning.encoding.public_columns import PublicColumn

if TYPE_CHECKING:
    from app.data.schema import Schema


def public_columns(schema: Schema) -> tuple[PublicColumn, ...]:
    """Return for each feature the bounds of a number, or the number of listed categories."""
    return tuple(
        PublicColumn(bounds=(feature.lower, feature.upper))
        if isinstance(feature, NumericFeature)
        else PublicColumn(category_count=len(feature.categories))
        for feature in schema.features
    )
