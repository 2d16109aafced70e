"""VALIDATE: public inputs against the public schema, nothing else.

The layers above take vectors and the schema's description from here, so that
they never import the readers of private rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.schema import NumericFeature, Schema
from app.data.vectors import TOGETHER_MIN, Vector, parse_features, parse_numbers
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
    "parse_numbers",
]


def describe_schema(schema: Schema) -> dict[str, object]:
    """Return what a client needs to ask: features in order, classes, missing tokens."""
    return {
        "features": [_describe(feature) for feature in schema.features],
        "label": schema.label,
        "classes": list(schema.classes),
        "missing": list(schema.missing),
    }


def _describe(feature: Feature) -> dict[str, object]:
    if isinstance(feature, NumericFeature):
        return {
            "name": feature.name,
            "kind": "numeric",
            "bounds": [feature.lower, feature.upper],
        }
    return {
        "name": feature.name,
        "kind": "categorical",
        "categories": list(feature.categories),
    }
