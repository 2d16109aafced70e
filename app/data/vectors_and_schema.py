"""Checks of posted feature vectors against the public schema: VALIDATE, a query's first step.

Code that answers requests, such as ``app/http``, imports the checks and the schema's description
from this module, so that it never imports the readers of private rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.field_values import iso_date
from app.data.schema import BooleanFeature, DateFeature, NumericFeature, Schema
from app.data.vectors import (
    TOGETHER_MIN,
    Vector,
    parse_features,
    parse_number_row,
    parse_numbers,
)
from app.privacy.soft_labels.mechanism import BIN_COUNT_MAX, BIN_COUNT_MIN

if TYPE_CHECKING:
    from app.data.schema import Feature

__all__ = [
    "BIN_COUNT_MAX",
    "BIN_COUNT_MIN",
    "TOGETHER_MIN",
    "Schema",
    "Vector",
    "describe_schema",
    "parse_features",
    "parse_number_row",
    "parse_numbers",
]


def describe_schema(schema: Schema) -> dict[str, object]:
    """Return the schema for clients: features in order, classes, texts for missing values."""
    return {
        "features": [_describe(feature) for feature in schema.features],
        "label": schema.label,
        "classes": list(schema.classes),
        "missing": list(schema.missing),
    }


def _describe(feature: Feature) -> dict[str, object]:
    described: dict[str, object] = {"name": feature.name, "kind": feature.kind}
    if isinstance(feature, DateFeature):
        return described | {"bounds": [iso_date(feature.lower), iso_date(feature.upper)]}
    if isinstance(feature, NumericFeature):
        return described | {"bounds": [feature.lower, feature.upper]}
    if isinstance(feature, BooleanFeature):
        return described
    return described | {"categories": list(feature.categories)}
