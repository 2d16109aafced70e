"""A public partition of all rows into cells, as a tree of tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.encoding.binary_tests import BinaryTest, PackedTests

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_PER_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class CellSplits:
    """Tests from a root down to cells, every one of them public.

    Attributes:
        tests: one at each inner node; node 0 is the root.  None leaves one cell.
        branches: where each node leads, false side first: the number of a later
            node, or ``~c`` for cell c.
        cell_count: number of cells C, numbered from 0.

    """

    tests: tuple[BinaryTest, ...]
    branches: tuple[tuple[int, int], ...]
    cell_count: int = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what is no tree, and count its cells."""
        invariant(len(self.tests) == len(self.branches), "every node has a test")
        ends = [end for pair in self.branches for end in pair]
        nodes = sorted(end for end in ends if end >= 0)
        cells = sorted(~end for end in ends if end < 0)
        invariant(nodes == list(range(1, len(self.tests))), "every node but the root hangs once")
        pairs = enumerate(self.branches)
        later = [end < 0 or end > node for node, pair in pairs for end in pair]
        invariant(all(later), "nodes hang below earlier ones")
        invariant(cells == list(range(len(cells))), "every cell is reached once")
        object.__setattr__(self, "cell_count", max(1, len(cells)))

    @property
    def root(self) -> int:
        """Return where every row starts: node 0, or the only cell."""
        return 0 if self.tests else ~0

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the cell of each row, a function of its own values.

        Args:
            values: encoded by the public schema, shape ``(n, d)``.

        Returns:
            Shape ``(n,)``, from 0 to C - 1.

        """
        if not self.tests:
            return np.zeros(len(values), dtype=np.int32)
        packed, branches = PackedTests(self.tests), np.array(self.branches, dtype=np.int32)
        places = np.empty(len(values), dtype=np.int32)
        for start in range(0, len(values), ROWS_PER_BLOCK):
            bits = packed.evaluate(values[start : start + ROWS_PER_BLOCK])
            places[start : start + ROWS_PER_BLOCK] = _descend(bits, branches)
        return places


def _descend(bits: NDArray[np.uint8], branches: NDArray[np.int32]) -> NDArray[np.int32]:
    """Follow every row from the root to its cell, shape ``(n,)``."""
    nodes = np.zeros(len(bits), dtype=np.int32)
    rows = np.arange(len(bits))
    while len(rows):
        here = nodes[rows]
        nodes[rows] = branches[here, bits[rows, here]]
        rows = rows[nodes[rows] >= 0]
    return ~nodes
