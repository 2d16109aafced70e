"""The law of a drawn tree, whole and to the last digit: what the proof charges 4 eta for.

A tree's probability is computed as the draw itself does, from integer weights
at every node and leaf, as an exact rational; and exactly, its weight over the
sum of all, in sixty digits.  The proof wants the two within ``e^(2 eta)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.learning.enumerated.enumerated_class import ScaledSums
from app.learning.trees.tree_distribution import Path, TreeSize, TreeWeights, draw_log_error
from app.learning.trees.upper_level_weights import multiset_rank
from app.noise.exact_choice import _grid_weights
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.exact_recursion import ARITHMETIC, ExactRecursion

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A choice of at least so many steps of the grid is there to 2**-72 of itself.
GRID_STEPS_MIN = 1 << 72


@dataclass(frozen=True)
class People:
    """Rows and how many people each stands for."""

    bits: NDArray[np.uint8]
    labels: NDArray[np.int64]
    copies: NDArray[np.int64]
    class_count: int
    depth: int
    epsilon: float

    @property
    def eta(self) -> float:
        """The bound that the mechanism is charged for."""
        size = TreeSize(
            test_count=self.bits.shape[1], depth=self.depth, class_count=self.class_count
        )
        return draw_log_error(size)

    def weights(self) -> TreeWeights:
        """The weights of the package."""
        return TreeWeights.of(
            np.repeat(self.bits, self.copies, axis=0),
            np.repeat(self.labels, self.copies),
            depth=self.depth,
            class_count=self.class_count,
            epsilon=self.epsilon,
        )

    def exact(self) -> ExactRecursion:
        """The weights in sixty digits."""
        return ExactRecursion(
            self.bits, self.labels, self.class_count, self.epsilon, copies=self.copies
        )


def deviation(people: People, weights: TreeWeights, *, seed: int, trees: int = 3) -> float:
    """Return the largest log ratio of what trees are drawn with and their exact probability.

    Half the trees are drawn; the others make every choice at random, among those
    that the grid of a draw does not round away.
    """
    exact, generator = people.exact(), np.random.default_rng(seed)
    noise = ScriptedNoise(seeded_words(seed))
    total = exact.sum(exact.everyone, people.depth)
    worst = 0.0
    for index in range(2 * trees):
        path_weights, weight = _walk(
            people, weights, exact, None if index % 2 else noise, generator
        )
        ratio = Decimal(path_weights.numerator) / Decimal(path_weights.denominator)
        log_ratio = (ratio * total / weight).ln(ARITHMETIC)
        worst = max(worst, abs(float(log_ratio)))
    return worst


def _walk(
    people: People,
    weights: TreeWeights,
    exact: ExactRecursion,
    noise: ScriptedNoise | None,
    generator: np.random.Generator,
) -> tuple[Fraction, Decimal]:
    """Return the probability of making the choices of a tree, and the tree's exact weight."""
    probability, weight = Fraction(1), Decimal(1)
    level: list[tuple[Path, frozenset[int]]] = [((), exact.everyone)]
    for levels in range(people.depth, -1, -1):
        below: list[tuple[Path, frozenset[int]]] = []
        for path, rows in level:
            choice, share = _choose(weights.log_weights(path), noise, generator)
            probability *= share
            if levels:
                sides = exact.sides(rows, choice)
                below += [((*path, (choice, side)), sides[side]) for side in (0, 1)]
            else:
                weight = ARITHMETIC.multiply(weight, exact.leaf(rows, choice))
        level = below
    return probability, weight


def _choose(
    log_weights: NDArray[np.float64], noise: ScriptedNoise | None, generator: np.random.Generator
) -> tuple[int, Fraction]:
    """Choose as a draw does, or any choice that it makes at all; return the odds of a draw."""
    grid = _grid_weights(log_weights)
    if noise is None:
        choice = int(
            generator.choice([at for at, steps in enumerate(grid) if steps > GRID_STEPS_MIN])
        )
    else:
        drawn = noise.below(sum(grid))
        choice = next(at for at in range(len(grid)) if drawn < sum(grid[: at + 1]))
    return choice, Fraction(grid[choice], sum(grid))


EPSILONS = (1e-320, 1e-9, 0.01, 0.1, 0.5, 1.0, 1.9999, 2.0, 2.0001, 7.0, 50.0)


