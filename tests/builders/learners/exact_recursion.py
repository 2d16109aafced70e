"""Sums over all trees by plain recursion over rows, in decimals of sixty digits."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ARITHMETIC = Context(prec=60)


@dataclass
class ExactRecursion:
    """Sums of the weights of all trees over a region, which is a set of rows.

    Attributes:
        bits: outcomes, shape ``(n, t)``.
        labels: class indices, shape ``(n,)``.
        class_count: number of labels.
        epsilon: parameter of the weights.
        copies: how many people each row stands for, shape ``(n,)``; one each if None.
        shortcut: the planted fault, one tree in an empty region.

    """

    bits: NDArray[np.uint8]
    labels: NDArray[np.int64]
    class_count: int
    epsilon: float
    copies: NDArray[np.int64] | None = None
    shortcut: bool = False
    known: dict[tuple[frozenset[int], int], Decimal] = field(default_factory=dict)

    @property
    def everyone(self) -> frozenset[int]:
        """All rows."""
        return frozenset(range(len(self.labels)))

    def sides(self, rows: frozenset[int], test: int) -> tuple[frozenset[int], frozenset[int]]:
        """Split rows by an outcome, 0 first."""
        satisfying = frozenset(row for row in rows if self.bits[row, test])
        return rows - satisfying, satisfying

    def leaf(self, rows: frozenset[int], label: int) -> Decimal:
        """Weigh a leaf that answers ``label``."""
        errors = sum(
            1 if self.copies is None else int(self.copies[row])
            for row in rows
            if self.labels[row] != label
        )
        return ARITHMETIC.exp(ARITHMETIC.multiply(Decimal(-errors), Decimal(self.epsilon) / 2))

    def node(self, rows: frozenset[int], test: int, depth: int) -> Decimal:
        """Weigh all trees of a depth that ask ``test`` first."""
        false_side, true_side = self.sides(rows, test)
        return ARITHMETIC.multiply(self.sum(false_side, depth - 1), self.sum(true_side, depth - 1))

    def sum(self, rows: frozenset[int], depth: int) -> Decimal:
        """Weigh all trees of a depth."""
        if self.shortcut and not rows:
            return Decimal(1)
        if (rows, depth) not in self.known:
            if depth == 0:
                terms = [self.leaf(rows, label) for label in range(self.class_count)]
            else:
                terms = [self.node(rows, test, depth) for test in range(self.bits.shape[1])]
            total = Decimal(0)
            for term in terms:
                total = ARITHMETIC.add(total, term)
            self.known[rows, depth] = total
        return self.known[rows, depth]
