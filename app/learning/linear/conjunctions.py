"""Conjunctions (terms) of the outcomes of public feature tests, each 0 or 1 for every row.

A term is true on a row if several tests have given outcomes. The module also chooses pairs of tests
as inputs of a linear classifier. Of every feature, up to three tests are taken: first the test
whose outcomes on public points (feature vectors) vary most, and then those whose outcomes the
earlier ones explain least. The products of the tests of any two features are inputs too. The part
of a product that the tests themselves explain is removed. Then a public linear map keeps only the
80 combinations of the products in which public points differ most, since fewer inputs need less
noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from app.errors import invariant
from app.learning.encoding.binary_tests import evaluate
from app.learning.linear.whitening import PublicMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

Literal: TypeAlias = tuple[int, bool]
"""A test, by its index, and the outcome that it has to have."""

Term: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """A public list of conjunctions of public feature tests.

    Attributes:
        tests: the public yes-or-no tests of features.
        terms: the conjunctions. Each is a list of test indices with outcomes, and is true if all
            these tests have these outcomes.

    """

    tests: tuple[BinaryTest, ...]
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        """Refuse a conjunction without feature tests, and one of a test that does not exist."""
        invariant(all(self.terms), "a term has a literal")
        indices = [index for term in self.terms for index, _ in term]
        invariant(all(0 <= index < len(self.tests) for index in indices), "a term's tests exist")

    def __len__(self) -> int:
        """Return the number of conjunctions."""
        return len(self.terms)

    @classmethod
    def single(cls, tests: Sequence[BinaryTest]) -> Terms:
        """Return one conjunction per feature test, which is true if the test is."""
        return cls(tuple(tests), tuple(((index, True),) for index in range(len(tests))))

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return for each row which conjunctions are true, 0 or 1, shape ``(rows, terms)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        outcomes = evaluate(self.tests, values)
        bits = np.ones((len(values), len(self.terms)), dtype=np.uint8)
        for column, term in enumerate(self.terms):
            for index, outcome in term:
                bits[:, column] &= outcomes[:, index] == outcome
        return bits


# How many tests a feature gives at most, and how many products there are at most.
TESTS_PER_FEATURE: Final = 3
PAIRS_MAX: Final = 1000
# Combinations that are kept, ...
RANK: Final = 80
# ... and their mean square together; that of a test alone is a quarter at most.
SIZE: Final = 0.3
# What keeps the regression of products on tests from following single points.
RIDGE: Final = 0.01
LEAST: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class PairedTests:
    """The pairs of feature tests that are inputs of a classifier, and a map of the inputs.

    Attributes:
        pairs: the indices of two tests of different features, for each pair.
        public_map: a public linear map of all inputs: first the tests, then the pairs in order. It
            keeps the tests, and a few combinations of the pairs.

    """

    pairs: tuple[tuple[int, int], ...]
    public_map: PublicMap


def paired(public_bits: NDArray[np.uint8], feature_indices: Sequence[int]) -> PairedTests | None:
    """Return the pairs of feature tests to use as inputs, and a map that combines the inputs.

    Both are computed from public points (feature vectors). The result is None if the points or
    features are too few for any pair.

    Args:
        public_bits: outcomes of the tests on the public points, shape ``(points, tests)``.
        feature_indices: the index of each test's feature, length ``tests``.

    """
    centred = public_bits - public_bits.mean(axis=0)
    chosen = _chosen_tests(centred, feature_indices)
    pairs = [pair for one, other in combinations(chosen, 2) for pair in _product_of(one, other)]
    if not pairs:
        return None
    first, second = np.array(pairs).T
    share = {test: 1 / math.sqrt(len(tests)) for tests in chosen for test in tests}
    sizes = np.array([share[one] * share[other] for one, other in pairs])
    products = centred[:, first] * centred[:, second] * sizes
    whole = math.sqrt(float((products**2).sum(axis=1).mean()))
    if whole <= LEAST:
        return None
    directions = _directions(products / whole, centred) * math.sqrt(SIZE)
    weights = (sizes / whole)[:, None] * directions
    return PairedTests(tuple(pairs), _map_of(public_bits, (first, second), weights))


def _product_of(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    return [(first, second) for first in one for second in other]


def _chosen_tests(
    centred: NDArray[np.float64], feature_indices: Sequence[int]
) -> list[tuple[int, ...]]:
    """Return the tests that stand for each feature, fewer where products would be too many."""
    columns: dict[int, list[int]] = {}
    for column, feature in enumerate(feature_indices):
        columns.setdefault(feature, []).append(column)
    for most in range(TESTS_PER_FEATURE, 0, -1):
        counts = [min(most, len(each)) for each in columns.values()]
        if sum(one * other for one, other in combinations(counts, 2)) <= PAIRS_MAX:
            return [_most_different(centred, each, most) for each in columns.values()]
    return []


def _most_different(
    centred: NDArray[np.float64], columns: Sequence[int], most: int
) -> tuple[int, ...]:
    """Return up to so many columns, each the one that those before it say least of."""
    if len(columns) <= most:
        return tuple(columns)
    left = centred[:, columns]
    found: list[int] = []
    for _ in range(most):
        squares = (left**2).sum(axis=0)
        place = int(squares.argmax())
        if squares[place] <= LEAST:
            break
        found.append(columns[place])
        direction = left[:, place] / math.sqrt(float(squares[place]))
        left = left - np.outer(direction, direction @ left)
    return tuple(sorted(found))


def _directions(products: NDArray[np.float64], centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return combinations of products that vary most beside the tests, shape ``(P, r)``."""
    known = np.hstack([centred, np.ones((len(centred), 1))])
    moments = known.T @ known / len(known)
    ridge = np.full(len(moments), RIDGE * float(np.diag(moments)[:-1].mean()))
    explained = np.linalg.solve(moments + np.diag(ridge), known.T @ products / len(known))
    unsaid = products - known @ explained
    _, vectors = np.linalg.eigh(unsaid.T @ unsaid / len(unsaid))
    return np.asarray(vectors[:, ::-1][:, :RANK], dtype=np.float64)


def _map_of(
    public_bits: NDArray[np.uint8],
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    weights: NDArray[np.float64],
) -> PublicMap:
    """Return the tests and the combinations as one map of tests and plain conjunctions.

    A product of centred tests is their conjunction, less each by the other's mean.
    """
    mean = public_bits.mean(axis=0)
    first, second = pairs
    test_count = public_bits.shape[1]
    of_tests = np.zeros((test_count, weights.shape[1]))
    np.add.at(of_tests, first, -mean[second][:, None] * weights)
    np.add.at(of_tests, second, -mean[first][:, None] * weights)
    matrix = np.vstack(
        [
            np.hstack([np.eye(test_count), of_tests]),
            np.hstack([np.zeros((len(weights), test_count)), weights]),
        ]
    )
    bits = np.hstack([public_bits, public_bits[:, first] & public_bits[:, second]])
    return PublicMap.of_points(bits, matrix)
