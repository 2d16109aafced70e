"""How many public points equal a record, both encoded by the public schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class EqualPoints:
    """Counts public points that equal some private row."""

    def __init__(self, points: NDArray[np.float64]) -> None:
        """Keep encoded public points, shape (m, d), m at least 1."""
        self._points = _as_bytes(points)
        self._is_equal = np.zeros(len(points), dtype=bool)

    def add(self, private_values: NDArray[np.float64]) -> None:
        """Compare with encoded rows, shape (B, d)."""
        if len(private_values):
            self._is_equal |= np.isin(self._points, _as_bytes(private_values))

    @property
    def share(self) -> float:
        """Share of the public points that equal a record so far."""
        return float(self._is_equal.mean())


def _as_bytes(values: NDArray[np.float64]) -> NDArray[np.void]:
    """Return each row as one item, so that rows with the same bytes are equal."""
    rows = np.ascontiguousarray(values)
    return rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel()