@st.composite
def small_people(draw: st.DrawFn) -> People:
    """Few distinct rows, some standing for thousands; constant, equal and opposite tests."""
    depth = draw(st.integers(0, 5))
    class_count = draw(st.integers(2, 4 if depth < 4 else 3))
    test_count = draw(st.integers(1, 3 if depth < 4 else 2))
    row_count = draw(st.integers(0, 5))
    bits = draw(st.lists(st.integers(0, 7), min_size=row_count, max_size=row_count))
    table = np.array(bits, dtype=np.int64)[:, np.newaxis] >> np.arange(test_count) & 1
    kind = draw(st.sampled_from(("free", "constant", "equal", "opposite")))
    if kind == "constant":
        table[:, 0] = draw(st.integers(0, 1))
    elif kind != "free":
        table[:, -1] = table[:, 0] if kind == "equal" else 1 - table[:, 0]
    labels = draw(st.lists(st.integers(0, class_count - 1), min_size=row_count, max_size=row_count))
    copies = draw(
        st.lists(st.sampled_from((1, 2, 700, 20_000)), min_size=row_count, max_size=row_count)
    )
    return People(
        table.astype(np.uint8).reshape(row_count, test_count),
        np.array(labels, dtype=np.int64),
        np.array(copies, dtype=np.int64),
        class_count,
        depth,
        draw(st.sampled_from(EPSILONS)),
    )


@given(people=small_people(), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_every_tree_is_drawn_with_its_exact_probability(people: People, seed: int) -> None:
    """Within e^(2 eta), whatever the rows, labels, tests, depth and epsilon."""
    assert deviation(people, people.weights(), seed=seed) <= 2 * people.eta


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("one_label", [False, True])
def test_fifty_thousand_rows_are_weighed_as_exactly(
    epsilon: float, depth: int, *, one_label: bool
) -> None:
    """Errors in the tens of thousands underflow every exponential; no digit is lost for it."""
    generator = np.random.default_rng(depth)
    bits = (np.arange(8)[:, np.newaxis] >> np.arange(3) & 1).astype(np.uint8)
    bits = np.concatenate([bits, bits])
    labels = np.zeros(16, dtype=np.int64) if one_label else np.repeat([0, 1], 8)
    copies = generator.multinomial(50_000, generator.dirichlet(np.full(16, 0.3)))
    people = People(bits, labels, copies, 2, depth, epsilon)
    assert deviation(people, people.weights(), seed=depth) <= 2 * people.eta


def _empty_counted_once(weights: TreeWeights, depth: int) -> TreeWeights:
    """Weigh contradictory regions, which are empty, as a single tree."""
    tables = []
    for size, table in enumerate(weights.tables, start=1):
        errors, factors = table.errors.copy(), table.factors.copy()
        literal_count = 2 * weights.rows.test_count
        for literals in combinations_with_replacement(range(literal_count), size):
            if any(literal ^ 1 in literals for literal in literals):
                errors[multiset_rank(literals)], factors[multiset_rank(literals)] = 0.0, 1.0
        tables.append(ScaledSums(errors, factors))
    assert len(tables) == depth - 2
    return replace(weights, tables=tuple(tables))


def _last_digits_lost(weights: TreeWeights, _depth: int) -> TreeWeights:
    """Keep the factors of sums in single precision."""
    tables = tuple(
        ScaledSums(table.errors, table.factors.astype(np.float32).astype(np.float64))
        for table in weights.tables
    )
    return replace(weights, tables=tables)


def _one_error_more(weights: TreeWeights, _depth: int) -> TreeWeights:
    """Count one error too many in one region."""
    errors = weights.tables[-1].errors.copy()
    errors[len(errors) // 2] += 1
    return replace(
        weights, tables=(*weights.tables[:-1], ScaledSums(errors, weights.tables[-1].factors))
    )


@pytest.mark.parametrize("fault", [_empty_counted_once, _last_digits_lost, _one_error_more])
@pytest.mark.parametrize("depth", [4, 5])
def test_planted_faults_are_caught(fault: object, depth: int) -> None:
    """An empty region counted once, single precision, or one error too many leave the bound."""
    bits = (np.arange(4)[:, np.newaxis] >> np.arange(2) & 1).astype(np.uint8)
    people = People(bits, np.array([0, 1, 1, 0]), np.array([3, 40, 5, 9]), 2, depth, 0.3)
    sound = people.weights()
    assert deviation(people, sound, seed=1) <= 2 * people.eta
    assert callable(fault)
    assert deviation(people, fault(sound, depth), seed=1) > 2 * people.eta
