"""Whether a row lies in a published halfspace: sums of whole numbers of steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.data.vectors import Vector
    from app.release.classifier.published import HalfspaceDocument


def holds_point(halfspace: HalfspaceDocument, vector: Vector) -> bool:
    """Return whether a row, in schema order, lies in the halfspace, by sums of integers."""
    point = [
        _steps(vector[feature], bounds, halfspace.steps)
        for feature, bounds in zip(halfspace.features, halfspace.bounds, strict=True)
    ]
    for level in halfspace.levels:
        terms = (weight * place for weight, place in zip(level.weights, point, strict=True))
        value = sum(terms) - level.offset
        if value:
            return value > 0
    return False


def _steps(value: float | str | None, bounds: tuple[float, float], steps: int) -> int:
    """Return how many steps a clipped number lies above its lower bound; 0 where missing."""
    if not isinstance(value, float) or math.isnan(value):
        return 0
    lower, upper = bounds
    return round((min(max(value, lower), upper) - lower) / (upper - lower) * steps)
