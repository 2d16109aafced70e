"""Private rows, encoded by public rules only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.errors import invariant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PrivateRows:
    """The private rows of a release; secret, and never shown by ``repr``.

    Attributes:
        values: float64 (n, d); a number clipped to its bounds, NaN where it
            is missing; the code of a category.
        labels: int64 (n,); the index of the label among the classes.
        fingerprints: those computed so far, by their keys; the arrays are frozen.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    fingerprints: dict[bytes, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze both arrays."""
        invariant(self.values.shape[:1] == self.labels.shape, "every row has one label")
        self.values.flags.writeable = False
        self.labels.flags.writeable = False

    @property
    def count(self) -> int:
        """Return n, which is public."""
        return len(self.labels)
