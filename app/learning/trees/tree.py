"""Complete decision trees over yes-or-no tests of features, stored as integers.

The nodes are stored in heap order (level by level from the root): the root is node 0, and the
children of node ``i`` are ``2 * i + 1`` if its test is false, and ``2 * i + 2`` if its test is
true. The leaves follow the inner nodes from left to right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import LedgerCorruptError, invariant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from app.learning.enumerated.hypothesis_list import Encoded


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A complete decision tree: feature tests in the inner nodes, class indices in the leaves.

    Attributes:
        test_indices: the index of the test of each inner node in heap order (level by level from
            the root), length ``2**depth - 1``.
        leaf_labels: the class index of each leaf from left to right, length ``2**depth``.

    """

    test_indices: tuple[int, ...]
    leaf_labels: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse lists of lengths that are not those of a complete tree, and negative indices."""
        leaf_count = len(self.leaf_labels)
        invariant(leaf_count >= 1, "a tree has a leaf")
        invariant(leaf_count & (leaf_count - 1) == 0, "a complete tree has 2**depth leaves")
        invariant(len(self.test_indices) == leaf_count - 1, "a tree has a test an inner node")
        invariant(min(self.test_indices + self.leaf_labels) >= 0, "tree indices start at zero")

    @property
    def depth(self) -> int:
        """The number of feature tests between the root and a leaf."""
        return len(self.leaf_labels).bit_length() - 1

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the class index of every row, shape ``(rows,)``.

        Args:
            encoded: outcomes of the feature tests, shape ``(rows, tests)``.

        """
        return np.array(self.leaf_labels, dtype=np.int64)[self.leaves(encoded)]

    def leaves(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the index, from the left, of the leaf that every row reaches, ``(rows,)``."""
        bits = encoded.astype(np.uint8, copy=False)
        tests = np.array(self.test_indices, dtype=np.intp)
        rows = np.arange(len(bits))
        nodes = np.zeros(len(bits), dtype=np.int64)
        for _ in range(self.depth):
            nodes = 2 * nodes + 1 + bits[rows, tests[nodes]]
        return nodes - len(self.test_indices)

    def to_dict(self) -> dict[str, list[int]]:
        """Return the tree as lists of integers, for storage or publication."""
        return {"test_indices": list(self.test_indices), "leaf_labels": list(self.leaf_labels)}

    @classmethod
    def from_dict(cls, body: Mapping[str, object]) -> Self:
        """Return the tree that :meth:`to_dict` wrote.

        Raises:
            LedgerCorruptError: the mapping does not describe a tree.

        """
        if set(body) != {"test_indices", "leaf_labels"}:
            message = "a stored tree has other fields than a tree"
            raise LedgerCorruptError(message)
        return cls(
            test_indices=_integers(body["test_indices"]),
            leaf_labels=_integers(body["leaf_labels"]),
        )


def _integers(raw: object) -> tuple[int, ...]:
    """Return a stored list of integers, or refuse it."""
    if isinstance(raw, list | tuple) and all(type(item) is int for item in raw):
        return tuple(raw)
    message = "a stored tree holds something else than integers"
    raise LedgerCorruptError(message)
