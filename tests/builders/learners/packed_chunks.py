"""Chunks of different sizes, columns and classes, as packed fits are given them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from app.learning.estimators.batched_logistic import fit_logistic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

COLUMNS = 4


@dataclass(frozen=True)
class PackedChunks:
    """Encoded rows ``(n, c)``, labels ``(n,)`` and offsets ``(k + 1,)``."""

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    offsets: NDArray[np.int64]
    class_count: int

    @classmethod
    def make(cls, count: int, *, class_count: int) -> Self:
        """Draw chunks of 40 and 41 rows; some lack a column, and some all classes but two."""
        generator = np.random.default_rng(7)
        sizes = 40 + np.arange(count) % 2
        offsets = np.concatenate([[0], sizes.cumsum()])
        rows = generator.random((offsets[-1], COLUMNS))
        score = rows[:, 1] + 0.3 * generator.normal(size=len(rows))
        labels = np.clip((score * class_count).astype(np.int64), 0, class_count - 1)
        for index in range(count):
            own = slice(offsets[index], offsets[index + 1])
            if index % 4 == 3:
                rows[own, 2] = 0.0
            if index % 5 == 4:
                labels[own] = np.where(labels[own] > 0, class_count - 1, 0)
        return cls(rows, labels, offsets, class_count)

    def each(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Return rows and labels chunk by chunk."""
        for start, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.rows[start:end], self.labels[start:end]

    def only(self, index: int) -> PackedChunks:
        """Return one chunk."""
        own = slice(self.offsets[index], self.offsets[index + 1])
        size = np.array([0, own.stop - own.start])
        return PackedChunks(self.rows[own].copy(), self.labels[own], size, self.class_count)

    def with_one_changed(self, index: int) -> PackedChunks:
        """Return all chunks, one of which has other rows, another column and another class."""
        rows, labels = self.rows.copy(), self.labels.copy()
        own = slice(self.offsets[index], self.offsets[index + 1])
        rows[own, 0] = 0.0
        rows[own, 3] = 1.0 - rows[own, 3]
        labels[own] = np.where(labels[own] == labels[own][0], 1, 0)
        return PackedChunks(rows, labels, self.offsets, self.class_count)

    def logistic(
        self, *, inverse_strength: float = 1.0, has_intercept: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fit logistic regressions."""
        return fit_logistic(
            self.rows,
            self.labels,
            self.offsets,
            class_count=self.class_count,
            inverse_strength=inverse_strength,
            has_intercept=has_intercept,
        )
