"""A draw that remembers: the law of a choice depends on nothing but its path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.learning.trees.tree_distribution import Path, TreeWeights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.trees.tree import Tree
    from app.noise.source import NoiseSource


@dataclass
class Remembered:
    """Weights that compute the law of each choice once, for thousands of draws."""

    weights: TreeWeights
    known: dict[Path, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """Levels of tests."""
        return self.weights.depth

    def log_weights(self, path: Path) -> NDArray[np.float64]:
        """Return what the weights do, the first time and later."""
        if path not in self.known:
            self.known[path] = self.weights.log_weights(path)
        return self.known[path]

    def draw(self, noise: NoiseSource) -> Tree:
        """Draw a tree by the code of the package."""
        # It asks for the depth and the law of choices, which are here.
        return TreeWeights.draw(self, noise)  # type: ignore[arg-type]  # as above
