"""Labellings of public cells: rows find theirs, and draws have the exact law."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from app.errors import ConfigurationError, InvariantError
from app.learning.cells.cell_class import CellClass, CellLabels, CellSplits
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.noise.exact_choice import truncation_variation
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.enumeration import pearson, unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

# x0, then x1 where it holds, then x2 where x1 does not: four cells.
SPLITS = CellSplits(unit_tests(3), ((~0, 1), (2, ~3), (~1, ~2)))


def cell_of(row: NDArray[np.float64]) -> int:
    """Walk one row by hand."""
    if row[0] < 0.5:
        return 0
    if row[1] >= 0.5:
        return 3
    return 2 if row[2] >= 0.5 else 1


def rows(
    count: int, class_count: int, seed: int = 4
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return encoded rows and labels."""
    generator = np.random.default_rng(seed)
    return generator.random((count, 3)), generator.integers(0, class_count, count)


def test_every_row_finds_its_cell() -> None:
    """Across blocks of rows, as a walk by hand does; a missing number fails every test."""
    values, _ = rows(20_000, 2)
    values[::7, 0] = np.nan
    assert SPLITS.places(values).tolist() == [
        0 if math.isnan(row[0]) else cell_of(row) for row in values
    ]
    assert SPLITS.cell_count == 4


def test_without_a_test_there_is_one_cell() -> None:
    """All rows are alike."""
    alone = CellSplits((), ())
    assert (alone.cell_count, alone.root) == (1, ~0)
    assert alone.places(np.zeros((3, 2))).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "branches",
    [
        ((~0, 1), (~1, ~1), (~2, ~3)),  # a cell twice, and a node that nothing leads to
        ((~0, 2), (~1, ~2), (~3, 1)),  # a node below a later one
        ((~0, 1), (2, ~3), (~1, ~4)),  # a cell left out
        ((~0, 1), (2, ~3)),  # a test without branches
    ],
)
def test_what_is_no_tree_is_refused(branches: tuple[tuple[int, int], ...]) -> None:
    """Every node hangs once below an earlier one, and every cell is reached once."""
    with pytest.raises(InvariantError):
        CellSplits(unit_tests(3), branches)


@pytest.mark.parametrize(("class_count", "row_count"), [(2, 0), (2, 1), (2, 15), (3, 15)])
def test_the_normaliser_is_that_of_every_labelling(class_count: int, row_count: int) -> None:
    """The product over cells is the sum over all L^C labellings, to 1e-9."""
    values, labels = rows(row_count, class_count)
    hypotheses = CellClass(splits=SPLITS, class_count=class_count)
    cells = hypotheses.encode(values)
    errors = [
        np.count_nonzero(CellLabels(each).predict(cells) != labels)
        for each in product(range(class_count), repeat=4)
    ]
    assert hypotheses.size == len(errors) == class_count**4
    expected = logsumexp(-0.35 * np.array(errors, dtype=float))
    assert hypotheses.log_normaliser(cells, labels, 0.7) == pytest.approx(expected, abs=1e-9)


def test_draws_follow_the_weights_of_whole_labellings() -> None:
    """4,000 draws against exp(-epsilon errors / 2); Pearson passes but for 1 seed in 10,000."""
    values, labels = rows(12, 2, seed=8)
    hypotheses = CellClass(splits=SPLITS, class_count=2)
    cells, noise = hypotheses.encode(values), ScriptedNoise(seeded_words(3))
    every = list(product(range(2), repeat=4))
    weights = np.array(
        [
            math.exp(-0.5 * np.count_nonzero(CellLabels(each).predict(cells) != labels))
            for each in every
        ]
    )
    drawn = [hypotheses.draw(cells, labels, 1.0, noise).labels for _ in range(4000)]
    seen = np.array([drawn.count(each) for each in every], dtype=np.float64)
    statistic, freedom = pearson(seen, 4000 * weights / weights.sum())
    assert stats.chi2.sf(statistic, freedom) > 1e-4


def test_public_numbers_of_the_class() -> None:
    """Dimension, truncation and numerical error are those of C independent choices."""
    hypotheses = CellClass(splits=SPLITS, class_count=2)
    assert hypotheses.dimension == 4
    assert hypotheses.truncation_variation == 4 * truncation_variation(2)
    assert 0 < hypotheses.log_weight_error(10**6, 1.0) < 1e-11
    assert hypotheses.restricted_to(np.zeros((5, 1), dtype=np.int32)) is hypotheses


def test_the_best_labelling_is_each_cells_majority() -> None:
    """Ties and empty cells go to the first class."""
    hypotheses = CellClass(splits=SPLITS, class_count=3)
    cells = np.array([[0], [0], [0], [2], [2]], dtype=np.int32)
    found = hypotheses.best(cells, np.array([1, 2, 2, 2, 1]))
    assert found.to_dict() == {"cell_labels": [2, 0, 1, 0]}


def test_a_class_of_cells_needs_its_cells() -> None:
    """Without public cells there is no class, and the setting is named."""
    with pytest.raises(ConfigurationError, match="needs its public cells") as refused:
        hypothesis_class(ClassAsked(kind="cells", depth=1, class_count=2))
    assert refused.value.key == "hypotheses.class"
