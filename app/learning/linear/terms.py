"""Public terms: conjunctions of outcomes of public tests, each 0 or 1 for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from app.errors import invariant
from app.learning.encoding.binary_tests import evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

Literal: TypeAlias = tuple[int, bool]
"""A test, by its index, and the outcome that it has to have."""

Term: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """A public list of terms over a public list of tests.

    Attributes:
        tests: the public tests.
        terms: literals that have all to hold, one or more each.

    """

    tests: tuple[BinaryTest, ...]
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        """Refuse an empty term, and one of a test that is not there."""
        invariant(all(self.terms), "a term has a literal")
        indices = [index for term in self.terms for index, _ in term]
        invariant(all(0 <= index < len(self.tests) for index in indices), "a term's tests exist")

    def __len__(self) -> int:
        """Return the number of terms, t."""
        return len(self.terms)

    @classmethod
    def single(cls, tests: Sequence[BinaryTest]) -> Terms:
        """Return one term for every test: that it holds."""
        return cls(tuple(tests), tuple(((index, True),) for index in range(len(tests))))

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return which terms hold, uint8 of shape ``(n, t)``.

        Args:
            values: encoded rows, shape ``(n, d)``.

        """
        outcomes = evaluate(self.tests, values)
        bits = np.ones((len(values), len(self.terms)), dtype=np.uint8)
        for column, term in enumerate(self.terms):
            for index, outcome in term:
                bits[:, column] &= outcomes[:, index] == outcome
        return bits
